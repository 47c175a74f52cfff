# Data movement in dws-sim.
# SPDX-License-Identifier: LGPL-3.0-only
"""copy_in and copy_out."""

from __future__ import annotations

import itertools
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import watch
from sim_support import DWS, LIMIT_S, NNF, XFS, Api, Job, Sim, error_in

MOVES = "nnfdatamovements"
IN = "#DW copy_in source=/lus/global/in destination=$DW_JOB_scratch/in"
OUT = "#DW copy_out source=$DW_JOB_scratch/out destination=/lus/global/out"
LUSTRE = "#DW jobdw type=lustre capacity=10GiB name=scratch"
_numbers = itertools.count()


@pytest.fixture
def api(sim: Sim) -> Iterator[Api]:
    """Admin access; a test leaves nothing."""
    api = Api(sim)
    yield api
    sim.ctl("fail-copy", "--clear")
    sim.ctl("latency", "copy", "0")
    for name in api.names("workflows"):
        api.delete("workflows", name)
    sim.ctl("wait-idle", "--timeout", str(LIMIT_S))
    assert api.names(MOVES) == []


def start(api: Api, *directives: str) -> Job:
    job = Job(api, f"wf{next(_numbers)}", *directives)
    job.wait("Proposal")
    job.give({"rabbit0": 2, "rabbit1": 1}, ["node0", "node1", "node2"])
    return job


def test_in_and_out(api: Api) -> None:
    job = start(api, XFS, IN, OUT)
    job.to("Setup")
    job.to("DataIn")
    moves = api.list(MOVES)["items"]
    assert [(m["metadata"]["namespace"], m["metadata"]["name"]) for m in moves] == [
        ("rabbit0", f"{job.name}-1-0"),
        ("rabbit0", f"{job.name}-1-1"),
        ("rabbit1", f"{job.name}-1-0"),
    ]
    assert {m["status"]["status"] for m in moves} == {"Success"}
    assert moves[0]["metadata"]["labels"]["dm.cray.hpe.com/initiator"] == "copy_in"
    assert moves[1]["spec"]["destination"]["path"].endswith("-0/rabbit0-1/in")
    assert f"default-{job.name}-0-servers" in api.names("clientmounts")
    job.to("PreRun")
    # an xfs is mounted in one place at a time
    mounted = [
        m["metadata"]["name"]
        for m in api.list("clientmounts")["items"]
        if m["spec"]["desiredState"] == "mounted"
    ]
    assert set(mounted) == {f"default-{job.name}-0-computes"}
    job.through("DataOut", "PostRun")
    assert f"{job.name}-2-0" in api.names(MOVES)
    job.remove()


def test_lustre_has_one_movement(api: Api) -> None:
    job = start(api, LUSTRE, OUT)
    job.through("DataOut")
    [move] = api.list(MOVES)["items"]
    assert move["metadata"]["namespace"] == "nnf-dm-system"
    assert move["metadata"]["name"] == f"{job.name}-1"


def test_failed_movement_is_fatal(api: Api) -> None:
    api.sim.ctl("fail-copy", "--message", "disk on fire")
    job = start(api, XFS, IN)
    job.to("Setup")
    job.to("DataIn", ready=False)
    message = error_in(api, job.name)
    assert message.startswith("DW Directive 1: Internal error: data movement")
    assert message.endswith(", message: disk on fire")
    job.remove()


def test_a_source_that_is_not_there(api: Api, tmp_path: pathlib.Path) -> None:
    spec = {"name": "here", "mgsNids": "10.0.0.1@tcp", "mountRoot": str(tmp_path)}
    api.create("lustrefilesystems", {"metadata": {"name": "here"}, "spec": spec})
    into = IN.replace("/lus/global/in", f"{tmp_path}/in")
    job = start(api, LUSTRE, into)
    job.to("Setup")
    job.to("DataIn", ready=False)
    message = error_in(api, job.name)
    assert message.startswith(
        "DW Directive 1: Internal error: data movement operation failed during "
        "'DataIn', message: internal error: could not determine source type: "
        f"could not stat path ('{tmp_path}/in'): "
    )
    assert "No such file or directory" in message
    [move] = api.list(MOVES)["items"]
    assert move["status"]["status"] == "Invalid"
    assert move["status"]["error"]["severity"] == "Fatal"
    assert "commandStatus" not in move["status"]
    job.remove()
    (tmp_path / "in").touch()
    job = start(api, LUSTRE, into)
    job.to("Setup")
    job.to("DataIn")
    job.remove()
    api.delete("lustrefilesystems", "here")


def test_progress_and_cancel(api: Api) -> None:
    api.sim.ctl("latency", "copy", "3600")
    job = start(api, LUSTRE, IN)
    job.to("Setup")
    job.to("DataIn", ready=False)
    stream = watch.Watch().stream(
        api.custom.list_cluster_custom_object,
        *("nnf.cray.hpe.com", "v1alpha11", MOVES),
        resource_version="0",
        timeout_seconds=LIMIT_S,
    )
    assert any(e["object"].get("status", {}).get("state") == "Running" for e in stream)
    api.patch(MOVES, f"{job.name}-1", {"spec": {"cancel": True}}, ns="nnf-dm-system")
    assert "cancelled by request" in error_in(api, job.name)
    job.remove()


def movement(job: Job) -> dict[str, Any]:
    """A data movement of copy offload for a running job."""
    meta = job.get()["metadata"]
    labels = {
        f"{DWS}/workflow.name": job.name,
        f"{DWS}/workflow.namespace": "default",
        f"{DWS}/workflow.uid": meta["uid"],
        "nnf.cray.hpe.com/teardown_state": "PostRun",
        "dm.cray.hpe.com/initiator": "node0",
    }
    ends = {"path": "/a", "storageReference": {}}
    return {
        "metadata": {"name": f"{job.name}-user", "labels": labels},
        "spec": {"source": ends, "destination": ends, "userId": 1, "groupId": 1},
    }


@pytest.mark.parametrize("good", [True, False])
def test_movement_of_the_user_is_waited_for(api: Api, good: bool) -> None:
    job = start(api, LUSTRE)
    job.through("PreRun")
    api.sim.ctl("latency", "copy", "3600")
    api.create(MOVES, movement(job), "nnf-dm-system")
    job.to("PostRun", ready=False)
    # the computes are free, the rabbits are not
    assert f"default-{job.name}-0-servers" in api.names("clientmounts")
    assert job.get()["status"]["ready"] is False
    word = "Success" if good else "Failed"
    done = {"status": {"state": "Finished", "status": word}}
    api.custom.patch_namespaced_custom_object_status(
        *(NNF, "v1alpha11", "nnf-dm-system", MOVES, f"{job.name}-user", done)
    )
    if good:
        job.wait("PostRun")
    else:
        assert "data movement failed" in error_in(api, job.name)
    job.remove()
    assert api.names(MOVES) == []


def test_lustre_is_given_its_owner(api: Api) -> None:
    api.sim.ctl("hang-mount", "rabbit0", "on")
    job = start(api, LUSTRE)
    job.to("Setup", ready=False)
    stream = watch.Watch().stream(
        api.custom.list_cluster_custom_object,
        *(DWS, "v1alpha7", "clientmounts"),
        resource_version="0",
        timeout_seconds=LIMIT_S,
    )
    mount = next(iter(stream))["object"]
    assert mount["metadata"]["name"] == f"{job.name}-0-ownergroup"
    assert mount["metadata"]["namespace"] == "rabbit0"
    assert job.get()["status"]["ready"] is False
    api.sim.ctl("hang-mount", "rabbit0", "off")
    job.wait("Setup")
    api.sim.ctl("hang-mount", "rabbit0", "on")
    job.to("Teardown")
    # torn down while it is mounted
    other = start(api, LUSTRE)
    other.to("Setup", ready=False)
    other.to("Teardown", ready=False)
    api.sim.ctl("hang-mount", "rabbit0", "off")
    other.remove()
    job.remove()


@pytest.mark.parametrize(
    ("directive", "text"),
    [
        (
            IN.replace("/lus/global", "/home"),
            "global Lustre file system containing '/home/in' not found",
        ),
        (
            IN.replace("JOB_scratch", "JOB_other"),
            "job storage instance 'other' not found",
        ),
    ],
)
def test_wrong_places(api: Api, directive: str, text: str) -> None:
    job = Job(api, f"wf{next(_numbers)}", XFS, directive)
    assert text in error_in(api, job.name)
