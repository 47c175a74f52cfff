# dws-sim must react to dead compute nodes as NNF does.
# SPDX-License-Identifier: LGPL-3.0-only
"""Compute nodes that do not mount, or do not unmount."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from parity_nnf import Job, Jobs, Machine, patch, wait
from parity_support import Object, User
from parity_trouble import Trouble

JOBDW = "#DW jobdw type={} capacity=1GiB name={}"
STATUS = {"kind": "SystemStatus", "metadata": {"name": "default"}, "data": {}}


class Disabled:
    """Nodes Disabled in the SystemStatus, so that DWS does not wait for them."""

    def __init__(self, admin: User) -> None:
        self._admin = admin
        self._nodes: list[str] = []
        if admin.get("systemstatuses", "default").code == 404:
            admin.create("systemstatuses", STATUS).expect(201)

    def _write(self, word: str) -> None:
        body = {"data": {"nodes": dict.fromkeys(self._nodes, word)}}
        patch(self._admin, "systemstatuses", "default", body)

    def __call__(self, *nodes: str) -> None:
        self._nodes += nodes
        self._write("Disabled")

    def enable(self) -> None:
        self._write("Enabled")


@pytest.fixture
def disabled(admin: User) -> Iterator[Disabled]:
    """Disables nodes until the end of the test."""
    disabled = Disabled(admin)
    yield disabled
    disabled.enable()


def seen(admin: User, job: Job, node: str, state: str, index: int = 0) -> Object:
    """Wait until a node has a file system of a job in a state."""

    def done(obj: Object) -> bool:
        mounts = obj.get("status", {}).get("mounts", ())
        return bool(mounts and all(m["state"] == state and m["ready"] for m in mounts))

    return wait(
        admin, "clientmounts", f"default-{job.name}-{index}-computes", done, node
    )


def clientmount(admin: User, job: Job, node: str, index: int = 0) -> Object:
    name = f"default-{job.name}-{index}-computes"
    found: Object = admin.get("clientmounts", name, node).expect(200)
    return found


def allocation(obj: Object) -> int:
    """Index of the rabbit's allocation that a node mounts."""
    [mount] = obj["spec"]["mounts"]
    return int(mount["device"]["deviceReference"].get("data", 0))


def mounting(jobs: Jobs, rabbit: str, nodes: list[str], *directives: str) -> Job:
    """A job with two allocations of each directive in PreRun."""
    job = jobs.ready(*directives)
    for index in range(len(directives)):
        job.fill({rabbit: 2}, index=index)
    job.through("DataIn")
    job.computes(*nodes)
    job.go("PreRun")
    return job


def force(job: Job) -> Object:
    patch(job.user, "workflows", job.name, {"spec": {"forceReady": True}})
    return job.at("PreRun")


@pytest.mark.parametrize("kind", ["xfs", "gfs2"])
def test_to_leave_a_node_out_moves_the_others(
    jobs: Jobs, machine: Machine, admin: User, trouble: Trouble, kind: str
) -> None:
    rabbit = machine.names[0]
    dead, other = machine.rabbits[rabbit][:2]
    trouble.silence(dead)
    job = mounting(jobs, rabbit, [dead, other], JOBDW.format(kind, "test"))
    assert allocation(seen(admin, job, other, "mounted")) == 1
    job.computes(other)
    name = f"default-{job.name}-0-computes"
    obj = wait(admin, "clientmounts", name, lambda o: not allocation(o), other)
    assert obj["spec"]["desiredState"] == "mounted"
    job.at("PreRun")


def test_what_is_forced_ready_stays_as_it_is(
    jobs: Jobs, machine: Machine, admin: User, trouble: Trouble
) -> None:
    rabbit = machine.names[0]
    dead, other = machine.rabbits[rabbit][:2]
    trouble.silence(dead)
    directives = [JOBDW.format("xfs", name) for name in ("first", "second")]
    job = mounting(jobs, rabbit, [dead, other], *directives)
    mounts = [seen(admin, job, other, "mounted", i) for i in range(2)]
    obj = force(job)
    assert obj["status"]["message"] == "Forced Ready"
    assert job.entry(0, obj)["completed"] is False
    # the one after the one that waits has no variable
    assert "DW_JOB_first" in obj["status"]["env"]
    assert "DW_JOB_second" not in obj["status"]["env"]
    for i in range(2):
        assert clientmount(admin, job, other, i)["spec"] == mounts[i]["spec"]
        assert allocation(mounts[i]) == 1
    # a node that comes back mounts
    trouble.silence()
    assert allocation(seen(admin, job, dead, "mounted", 1)) == 0


def test_who_has_answered_is_passed_by(
    jobs: Jobs, machine: Machine, admin: User, trouble: Trouble, disabled: Disabled
) -> None:
    rabbit = machine.names[0]
    dead, other = machine.rabbits[rabbit][:2]
    job = mounting(jobs, rabbit, [dead, other], JOBDW.format("xfs", "test"))
    job.at("PreRun")
    trouble.silence(dead)
    disabled(dead)
    job.to("PostRun")
    assert clientmount(admin, job, dead)["status"]["mounts"][0]["state"] == "mounted"
    # it is to unmount when it is back
    trouble.silence()
    seen(admin, job, dead, "unmounted")


def test_who_has_never_answered_is_waited_for(
    jobs: Jobs, machine: Machine, admin: User, trouble: Trouble, disabled: Disabled
) -> None:
    one, two = machine.names[:2]
    deaf, other = machine.rabbits[one][:2]
    dead = machine.rabbits[two][0]
    passed = mounting(jobs, two, [dead], JOBDW.format("xfs", "test"))
    passed.at("PreRun")
    trouble.silence(deaf, dead)
    directives = [JOBDW.format("xfs", name) for name in ("first", "second")]
    job = mounting(jobs, one, [deaf, other], *directives)
    for i in range(2):
        seen(admin, job, other, "mounted", i)
    force(job)
    disabled(deaf, dead)
    job.go("PostRun")
    seen(admin, job, other, "unmounted")
    # nor does the next file system get its turn
    passed.to("PostRun")
    obj = job.saying("DriverWait", "DW Directive 0: pending unmount")
    assert job.entry(1, obj)["status"] == "Pending"
    assert clientmount(admin, job, other, 1)["spec"]["desiredState"] == "mounted"
    # until it is off the list
    job.computes(other)
    job.at("PostRun")
    seen(admin, job, other, "unmounted", 1)
    assert clientmount(admin, job, deaf, 0)["spec"]["desiredState"] == "unmounted"
    assert clientmount(admin, job, deaf, 1)["spec"]["desiredState"] == "mounted"
    # and what it was to mount goes with the rest
    job.to("Teardown")
