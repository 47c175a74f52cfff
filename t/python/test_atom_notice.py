# The notice to ATOM states whether a job of Flux has a node for itself.
# SPDX-License-Identifier: LGPL-3.0-only
import sys

import flux.job
import pytest
from flux.job import JobID
from flux_atom import notice
from flux_atom.notice import is_exclusive, main

TASK = [{"type": "slot", "count": 1, "with": [{"type": "core", "count": 1}]}]


def resource_set(cores):
    """R with these core ids of node0, and core 0 of node1."""
    lite = [
        {"rank": rank, "children": {"core": ids}}
        for rank, ids in (("0", cores), ("1", "0"))
    ]
    return {"execution": {"R_lite": lite, "nodelist": ["node[0-1]"]}}


@pytest.mark.parametrize(
    "taken, all_cores, alone",
    [
        ("0", "0", True),
        ("0-3", "0-3", True),
        ("0", "0-1", False),
        ("0-2", "0-3", False),
    ],
)
def test_who_has_all_cores_of_a_node_has_the_node(taken, all_cores, alone):
    job, whole = resource_set(taken), resource_set(all_cores)
    assert is_exclusive(TASK, job, whole, "node0") is alone


def test_a_node_that_the_job_has_not_is_not_its_own():
    assert not is_exclusive(TASK, resource_set("0"), resource_set("0"), "node2")


@pytest.mark.parametrize("said", [True, False])
def test_who_asks_for_whole_nodes_has_them(said):
    node = [{"type": "node", "count": 1, "exclusive": said, "with": TASK}]
    assert is_exclusive(node, resource_set("0"), resource_set("0-3"), "node0") is said


@pytest.mark.parametrize("missing", ["FLUX_JOB_ID", "FLUX_JOB_USERID"])
def test_a_notice_without_a_job_is_refused(monkeypatch, capsys, missing):
    monkeypatch.setattr(sys, "argv", ["atom-begin"])
    monkeypatch.setenv("FLUX_JOB_ID", "f1")
    monkeypatch.setenv("FLUX_JOB_USERID", "7")
    monkeypatch.delenv(missing)
    with pytest.raises(SystemExit) as ended:
        main("begin")
    assert ended.value.code == 2 and missing in capsys.readouterr().err


def test_a_notice_may_take_as_long_as_the_specified_alarm(monkeypatch):
    """alarm=300 in the design of PBS' hook."""
    asked = []
    monkeypatch.setattr(sys, "argv", ["atom-begin", "--jobid=f1", "--uid=7"])
    monkeypatch.setattr(notice, "run", lambda *args: asked.append(args[-1]))
    main("begin")
    assert asked == [300]


class Handle:
    """Rank 0 alone knows the resources, and drains."""

    def __init__(self):
        self.drained = []

    def rpc(self, topic, payload, nodeid):
        if nodeid != 0:
            raise OSError("no such service on this rank")
        if topic == "resource.drain":
            self.drained.append(payload)
        self.answer = {"R": resource_set("0-3")}
        return self

    def get(self):
        return self.answer


def test_rank_0_is_asked(monkeypatch):
    info = {"jobspec": {"resources": TASK}, "R": resource_set("0-3")}
    monkeypatch.setattr(flux.job, "job_kvs_lookup", lambda *_args, **_named: info)
    handle = Handle()
    assert notice.job_is_exclusive(handle, JobID(1), "node0")
    notice.drain(handle, "node0", "no answer")
    assert handle.drained == [
        {"targets": "node0", "reason": "atom: no answer", "mode": "update"}
    ]


def run(monkeypatch, capsys, action, *words):
    """The exit status of a notice, and what it says."""
    monkeypatch.setattr(sys, "argv", [f"atom-{action}", "--uid=7", *words])
    monkeypatch.setattr(notice.flux, "Flux", lambda: Handle())
    try:
        code = main(action)
    except SystemExit as ended:
        code = ended.code
    return code, capsys.readouterr().err


@pytest.mark.parametrize("words", [("--jobid=x",), ("--jobid=f1", "--alarm=0")])
def test_an_option_that_is_wrong_is_named(monkeypatch, capsys, words):
    code, err = run(monkeypatch, capsys, "begin", *words)
    assert code == 2
    assert words[-1].partition("=")[0] in err.splitlines()[-1]


@pytest.mark.parametrize("action, status", [("begin", 1), ("end", 0)])
def test_what_nobody_expects_is_no_traceback(monkeypatch, capsys, action, status):
    """Flux drains a node on which the epilog fails."""
    monkeypatch.setattr(Handle, "conf_get", lambda *_: {}, raising=False)

    def notify(*_):
        raise KeyError("core")

    monkeypatch.setattr(notice, "notify", notify)
    code, err = run(monkeypatch, capsys, action, "--jobid=f1")
    assert (code, err) == (status, f"atom-{action}: f1: KeyError: 'core'\n")


def test_a_node_without_cores():
    whole = resource_set("0")
    del whole["execution"]["R_lite"][1]["children"]["core"]
    assert notice.cores_by_host(whole) == {"node0": 1, "node1": 0}
