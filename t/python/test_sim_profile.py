# Profiles: what NNF's webhooks refuse, and pools of standalone MGTs.
# SPDX-License-Identifier: LGPL-3.0-only
"""Storage and container profiles."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client
from sim_support import LIMIT_S, Api, Job, Sim, error_in, error_of

PSI = "persistentstorageinstances"
_numbers = itertools.count()


@pytest.fixture
def api(sim: Sim) -> Iterator[Api]:
    api = Api(sim)
    yield api
    for name in api.names("workflows"):
        api.delete("workflows", name)
    for name in api.names(PSI):
        api.delete(PSI, name)
    sim.ctl("rabbit", "rabbit0", "up")
    sim.ctl("wait-idle", "--timeout", str(LIMIT_S))
    assert sim.state()["allocated"] == {}


def pod(*names: str) -> dict[str, Any]:
    return {"containers": [{"name": n, "image": "i"} for n in names]}


def container(**data: Any) -> dict[str, Any]:
    return {"retryLimit": 6, "createContainer": True, **data}


def mpi(name: str, offload: bool = False) -> dict[str, Any]:
    return {"launcher": pod(name), "worker": pod(name), "copyOffload": offload}


def profile(name: str, data: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


_STORAGE = {"name": "DW_JOB_a", "pvcMode": "ReadWriteMany"}
_GLOBAL = {"name": "DW_GLOBAL_a", "pvcMode": "ReadWriteMany"}


@pytest.mark.parametrize(
    ("data", "namespace", "text"),
    [
        (container(spec=pod("a")), "nnf-system", ""),
        (container(mpiSpec=mpi("copy-offload", True)), "nnf-system", ""),
        (container(spec=pod("a"), storages=[_GLOBAL]), "nnf-system", ""),
        (container(spec=pod("a"), pinned=True), "default", ""),
        (container(spec=pod("a")), "default", "namespace 'nnf-system'"),
        (container(), "nnf-system", "exactly one of spec and mpiSpec"),
        (container(spec=pod("a"), mpiSpec=mpi("a")), "nnf-system", "exactly one"),
        (container(spec=pod()), "nnf-system", "at least one container"),
        (container(spec=pod("copy-offload")), "nnf-system", "needs mpiSpec"),
        (container(mpiSpec=mpi("copy-offload")), "nnf-system", "do not go together"),
        (container(mpiSpec=mpi("a", True)), "nnf-system", "do not go together"),
        (container(spec=pod("a"), storages=[_STORAGE]), "nnf-system", "DW_GLOBAL_"),
    ],
)
def test_container_profiles(
    api: Api, data: dict[str, Any], namespace: str, text: str
) -> None:
    plural = "nnfcontainerprofiles"
    if not text:
        api.create(plural, profile("mine", data), namespace)
        api.delete(plural, "mine", namespace)
        return
    with pytest.raises(client.ApiException) as info:
        api.create(plural, profile("mine", data), namespace)
    error = error_of(info.value)
    prefix = 'admission webhook "vnnfcontainerprofile.kb.io" denied the request: '
    assert error["code"] == 403
    assert error["message"].startswith(prefix)
    assert text in error["message"]


def test_pinned_profile_is_immutable(api: Api) -> None:
    plural = "nnfcontainerprofiles"
    api.create(plural, profile("mine", container(spec=pod("a"), pinned=True)))
    api.patch(plural, "mine", {"metadata": {"labels": {"a": "b"}}})
    for change in ({"retryLimit": 1}, {"pinned": False}):
        with pytest.raises(client.ApiException) as info:
            api.patch(plural, "mine", {"data": change})
        assert "immutable" in error_of(info.value)["message"]
    api.delete(plural, "mine")


@pytest.mark.parametrize(
    ("lustre", "text"),
    [
        ({"combinedMgtMdt": True, "mgtOptions": {"externalMgs": "1@tcp"}}, "combined"),
        (
            {"mgtOptions": {"externalMgs": "1@tcp", "standaloneMgtPoolName": "p"}},
            "standaloneMgtPoolName",
        ),
        ({"ostOptions": {"count": 1, "scale": 2}}, "count and scale"),
    ],
)
def test_storage_profiles(api: Api, lustre: dict[str, Any], text: str) -> None:
    with pytest.raises(client.ApiException) as info:
        obj = profile("mine", {"lustreStorage": lustre})
        api.create("nnfstorageprofiles", obj, "nnf-system")
    error = error_of(info.value)
    assert (error["code"], error["reason"]) == (403, "Forbidden")
    assert text in error["message"]


# -- pools ----------------------------------------------------------------


@pytest.fixture
def pools(api: Api) -> Iterator[Api]:
    """Profiles of a pool: to make its members, and to use them."""
    plural, place = "nnfstorageprofiles", "nnf-system"
    make = {"mgtOptions": {"standaloneMgtPoolName": "blue"}}
    use = {"mgtOptions": {"externalMgs": "pool:blue"}}
    for name, lustre in (("make", make), ("use", use)):
        api.create(plural, profile(name, {"lustreStorage": lustre}), place)
    yield api
    for name in ("make", "use"):
        api.delete(plural, name, place)


def lustre(api: Api) -> Job:
    """A job with a file system whose MGT comes from the pool."""
    text = "#DW jobdw type=lustre capacity=10GiB name=fast profile=use"
    job = Job(api, f"wf{next(_numbers)}", text)
    job.wait("Proposal")
    return job


def member(api: Api, name: str, rabbit: str) -> None:
    text = f"#DW create_persistent type=lustre name={name} profile=make"
    job = Job(api, f"wf{next(_numbers)}", text)
    job.wait("Proposal")
    [need] = job.breakdown()["status"]["storage"]["allocationSets"]
    assert (need["label"], need["allocationStrategy"]) == (
        "mgt",
        "AllocateSingleServer",
    )
    job.give({rabbit: 1}, [])
    job.through("Teardown")
    job.remove()


def test_pool_of_mgts(pools: Api) -> None:
    api = pools
    for name, rabbit in (("mgt-a", "rabbit0"), ("mgt-b", "rabbit1")):
        member(api, name, rabbit)
    labels = api.get(PSI, "mgt-a")["metadata"]["labels"]
    assert labels == {"nnf.cray.hpe.com/standalone_mgt": "blue"}
    # only the one on a healthy rabbit can be had
    api.sim.ctl("rabbit", "rabbit0", "drained")
    job = lustre(api)
    labels = [
        s["label"] for s in job.breakdown()["status"]["storage"]["allocationSets"]
    ]
    assert labels == ["ost", "mdt"]
    job.give({"rabbit1": 1}, ["node2"])
    job.to("Setup")
    [user] = api.get(PSI, "mgt-b")["spec"]["consumerReferences"]
    assert (user["kind"], user["name"]) == ("NnfStorage", f"{job.name}-0")
    assert not api.get(PSI, "mgt-a")["spec"].get("consumerReferences")
    job.remove()
    assert not api.get(PSI, "mgt-b")["spec"].get("consumerReferences")


def test_pool_without_a_usable_member(pools: Api) -> None:
    api = pools
    job = lustre(api)
    job.give({"rabbit1": 1}, ["node2"])
    job.to("Setup", ready=False)
    assert "no MGSs found for pool: blue" in error_in(api, job.name)
    job.remove()
    member(api, "mgt-a", "rabbit0")
    api.sim.ctl("rabbit", "rabbit0", "drained")
    job = lustre(api)
    job.give({"rabbit1": 1}, ["node2"])
    job.to("Setup", ready=False)
    assert "no MGSs found" in error_in(api, job.name, "TransientCondition")
    api.sim.ctl("rabbit", "rabbit0", "up")
    job.wait("Setup")
    job.remove()


def test_jobs_make_no_pool(pools: Api) -> None:
    text = "#DW jobdw type=lustre capacity=10GiB name=fast profile=make"
    job = Job(pools, f"wf{next(_numbers)}", text)
    assert "only be used with 'create_persistent'" in error_in(pools, job.name)
    job.remove()
