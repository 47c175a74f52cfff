# The choice of the kubeconfig, and merging of several, must agree with kubectl.
# SPDX-License-Identifier: LGPL-3.0-only
import base64
import gc
import json
import os
import resource
import ssl
import tempfile

import pytest
from faulty_server import Server, tls_authority
from flux_k8s.errors import ApiError
from flux_k8s.kube import Kube
from flux_k8s.kubeconfig import ConfigError
from flux_k8s.transport import Transport


def config(server="", context="", token="", **cluster):
    """A kubeconfig with what is given, of the cluster "k" and the user "u"."""
    found = {"apiVersion": "v1", "kind": "Config"}
    if context:
        found["current-context"] = context
        found["contexts"] = [
            {"name": context, "context": {"cluster": "k", "user": "u"}}
        ]
    if server or cluster:
        cluster["server"] = server
        found["clusters"] = [{"name": "k", "cluster": cluster}]
    if token:
        found["users"] = [{"name": "u", "user": {"token": token}}]
    return found


@pytest.fixture
def put(tmp_path, monkeypatch):
    """Write files, and have KUBECONFIG name them."""

    def write(**files):
        for name, content in files.items():
            text = content if isinstance(content, str) else json.dumps(content)
            (tmp_path / name).write_text(text)
        monkeypatch.setenv("KUBECONFIG", ":".join(str(tmp_path / n) for n in files))

    monkeypatch.setenv("HOME", str(tmp_path))
    return write


@pytest.fixture
def addresses(monkeypatch):
    """The servers to which connections are made, and the headers for them."""
    found = []
    init = Transport.__init__

    def note(transport, host, *args):
        found.append(host)
        init(transport, host, *args)

    monkeypatch.setattr(Transport, "__init__", note)
    return found


def token_of(kube):
    return kube._configuration.auth_settings()["BearerToken"]["value"]


A, B = "http://127.0.0.1:1", "http://127.0.0.1:2"


def test_the_first_file_that_sets_a_value_wins(put, addresses):
    put(
        a=config(A, "c", "first"),
        b=config(B, "other", "second"),
    )
    assert token_of(Kube()) == "Bearer first" and addresses == [A]


def test_each_file_may_have_a_part(put, addresses):
    put(a=config(context="c"), b=config(token="t"), c=config(B), d=config(A))
    assert token_of(Kube()) == "Bearer t" and addresses == [B]


def test_a_file_that_is_missing_is_passed_over(put, addresses, monkeypatch):
    put(b=config(B, "c", "t"))
    monkeypatch.setenv("KUBECONFIG", f"/no/such::{os.environ['KUBECONFIG']}:/nor/this")
    Kube()
    assert addresses == [B]


def test_all_are_missing(monkeypatch):
    monkeypatch.setenv("KUBECONFIG", "/no/such:/nor/this")
    with pytest.raises(ConfigError, match="^kubeconfig /no/such:/nor/this: none of"):
        Kube()


def test_the_one_that_is_named_is_missing(tmp_path):
    path = str(tmp_path / "none")
    with pytest.raises(ConfigError) as error:
        Kube(path)
    assert str(error.value) == f"kubeconfig {path}: No such file or directory"


def test_home(put, addresses, monkeypatch, tmp_path):
    put(a=config(A, "c", "t"))
    monkeypatch.setenv("KUBECONFIG", "/no/such:~/a")
    Kube()
    Kube("~/a")
    monkeypatch.delenv("KUBECONFIG")
    (tmp_path / ".kube").mkdir()
    (tmp_path / "a").rename(tmp_path / ".kube" / "config")
    Kube()
    assert addresses == [A, A, A]


def test_a_name_with_a_colon_is_one_file(put, addresses, tmp_path):
    put(**{"a:b": config(A, "c", "t")})
    Kube(str(tmp_path / "a:b"))
    assert addresses == [A]


def test_certificates_are_next_to_the_file_that_names_them(put, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "ca.pem").write_bytes(tls_authority().pem)
    b = config("https://127.0.0.1:1", **{"certificate-authority": "ca.pem"})
    put(a=config(context="c", token="t"), **{"sub/b": b})
    assert Kube()._configuration.ssl_ca_cert == str(tmp_path / "sub" / "ca.pem")


def test_files_may_be_in_a_directory_of_any_name(tmp_path):
    authority = tls_authority()
    server = Server(tmp_path, authority.server_context())
    folder = tmp_path / "Jos\u00e9 \u2022"
    folder.mkdir()
    client = authority.client("wlm")
    names = {"ca": authority.pem, "cert": client.certificate, "key": client.key}
    for name, data in names.items():
        (folder / name).write_bytes(data)
    keys = {"client-certificate": folder / "cert", "client-key": folder / "key"}
    user = {key: str(path) for key, path in keys.items()}
    kube = server.kube(ca=folder / "ca", user=user)
    assert kube.get("workflows", "default", "w")["kind"] == "Workflow"
    server.close()


@pytest.mark.parametrize(
    "address",
    ["https://b\u00fccher.example", "https://a:99999", "https://a:b", "https://a:0"],
)
def test_an_address_that_is_none_is_named(put, address):
    put(a=config(address, "c", "t"))
    with pytest.raises(ConfigError, match=r"kubeconfig .*/a: server: .* is no address"):
        Kube()


def test_one_that_is_none_is_named(put, tmp_path):
    put(a=config(A, "c", "t"), b="nonsense")
    with pytest.raises(ConfigError, match=f"kubeconfig {tmp_path}/a:{tmp_path}/b: "):
        Kube()


def test_a_file_that_is_nested_too_deeply_is_named(tmp_path):
    path = tmp_path / "kubeconfig"
    path.write_text("[" * 100_000)
    with pytest.raises(ConfigError, match=f"kubeconfig {path}: not a kubeconfig"):
        Kube(str(path))


def embed(data):
    return base64.b64encode(data).decode()


@pytest.fixture
def embedded(tmp_path):
    """A server, and a kubeconfig that has all certificates in itself."""
    authority = tls_authority()
    context = authority.server_context()
    context.verify_mode = ssl.CERT_REQUIRED
    server = Server(tmp_path, context)
    client = authority.client("wlm")
    user = {
        "client-certificate-data": embed(client.certificate),
        "client-key-data": embed(client.key),
    }
    path = tmp_path / "kubeconfig"
    server.kubeconfig(user=user)
    text = json.loads(path.read_text())
    text["clusters"][0]["cluster"]["certificate-authority-data"] = embed(authority.pem)
    path.write_text(json.dumps(text))
    yield str(path)
    server.close()


def test_embedded_certificates_are_in_no_directory_that_is_swept(
    embedded, tmp_path, monkeypatch
):
    swept = tmp_path / "tmp"
    swept.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(swept))
    kube = Kube(embedded)
    for _ in range(2):
        assert kube.get("workflows", "default", "w")["kind"] == "Workflow"
        assert list(swept.iterdir()) == []
        kube._transport.renew()


def in_memory():
    """How many files of embedded certificates this process has."""
    fds = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
    names = [os.readlink(fd) for fd in fds if os.path.exists(fd)]
    return sum(name.startswith("/memfd:kubeconfig") for name in names)


def test_a_kubeconfig_that_is_read_again_and_again_takes_no_more_files(embedded):
    gc.collect()
    before = in_memory()
    kube = Kube(embedded)
    for _ in range(5):
        kube._load()
        assert kube.get("workflows", "default", "w")["kind"] == "Workflow"
    gc.collect()
    assert in_memory() == before + 3
    del kube
    gc.collect()
    assert in_memory() == before


def test_the_lack_of_file_descriptors_is_named(embedded):
    kube = Kube(embedded)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = max(map(int, os.listdir("/proc/self/fd")))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 1, hard))
    taken = []
    try:
        while True:
            taken.append(os.dup(0))
    except OSError:
        pass
    try:
        with pytest.raises(ApiError) as error:
            kube.get("workflows", "default", "w")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for fd in taken:
            os.close(fd)
    assert "out of file descriptors (Too many open files, the limit is" in str(
        error.value.message
    )
    assert error.value.transient
    assert kube.get("workflows", "default", "w")["kind"] == "Workflow"


@pytest.fixture
def server(tmp_path):
    found = Server(tmp_path)
    found.http.token = "Bearer secret"
    yield found
    found.close()


def plugin(tmp_path, token):
    """An exec plugin that prints a token."""
    answer = {"apiVersion": "client.authentication.k8s.io/v1"}
    answer |= {"kind": "ExecCredential", "status": {"token": token}}
    (tmp_path / "answer").write_text(json.dumps(answer))
    args = [str(tmp_path / "answer")]
    return {"apiVersion": answer["apiVersion"], "command": "cat", "args": args}


def user_with(token, how, tmp_path):
    """A user of a kubeconfig that has a token in one of three ways."""
    if how == "exec":
        return {"exec": plugin(tmp_path, token)}
    if how == "token":
        return {"token": token}
    (tmp_path / "token").write_text(token, encoding="utf8")
    return {"tokenFile": "token"}


HOW = ("token", "tokenFile", "exec")


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("token", ["secret", "secret\n", " secret\r\n"])
def test_a_token_is_sent_without_the_blanks_around_it(token, how, server, tmp_path):
    """As kubectl does with a file, which most programs end with a newline."""
    kube = server.kube(user=user_with(token, how, tmp_path))
    workflow = {"metadata": {"name": "w"}}
    assert kube.create("workflows", "default", workflow)["kind"] == "Workflow"
    sent = server.http.seen[-1][2]
    assert (sent["Authorization"], sent.get_content_type()) == (
        "Bearer secret",
        "application/json",
    )


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("token", ["\ufeffsecret", "sec\nret", "sec\x00ret"])
def test_a_token_that_no_header_may_have_is_named(token, how, server, tmp_path):
    with pytest.raises(ConfigError, match=r"kubeconfig .*: the token of the user has"):
        server.kube(user=user_with(token, how, tmp_path))
