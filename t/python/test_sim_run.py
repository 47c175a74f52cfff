# dws-sim as a process: TLS, scenarios, sizes, the live view, bad arguments.
# SPDX-License-Identifier: LGPL-3.0-only
"""The dws-sim command."""

from __future__ import annotations

import base64
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
from typing import Any

import pytest
import urllib3
import yaml
from kubernetes import client, watch
from sim_support import (
    DWS,
    GIB,
    LIMIT_S,
    SOURCE,
    XFS,
    Api,
    Job,
    Sim,
    error_of,
    main,
)

# sim_support has put the sources on the path
# isort: split
from dws_sim import hostlist, scenario
from dws_sim.controllers.workflow import duration
from dws_sim.faults import Faults, Latency
from dws_sim.top import picture
from dws_sim.world import Machine, parse_size


def test_tls(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("cryptography")
    sim = Sim(tmp_path)
    config = json.loads(sim.kubeconfig.read_text())
    assert config["clusters"][0]["cluster"]["server"].startswith("https://")
    job = Job(Api(sim), "w", XFS)
    job.wait("Proposal")
    job.remove()
    # a certificate stands for the same user as the token
    assert Api(sim, "admin-certificate").names("computes") == []
    wlm = Api(sim, "wlm-certificate")
    assert wlm.names("computes") == []
    with pytest.raises(client.ApiException) as info:
        wlm.names("nnfaccesses")
    refused = error_of(info.value)
    assert refused["code"] == 403
    assert 'User "system:serviceaccount:default:flux-wlm"' in refused["message"]
    assert sim.stop() == 0


def test_without_tls(tmp_path: pathlib.Path) -> None:
    sim = Sim(tmp_path, "--no-tls")
    config = json.loads(sim.kubeconfig.read_text())
    assert config["clusters"][0]["cluster"]["server"].startswith("http://")
    assert [u["name"] for u in config["users"]] == ["wlm", "admin"]
    assert Api(sim).names("computes") == []
    assert sim.stop() == 0


def test_a_kubeconfig_that_kubectl_has_rewritten(sim: Sim) -> None:
    config = json.loads(sim.kubeconfig.read_text())
    sim.kubeconfig.write_text(yaml.safe_dump({**config, "current-context": "admin"}))
    assert sim.state()["rabbits"] == 2
    sim.ctl("token", "admin")
    assert sim.state()["rabbits"] == 2
    assert Api(sim).names("computes") == []
    picture = ["top", "--once", "--kubeconfig", str(sim.kubeconfig)]
    assert main(picture) == 0
    sim.kubeconfig.write_text("{")
    assert "kubeconfig" in sim.ctl("state", check=False)
    sim.kubeconfig.write_text(json.dumps(config))


def test_certificate_of_another_authority(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("cryptography")
    from dws_sim.tls import Authority

    sim = Sim(tmp_path)
    foreign = Authority().client("dws-sim-admin")
    config = json.loads(sim.kubeconfig.read_text())
    for user in config["users"]:
        if user["name"] == "admin-certificate":
            for key, value in (
                ("client-certificate-data", foreign.certificate),
                ("client-key-data", foreign.key),
            ):
                user["user"][key] = base64.b64encode(value).decode()
    sim.kubeconfig.write_text(json.dumps(config))
    with pytest.raises(urllib3.exceptions.HTTPError, match="unknown ca|closed|reset"):
        Api(sim, "admin-certificate").names("computes")
    assert sim.stop() == 0


def health(api: Api, rabbit: str, there: Any) -> dict[str, Any]:
    """The status of a Storage once it is as wanted."""
    stream = watch.Watch().stream(
        api.custom.list_namespaced_custom_object,
        *(DWS, "v1alpha7", "default", "storages"),
        timeout_seconds=LIMIT_S,
    )
    for event in stream:
        obj = event["object"]
        if obj["metadata"]["name"] == rabbit and there(obj["status"]):
            status: dict[str, Any] = obj["status"]
            return status
    raise AssertionError(rabbit)


def test_scenario(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(
        "preset: instant\n"
        "seed: 7\n"
        "latency: {Setup: 0.01, mount: [0, 0.01]}\n"
        "fail:\n"
        "- {state: Proposal, severity: Major, message: not yet, count: 2}\n"
        "hold: [PreRun, {state: PostRun, workflow: other}]\n"
        "steps:\n"
        "- {do: rabbit rabbit1 drained}\n"
        "- {after: 0.1, do: drive rabbit0 3 failed}\n"
    )
    sim = Sim(tmp_path, "--scenario", str(file))
    api = Api(sim)
    assert health(api, "rabbit1", lambda s: s["status"] == "Drained")["status"]
    drives = health(api, "rabbit0", lambda s: s["devices"][-1]["status"] != "Ready")
    assert drives["status"] == "Ready"
    assert drives["devices"][-1] == {"slot": "3", "status": "Failed"}
    sim.ctl("drive", "rabbit0", "3", "ok")
    health(api, "rabbit0", lambda s: s["devices"][3]["status"] == "Ready")
    job = Job(api, "w", XFS)
    job.wait("Proposal")
    job.give({"rabbit0": 1}, ["node0"])
    job.through("DataIn")
    assert job.to("PreRun", ready=False)["status"]["ready"] is False
    sim.ctl("release", "PreRun")
    job.wait("PreRun")
    sim.ctl("latency", "PostRun", "--median", "0.01", "--p95", "0.02")
    job.to("PostRun")
    text = sim.ctl("latency", "PostRun", "--median", "1", check=False)
    assert "a latency is a number" in text
    assert sim.stop() == 0


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[]", "a scenario has the keys"),
        ("latency: {Soon: 1}", "no such state: 'Soon'"),
        ("latency: {Setup: [2, 1]}", "out of order"),
        ("fail: [{state: Setup, severity: Bad}]", "severity must be one of"),
        ("preset: fast", "no such preset"),
        ("{", "expected"),
        ("latency: {Setup: {median: 1}}", "median and p95"),
        ("latency: {Setup: {median: 0, p95: 1}}", "out of order"),
        ("latency: {Setup: .inf}", "out of order"),
        ("latency: {Setup ext4: 1}", "no such type: 'ext4'"),
        ("requests: -1", "requests must be a number"),
        ("fail: [{state: Setup, type: ext4}]", "type must be one of"),
        ("stumble: 2", "between 0 and 1"),
        ("hold: PreRun", "hold must be a list"),
        ("hold: [{states: PreRun}]", "maps of state, workflow and late"),
        ("steps: [{do: rabbit rabbit0 sideways}]", "invalid choice: 'sideways'"),
        ("steps: [{do: state}]", "nothing to do"),
        ("steps: [{after: -1, do: api --clear}]", "not negative"),
    ],
)
def test_bad_scenarios(text: str, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        scenario.load(text, Faults())


def named(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"uid of {name}"}}


def test_same_seed_same_run() -> None:
    def draw(seed: int, names: str) -> dict[str, Any]:
        faults = Faults(seed=seed)
        scenario.load("fail: [{state: Setup, probability: 0.5}]", faults)
        scenario.apply_preset("elcap", faults)
        return {
            n: (
                faults.delay_left("Setup", named(n), 0.0),
                faults.failure("Setup", named(n)) is not None,
                faults.mount_delay("node0", n),
                faults.copy_seconds(n),
            )
            for n in names
        }

    # whatever the order, or what else there is
    names = "abcdefgh"
    first = draw(1, names)
    assert first == draw(1, names[::-1]) != draw(2, names)
    assert draw(1, "xd")["d"] == first["d"]
    assert {failed for _, failed, _, _ in first.values()} == {True, False}


def test_latency_with_a_long_tail() -> None:
    latency = Latency.parse({"median": 10, "p95": 40})
    rng = random.Random(1)
    drawn = sorted(latency.sample(rng) for _ in range(4000))
    assert 9 < drawn[2000] < 11
    assert 35 < drawn[3800] < 45


def test_top_and_state(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture) -> None:
    sim = Sim(tmp_path)
    job = Job(Api(sim), "w", XFS)
    job.wait("Proposal")
    job.give({"rabbit1": 1}, ["node3"])
    job.through("PreRun")
    assert main(["top", "--kubeconfig", str(sim.kubeconfig), "--once"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "rabbits    2 (2 Ready), nodes 4"
    assert any(line.split() == ["PreRun", "1"] for line in lines)
    assert lines[-1].split()[0] == "rabbit1"
    state = sim.state()
    assert (state["mounts"], state["workflows"]) == (1, {"PreRun": 1})
    assert sim.stop() == 0


def a_state(**more: Any) -> dict[str, Any]:
    return {
        "capacity": 100 * GIB,
        "allocated": {"rabbit1": 50 * GIB},
        "rabbits": 4,
        "nodes": 64,
        "health": {"Ready": 3, "Offline": 1},
        "requests": 1000,
        "version": 5000,
        "watches": 7,
        "objects": 321,
        "mounts": 12,
        "workflows": {"PreRun": 10, "Setup": 2},
        "held": {},
        **more,
    }


def test_screen() -> None:
    before = a_state(requests=900, version=4000)
    assert picture(a_state(held={"Setup": 1}), before, 2.0) == [
        "rabbits    4 (1 Offline, 3 Ready), nodes 64",
        "capacity   [####..........................] 12.5% in use",
        "API        50 requests/s, 500 writes/s, 7 watches, 321 objects",
        "mounts     12",
        "workflows  12",
        "  Setup          2  held",
        "  PreRun        10",
        "  rabbit1      [###############...............] 50.0 GiB",
    ]


def test_screens_at_the_edges() -> None:
    # nothing there, nothing known of before
    empty = a_state(
        capacity=0, allocated={}, rabbits=0, health={}, workflows={}, mounts=0
    )
    lines = picture(empty, None, 0.0)
    assert lines[:2] == [
        "rabbits    0 (), nodes 64",
        f"capacity   [{'.' * 30}] 0.0% in use",
    ]
    assert lines[2].startswith("API        0 requests/s, 0 writes/s")
    assert len(lines) == 5
    # more than there is room for: the fullest, in order
    full = {f"rabbit{i}": (i + 1) * GIB for i in range(20)}
    lines = picture(a_state(allocated=full, rabbits=20), None, 0.0)
    shown = [line.split()[0] for line in lines if line.startswith("  rabbit")]
    assert shown == [f"rabbit{i}" for i in range(19, 3, -1)]
    assert lines[-1] == "  and 4 more with less"
    # more in use than there is does not break the frame
    lines = picture(a_state(allocated={"rabbit0": 300 * GIB}), None, 0.0)
    assert lines[-1] == f"  rabbit0      [{'#' * 30}] 300.0 GiB"


def test_top_on_a_terminal(tmp_path: pathlib.Path) -> None:
    sim = Sim(tmp_path)
    ours, theirs = os.openpty()
    top = subprocess.Popen(
        [
            *(sys.executable, "-m", "dws_sim", "top", "--interval", "0.01"),
            *("--kubeconfig", str(sim.kubeconfig)),
        ],
        stdout=theirs,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )
    os.close(theirs)
    text = b""
    # each screen begins with a cleared terminal
    while text.count(b"\033[H\033[J") < 3:
        text += os.read(ours, 4096)
    top.send_signal(signal.SIGINT)
    assert top.wait(LIMIT_S) == 0
    os.close(ours)
    screen = text.split(b"\033[H\033[J")[1].decode().splitlines()
    assert screen[0] == "rabbits    2 (2 Ready), nodes 4"
    assert sim.stop() == 0


def test_top_without_a_simulator(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture
) -> None:
    assert main(["top", "--kubeconfig", str(tmp_path / "none"), "--once"]) == 1
    assert "No such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--capacity", "much"], "no size"),
        (["--nodes-per-rabbit", "17"], "1 to 16"),
        (["--nodes", "node[3-1]"], "malformed range"),
        (["--rabbits", "node0"], "named twice"),
        (["--scenario", "/nonexistent"], "No such file"),
    ],
)
def test_bad_arguments(
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture,
    options: list[str],
    word: str,
) -> None:
    file = str(tmp_path / "kubeconfig")
    assert main(["run", "--kubeconfig", file, *options]) == 1
    assert word in capsys.readouterr().err


def test_hostlists() -> None:
    assert hostlist.expand("a[0-2,08-10],b") == [
        *("a0", "a1", "a2", "a08", "a09", "a10", "b")
    ]
    assert hostlist.compress(["n1", "n2", "n4", "m7", "x"]) == "n[1-2,4],m7,x"
    assert hostlist.compress(["n01", "n02"]) == "n[01-02]"


def test_sizes() -> None:
    assert parse_size("1TiB") == 1 << 40
    assert parse_size("30.5TB") == 30_500_000_000_000
    assert parse_size("4096") == 4096


def test_nodes_without_a_rabbit() -> None:
    machine = Machine.build("n[0-4]", "r[0-1]", 2, 1)
    assert machine.rabbits == {"r0": ["n0", "n1"], "r1": ["n2", "n3"]}
    assert machine.external == ["n4"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1.25, "1.25s"),
        (0.3501, "350.1ms"),
        (123.5, "2m3.5s"),
        (3723, "1h2m3s"),
        (60, "1m0s"),
        (0, "0s"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
