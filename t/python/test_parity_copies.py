# copy_in and copy_out: the data movements, and the mounts on the rabbits that
# they use. The same from dws-sim and from NNF.
# SPDX-License-Identifier: LGPL-3.0-only
"""Copies."""

from __future__ import annotations

from typing import Callable

import pytest
from parity_nnf import JOBDW, Job, Jobs, Machine, wait
from parity_support import NNF, Object, User
from parity_trouble import Trouble

IN = "#DW copy_in source=$DW_JOB_test/a destination=$DW_JOB_test/b"
OUT = "#DW copy_out source=$DW_JOB_test/b destination=$DW_JOB_test/c"


def copying(jobs: Jobs, machine: Machine, kind: str) -> Job:
    """A job that copies before and after; ready in Setup."""
    job = jobs.ready(JOBDW.format(kind), IN, OUT)
    one, two = machine.names[:2]
    job.fill({one: 2, two: 1})
    job.computes(*machine.rabbits[one][:2], machine.rabbits[two][0])
    job.to("Setup")
    return job


def movements(user: User, job: Job, index: int) -> dict[tuple[str, str], Object]:
    """The data movements of a directive by namespace and name."""
    uid = job.get()["metadata"]["uid"]
    chosen = (
        f"dataworkflowservices.github.io/workflow.uid={uid},"
        f"{NNF}/directive_index={index}"
    )
    found = user.list("nnfdatamovements", None, labelSelector=chosen).expect(200)
    return {
        (o["metadata"]["namespace"], o["metadata"]["name"]): o for o in found["items"]
    }


def servers_access(user: User, job: Job) -> Object:
    found: Object = user.get("nnfaccesses", f"{job.name}-0-servers").expect(200)
    return found


def mount_path(user: User, job: Job) -> str:
    """Where the file system is mounted."""
    path = str(servers_access(user, job)["spec"]["mountPath"])
    assert path.endswith(f"/nnf/{job.get()['metadata']['uid']}-0")
    return path


def index_of(obj: Object) -> str:
    return str(obj["metadata"]["labels"][f"{NNF}/directive_index"])


@pytest.mark.observed(20)
def test_movements_count_from_zero_on_each_rabbit(
    wlm: User, admin: User, jobs: Jobs, machine: Machine
) -> None:
    job = copying(jobs, machine, "xfs")
    job.to("DataIn")
    one, two = machine.names[:2]
    found = movements(wlm, job, 1)
    assert sorted(found) == [
        (one, f"{job.name}-1-0"),
        (one, f"{job.name}-1-1"),
        (two, f"{job.name}-1-0"),
    ]
    path = mount_path(admin, job)
    storage = {"kind": "NnfStorage", "name": f"{job.name}-0", "namespace": "default"}
    for (rabbit, name), obj in found.items():
        place = f"{path}/{rabbit}-{name[-1]}"
        assert obj["spec"]["source"] == {
            "path": f"{place}/a",
            "storageReference": storage,
        }
        assert obj["spec"]["destination"] == {
            "path": f"{place}/b",
            "storageReference": storage,
        }


@pytest.mark.observed(20)
def test_a_movement_of_lustre_has_both_ends(
    wlm: User, admin: User, jobs: Jobs, machine: Machine
) -> None:
    job = copying(jobs, machine, "lustre")
    job.to("DataIn")
    path = mount_path(admin, job)
    [(place, obj)] = movements(wlm, job, 1).items()
    assert place == ("nnf-dm-system", f"{job.name}-1")
    storage = {"kind": "NnfStorage", "name": f"{job.name}-0", "namespace": "default"}
    for end, word in (("source", "a"), ("destination", "b")):
        assert obj["spec"][end] == {
            "path": f"{path}/{word}",
            "storageReference": storage,
        }


@pytest.mark.observed(19)
def test_the_mount_of_a_copy_stays_unmounted(
    admin: User, jobs: Jobs, machine: Machine
) -> None:
    job = copying(jobs, machine, "xfs")
    name = f"default-{job.name}-0-servers"
    job.to("DataIn")
    access = servers_access(admin, job)
    assert (index_of(access), access["spec"]["desiredState"]) == ("1", "mounted")
    assert access["spec"]["teardownState"] == "PreRun"
    assert access["metadata"]["labels"][f"{NNF}/teardown_state"] == "PreRun"
    for rabbit in machine.names[:2]:
        mount = admin.get("clientmounts", name, rabbit).expect(200)
        assert index_of(mount) == "1"
        assert mount["metadata"]["labels"][f"{NNF}/target_directive_index"] == "0"
        assert mount["metadata"]["labels"][f"{NNF}/teardown_state"] == "PreRun"
    for state in ("PreRun", "PostRun"):
        job.to(state)
        access = servers_access(admin, job)
        assert access["spec"]["desiredState"] == "unmounted"
        assert access["status"] == {"state": "unmounted", "ready": True}
        for rabbit in machine.names[:2]:
            mount = admin.get("clientmounts", name, rabbit).expect(200)
            assert mount["spec"]["desiredState"] == "unmounted"
    job.to("DataOut")
    access = servers_access(admin, job)
    assert (index_of(access), access["spec"]["desiredState"]) == ("2", "mounted")
    assert access["spec"]["teardownState"] == "Teardown"
    assert access["metadata"]["labels"][f"{NNF}/teardown_state"] == "Teardown"
    job.to("Teardown")
    admin.get("nnfaccesses", f"{job.name}-0-servers").refused(404, "NotFound")


@pytest.mark.parametrize("kind", ["xfs", "lustre"])
def test_a_failed_movement_that_is_deleted_is_made_anew(
    wlm: User,
    admin: User,
    jobs: Jobs,
    machine: Machine,
    trouble: Trouble,
    kind: str,
) -> None:
    """And the workflow leaves Error: flux rabbit retry stands on that."""
    job = copying(jobs, machine, kind)
    job.through("PostRun", "DataIn")
    trouble.break_copies("dcp: quota exceeded")
    job.go("DataOut")
    places = [("nnf-dm-system", f"{job.name}-2")]
    if kind == "xfs":
        one, two = machine.names[:2]
        places = [(one, f"{job.name}-2-{n}") for n in (0, 1)]
        places.append((two, f"{job.name}-2-0"))
    for rabbit, name in places:
        wait(wlm, "nnfdatamovements", name, lambda obj: True, rabbit)
    failed = movements(wlm, job, 2)
    assert sorted(failed) == sorted(places)
    trouble.spoil(admin, failed.values())
    obj = job.until(lambda obj: obj["status"].get("status") == "Error")
    assert "dcp: quota exceeded" in obj["status"]["message"]
    trouble.mend_copies()
    for rabbit, name in places:
        wait(wlm, "nnfdatamovements", name, ended("Failed"), rabbit)
        path = wlm.path("nnfdatamovements", name, rabbit)
        wlm.send("DELETE", path).refused(403, "Forbidden")
        admin.send("DELETE", path).expect(200)
    obj = job.at("DataOut")
    assert obj["status"]["status"] == "Completed"
    anew = movements(wlm, job, 2)
    assert sorted(anew) == sorted(places)
    for place, movement in anew.items():
        assert movement["metadata"]["uid"] != failed[place]["metadata"]["uid"]
        assert movement["spec"] == failed[place]["spec"]
        assert ended("Success")(movement)


def ended(status: str) -> Callable[[Object], bool]:
    """Whether a data movement has ended like that."""

    def done(obj: Object) -> bool:
        found = obj.get("status", {})
        return (found.get("state"), found.get("status")) == ("Finished", status)

    return done
