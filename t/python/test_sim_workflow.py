# The controllers of dws-sim: workflows from Proposal to deletion, refusals, and
# injected faults.
# SPDX-License-Identifier: LGPL-3.0-only
"""Workflows."""

from __future__ import annotations

import itertools
import os
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client, watch
from sim_support import (
    DWS,
    GIB,
    LIMIT_S,
    PADDING,
    STATES,
    XFS,
    Api,
    Job,
    Sim,
    error_of,
    workflow,
)

WEBHOOK = 'admission webhook "vworkflow.kb.io" denied the request: '
_numbers = itertools.count()


@pytest.fixture
def api(sim: Sim) -> Iterator[Api]:
    """Admin access; whatever a test leaves is torn down, and then nothing may
    be left."""
    api = Api(sim)
    yield api
    sim.ctl("release", "all")
    sim.ctl("fail", "all", "--clear")
    for name in api.names("workflows"):
        api.patch("workflows", name, {"metadata": {"finalizers": None}})
    for name in api.names("workflows"):
        api.delete("workflows", name)
    sim.ctl("wait-idle", "--timeout", str(LIMIT_S))
    state = sim.state()
    assert (state["allocated"], state["backing"]) == ({}, [])


def a_name() -> str:
    return f"wf{next(_numbers)}"


def refused(api: Api, call: Any, *args: Any) -> tuple[int, str]:
    with pytest.raises(client.ApiException) as info:
        call(*args)
    status = error_of(info.value)
    return status["code"], status["message"]


# -- admission ------------------------------------------------------------


def test_new_workflow(api: Api) -> None:
    made = api.create("workflows", workflow("fresh", XFS))
    status = made["status"]
    assert {k: status[k] for k in ("ready", "computes", "env")} == {
        "ready": False,
        "computes": {},
        "env": {"DW_WORKFLOW_NAME": "fresh", "DW_WORKFLOW_NAMESPACE": "default"},
    }
    assert not {"state", "status"} & set(status)
    assert [d["watchState"] for d in status["drivers"]] == [
        "Proposal",
        "Setup",
        "PreRun",
        "PostRun",
        "Teardown",
    ]
    assert {(d["driverID"], d["status"]) for d in status["drivers"]} == {
        ("nnf", "Pending")
    }


@pytest.mark.parametrize(
    ("directive", "text"),
    [
        ("#BB jobdw", "missing '#DW' prefix in directive '#BB jobdw'"),
        ("#DW jobwd x=1", "invalid directive '#DW jobwd x=1'"),
        (f"{XFS} color=red", "unsupported argument 'color'"),
        (f"{XFS} type=xfs", f"repeated argument 'type' in directive '{XFS} type=xfs'"),
        (f"{XFS} profile", "argument 'profile' requires value"),
        (XFS.replace("xfs", "zfs"), "argument 'type' invalid string 'zfs'"),
        (XFS.replace("10GiB", "10G"), "argument 'capacity' invalid string '10G'"),
        (f"{XFS} requires=a", "argument 'requires' invalid string 'a' in list 'a'"),
        ("#DW jobdw type=xfs name=aa", "missing required argument '^capacity$'"),
    ],
)
def test_bad_directives(api: Api, directive: str, text: str) -> None:
    found = refused(api, api.create, "workflows", workflow("bad", directive))
    assert found == (403, WEBHOOK + text)


def test_names_of_file_systems_are_unique(api: Api) -> None:
    found = refused(api, api.create, "workflows", workflow("bad", XFS, XFS))
    text = "value 'scratch' must be unique within 'jobdw_name'"
    assert found == (403, WEBHOOK + text)


def test_directive_without_a_command_crashes_the_webhook(api: Api) -> None:
    code, text = refused(api, api.create, "workflows", workflow("bad", "#DW"))
    assert code == 500
    assert "failed calling webhook" in text


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            {"desiredState": "Setup"},
            'Spec.DesiredState: Invalid value: "Setup": desired state must start '
            "in Proposal",
        ),
        (
            {"hurry": True},
            "Spec.Hurry: Forbidden: the hurry flag may not be set on creation",
        ),
    ],
)
def test_refused_at_creation(api: Api, spec: dict[str, Any], text: str) -> None:
    obj = workflow("bad", XFS, **spec)
    assert refused(api, api.create, "workflows", obj) == (403, WEBHOOK + text)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            {"hurry": True},
            "Spec.Hurry: Invalid value: true: the hurry flag may be set only in "
            "Teardown",
        ),
        ({"wlmID": "pbs"}, "Spec.WLMID: Forbidden: field is immutable"),
        ({"jobID": "f2"}, "Spec.JobID: Forbidden: field is immutable"),
        ({"dwDirectives": []}, "Spec.DWDirectives: Forbidden: field is immutable"),
        (
            {"desiredState": "Proposal"},
            'Spec.DesiredState: Invalid value: "Proposal": DesiredState cannot '
            "progress backwards",
        ),
        (
            {"desiredState": "PreRun"},
            'Spec.DesiredState: Invalid value: "PreRun": states cannot be skipped',
        ),
        (
            {"desiredState": "DataIn"},
            'Status.State: Invalid value: "Setup": current desired state not yet '
            "achieved",
        ),
    ],
)
def test_refused_changes(api: Api, spec: dict[str, Any], text: str) -> None:
    job = Job(api, a_name(), XFS)
    job.wait("Proposal")
    job.give({"rabbit0": 1}, ["node0"])
    api.sim.ctl("hold", "Setup")
    job.to("Setup", ready=False)
    found = refused(api, api.patch, "workflows", job.name, {"spec": spec})
    assert found == (403, WEBHOOK + text)


# -- the ordinary course --------------------------------------------------


def test_seven_states(api: Api) -> None:
    job = Job(api, a_name(), XFS)
    obj = job.wait("Proposal")
    uid, name = obj["metadata"]["uid"], job.name
    assert obj["status"]["directiveBreakdowns"] == [
        {"kind": "DirectiveBreakdown", "name": f"{name}-0", "namespace": "default"}
    ]
    assert obj["status"]["computes"]["name"] == name
    found = api.names("servers", label_selector=f"{DWS}/workflow.name={name}")
    assert found == [f"{name}-0"]
    job.give({"rabbit0": 2, "rabbit1": 1}, ["node0", "node1", "node3"])
    job.to("Setup")
    size = 10 * GIB + PADDING
    servers = api.get("servers", f"{name}-0")["status"]
    assert servers["ready"] is True
    assert servers["allocationSets"][0]["storage"] == {
        "rabbit0": {"allocationSize": 2 * size, "ready": True},
        "rabbit1": {"allocationSize": size, "ready": True},
    }
    assert api.sim.state()["allocated"] == {"rabbit0": 2 * size, "rabbit1": size}
    job.to("DataIn")
    obj = job.to("PreRun")
    path = f"{api.sim.root}/mnt/nnf/{uid}-0"
    env = obj["status"]["env"]
    assert env["DW_JOB_scratch"] == env["DW_JOB_XFS"] == path
    assert env["DW_JOBS"] == f"scratch:{path}"
    mounts = api.list("clientmounts")["items"]
    assert {m["metadata"]["namespace"] for m in mounts} == {"node0", "node1", "node3"}
    assert {m["metadata"]["name"] for m in mounts} == {f"default-{name}-0-computes"}
    assert all(m["status"]["allReady"] for m in mounts)
    pathlib.Path(path, "result").write_text("42")
    job.to("PostRun")
    assert not os.path.lexists(path)
    job.to("DataOut")
    [backing] = api.sim.state()["backing"]
    assert pathlib.Path(backing, "result").read_text() == "42"
    obj = job.to("Teardown")
    assert "message" not in obj["status"]
    assert api.sim.state()["allocated"] == {}
    servers = api.get("servers", f"{name}-0")["status"]
    assert servers["allocationSets"][0]["storage"]["rabbit0"]["allocationSize"] == 0
    api.delete("workflows", name)
    job.wait("gone")
    assert not os.path.exists(backing)


def test_order_of_what_a_watch_shows(api: Api) -> None:
    since = api.list("workflows")["metadata"]["resourceVersion"]
    job = Job(api, a_name(), XFS)
    job.wait("Proposal")
    job.give({"rabbit0": 1}, ["node0"])
    job.through("Teardown")
    api.delete("workflows", job.name)
    job.wait("gone")
    seen: list[tuple[str, bool]] = []
    last: dict[str, Any] = {}
    stream = watch.Watch().stream(
        api.custom.list_cluster_custom_object,
        *(DWS, "v1alpha7", "workflows"),
        resource_version=since,
        timeout_seconds=LIMIT_S,
    )
    for event in stream:
        status = event["object"]["status"]
        entry = (status.get("state", ""), status["ready"])
        if event["type"] == "DELETED":
            break
        if not seen or seen[-1] != entry:
            seen.append(entry)
        if status["ready"]:
            assert status["status"] == "Completed"
            assert {"readyChange", "elapsedTimeLastState"} <= set(status)
        last = event["object"]
    want = [("", False)]
    for state in STATES:
        want += [(state, False), (state, True)]
    assert seen == want
    assert "deletionTimestamp" in last["metadata"]


def test_workflow_without_directives(api: Api) -> None:
    job = Job(api, a_name())
    job.wait("Proposal")
    obj = job.through("Teardown")
    assert "drivers" not in obj["status"]
    job.remove()


def test_two_directives(api: Api) -> None:
    job = Job(api, a_name(), XFS, "#DW jobdw type=gfs2 capacity=500GB name=shared-fs")
    job.wait("Proposal")
    assert [r["name"][-2:] for r in job.get()["status"]["directiveBreakdowns"]] == [
        "-0",
        "-1",
    ]
    job.give({"rabbit0": 1}, ["node0"], 0)
    job.give({"rabbit0": 1}, ["node0"], 1)
    env = job.through("PreRun")["status"]["env"]
    assert env["DW_JOB_shared_fs"] == env["DW_JOB_GFS2"]
    assert [e.split(":")[0] for e in env["DW_JOBS"].split(",")] == [
        "scratch",
        "shared-fs",
    ]
    mounts = api.names("clientmounts")
    assert f"default-{job.name}-1-servers" in mounts
    assert f"default-{job.name}-0-servers" not in mounts
    job.through("Teardown", "PostRun")


def test_more_than_one_name(api: Api) -> None:
    job = Job(api, a_name(), XFS, XFS.replace("scratch", "other"))
    job.wait("Proposal")
    for index in (0, 1):
        job.give({"rabbit0": 1}, ["node0"], index)
    env = job.through("PreRun")["status"]["env"]
    assert env["DW_JOB_XFS"] == env["DW_JOB_scratch"] != env["DW_JOB_other"]


# -- breakdowns -----------------------------------------------------------


@pytest.mark.parametrize(
    ("fs_type", "access"),
    [
        ("xfs", ["physical"]),
        ("raw", ["physical"]),
        ("gfs2", ["network", "physical"]),
    ],
)
def test_breakdown_of_block_storage(api: Api, fs_type: str, access: list[str]) -> None:
    job = Job(api, a_name(), f"#DW jobdw type={fs_type} capacity=10GB name=aa")
    job.wait("Proposal")
    status = job.breakdown()["status"]
    assert status["storage"] == {
        "lifetime": "job",
        "reference": {
            "kind": "Servers",
            "name": f"{job.name}-0",
            "namespace": "default",
        },
        "allocationSets": [
            {
                "allocationStrategy": "AllocatePerCompute",
                "label": fs_type,
                "minimumCapacity": 10 * 10**9 + PADDING,
                "constraints": {"labels": [f"{DWS}/storage=Rabbit"]},
            }
        ],
    }
    [location] = status["compute"]["constraints"]["location"]
    assert [a["type"] for a in location["access"]] == access
    assert {a["priority"] for a in location["access"]} == {"mandatory"}
    assert location["reference"]["fieldPath"] == "servers.spec.allocationSets[0]"


def test_breakdown_of_lustre(api: Api) -> None:
    job = Job(api, a_name(), "#DW jobdw type=lustre capacity=10TB name=aa")
    job.wait("Proposal")
    status = job.breakdown()["status"]
    ost, mgtmdt = status["storage"]["allocationSets"]
    assert (ost["label"], ost["minimumCapacity"]) == ("ost", 10 * 10**12)
    assert ost["constraints"]["scale"] == 5
    assert (mgtmdt["label"], mgtmdt["minimumCapacity"]) == ("mgtmdt", 5 * GIB)
    assert mgtmdt["constraints"]["count"] == 1
    assert mgtmdt["constraints"]["colocation"] == [
        {"type": "exclusive", "key": "lustre-mgt"}
    ]
    assert {a["allocationStrategy"] for a in (ost, mgtmdt)} == {"AllocateAcrossServers"}
    near, far = status["compute"]["constraints"]["location"]
    assert near["access"][1] == {"type": "physical", "priority": "bestEffort"}
    assert far["access"] == [{"type": "network", "priority": "mandatory"}]


def test_lustre_end_to_end(api: Api) -> None:
    job = Job(api, a_name(), "#DW jobdw type=lustre capacity=100GB name=aa")
    job.wait("Proposal")
    job.give({"rabbit0": 1, "rabbit1": 1}, ["node0", "node3"])
    env = job.through("PreRun")["status"]["env"]
    assert env["DW_JOB_LUSTRE"] == env["DW_JOB_aa"]
    job.through("Teardown", "PostRun")


def test_a_rabbit_has_one_management_target(api: Api) -> None:
    """The second file system fails, without an effect on the first."""
    text = "#DW jobdw type=lustre capacity=10GB name=aa"
    one, two = (Job(api, a_name(), text) for _ in range(2))
    for job in (one, two):
        job.wait("Proposal")
        job.give({"rabbit0": 1}, ["node0"])
    one.to("Setup")
    two.to("Setup", ready=False)
    status = follow(api, two, lambda s: s.get("status") == "Error")
    assert status["message"] == (
        "DW Directive 0: WLM error: could not allocate storage"
    )
    (driver,) = [d for d in two.get()["status"]["drivers"] if d.get("error")]
    assert driver["error"].endswith("multiple MGTs found for address rabbit0@tcp")
    one.through("PreRun", "DataIn")
    one.remove()
    # it heals when there is one
    two.wait("Setup")
    two.remove()


def test_zero_capacity_is_an_error_in_proposal(api: Api) -> None:
    job = Job(api, a_name(), "#DW jobdw type=xfs capacity=0GB name=aa")
    follow(api, job, lambda s: s.get("status") == "Error")
    assert job.get()["status"]["message"] == (
        "DW Directive 0: Internal error: 'capacity' must be a non-zero value"
    )


def follow(api: Api, job: Job, done: Any) -> dict[str, Any]:
    """Watch a workflow until its status is as wanted."""
    stream = watch.Watch().stream(
        api.custom.list_namespaced_custom_object,
        *(DWS, "v1alpha7", "default", "workflows"),
        resource_version="0",
        field_selector=f"metadata.name={job.name}",
        timeout_seconds=LIMIT_S,
    )
    for event in stream:
        status: dict[str, Any] = event["object"]["status"]
        if done(status):
            return status
    raise AssertionError(f"never as wanted: {job.get()['status']}")


# -- what the workload manager gets wrong ---------------------------------

UNMET = "storage directive requirements were not satisfied"


@pytest.mark.parametrize(
    ("sets", "text"),
    [
        ([], "WLM error: Allocation request does not meet directive requirements"),
        ([("ost", 20 * GIB, "rabbit0")], f"WLM error: {UNMET}"),
        ([("xfs", GIB, "rabbit0")], f"WLM error: {UNMET}"),
        ([("xfs", 20 * GIB, "rabbit9")], f"Internal error: {UNMET}"),
        (
            [("xfs", 2048 * GIB, "rabbit0")],
            "WLM error: rabbit0: insufficient capacity available",
        ),
    ],
)
def test_bad_servers(api: Api, sets: list[tuple[str, int, str]], text: str) -> None:
    job = Job(api, a_name(), XFS)
    job.wait("Proposal")
    body = [
        {
            "label": label,
            "allocationSize": size,
            "storage": [{"name": name, "allocationCount": 1}],
        }
        for label, size, name in sets
    ]
    api.patch("servers", f"{job.name}-0", {"spec": {"allocationSets": body}})
    job.to("Setup", ready=False)
    status = follow(api, job, lambda s: s.get("status") == "Error")
    assert status["message"] == f"DW Directive 0: {text}"
    # and it heals when that is put right
    job.give({"rabbit0": 1}, ["node0"])
    job.wait("Setup")
    job.remove()


def test_more_computes_than_allocations(api: Api) -> None:
    job = Job(api, a_name(), XFS)
    job.wait("Proposal")
    job.give({"rabbit0": 1}, ["node0", "node1"])
    job.through("DataIn")
    job.to("PreRun", ready=False)
    status = follow(api, job, lambda s: "pending" in s.get("message", ""))
    assert status["status"] == "DriverWait"
    assert status["message"] == "DW Directive 0: pending mount"
    job.remove()


# -- cancelled, held, failing ---------------------------------------------


@pytest.mark.parametrize("state", STATES[:-1])
@pytest.mark.parametrize("ready", [True, False])
def test_teardown_from_every_state(api: Api, state: str, ready: bool) -> None:
    if not ready:
        api.sim.ctl("hold", state)
    job = Job(api, a_name(), XFS)
    if state == "Proposal":
        job.wait("Proposal", ready)
    else:
        job.wait("Proposal")
        job.give({"rabbit0": 1}, ["node0"])
        if state != "Setup":
            job.through(STATES[STATES.index(state) - 1])
        job.to(state, ready)
    assert job.get()["status"]["ready"] is ready
    job.remove()


@pytest.mark.parametrize("state", STATES[1:])
def test_delete_without_teardown(api: Api, state: str) -> None:
    job = Job(api, a_name(), XFS)
    job.wait("Proposal")
    job.give({"rabbit0": 1}, ["node0"])
    job.through(state)
    api.delete("workflows", job.name)
    job.wait("gone")


def test_foreign_finalizer_holds_the_workflow(api: Api) -> None:
    job = Job(api, a_name(), XFS)
    obj = job.wait("Proposal")
    finalizers = [*obj["metadata"]["finalizers"], "example.com/mine"]
    api.patch("workflows", job.name, {"metadata": {"finalizers": finalizers}})
    api.delete("workflows", job.name)
    stream = watch.Watch().stream(
        api.custom.list_namespaced_custom_object,
        *(DWS, "v1alpha7", "default", "workflows"),
        resource_version="0",
        timeout_seconds=LIMIT_S,
    )
    want = [f"{DWS}/workflow", "example.com/mine"]
    for event in stream:
        if event["object"]["metadata"]["finalizers"] == want:
            break
    else:
        raise AssertionError("NNF's finalizer is still there")
    patch = {"metadata": {"finalizers": [f"{DWS}/workflow"]}}
    api.patch("workflows", job.name, patch)
    job.wait("gone")


def test_late_hold_comes_after_the_work(api: Api) -> None:
    api.sim.ctl("hold", "PreRun", "--late")
    job = Job(api, a_name(), XFS)
    job.wait("Proposal")
    job.give({"rabbit0": 1}, ["node0"])
    job.through("DataIn")
    job.to("PreRun", ready=False)
    stream = watch.Watch().stream(
        api.custom.list_cluster_custom_object,
        *(DWS, "v1alpha7", "clientmounts"),
        resource_version="0",
        timeout_seconds=LIMIT_S,
    )
    assert any(e["object"].get("status", {}).get("allReady") for e in stream)
    assert job.get()["status"]["ready"] is False
    api.sim.ctl("release", "PreRun")
    job.wait("PreRun")


@pytest.mark.parametrize(
    ("severity", "word"),
    [("Minor", "DriverWait"), ("Major", "TransientCondition"), ("Fatal", "Error")],
)
def test_failures_heal(api: Api, severity: str, word: str) -> None:
    api.sim.ctl("fail", "Setup", "--severity", severity, "--message", "no luck")
    job = Job(api, a_name(), XFS)
    job.wait("Proposal")
    job.give({"rabbit0": 1}, ["node0"])
    job.to("Setup", ready=False)
    status = follow(api, job, lambda s: s.get("message"))
    assert status["status"] == word
    assert status["message"] == "DW Directive 0: Internal error: no luck"
    [entry] = [d for d in status["drivers"] if d["watchState"] == "Setup"]
    assert entry["error"] == "internal error: no luck"
    api.sim.ctl("fail", "Setup", "--clear")
    assert "message" not in job.wait("Setup")["status"]


def test_failure_without_a_driver(api: Api) -> None:
    api.sim.ctl("fail", "DataIn", "--count", "1", "--message", "no luck")
    job = Job(api, a_name(), XFS)
    job.wait("Proposal")
    job.give({"rabbit0": 1}, ["node0"])
    job.through("DataIn")


def test_force_ready(api: Api) -> None:
    api.sim.ctl("hold", "PreRun")
    job = Job(api, a_name(), XFS)
    job.wait("Proposal")
    job.give({"rabbit0": 1}, ["node0"])
    job.through("DataIn")
    job.to("PreRun", ready=False)
    api.patch("workflows", job.name, {"spec": {"forceReady": True}})
    obj = job.wait("PreRun")
    assert (obj["status"]["status"], obj["status"]["message"]) == (
        "Completed",
        "Forced Ready",
    )
    obj = job.to("PostRun")
    assert obj["spec"]["forceReady"] is False
    job.remove()


# -- hardware -------------------------------------------------------------


def test_hung_unmount_is_not_waited_for_when_the_node_is_disabled(api: Api) -> None:
    job = Job(api, a_name(), XFS)
    job.wait("Proposal")
    job.give({"rabbit0": 2}, ["node0", "node1"])
    job.through("PreRun")
    api.sim.ctl("hang-mount", "node1", "on")
    job.to("PostRun", ready=False)
    assert job.get()["status"]["ready"] is False
    api.patch("systemstatuses", "default", {"data": {"nodes": {"node1": "Disabled"}}})
    job.wait("PostRun")
    job.remove()
    api.patch("systemstatuses", "default", {"data": {"nodes": {"node1": None}}})
    api.sim.ctl("hang-mount", "node1", "off")


def test_rabbit_health(api: Api) -> None:
    api.sim.ctl("rabbit", "rabbit1", "down")
    api.sim.ctl("link", "node2", "down")
    health(api, "rabbit1", "Offline")
    status = api.get("storages", "rabbit1")["status"]
    assert status["access"]["computes"][0] == {"name": "node2", "status": "Offline"}
    api.sim.ctl("rabbit", "rabbit1", "up")
    api.sim.ctl("link", "node2", "up")
    health(api, "rabbit1", "Ready")
    api.patch("storages", "rabbit1", {"spec": {"state": "Disabled"}})
    health(api, "rabbit1", "Disabled")
    message = api.get("storages", "rabbit1")["status"]["message"]
    assert message == "Storage node manually disabled"
    api.patch("storages", "rabbit1", {"spec": {"state": "Enabled"}})
    health(api, "rabbit1", "Ready")


def health(api: Api, rabbit: str, word: str) -> None:
    """Wait for a word in Storage.status."""
    stream = watch.Watch().stream(
        api.custom.list_namespaced_custom_object,
        *(DWS, "v1alpha7", "default", "storages"),
        resource_version="0",
        field_selector=f"metadata.name={rabbit}",
        timeout_seconds=LIMIT_S,
    )
    assert any(e["object"]["status"]["status"] == word for e in stream)


def test_allocation_waits_for_a_rabbit_that_is_down(api: Api) -> None:
    api.sim.ctl("rabbit", "rabbit0", "down")
    job = Job(api, a_name(), XFS)
    job.wait("Proposal")
    job.give({"rabbit0": 1}, ["node0"])
    job.to("Setup", ready=False)
    assert job.get()["status"]["status"] == "DriverWait"
    api.sim.ctl("rabbit", "rabbit0", "up")
    job.wait("Setup")
    job.remove()


# -- the file system ------------------------------------------------------


def test_destroying_data_follows_no_link(api: Api, tmp_path: pathlib.Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("keep")
    job = Job(api, a_name(), XFS)
    job.wait("Proposal")
    job.give({"rabbit0": 1}, ["node0"])
    path = pathlib.Path(job.through("PreRun")["status"]["env"]["DW_JOB_scratch"])
    (path / "link").symlink_to(precious)
    closed = path / "closed"
    closed.mkdir()
    (closed / "file").write_text("x")
    closed.chmod(0)
    job.through("Teardown", "PostRun")
    assert (precious / "file").read_text() == "keep"
    assert api.sim.state()["backing"] == []
