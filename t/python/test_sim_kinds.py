# Objects for other programs than flux-dws: nodes of rabbits, reports of their
# controllers, storage without a workflow, Lustre, pods of a client's own.
# SPDX-License-Identifier: LGPL-3.0-only
"""Kinds beside those of workflows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kubernetes import client, watch
from sim_support import DWS, GIB, LIMIT_S, NNF, XFS, Api, Job, Sim

# sim_support has put the sources on the path
# isort: split
from dws_sim.controllers.mgt import after
from dws_sim.controllers.pods import played
from dws_sim.controllers.systemstorage import computes_of, rabbits_of
from dws_sim.tables import age

LUS = "lus.cray.hpe.com"


@pytest.fixture(scope="module")
def api(sim: Sim) -> Api:
    return Api(sim)


def wait(
    api: Api,
    plural: str,
    name: str,
    done: Callable[[Any], Any],
    namespace: str = "default",
) -> Any:
    """Wait for an object to be as asked for; done gets its status."""
    group = NNF if plural.startswith("nnf") else DWS
    version = "v1alpha11" if group == NNF else "v1alpha7"
    stream = watch.Watch().stream(
        api.custom.list_namespaced_custom_object,
        *(group, version, namespace, plural),
        field_selector=f"metadata.name={name}",
        timeout_seconds=LIMIT_S,
    )
    for event in stream:
        if event["type"] != "DELETED" and done(event["object"].get("status", {})):
            return event["object"]
    raise AssertionError(f"{plural} {name}")


def test_nodes_of_rabbits(sim: Sim, api: Api) -> None:
    node = api.core.read_node("rabbit0")
    assert node.metadata.labels["cray.nnf.node"] == "true"
    assert [(t.key, t.effect) for t in node.spec.taints] == [
        ("cray.nnf.node", "NoSchedule")
    ]
    (ready,) = (c for c in node.status.conditions if c.type == "Ready")
    assert ready.status == "True"
    sim.ctl("rabbit", "rabbit0", "down")
    wait(api, "storages", "rabbit0", lambda s: s.get("status") == "Offline")
    (ready,) = api.core.read_node("rabbit0").status.conditions
    assert (ready.status, ready.reason) == ("Unknown", "NodeStatusUnknown")
    sim.ctl("rabbit", "rabbit0", "up")
    wait(api, "storages", "rabbit0", lambda s: s.get("status") == "Ready")
    (ready,) = api.core.read_node("rabbit0").status.conditions
    assert ready.status == "True"


def test_a_taint_drains_a_rabbit(api: Api) -> None:
    taints = [{"key": "cray.nnf.node.drain", "value": "true", "effect": "NoSchedule"}]
    api.core.patch_node("rabbit0", {"spec": {"taints": taints}})
    wait(api, "storages", "rabbit0", lambda s: s.get("status") == "Drained")
    api.core.patch_node("rabbit0", {"spec": {"taints": []}})
    wait(api, "storages", "rabbit0", lambda s: s.get("status") == "Ready")


def test_what_the_controller_of_a_rabbit_reports(sim: Sim, api: Api) -> None:
    found = api.get("nnfnodes", "nnf-nlc", "rabbit0")
    status = found["status"]
    assert found["spec"]["state"] == "Enable"
    assert (status["status"], status["health"]) == ("Ready", "OK")
    assert len(status["drives"]) == 18
    assert [s["hostname"] for s in status["servers"]] == ["rabbit0", "node0", "node1"]
    sim.ctl("drive", "rabbit0", "3", "failed")

    def failed(status: Any) -> bool:
        words = {d["slot"]: d["health"] for d in status.get("drives", ())}
        return words.get("3") == "Critical" and words.get("4") == "OK"

    wait(api, "nnfnodes", "nnf-nlc", failed, "rabbit0")
    sim.ctl("drive", "rabbit0", "3", "ok")


def system_storage(**spec: Any) -> Any:
    profile = {"name": "default", "namespace": "nnf-system"}
    return {
        "kind": "NnfSystemStorage",
        "metadata": {"name": "local", "namespace": "default"},
        "spec": {"capacity": GIB, "storageProfile": profile, **spec},
    }


def gone(api: Api, plural: str, name: str) -> None:
    """Wait until an object is gone."""
    listed = api.list(plural)
    if name not in [item["metadata"]["name"] for item in listed["items"]]:
        return
    group = NNF if plural.startswith("nnf") else DWS
    stream = watch.Watch().stream(
        api.custom.list_cluster_custom_object,
        *(group, "v1alpha11" if group == NNF else "v1alpha7", plural),
        resource_version=listed["metadata"]["resourceVersion"],
        timeout_seconds=LIMIT_S,
    )
    for event in stream:
        found = event["object"]["metadata"]["name"]
        if (event["type"], found) == ("DELETED", name):
            return
    raise AssertionError(f"{plural} {name} is still there")


def test_storage_without_a_workflow(sim: Sim, api: Api) -> None:
    before = sim.state()["allocated"]
    body = system_storage(type="xfs", makeClientMounts=True, computesTarget="even")
    api.create("nnfsystemstorages", body)
    wait(api, "nnfsystemstorages", "local", lambda s: s.get("ready"))
    storage = api.get("nnfstorages", "local")
    assert storage["spec"]["allocationSets"][0]["nodes"] == [
        {"name": "rabbit0", "count": 1},
        {"name": "rabbit1", "count": 1},
    ]
    computes = api.get("computes", "local")
    assert [c["name"] for c in computes["data"]] == ["node0", "node2"]
    assert sim.state()["mounts"] == 2
    api.delete("nnfsystemstorages", "local")
    for plural in ("nnfsystemstorages", "nnfstorages", "nnfaccesses", "computes"):
        gone(api, plural, "local")
    assert sim.state()["allocated"] == before
    assert sim.state()["mounts"] == 0


def test_storage_with_a_profile_that_is_not_there(api: Api) -> None:
    body = system_storage(storageProfile={"name": "none", "namespace": "default"})
    api.create("nnfsystemstorages", body)
    obj = wait(api, "nnfsystemstorages", "local", lambda s: s.get("error"))
    assert "none" in obj["status"]["error"]["debugMessage"]
    api.delete("nnfsystemstorages", "local")
    gone(api, "nnfsystemstorages", "local")


CONFIG = {
    "spec": {
        "storageNodes": [
            {
                "name": "r0",
                "computesAccess": [{"name": f"n{i}", "index": i} for i in range(4)],
            },
            {"name": "r1"},
        ]
    }
}


def test_which_rabbits_and_computes_are_meant() -> None:
    def rabbits(**spec: Any) -> list[str]:
        return [n["name"] for n in rabbits_of(spec, CONFIG, {"r1"})]

    assert rabbits() == ["r0", "r1"]
    assert rabbits(includeRabbits=["r1"]) == ["r1"]
    assert rabbits(excludeRabbits=["r0"]) == ["r1"]
    assert rabbits(excludeDisabledRabbits=True) == ["r0"]
    node = CONFIG["spec"]["storageNodes"][0]
    assert computes_of({"computesTarget": "odd"}, node) == ["n1", "n3"]
    wanted = {"computesTarget": "pattern", "computesPattern": [0, 3]}
    assert computes_of(wanted, node) == ["n0", "n3"]
    assert computes_of({"includeComputes": ["n2", "x"]}, node) == ["n2"]
    assert computes_of({"excludeComputes": ["n0", "n1"]}, node) == ["n2", "n3"]


def test_the_management_target_of_a_lustre(api: Api) -> None:
    job = Job(api, "mgt", "#DW jobdw type=lustre capacity=10GiB name=lustre")
    job.wait("Proposal")
    job.give({"rabbit1": 1}, ["node2"])
    job.to("Setup")
    storage = api.get("nnfstorages", "mgt-0")["status"]
    assert storage["mgsAddress"] == "rabbit1@tcp"
    assert len(storage["fileSystemName"]) == 8
    mgt = api.get("nnflustremgts", "mgt-0", "rabbit1")
    assert mgt["spec"]["addresses"] == ["rabbit1@tcp"]
    claim = {"kind": "NnfStorage", "name": "mgt-0", "namespace": "default"}
    assert mgt["spec"]["claimList"] == [claim]
    job.remove()
    gone(api, "nnflustremgts", "mgt-0")
    assert after("aaaaaaaa") == "aaaaaaab"
    assert after("aaaaaazz") == "aaaaabaa"


def test_a_global_lustre(sim: Sim, api: Api) -> None:
    copy = "#DW copy_in source=/lus/new/in destination=$DW_JOB_scratch/in"
    text = "global Lustre file system containing '/lus/new/in' not found"
    Job(api, "before", XFS, copy)
    stream = watch.Watch().stream(
        api.custom.list_namespaced_custom_object,
        *(DWS, "v1alpha7", "default", "workflows"),
        timeout_seconds=LIMIT_S,
    )
    for event in stream:
        if text in event["object"]["status"].get("message", ""):
            break
    api.delete("workflows", "before")
    body = {
        "apiVersion": f"{LUS}/v1beta1",
        "kind": "LustreFileSystem",
        "metadata": {"name": "new"},
        "spec": {
            "name": "new",
            "mgsNids": "1@tcp",
            "mountRoot": "/lus/new",
            "namespaces": {"default": {"modes": ["ReadWriteMany"]}},
        },
    }
    where = (LUS, "v1beta1", "default", "lustrefilesystems")
    api.custom.create_namespaced_custom_object(*where, body)
    job = Job(api, "after", XFS, copy)
    job.wait("Proposal")
    obj = api.custom.get_namespaced_custom_object(*where, "new")
    assert obj["spec"]["storageClassName"] == "nnf-lustre-fs"
    modes = obj["status"]["namespaces"]["default"]["modes"]
    assert modes["ReadWriteMany"]["persistentVolumeClaimRef"] == {
        "name": "new-default-readwritemany-pvc"
    }
    old = api.custom.get_namespaced_custom_object(
        LUS, "v1alpha1", "default", "lustrefilesystems", "new"
    )
    assert old["spec"] == obj["spec"]
    job.remove()
    api.custom.delete_namespaced_custom_object(*where, "new")


@pytest.mark.parametrize(
    ("command", "phase"),
    [
        (["id", "0"], "Succeeded"),
        (["sh", "-c", "sleep 10 && exit 3"], "Failed"),
        (["sh", "-c", "exit 0"], "Succeeded"),
        (["sh", "-c", "while true; do date; done"], "Running"),
        (None, "Succeeded"),
    ],
)
def test_what_is_played(command: Any, phase: str) -> None:
    assert played({"spec": {"containers": [{"command": command}]}}) == phase


def test_pods_of_a_client(api: Api) -> None:
    container = client.V1Container(name="c", image="i", command=["true"])
    spec = client.V1PodSpec(
        containers=[container], node_name="rabbit0", restart_policy="Never"
    )
    meta = client.V1ObjectMeta(name="mine")
    api.core.create_namespaced_pod("default", client.V1Pod(metadata=meta, spec=spec))
    stream = watch.Watch().stream(
        api.core.list_namespaced_pod,
        "default",
        field_selector="metadata.name=mine,spec.nodeName=rabbit0",
        timeout_seconds=LIMIT_S,
    )
    for event in stream:
        if event["object"].status.phase == "Succeeded":
            break
    assert api.core.read_namespaced_pod_log("mine", "default").endswith("succeeded\n")
    api.core.delete_namespaced_pod("mine", "default")


def test_profiles_of_containers(api: Api) -> None:
    names = set(api.names("nnfcontainerprofiles"))
    assert {
        "copy-offload-default",
        "example-fail",
        "example-forever",
        "example-forever-nowait",
        "example-mpi",
        "example-mpi-fail",
        "example-mpi-webserver",
        "example-randomly-fail",
        "example-success",
    } <= names


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-1, "0s"),
        (119, "119s"),
        (120, "2m"),
        (330, "5m30s"),
        (600, "10m"),
        (10799, "179m"),
        (10800, "3h"),
        (12000, "3h20m"),
        (28800, "8h"),
        (172799, "47h"),
        (176400, "2d1h"),
        (691200, "8d"),
        (63071999, "729d"),
        (63072000, "2y"),
        (64000000, "2y10d"),
        (400000000, "12y"),
    ],
)
def test_ages(seconds: int, shown: str) -> None:
    assert age(seconds) == shown
