# Nodes that go wrong under a workflow: fenced computes, daemons that take no
# notice, rabbits that do not answer, drives that fail.
# SPDX-License-Identifier: LGPL-3.0-only
"""Trouble with nodes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Callable

import pytest
from kubernetes import watch
from sim_support import DWS, LIMIT_S, XFS, Api, Job, Sim, error_in

_numbers = itertools.count()


@pytest.fixture
def api(sim: Sim) -> Iterator[Api]:
    api = Api(sim)
    yield api
    sim.ctl("child-timeout", "300")
    for node in ("node0", "node1"):
        sim.ctl("hang-mount", node, "off")
        sim.ctl("link", node, "up")
    sim.ctl("rabbit", "rabbit0", "up")
    for name in api.names("workflows"):
        api.delete("workflows", name)
    sim.ctl("wait-idle", "--timeout", str(LIMIT_S))


def proposed(api: Api) -> Job:
    """A workflow on two nodes, ready for Setup."""
    job = Job(api, f"wf{next(_numbers)}", XFS)
    job.wait("Proposal")
    job.give({"rabbit0": 2}, ["node0", "node1"])
    return job


@pytest.mark.parametrize("state", ["PreRun", "PostRun"])
def test_fenced_compute_is_fatal(api: Api, state: str) -> None:
    job = proposed(api)
    job.through("DataIn")
    if state == "PostRun":
        job.to("PreRun")
    api.sim.ctl("hang-mount", "node1", "on")
    job.to(state, ready=False)
    api.sim.ctl("link", "node1", "Fenced")
    message = error_in(api, job.name)
    assert message == (
        "DW Directive 0: Internal error: Workflow failed: compute nodes [node1] were "
        "fenced during the job"
    )
    # Teardown does not wait for the node
    job.remove()


def test_mount_that_no_daemon_picks_up(api: Api) -> None:
    job = proposed(api)
    job.through("DataIn")
    api.sim.ctl("hang-mount", "node1", "on")
    job.to("PreRun", ready=False)
    assert job.get()["status"]["status"] == "DriverWait"
    api.sim.ctl("child-timeout", "0")
    message = error_in(api, job.name, "TransientCondition")
    assert "unable to mount file system on client nodes" in message
    [driver] = [
        d
        for d in job.get()["status"]["drivers"]
        if d["watchState"] == "PreRun" and d.get("error")
    ]
    assert driver["error"].endswith(
        "Node: node1: ClientMount has not been reconciled after 0 seconds"
    )
    # it heals when the daemon wakes up
    api.sim.ctl("hang-mount", "node1", "off")
    job.wait("PreRun")


def test_unmount_that_hangs_is_waited_for(api: Api) -> None:
    job = proposed(api)
    job.through("PreRun")
    api.sim.ctl("hang-mount", "node1", "on")
    # a mount that was once picked up has no time limit
    api.sim.ctl("child-timeout", "0")
    job.to("PostRun", ready=False)
    mount = api.get("clientmounts", f"default-{job.name}-0-computes", "node1")
    assert mount["spec"]["desiredState"] == "unmounted"
    assert job.get()["status"]["status"] == "DriverWait"
    api.sim.ctl("hang-mount", "node1", "off")
    job.wait("PostRun")


def test_allocation_on_a_rabbit_that_does_not_answer(api: Api) -> None:
    api.sim.ctl("rabbit", "rabbit0", "down")
    job = proposed(api)
    job.to("Setup", ready=False)
    api.sim.ctl("child-timeout", "0")
    message = error_in(api, job.name, "TransientCondition")
    assert message == "DW Directive 0: Internal error: could not allocate storage"
    [entry] = [d for d in job.get()["status"]["drivers"] if d["watchState"] == "Setup"]
    assert "Node: rabbit0: " in entry["error"]
    assert "has not been reconciled after 0 seconds" in entry["error"]
    api.sim.ctl("rabbit", "rabbit0", "up")
    job.wait("Setup")


def test_rabbit_that_was_never_up(api: Api) -> None:
    api.sim.ctl("rabbit", "rabbit1", "unbooted")
    seen = watch_status(api, "rabbit1", lambda status: status is None)
    assert "status" not in seen
    api.sim.ctl("rabbit", "rabbit1", "up")
    seen = watch_status(api, "rabbit1", lambda status: status is not None)
    assert seen["status"]["status"] == "Ready"


def watch_status(api: Api, rabbit: str, there: Callable[[Any], bool]) -> Any:
    """A Storage once its status is as wanted."""
    stream = watch.Watch().stream(
        api.custom.list_namespaced_custom_object,
        *(DWS, "v1alpha7", "default", "storages"),
        timeout_seconds=LIMIT_S,
    )
    for event in stream:
        obj = event["object"]
        if obj["metadata"]["name"] == rabbit and there(obj.get("status")):
            return obj
    raise AssertionError(rabbit)
