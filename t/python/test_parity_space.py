# dws-sim must account for space on rabbits as DWS and NNF do.
# SPDX-License-Identifier: LGPL-3.0-only
"""Storages, Servers and how much fits."""

from __future__ import annotations

import pytest
from parity_nnf import JOBDW, Job, Jobs, Machine
from parity_support import Object, User

DRIVES, USED = 18, 16
# The part of an allocation on each drive is a multiple of this.
BLOCK = 4096
UNIT = USED * BLOCK
TOO_MUCH = "DW Directive 0: WLM error: {}: insufficient capacity available"


def rounded(size: int) -> int:
    return -(-size // UNIT) * UNIT


def drives(user: User, rabbit: str) -> list[int]:
    """How much each drive of a rabbit holds."""
    status = user.get("storages", rabbit).expect(200)["status"]
    return [d["capacity"] for d in status["devices"]]


def fits(user: User, rabbit: str) -> int:
    """The most that one directive can have on an empty rabbit."""
    least = sorted(drives(user, rabbit))[-USED]
    return least // BLOCK * UNIT


def sized(jobs: Jobs, rabbit: str, size: int, count: int = 1) -> Job:
    """A job with allocations of a size, in Setup."""
    job = jobs.ready(JOBDW.format("xfs"))
    job.fill({rabbit: count}, size)
    job.go("Setup")
    return job


def given(job: Job, rabbit: str) -> Object:
    """The status of a rabbit in Servers."""
    sets = job.servers()["status"]["allocationSets"]
    found: Object = sets[0]["storage"][rabbit]
    return found


@pytest.mark.parametrize("kind", ["xfs", "gfs2", "raw", "lustre"])
def test_a_job_goes_through_all_states(jobs: Jobs, machine: Machine, kind: str) -> None:
    job = jobs.ready(JOBDW.format(kind))
    rabbit = machine.names[0]
    job.fill({rabbit: 1})
    job.computes(machine.rabbits[rabbit][0])
    job.through("Teardown")


# -- drives --------------------------------------------------------------------


@pytest.mark.observed(1)
def test_devices_say_what_a_rabbit_has(wlm: User, machine: Machine) -> None:
    for rabbit in machine.names:
        status = wlm.get("storages", rabbit).expect(200)["status"]
        slots = [d["slot"] for d in status["devices"]]
        assert sorted(slots, key=int) == [str(n + 1) for n in range(DRIVES)]
        assert status["capacity"] <= sum(d["capacity"] for d in status["devices"])


@pytest.mark.observed(1)
def test_allocations_do_not_change_a_storage(
    jobs: Jobs, machine: Machine, wlm: User
) -> None:
    rabbit = machine.names[0]
    before = wlm.get("storages", rabbit).expect(200)
    job = sized(jobs, rabbit, fits(wlm, rabbit) // 2)
    job.at("Setup")
    after = wlm.get("storages", rabbit).expect(200)
    assert after["status"]["capacity"] == before["status"]["capacity"]
    assert given(job, rabbit)["allocationSize"] > 0


# -- how much fits -------------------------------------------------------------


@pytest.mark.observed(2)
@pytest.mark.parametrize("count", [1, 2])
def test_sixteen_drives_can_be_had(
    jobs: Jobs, machine: Machine, wlm: User, count: int
) -> None:
    rabbit = machine.names[0]
    most = fits(wlm, rabbit)
    size = most // count
    job = sized(jobs, rabbit, size, count)
    job.at("Setup")
    found = given(job, rabbit)
    assert found == {"allocationSize": rounded(size * count), "ready": True}


@pytest.mark.observed(2)
def test_more_than_sixteen_drives_is_refused(
    jobs: Jobs, machine: Machine, wlm: User
) -> None:
    rabbit = machine.names[0]
    job = sized(jobs, rabbit, fits(wlm, rabbit) + 1)
    obj = job.saying("Error", TOO_MUCH.format(rabbit))
    storage = wlm.get("storages", rabbit).expect(200)
    assert (
        job.servers()["spec"]["allocationSets"][0]["allocationSize"]
        < (storage["status"]["capacity"])
    )
    entry = job.entry(0, obj)
    least = sorted(drives(wlm, rabbit))[-USED]
    wanted = fits(wlm, rabbit) // USED + BLOCK
    assert entry["message"] == f"WLM error: {rabbit}: insufficient capacity available"
    assert entry["error"].startswith(
        f"wlm error: storage resource error: default/{job.name}-0: Node: {rabbit}: "
        "unable to allocate NVMe namespaces for allocation 0: could not create "
        "storage pool: could not allocate storage pool: "
    )
    requested, available = (
        entry["error"].rsplit("Requested: ", 1)[1].split(" Available: ")
    )
    assert int(requested) == wanted
    assert least <= int(available) < wanted
    assert given(job, rabbit) == {"allocationSize": 0, "ready": False}


@pytest.mark.observed(2)
def test_all_allocations_of_a_directive_are_one_pool(
    jobs: Jobs, machine: Machine, wlm: User
) -> None:
    """Eighteen allocations of a drive's size do not go to a drive each."""
    rabbit = machine.names[0]
    least = min(drives(wlm, rabbit))
    job = sized(jobs, rabbit, least // UNIT * UNIT, DRIVES)
    job.saying("Error", TOO_MUCH.format(rabbit))


@pytest.mark.observed(2)
def test_the_freest_drives_are_taken(jobs: Jobs, machine: Machine, wlm: User) -> None:
    """The space left on the drives of a first job limits a second one, although two
    more drives are empty."""
    rabbit = machine.names[0]
    most = fits(wlm, rabbit)
    first = most // 4 // UNIT * UNIT
    sized(jobs, rabbit, first).at("Setup")
    job = sized(jobs, rabbit, most - first + UNIT)
    job.saying("Error", TOO_MUCH.format(rabbit))
    sized(jobs, rabbit, most - first).at("Setup")


@pytest.mark.observed(2)
def test_lustre_makes_a_pool_of_each_allocation(
    jobs: Jobs, machine: Machine, wlm: User
) -> None:
    rabbit = machine.names[0]
    job = jobs.ready(JOBDW.format("lustre"))
    half = fits(wlm, rabbit) // 2 // UNIT * UNIT
    wanted = job.breakdown()["status"]["storage"]["allocationSets"]
    sets = [
        {
            "label": need["label"],
            "allocationSize": half if need["label"] == "ost" else BLOCK,
            "storage": [{"name": rabbit, "allocationCount": 2}],
        }
        for need in wanted
    ]
    for one, need in zip(sets, wanted):
        if need["label"] != "ost":
            one["allocationSize"] = need["minimumCapacity"]
            one["storage"] = [{"name": rabbit, "allocationCount": 1}]
    job.give(sets)
    job.go("Setup")
    obj = job.until(lambda o: o["status"]["status"] == "Error")
    assert obj["status"]["message"] == TOO_MUCH.format(rabbit)


# -- how much it takes ---------------------------------------------------------


@pytest.mark.observed(3)
@pytest.mark.parametrize(("count", "more"), [(1, 1), (2, 1), (3, UNIT - 1)])
def test_allocations_are_rounded_up(
    jobs: Jobs, machine: Machine, count: int, more: int
) -> None:
    rabbit = machine.names[0]
    job = jobs.ready(JOBDW.format("xfs"))
    needed = job.breakdown()["status"]["storage"]["allocationSets"][0]
    size = needed["minimumCapacity"] + more
    job.fill({rabbit: count}, size)
    job.to("Setup")
    found = given(job, rabbit)
    assert found == {"allocationSize": rounded(size * count), "ready": True}


@pytest.mark.observed(3)
def test_each_allocation_of_lustre_is_rounded_up(jobs: Jobs, machine: Machine) -> None:
    rabbit = machine.names[0]
    job = jobs.ready(JOBDW.format("lustre"))
    wanted = job.breakdown()["status"]["storage"]["allocationSets"]
    size = 4_000_000_001
    sets = [
        {
            "label": need["label"],
            "allocationSize": max(need["minimumCapacity"], size),
            "storage": [{"name": rabbit, "allocationCount": 3}],
        }
        for need in wanted
    ]
    job.give(sets)
    job.to("Setup")
    status = job.servers()["status"]["allocationSets"]
    assert {s["label"]: s["storage"][rabbit]["allocationSize"] for s in status} == {
        s["label"]: 3 * rounded(int(s["allocationSize"])) for s in sets
    }
