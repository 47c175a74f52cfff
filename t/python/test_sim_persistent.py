# Persistent storage in dws-sim: made by one workflow, used by others,
# destroyed by yet another.
# SPDX-License-Identifier: LGPL-3.0-only
"""Persistent storage."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client, watch
from sim_support import DWS, LIMIT_S, Api, Job, Sim, error_in, error_of

PSI = "persistentstorageinstances"
CREATE = "#DW create_persistent type=gfs2 capacity=10GiB name=shared-data"
USE = "#DW persistentdw name=shared-data"
DESTROY = "#DW destroy_persistent name=shared-data"
_numbers = itertools.count()


@pytest.fixture
def api(sim: Sim) -> Iterator[Api]:
    """Admin access; a test leaves nothing."""
    api = Api(sim)
    yield api
    for name in api.names("workflows"):
        api.delete("workflows", name)
        sim.ctl("wait-state", name, "gone", "--timeout", str(LIMIT_S))
    for name in api.names(PSI):
        api.delete(PSI, name)
    sim.ctl("wait-idle", "--timeout", str(LIMIT_S))
    assert sim.state()["allocated"] == {}


def start(api: Api, *directives: str, **spec: Any) -> Job:
    return Job(api, f"wf{next(_numbers)}", *directives, **spec)


def make(api: Api) -> None:
    """A workflow that creates the storage, from end to end."""
    job = start(api, CREATE)
    job.wait("Proposal")
    job.give({"rabbit0": 2}, [])
    job.through("Teardown")
    job.remove()


def test_breakdown_and_instance(api: Api) -> None:
    job = start(api, CREATE)
    job.wait("Proposal")
    status = job.breakdown()["status"]
    assert "compute" not in status
    assert status["storage"]["lifetime"] == "persistent"
    assert status["storage"]["reference"]["name"] == "shared-data"
    labels = api.get("servers", "shared-data")["metadata"]["labels"]
    assert labels[f"{DWS}/persistentstorage.name"] == "shared-data"
    assert f"{DWS}/workflow.name" not in labels
    assert api.get(PSI, "shared-data")["status"]["state"] == "Creating"


def test_storage_outlives_its_workflow(api: Api) -> None:
    make(api)
    instance = api.get(PSI, "shared-data")
    assert instance["status"]["state"] == "Active"
    assert "ownerReferences" not in instance["metadata"]
    assert set(api.sim.state()["allocated"]) == {"rabbit0"}


def test_use_and_destroy(api: Api) -> None:
    make(api)
    user = start(api, USE)
    user.wait("Proposal")
    status = user.breakdown()["status"]
    assert "storage" not in status
    [location] = status["compute"]["constraints"]["location"]
    assert location["access"] == [{"type": "physical", "priority": "mandatory"}]
    assert location["reference"]["name"] == "shared-data"
    api.patch("computes", user.name, {"data": [{"name": "node0"}]})
    user.to("Setup")
    [consumer] = api.get(PSI, "shared-data")["spec"]["consumerReferences"]
    assert consumer["name"] == f"{user.name}-0"
    user.to("DataIn")
    env = user.to("PreRun")["status"]["env"]
    path = env["DW_PERSISTENT_shared_data"]
    assert env["DW_PERSISTENTS"] == f"shared-data:{path}"
    assert env["DW_PERSISTENT_"] == path
    assert os.path.isdir(path)
    destroyer = start(api, DESTROY)
    destroyer.wait("Proposal")
    destroyer.to("Teardown", ready=False)
    assert "while in use" in error_in(api, destroyer.name)
    user.remove()
    destroyer.wait("Teardown")
    with pytest.raises(client.ApiException) as info:
        api.get(PSI, "shared-data")
    assert error_of(info.value)["code"] == 404
    assert api.sim.state()["allocated"] == {}


def test_xfs_is_mounted_for_one_workflow_at_a_time(api: Api) -> None:
    maker = start(api, CREATE.replace("gfs2", "xfs"))
    maker.wait("Proposal")
    maker.give({"rabbit0": 2}, [])
    maker.through("Teardown")
    maker.remove()
    first, second = start(api, USE), start(api, USE)
    for number, job in enumerate((first, second)):
        job.wait("Proposal")
        api.patch("computes", job.name, {"data": [{"name": f"node{number}"}]})
        job.to("Setup")
        job.to("DataIn")
        job.to("PreRun", ready=job is first)
    other = start(api, "#DW jobdw type=xfs capacity=10GiB name=other")
    other.wait("Proposal")
    other.give({"rabbit0": 1}, ["node1"])
    other.through("PreRun")
    assert second.get()["status"]["ready"] is False
    first.to("PostRun")
    second.wait("PreRun")


def test_degraded_storage_is_not_to_be_had(api: Api) -> None:
    make(api)
    api.sim.ctl("drive", "rabbit0", "2", "failed")
    instance(api, "Degraded")
    user = start(api, USE)
    user.wait("Proposal")
    user.to("Setup", ready=False)
    assert "is not active" in error_in(api, user.name)
    user.remove()
    api.sim.ctl("drive", "rabbit0", "2", "ok")
    instance(api, "Active")


def instance(api: Api, state: str) -> None:
    """Wait for a state of the storage."""
    stream = watch.Watch().stream(
        api.custom.list_namespaced_custom_object,
        *(DWS, "v1alpha7", "default", PSI),
        timeout_seconds=LIMIT_S,
    )
    assert any(e["object"]["status"]["state"] == state for e in stream)


def test_failed_creation_leaves_nothing(api: Api) -> None:
    job = start(api, CREATE)
    job.wait("Proposal")
    job.give({"rabbit0": 1}, [])
    job.to("Teardown")
    assert PSI not in api.names(PSI)
    job.remove()
    assert api.names(PSI) == []
    assert api.names("servers") == []


def test_others_may_not(api: Api) -> None:
    make(api)
    user = start(api, USE, userID=4711)
    assert "User ID does not match existing" in error_in(api, user.name)
    destroyer = start(api, DESTROY, userID=4711)
    destroyer.wait("Proposal")
    destroyer.to("Teardown", ready=False)
    assert "user ID does not match existing" in error_in(api, destroyer.name)
    note = {"metadata": {"annotations": {f"{DWS}/ignore-uid": "true"}}}
    api.patch(PSI, "shared-data", note)
    user.wait("Proposal")
    assert destroyer.get()["status"]["ready"] is False


def test_what_is_not_there(api: Api) -> None:
    job = start(api, USE)
    assert "'shared-data' not found" in error_in(api, job.name)


def test_only_directive(api: Api) -> None:
    job = start(api, CREATE, "#DW jobdw type=xfs capacity=1GiB name=aa")
    assert "only a single create_persistent" in error_in(api, job.name)


def refused(api: Api, job: Job) -> str:
    """The driver's message of a workflow that stays in Proposal."""
    stream = watch.Watch().stream(
        api.custom.list_namespaced_custom_object,
        *(DWS, "v1alpha7", "default", "workflows"),
        resource_version="0",
        field_selector=f"metadata.name={job.name}",
        timeout_seconds=LIMIT_S,
    )
    for event in stream:
        status = event["object"].get("status", {})
        for driver in status.get("drivers", ()):
            if driver.get("error"):
                assert status["status"] == "DriverWait" and not status["ready"]
                return str(driver["error"])
    raise AssertionError(f"{job.name} is not refused")


@pytest.mark.parametrize(
    ("directive", "field"),
    [
        (CREATE.replace("10GiB", "11GiB"), "DWDirective"),
        (CREATE.replace("gfs2", "xfs"), "FsType"),
    ],
)
def test_another_directive(api: Api, directive: str, field: str) -> None:
    make(api)
    job = start(api, directive)
    assert refused(api, job) == (
        'internal error: admission webhook "vpersistentstorageinstance.kb.io" denied '
        f"the request: Spec.{field}: Forbidden: field is immutable"
    )
    job.remove()


def test_name_that_is_none(api: Api) -> None:
    job = start(api, CREATE.replace("shared-data", "trailing-"))
    assert "is invalid: metadata.name" in refused(api, job)
    job.remove()
