# The agent does not accept an arbitrary server as Kubernetes.
# SPDX-License-Identifier: LGPL-3.0-only
import json

import pytest
from flux_k8s import agent, configcheck, main
from flux_k8s.kube import Kube
from flux_k8s.kubeconfig import ConfigError

OPTION = "--allow-insecure-kubernetes"
HTTP = "http"
SKIP = "insecure-skip-tls-verify"


@pytest.fixture
def kubeconfig(tmp_path):
    path = tmp_path / "kubeconfig"

    def write(server, **cluster):
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": {"server": server, **cluster}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
        }
        path.write_text(json.dumps(config))
        return str(path)

    return write


@pytest.mark.parametrize(
    "server",
    [
        "https://kube.example.com:6443",
        "https://10.0.0.1",
        "http://127.0.0.1:8080",
        "http://127.3.2.1",
        "http://localhost:1",
        "HTTP://LOCALHOST:1",
        "http://[::1]:8080",
    ],
)
def test_what_is_trusted(kubeconfig, server, caplog):
    Kube(kubeconfig(server))
    assert caplog.records == []


FAULTS = [
    ("http://kube.example.com:8080", False, HTTP),
    ("HTTP://10.0.0.1", False, HTTP),
    ("http://127.0.0.1.example.com", False, HTTP),
    ("http://127.0.0.1@example.com", False, HTTP),
    ("http://localhost.example.com", False, HTTP),
    ("http://[2001:db8::1]:8080", False, HTTP),
    ("http://128.0.0.1", False, HTTP),
    ("10.0.0.1:8080", False, HTTP),
    ("https://kube.example.com", True, SKIP),
    ("https://127.0.0.1:6443", True, SKIP),
]


@pytest.mark.parametrize("server, skip, said", FAULTS)
def test_what_is_not(kubeconfig, server, skip, said):
    path = kubeconfig(server, **({SKIP: True} if skip else {}))
    with pytest.raises(ConfigError) as caught:
        Kube(path)
    text = str(caught.value)
    assert text.startswith(f"kubeconfig {path}: ")
    assert said in text and OPTION in text


@pytest.mark.parametrize("server, skip, said", FAULTS)
def test_an_option_allows_it_and_the_log_says_so_once(
    kubeconfig, server, skip, said, caplog
):
    path = kubeconfig(server, **({SKIP: True} if skip else {}))
    kube = Kube(path, insecure=True)
    kube._load()
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert said in record.getMessage() and OPTION in record.getMessage()


def test_a_file_that_gets_insecure_is_not_taken(kubeconfig, monkeypatch, caplog):
    monkeypatch.setattr("flux_k8s.kube.RELOAD_INTERVAL_S", 0.0)
    kube = Kube(kubeconfig("https://kube.example.com"))
    before = kube._configuration.host
    kubeconfig("http://other.example.com")
    kube._try_reload()
    assert kube._configuration.host == before
    (record,) = caplog.records
    assert record.levelname == "WARNING" and OPTION in record.getMessage()


def test_check_config_names_it(kubeconfig, tmp_path):
    (tmp_path / "mapping.json").write_text('{"computes": {}, "rabbits": {}}')
    table = {
        "mapping": str(tmp_path / "mapping.json"),
        "kubeconfig": kubeconfig("http://kube.example.com"),
    }
    (fault,) = configcheck.faults({"rabbit": table})[0]
    assert fault.startswith("rabbit.kubeconfig: ") and OPTION in fault
    assert configcheck.faults({"rabbit": table}, insecure=True) == ([], [])
    conf = tmp_path / "a.toml"
    conf.write_text(
        "[rabbit]\n" + "".join(f'{key} = "{value}"\n' for key, value in table.items())
    )
    assert main.main([f"--check-config={conf}"]) == 1
    assert main.main([f"--check-config={conf}", OPTION]) == 0


def test_the_agent_goes_by_the_option(kubeconfig, monkeypatch):
    taken = []
    monkeypatch.setattr(
        agent, "Kube", lambda *_, insecure, **__: taken.append(insecure) or object()
    )
    monkeypatch.setattr(agent, "Session", lambda *_: None)
    for overrides in (agent.Overrides(), agent.Overrides(insecure=True)):
        one = agent.Agent(None, overrides)
        one._on_turn = one._serve_metrics = lambda *_: None
        one._begin_session({"instance": "1"})
    assert taken == [False, True]
