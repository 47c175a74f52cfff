# The ClientMounts of a job's nodes and rabbits must be the same in dws-sim and in NNF.
# SPDX-License-Identifier: LGPL-3.0-only
"""ClientMounts."""

from __future__ import annotations

from typing import Any

import pytest
from parity_nnf import JOBDW, Job, Jobs, Machine, gone, wait
from parity_support import DWS, Object, User, unique

NNF = "nnf.cray.hpe.com"
MOUNTS = "clientmounts"
OWNER = {"userID": 1001, "groupID": 1002}
RAW = {"setPermissions": True, "options": "bind", "targetType": "file", "type": "none"}
PLAIN = {"setPermissions": False, "options": "", "targetType": "directory"}


def prepared(jobs: Jobs, machine: Machine, kind: str) -> Job:
    """A job with two allocations on one rabbit, one on another, and three
    computes; ready in PreRun."""
    job = jobs.ready(JOBDW.format(kind), **OWNER)
    one, two = machine.names[:2]
    job.fill({one: 2, two: 1})
    job.computes(*machine.rabbits[one][:2], machine.rabbits[two][0])
    job.through("PreRun")
    return job


def mount_of(user: User, job: Job, node: str, kind: str) -> Object:
    """ClientMount of a node for a job; kind: computes or servers."""
    name = f"default-{job.name}-0-{kind}"
    found: Object = user.get(MOUNTS, name, node).expect(200)
    assert found["spec"]["node"] == node
    return found


def mount_path(job: Job) -> str:
    """Where computes see the file system."""
    obj = job.get()
    path = str(obj["status"]["env"]["DW_JOB_test"])
    assert path.endswith(f"/nnf/{obj['metadata']['uid']}-0")
    return path


def device(job: Job, kind: str, rabbit: str, index: int) -> Object:
    """The reference to an allocation; the first one's index is left out."""
    reference: Object = {
        "objectReference": {
            "kind": "NnfNodeStorage",
            "name": f"default-{job.name}-0-{kind}-0",
            "namespace": rabbit,
        }
    }
    if index:
        reference["data"] = index
    return reference


def manner(mount: Object, kind: str) -> None:
    """Check how a file system is mounted, and who owns it."""
    expected: dict[str, Any] = {**PLAIN, "type": kind}
    if kind == "raw":
        expected = {**RAW, **OWNER}
    rest = {k: v for k, v in mount.items() if k not in ("device", "mountPath")}
    assert rest == expected


@pytest.mark.observed(18)
@pytest.mark.parametrize("kind", ["xfs", "gfs2", "raw"])
def test_mounts_of_computes(wlm: User, jobs: Jobs, machine: Machine, kind: str) -> None:
    job = prepared(jobs, machine, kind)
    path = mount_path(job)
    one, two = machine.names[:2]
    first, second = machine.rabbits[one][:2]
    third = machine.rabbits[two][0]
    for node, rabbit, index in ((first, one, 0), (second, one, 1), (third, two, 0)):
        obj = mount_of(wlm, job, node, "computes")
        [mount] = obj["spec"]["mounts"]
        manner(mount, kind)
        assert mount["mountPath"] == path
        assert mount["device"]["type"] == "lvm"
        assert mount["device"]["deviceReference"] == device(job, kind, rabbit, index)
        lvm = mount["device"]["lvm"]
        assert lvm["deviceType"] == "nvme"
        # as many drives as a stripe has
        assert len({n["deviceSerial"] for n in lvm["nvmeInfo"]}) == 16
        namespaces = {n["namespaceID"] for n in lvm["nvmeInfo"]}
        assert all(number.isdigit() for number in namespaces)
        assert obj["metadata"]["labels"][f"{NNF}/target_directive_index"] == "0"
        assert obj["metadata"]["labels"][f"{NNF}/directive_index"] == "0"


@pytest.mark.observed(18)
@pytest.mark.parametrize("kind", ["gfs2", "raw"])
def test_mounts_of_rabbits(wlm: User, jobs: Jobs, machine: Machine, kind: str) -> None:
    job = prepared(jobs, machine, kind)
    path = mount_path(job)
    for rabbit, count in zip(machine.names, (2, 1)):
        obj = mount_of(wlm, job, rabbit, "servers")
        assert len(obj["spec"]["mounts"]) == count
        for i, mount in enumerate(obj["spec"]["mounts"]):
            manner(mount, kind)
            assert mount["mountPath"] == f"{path}/{rabbit}-{i}"
            assert mount["device"] == {
                "type": "reference",
                "deviceReference": device(job, kind, rabbit, i),
            }
        ready = {"state": "mounted", "ready": True}
        assert obj["status"] == {"allReady": True, "mounts": [ready] * count}


@pytest.mark.observed(18)
def test_mounts_of_lustre(wlm: User, jobs: Jobs, machine: Machine) -> None:
    job = prepared(jobs, machine, "lustre")
    path = mount_path(job)
    reference = {
        "objectReference": {
            "kind": "NnfStorage",
            "name": f"{job.name}-0",
            "namespace": "default",
        }
    }
    one, two = machine.names[:2]
    places = [(node, "computes") for node in machine.rabbits[one][:2]]
    places += [(one, "servers"), (two, "servers")]
    for node, group in places:
        [mount] = mount_of(wlm, job, node, group)["spec"]["mounts"]
        manner(mount, "lustre")
        assert mount["mountPath"] == path
        assert mount["device"]["type"] == "lustre"
        assert mount["device"]["deviceReference"] == reference
        assert mount["device"]["lustre"]["fileSystemName"]


# -- the owner of a new Lustre ---------------------------------------------


def owner_mount(user: User, storage: str) -> Object | None:
    """The mount by which a new Lustre got its owner."""
    found = user.list(
        MOUNTS, None, fieldSelector=f"metadata.name={storage}-ownergroup"
    ).expect(200)["items"]
    assert len(found) <= 1
    return found[0] if found else None


@pytest.mark.observed(17)
def test_the_mount_that_gave_a_lustre_its_owner_stays(
    wlm: User, jobs: Jobs, machine: Machine
) -> None:
    job = jobs.ready(JOBDW.format("lustre"), **OWNER)
    job.fill({machine.names[0]: 1})
    job.to("Setup")
    name = f"{job.name}-0"
    obj = owner_mount(wlm, name)
    assert obj is not None
    assert obj["metadata"]["namespace"] == machine.names[0]
    wait(
        wlm,
        MOUNTS,
        f"{name}-ownergroup",
        lambda o: (
            o["spec"]["desiredState"] == "unmounted"
            and o["status"]
            == {"allReady": True, "mounts": [{"state": "unmounted", "ready": True}]}
        ),
        machine.names[0],
    )
    [mount] = obj["spec"]["mounts"]
    assert mount["setPermissions"] is True
    assert {key: mount[key] for key in OWNER} == OWNER
    assert mount["device"]["type"] == "lustre"
    assert mount["device"]["deviceReference"] == {
        "objectReference": {
            "name": f"default-{name}-ost-0",
            "namespace": machine.names[0],
        }
    }
    assert obj["metadata"]["labels"][f"{DWS}/owner.kind"] == "NnfStorage"
    job.to("DataIn")
    assert owner_mount(wlm, name) is not None
    job.to("Teardown")
    gone(wlm, MOUNTS, f"{name}-ownergroup", machine.names[0])


@pytest.mark.observed(17)
def test_with_persistent_storage_it_stays_as_long_as_that(
    wlm: User, jobs: Jobs, machine: Machine
) -> None:
    name = unique("owned")
    job = jobs.ready(f"#DW create_persistent type=lustre capacity=10GiB name={name}")
    job.fill({machine.names[0]: 1})
    job.through("Teardown")
    job.delete()
    obj = owner_mount(wlm, name)
    assert obj is not None
    assert obj["spec"]["desiredState"] == "unmounted"
    last = jobs.ready(f"#DW destroy_persistent name={name}")
    last.to("Teardown")
    gone(wlm, MOUNTS, f"{name}-ownergroup", machine.names[0])
