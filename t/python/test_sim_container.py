# User containers in dws-sim.
# SPDX-License-Identifier: LGPL-3.0-only
"""The container command."""

from __future__ import annotations

import base64
import itertools
import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from sim_support import DWS, LIMIT_S, Api, Job, Sim, error_in

PROFILES = "nnfcontainerprofiles"
GFS2 = "#DW jobdw type=gfs2 capacity=1GiB name=local"
GLOBAL = "DW_GLOBAL_foo_global_lustre=/lus/global"
_numbers = itertools.count()


def container(profile: str, storage: str = "local") -> str:
    return (
        f"#DW container name=mine profile={profile} DW_JOB_foo_local_storage={storage}"
    )


@pytest.fixture
def api(sim: Sim) -> Iterator[Api]:
    """Admin access; a test leaves nothing."""
    api = Api(sim)
    yield api
    sim.ctl("containers", "ok")
    for name in api.names("workflows"):
        api.delete("workflows", name)
    sim.ctl("wait-idle", "--timeout", str(LIMIT_S))


def start(api: Api, *directives: str) -> Job:
    job = Job(api, f"wf{next(_numbers)}", *directives)
    job.wait("Proposal")
    job.give({"rabbit0": 2, "rabbit1": 1}, ["node0", "node1", "node2"])
    return job


def edit(api: Api, profile: str, **data: Any) -> None:
    api.patch(PROFILES, profile, {"data": data}, ns="nnf-system")


def pods(api: Api, job: Job) -> dict[str, str]:
    selector = f"{DWS}/workflow.name={job.name}"
    found = api.core.list_namespaced_pod("default", label_selector=selector)
    return {p.metadata.name: p.status.phase for p in found.items}


def test_pods_on_the_rabbits_of_the_job(api: Api) -> None:
    job = start(api, GFS2, container("example-success"))
    env = job.through("PreRun")["status"]["env"]
    name = job.name
    assert env["NNF_CONTAINER_SUBDOMAIN"] == name
    assert env["NNF_CONTAINER_DOMAIN"] == "default.svc.cluster.local"
    assert env["NNF_CONTAINER_HOSTNAMES"] == "rabbit0,rabbit1"
    assert "NNF_CONTAINER_PORTS" not in env
    running = {f"{name}-rabbit0-0": "Running", f"{name}-rabbit1-0": "Running"}
    assert pods(api, job) == running
    log = api.core.read_namespaced_pod_log(f"{name}-rabbit0-0", "default")
    assert "started" in log
    job.to("PostRun")
    assert set(pods(api, job).values()) == {"Succeeded"}
    # the rabbits' mounts exist until the containers are deleted
    assert f"default-{name}-0-servers" in api.names("clientmounts")
    job.through("Teardown", "DataOut")
    assert pods(api, job) == {}
    assert api.names("clientmounts") == []


def test_ports_and_mpi(api: Api) -> None:
    job = start(api, GFS2, container("example-mpi"))
    env = job.through("PreRun")["status"]["env"]
    assert env["NNF_CONTAINER_LAUNCHER"] == "rabbit0"
    assert env["NNF_CONTAINER_PORTS"] == "4000"
    assert env["NNF_CONTAINER_PORTS_example_mpi"] == "4000"
    hosts = env["NNF_CONTAINER_HOSTNAMES"].split(",")
    assert hosts == [f"{job.name}-{n}" for n in ("launcher", "worker-0", "worker-1")]
    job.through("Teardown", "PostRun")
    ports = api.get("nnfportmanagers", "nnf-port-manager", "nnf-system")
    assert ports["spec"]["allocations"] == []
    # a port rests before it is used again
    other = start(api, GFS2, container("example-server"))
    env = other.through("PreRun")["status"]["env"]
    assert env["NNF_CONTAINER_PORTS"] == "4001"


def test_containers_see_the_storage(api: Api) -> None:
    job = start(api, GFS2, f"{container('example-success')} {GLOBAL}")
    env = job.through("PreRun")["status"]["env"]
    pod = api.core.read_namespaced_pod(f"{job.name}-rabbit0-0", "default")
    path = env["DW_JOB_local"]
    [user] = pod.spec.containers
    env_of = {e.name: e.value for e in user.env if e.name.startswith("DW_GLOBAL_")}
    assert env_of == {"DW_GLOBAL_foo_global_lustre": "/lus/global"}
    mounts = {m.name: m.mount_path for m in user.volume_mounts}
    assert mounts["foo-local-storage"] == path
    assert mounts["foo-global-lustre"] == "/lus/global"
    places = {v.name: v for v in pod.spec.volumes}
    assert places["foo-local-storage"].host_path.path == path
    claim = places["foo-global-lustre"].persistent_volume_claim.claim_name
    assert claim == "lus-global-default-readwritemany-pvc"
    assert user.security_context.run_as_user == os.getuid()
    assert pod.spec.node_name == "rabbit0"
    # on a rabbit each allocation is a directory of its own in there
    server = api.get("clientmounts", f"default-{job.name}-0-servers", "rabbit0")
    assert server["spec"]["mounts"][0]["mountPath"] == f"{path}/rabbit0-0"


def test_data_for_those_who_make_containers_themselves(api: Api) -> None:
    edit(api, "example-success", createContainer=False)
    job = start(api, GFS2, container("example-success"))
    edit(api, "example-success", createContainer=True)
    path = job.through("PreRun")["status"]["env"]["DW_JOB_local"]
    data = api.get("nnfcontainerdata", f"{job.name}-1")["data"]
    assert data["volumes"] == [
        {
            "name": "foo-local-storage",
            "command": "jobdw",
            "directiveIndex": 0,
            "mountPath": path,
        }
    ]
    assert pods(api, job) == {}


def test_container_before_its_storage_never_starts(api: Api) -> None:
    job = Job(api, f"wf{next(_numbers)}", container("example-success"), GFS2)
    job.wait("Proposal")
    job.give({"rabbit0": 1}, ["node0"], index=1)
    job.through("DataIn")
    job.to("PreRun", ready=False)
    message = error_in(api, job.name, "TransientCondition")
    assert "could not retrieve the NnfAccess" in message


def test_profile_of_another_user(api: Api) -> None:
    for key in ("userID", "groupID"):
        edit(api, "example-success", **{key: 4711})
        job = Job(api, f"wf{next(_numbers)}", GFS2, container("example-success"))
        assert f"is restricted to {key[0].upper()}{key[1:]} 4711" in error_in(
            api, job.name
        )
        edit(api, "example-success", **{key: None})


def test_not_enough_ports(api: Api) -> None:
    config = api.get("systemconfigurations", "default")["spec"]["ports"]
    api.patch("systemconfigurations", "default", {"spec": {"ports": []}})
    job = start(api, GFS2, container("example-server"))
    job.to("Setup", ready=False)
    assert error_in(api, job.name).endswith("InsufficientResources")
    api.patch("systemconfigurations", "default", {"spec": {"ports": config}})
    job.wait("Setup")


def test_token(api: Api) -> None:
    auth = f"{GFS2} requires=user-container-auth"
    job = start(api, auth, container("example-success"))
    assert job.get()["status"]["requires"] == ["container-auth"]
    status = job.to("Setup")["status"]
    assert status["workflowToken"] == {
        "secretName": f"{job.name}-token",
        "secretNamespace": "default",
    }
    wlm = Api(api.sim, "wlm")
    secret = wlm.core.read_namespaced_secret(f"{job.name}-token", "default")
    token = base64.b64decode(secret.data["token"])
    head, body, mark = token.split(b".")
    assert json.loads(base64.urlsafe_b64decode(head + b"=="))["alg"] == "HS256"
    assert mark
    uid, dws = job.get()["metadata"]["uid"], "dataworkflowservices.github.io"
    meta = {"name": job.name, "namespace": "default", "uid": uid}
    labels = {f"{dws}/{of}.{k}": meta[k] for of in ("workflow", "owner") for k in meta}
    server = wlm.core.read_namespaced_secret(f"{job.name}-token-server", "default")
    for each, keys in ((secret, ["token"]), (server, ["token.key"])):
        assert each.type == "Opaque" and each.immutable is True
        assert list(each.data) == keys
        assert each.metadata.labels == {**labels, f"{dws}/owner.kind": "Workflow"}
        (owner,) = each.metadata.owner_references
        assert (owner.kind, owner.name, owner.uid) == ("Workflow", job.name, uid)
        assert owner.controller is True and owner.block_owner_deletion is True
    key = base64.b64decode(server.data["token.key"])
    assert key.startswith(b"-----BEGIN EC PRIVATE KEY-----\n")


def test_start_takes_too_long(api: Api) -> None:
    edit(api, "example-success", preRunTimeoutSeconds=1)
    api.sim.ctl("containers", "no-start")
    job = start(api, GFS2, container("example-success"))
    job.through("DataIn")
    job.to("PreRun", ready=False)
    text = "user container(s) failed to start after 1 seconds"
    assert error_in(api, job.name).endswith(text)
    edit(api, "example-success", preRunTimeoutSeconds=300)


def test_end_takes_too_long(api: Api) -> None:
    edit(api, "example-success", postRunTimeoutSeconds=1)
    api.sim.ctl("containers", "no-stop")
    job = start(api, GFS2, container("example-success"))
    job.through("PreRun")
    job.to("PostRun", ready=False)
    text = "user container(s) failed to complete after 1 seconds"
    assert error_in(api, job.name).endswith(text)
    edit(api, "example-success", postRunTimeoutSeconds=300)


def test_retries(api: Api) -> None:
    edit(api, "example-success", retryLimit=2)
    api.sim.ctl("containers", "fail")
    job = start(api, GFS2, container("example-success"))
    job.through("PreRun")
    job.to("PostRun", ready=False)
    assert error_in(api, job.name) == "DW Directive 1: Internal error: "
    assert list(pods(api, job).values()) == ["Failed"] * 6
    edit(api, "example-success", retryLimit=6)


@pytest.mark.parametrize(
    ("directives", "text"),
    [
        ([container("nothing")], "no valid container profile found"),
        (
            [container("example-success")],
            "jobdw directive mentioning 'local' not found",
        ),
        (
            [GFS2.replace("gfs2", "xfs"), container("example-success")],
            "unsupported container filesystem: xfs",
        ),
        (
            ["#DW container name=mine profile=example-success"],
            "is not optional: storage argument not found",
        ),
        (
            [GFS2, f"{container('example-success')} DW_JOB_other=local"],
            "storage 'DW_JOB_other' not found in container profile",
        ),
        (
            [GFS2, container("example-success"), container("example-success")],
            "only a single container directive is supported",
        ),
    ],
)
def test_wrong_directives(api: Api, directives: list[str], text: str) -> None:
    job = Job(api, f"wf{next(_numbers)}", *directives)
    assert text in error_in(api, job.name)
