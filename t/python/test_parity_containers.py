# Containers: what NNF makes of a profile and a directive, and how it ends for the
# workflow. The same from dws-sim and from the real controllers.
# SPDX-License-Identifier: LGPL-3.0-only
"""User containers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Callable

import pytest
from parity_nnf import JOBDW, Job, Jobs, Machine, gone, patch, wait
from parity_pods import Pods, has_limit, jobs_of
from parity_support import DWS, NNF, Object, User, profiles

GFS2 = JOBDW.format("gfs2")
PROFILES = "nnfcontainerprofiles"
SYSTEM = "nnf-system"
CONFIG = "systemconfigurations"
OWNER = {"userID": 1001, "groupID": 1002}
TLS = "nnf-dm-usercontainer-server-tls"
Profile = Callable[..., str]


@pytest.fixture
def profile(admin: User) -> Iterator[Profile]:
    """Makes container profiles: example-success with other data."""
    with profiles(admin, "NnfContainerProfile") as made:

        def make(**data: Any) -> str:
            base = admin.get(PROFILES, "example-success", SYSTEM).expect(200)["data"]
            if "mpiSpec" in data:
                base.pop("spec")
            return made({**base, **data})

        yield make


@pytest.fixture
def ports(admin: User) -> Iterator[Callable[..., None]]:
    """Sets the range of ports in the SystemConfiguration."""
    before = admin.get(CONFIG, "default").expect(200)["spec"].get("ports")

    def give(*ranges: int | str) -> None:
        patch(admin, CONFIG, "default", {"spec": {"ports": list(ranges)}})

    yield give
    patch(admin, CONFIG, "default", {"spec": {"ports": before}})


def some_ports(count: int) -> list[int]:
    """Random consecutive ports: NNF does not reuse freed ports at once."""
    first = random.randrange(10000, 60000)
    return list(range(first, first + count))


def listed(ports: list[int]) -> str:
    return ",".join(map(str, ports))


def directive(profile: str, *more: str) -> str:
    words = ["DW_JOB_foo_local_storage=test", *more]
    return f"#DW container name=foo profile={profile} {' '.join(words)}"


def prepared(jobs: Jobs, machine: Machine, *directives: str, **spec: Any) -> Job:
    """A job with two computes on one rabbit and one on another; after DataIn."""
    job = jobs.ready(*directives, **{**OWNER, **spec})
    one, two = machine.names[:2]
    job.fill({one: 2, two: 1})
    job.computes(*machine.rabbits[one][:2], machine.rabbits[two][0])
    job.through("DataIn")
    return job


def launched(jobs: Jobs, machine: Machine, profile: str, *more: str) -> Job:
    """The same, once its containers are wanted in PreRun."""
    job = prepared(jobs, machine, GFS2, directive(profile, *more))
    launch(job)
    return job


def launch(job: Job, text: str = "pending container start for job") -> Object:
    job.go("PreRun")
    return job.until(lambda o: text in o["status"].get("message", ""))


def pod_of(user: User, job: Job, rabbit: str) -> Object:
    """The pod that the Job of a rabbit is to run."""
    made = user.get("jobs", f"{job.name}-{rabbit}").expect(200)
    spec: Object = made["spec"]["template"]["spec"]
    return spec


def variables(container: Object) -> dict[str, str]:
    return {e["name"]: e.get("value", "") for e in container["env"]}


def said(job: Job, message: str, *story: str) -> None:
    """Wait for the workflow to have failed because of the container, with a
    message for the user and words in the whole story."""
    obj = job.until(lambda o: o["status"]["status"] == "Error")
    assert obj["status"]["message"] == f"DW Directive 1: {message}"
    entry = job.entry(1, obj)
    assert (entry["status"], entry["message"]) == ("Error", message)
    for words in story:
        assert words in entry["error"]


# -- what a container has ----------------------------------------------------


@pytest.mark.observed("source")
def test_environment(
    admin: User, jobs: Jobs, machine: Machine, pods: Pods, profile: Profile
) -> None:
    pods.hold()
    job = launched(jobs, machine, profile())
    env = job.get()["status"]["env"]
    one = machine.names[0]
    [container] = pod_of(admin, job, one)["containers"]
    found = variables(container)
    hosts = found.pop("NNF_CONTAINER_HOSTNAMES")
    # in no particular order, nor in one order for the job and its containers
    for names in (hosts, env["NNF_CONTAINER_HOSTNAMES"]):
        assert sorted(names.split(",")) == sorted(machine.names[:2])
    found.pop("ENVIRONMENT")
    assert found == {
        "DW_JOB_foo_local_storage": env["DW_JOB_test"],
        "NNF_CONTAINER_SUBDOMAIN": job.name,
        "NNF_CONTAINER_DOMAIN": "default.svc.cluster.local",
        "DW_WORKFLOW_NAME": job.name,
        "DW_WORKFLOW_NAMESPACE": "default",
        "NNF_NODE_NAME": "",
    }
    [node] = [e for e in container["env"] if e["name"] == "NNF_NODE_NAME"]
    assert node["valueFrom"]["fieldRef"]["fieldPath"] == "spec.nodeName"
    for key in ("NNF_CONTAINER_SUBDOMAIN", "NNF_CONTAINER_DOMAIN"):
        assert env[key] == found[key]


@pytest.mark.observed("source")
def test_volumes_hold_a_directory_for_each_compute(
    admin: User, wlm: User, jobs: Jobs, machine: Machine, pods: Pods, profile: Profile
) -> None:
    pods.hold()
    job = launched(jobs, machine, profile())
    path = job.get()["status"]["env"]["DW_JOB_test"]
    for rabbit, count in zip(machine.names, (2, 1)):
        pod = pod_of(admin, job, rabbit)
        [volume] = [v for v in pod["volumes"] if v["name"] == "foo-local-storage"]
        assert volume["hostPath"] == {"path": path, "type": "Directory"}
        [container] = pod["containers"]
        mounts = {m["mountPath"]: m["name"] for m in container["volumeMounts"]}
        assert mounts == {
            "/etc/passwd": "passwd",
            "/etc/shadow": "shadow",
            path: "foo-local-storage",
        }
        name = f"default-{job.name}-0-servers"
        made = wlm.get("clientmounts", name, rabbit).expect(200)["spec"]["mounts"]
        assert [m["mountPath"] for m in made] == [
            f"{path}/{rabbit}-{i}" for i in range(count)
        ]


@pytest.mark.observed("source")
def test_it_runs_as_the_user_on_one_rabbit(
    admin: User, jobs: Jobs, machine: Machine, pods: Pods, profile: Profile
) -> None:
    pods.hold()
    job = launched(jobs, machine, profile(retryLimit=3))
    for rabbit in machine.names[:2]:
        made = admin.get("jobs", f"{job.name}-{rabbit}").expect(200)
        assert made["spec"]["backoffLimit"] == 3
        assert "activeDeadlineSeconds" not in made["spec"]
        template = made["spec"]["template"]
        uid = made["metadata"]["ownerReferences"][0]["uid"]
        labels = made["metadata"]["labels"]
        assert labels == {
            f"{DWS}/owner.kind": "Workflow",
            f"{DWS}/owner.name": job.name,
            f"{DWS}/owner.namespace": "default",
            f"{DWS}/owner.uid": uid,
            f"{DWS}/workflow.name": job.name,
            f"{DWS}/workflow.namespace": "default",
            f"{DWS}/workflow.uid": uid,
            f"{NNF}/container": job.name,
            f"{NNF}/directive_index": "1",
            f"{NNF}/pinned_container_profile_name": f"{job.name}-1",
            f"{NNF}/pinned_container_profile_namespace": "default",
        }
        assert labels.items() <= template["metadata"]["labels"].items()
        pod = template["spec"]
        assert pod["nodeSelector"] == {"kubernetes.io/hostname": rabbit}
        assert pod["restartPolicy"] == "Never"
        assert [(t["key"], t["value"], t["effect"]) for t in pod["tolerations"]] == [
            ("cray.nnf.node", "true", "NoSchedule")
        ]
        assert pod["securityContext"] == {"fsGroup": 1002}
        assert pod["containers"][0]["securityContext"] == {
            "runAsUser": 1001,
            "runAsGroup": 1002,
            "runAsNonRoot": True,
            "allowPrivilegeEscalation": False,
        }
        # it gives the user a name in the container
        [init] = pod["initContainers"]
        assert init["name"] == "user-init-passwd"
        assert init["image"] == pod["containers"][0]["image"]


@pytest.mark.observed("source")
def test_ports(
    admin: User,
    jobs: Jobs,
    machine: Machine,
    pods: Pods,
    profile: Profile,
    ports: Callable[..., None],
) -> None:
    pods.hold()
    four = some_ports(4)
    ports(f"{four[0]}-{four[-1]}")
    names = ("my-one", "two")
    both = [{"name": name, "image": "alpine"} for name in names]
    wanted = profile(numPorts=2, spec={"containers": both})
    job = launched(jobs, machine, wanted)
    env = job.get()["status"]["env"]
    expected = {
        "NNF_CONTAINER_PORTS": listed(four),
        "NNF_CONTAINER_PORTS_my_one": listed(four[:2]),
        "NNF_CONTAINER_PORTS_two": listed(four[2:]),
    }
    assert {k: v for k, v in env.items() if "PORTS" in k} == expected
    containers = pod_of(admin, job, machine.names[0])["containers"]
    for container, own in zip(containers, (four[:2], four[2:])):
        found = variables(container)
        assert {k: v for k, v in found.items() if "PORTS" in k} == expected
        assert [(p["containerPort"], p["hostPort"]) for p in container["ports"]] == [
            (port, port) for port in own
        ]
    job.to("Teardown")
    manager = admin.get("nnfportmanagers", "nnf-port-manager", SYSTEM).expect(200)
    users = [a["requester"]["name"] for a in manager["spec"].get("allocations", ())]
    assert job.name not in users


@pytest.mark.observed("source")
@pytest.mark.parametrize("count", [0, 1])
def test_too_few_ports(
    jobs: Jobs,
    machine: Machine,
    profile: Profile,
    ports: Callable[..., None],
    count: int,
) -> None:
    ports(*some_ports(count))
    job = jobs.ready(GFS2, directive(profile(numPorts=2)))
    one = machine.names[0]
    job.fill({one: 1})
    job.computes(machine.rabbits[one][0])
    job.go("Setup")
    text = "could not request ports for container workflow: InsufficientResources"
    said(job, f"Internal error: {text}", f"internal error: {text}")


@pytest.fixture
def tls(admin: User) -> Iterator[None]:
    """The certificate that containers with a token ask for."""
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": TLS, "namespace": "default"},
        "type": "kubernetes.io/tls",
        "stringData": {"tls.crt": "none", "tls.key": "none"},
    }
    made = admin.send("POST", admin.path("secrets"), secret).code
    assert made in (201, 409)
    yield
    if made == 201:
        admin.send("DELETE", admin.path("secrets", TLS)).expect(200)


@pytest.mark.observed("source")
def test_secrets_of_those_who_ask_for_a_token(
    admin: User, jobs: Jobs, machine: Machine, pods: Pods, profile: Profile, tls: None
) -> None:
    pods.hold()
    auth = f"{GFS2} requires=user-container-auth"
    job = prepared(jobs, machine, auth, directive(profile()))
    launch(job)
    pod = pod_of(admin, job, machine.names[0])
    secrets = {v["name"]: v["secret"] for v in pod["volumes"] if "secret" in v}
    assert {name: s["secretName"] for name, s in secrets.items()} == {
        "usercontainer-tls": TLS,
        "usercontainer-token": f"{job.name}-token-server",
    }
    [container] = pod["containers"]
    mounts = {m["name"]: m for m in container["volumeMounts"]}
    for name in secrets:
        assert mounts[name]["mountPath"] == f"/etc/{name}"
        assert mounts[name]["readOnly"] is True
    found = variables(container)
    assert found["TLS_CERT_PATH"] == "/etc/usercontainer-tls/tls.crt"
    assert found["TLS_KEY_PATH"] == "/etc/usercontainer-tls/tls.key"
    assert found["TOKEN_KEY_PATH"] == "/etc/usercontainer-token/token.key"


# -- how it goes -------------------------------------------------------------


def waits(job: Job, text: str) -> Object:
    return job.until(lambda o: text in o["status"].get("message", ""))


@pytest.mark.observed("source")
def test_they_start_and_end(
    admin: User, jobs: Jobs, machine: Machine, pods: Pods, profile: Profile
) -> None:
    pods.hold()
    job = launched(jobs, machine, profile())
    assert job.entry(1)["status"] == "Running"
    pods.run(job.name)
    job.at("PreRun")
    job.go("PostRun")
    waits(job, "DW Directive 1: pending container finish")
    # so that Kubernetes ends them if they do not
    for rabbit in machine.names[:2]:
        made = wait(admin, "jobs", f"{job.name}-{rabbit}", has_limit)
        assert made["spec"]["activeDeadlineSeconds"] >= 300
    pods.succeed(job.name)
    job.at("PostRun")
    # the rabbits keep the storage until the containers are gone
    access = admin.get("nnfaccesses", f"{job.name}-0-servers").expect(200)
    assert access["spec"]["desiredState"] == "mounted"
    job.to("Teardown")
    for rabbit in machine.names[:2]:
        gone(admin, "jobs", f"{job.name}-{rabbit}")


@pytest.mark.observed("source")
def test_not_started_in_time(
    admin: User, jobs: Jobs, machine: Machine, pods: Pods, profile: Profile
) -> None:
    pods.hold()
    # On a busy machine that is over before anybody sees it wait for them.
    wanted = directive(profile(preRunTimeoutSeconds=3))
    job = prepared(jobs, machine, GFS2, wanted)
    job.go("PreRun")
    text = "user container(s) failed to start after 3 seconds"
    said(job, f"Internal error: {text}", "internal error: ", "job(s) timeout set")
    # Kubernetes ends those that are about to start
    for each in jobs_of(admin, job.name):
        assert 0 < each["spec"]["activeDeadlineSeconds"] < 300
    # one that gets there later does not help any more
    pods.run(job.name)
    said(job, f"Internal error: {text}")
    job.to("Teardown")


@pytest.mark.observed("source")
def test_not_ended_in_time(
    jobs: Jobs, machine: Machine, pods: Pods, profile: Profile
) -> None:
    pods.hold()
    job = launched(jobs, machine, profile(postRunTimeoutSeconds=2))
    pods.run(job.name)
    job.at("PreRun")
    job.go("PostRun")
    waits(job, "pending container finish")
    pods.expire(job.name)
    text = "user container(s) failed to complete after 2 seconds"
    said(
        job,
        f"Internal error: {text}",
        "internal error: container job ",
        "(DeadlineExceeded): Job was active longer than specified deadline",
    )


@pytest.mark.observed("source")
def test_nobody_waits_for_those_that_need_not_end(
    admin: User, jobs: Jobs, machine: Machine, pods: Pods, profile: Profile
) -> None:
    pods.hold()
    job = launched(jobs, machine, profile(postRunTimeoutSeconds=0))
    pods.run(job.name)
    job.at("PreRun")
    job.to("PostRun")
    for each in jobs_of(admin, job.name):
        assert "activeDeadlineSeconds" not in each["spec"]
    job.to("Teardown")


@pytest.mark.observed("source")
def test_all_tries_fail(
    jobs: Jobs, machine: Machine, pods: Pods, profile: Profile
) -> None:
    pods.hold()
    job = launched(jobs, machine, profile(retryLimit=1))
    # that is seen when the job has run: here they count as started
    pods.fail(job.name)
    job.at("PreRun")
    job.go("PostRun")
    # there are no words for the user
    said(
        job,
        "Internal error: ",
        "internal error: container job ",
        "(BackoffLimitExceeded): Job has reached the specified backoff limit",
    )


@pytest.mark.observed("source")
def test_those_who_make_containers_themselves(
    admin: User, jobs: Jobs, machine: Machine, profile: Profile
) -> None:
    job = prepared(jobs, machine, GFS2, directive(profile(createContainer=False)))
    env = job.to("PreRun")["status"]["env"]
    assert jobs_of(admin, job.name) == []
    assert sorted(env["NNF_CONTAINER_HOSTNAMES"].split(",")) == machine.names[:2]
    admin.get("services", job.name).expect(200)
    data = admin.get("nnfcontainerdata", f"{job.name}-1").expect(200)
    volume = {
        "name": "foo-local-storage",
        "command": "jobdw",
        "directiveIndex": 0,
        "mountPath": env["DW_JOB_test"],
    }
    assert data["data"] == {"volumes": [volume]}
    assert f"{NNF}/directive_index" not in data["metadata"]["labels"]
    assert data["metadata"]["labels"][f"{DWS}/workflow.name"] == job.name
    job.through("Teardown", "PostRun")
    # what is labelled with no directive stays
    admin.get("nnfcontainerdata", f"{job.name}-1").expect(200)
    job.delete()
    gone(admin, "nnfcontainerdata", f"{job.name}-1")


@pytest.mark.observed("source")
def test_mpi(
    admin: User,
    jobs: Jobs,
    machine: Machine,
    pods: Pods,
    profile: Profile,
    ports: Callable[..., None],
) -> None:
    pods.hold()
    port = some_ports(1)[0]
    ports(port)
    both = {
        kind: {"containers": [{"name": f"my-{kind}", "image": "alpine"}]}
        for kind in ("launcher", "worker")
    }
    wanted = profile(numPorts=1, mpiSpec={**both, "slotsPerWorker": 1})
    job = prepared(jobs, machine, GFS2, directive(wanted))
    of = f"for workflow '{job.name}', index: 1"
    job.go("PreRun")
    obj = job.until(
        lambda o: o["status"].get("message", "").startswith("DW Directive 1: pending")
    )
    # NNF does not know yet whether mpi-operator has taken notice
    words = [
        f"DW Directive 1: pending MPIJob {w} {of}" for w in ("conditions", "start")
    ]
    assert obj["status"]["message"] in words
    env = {k: v for k, v in obj["status"]["env"].items() if k.startswith("NNF_")}
    assert env == {
        "NNF_CONTAINER_SUBDOMAIN": job.name,
        "NNF_CONTAINER_DOMAIN": "default.svc.cluster.local",
        "NNF_CONTAINER_HOSTNAMES": ",".join(
            f"{job.name}-{name}" for name in ("launcher", "worker-0", "worker-1")
        ),
        "NNF_CONTAINER_PORTS": str(port),
        "NNF_CONTAINER_PORTS_my_launcher": str(port),
    }
    # mpi-operator makes one, not NNF
    assert admin.get("services", job.name).code == 404
    pods.run_mpi(job.name, machine.names[0])
    obj = job.at("PreRun")
    assert obj["status"]["env"]["NNF_CONTAINER_LAUNCHER"] in machine.names[:2]
    job.to("Teardown")


# -- directives that make no sense --------------------------------------------


@pytest.mark.observed("C")
@pytest.mark.parametrize(
    ("first", "more", "text"),
    [
        (JOBDW.format("xfs"), [], "unsupported container filesystem: xfs"),
        (
            GFS2.replace("test", "other"),
            [],
            "jobdw directive mentioning 'test' not found",
        ),
        (
            GFS2,
            ["DW_JOB_another=test"],
            "storage 'DW_JOB_another' not found in container profile '{profile}'",
        ),
        (
            GFS2,
            ["DW_GLOBAL_foo_global_lustre=/nowhere"],
            "global Lustre file system containing '/nowhere' not found",
        ),
    ],
)
def test_directives_that_make_no_sense(
    jobs: Jobs, profile: Profile, first: str, more: list[str], text: str
) -> None:
    name = profile()
    job = jobs(first, directive(name, *more))
    text = text.format(profile=name)
    job.saying("Error", f"DW Directive 0: User error: {text}")
    entry = job.entry()
    assert entry["error"] == f"user error: {text}"


@pytest.mark.observed("C")
def test_a_storage_that_is_not_given(jobs: Jobs, profile: Profile) -> None:
    name = profile()
    job = jobs(GFS2, f"#DW container name=foo profile={name}")
    text = (
        f"storage 'DW_JOB_foo_local_storage' in container profile '{name}' is not "
        "optional: storage argument not found in the supplied arguments"
    )
    job.saying("Error", f"DW Directive 0: User error: {text}")


@pytest.mark.observed("C")
def test_persistent_storage_that_there_is_not(jobs: Jobs, profile: Profile) -> None:
    wanted = directive(profile(), "DW_PERSISTENT_foo_persistent_storage=nosuch")
    job = jobs(GFS2, wanted)
    text = "PersistentStorageInstance 'nosuch' not found"
    job.saying("Error", f"DW Directive 0: User error: {text}")
    story = f'user error: PersistentStorageInstance.{DWS} "nosuch" not found'
    assert job.entry()["error"] == story


@pytest.mark.observed("C")
@pytest.mark.parametrize("key", ["userID", "groupID"])
def test_a_profile_for_somebody_else(jobs: Jobs, profile: Profile, key: str) -> None:
    name = profile(**{key: 4711})
    job = jobs(GFS2, directive(name))
    word = {"userID": "UserID", "groupID": "GroupID"}[key]
    text = f"container profile '{name}' is restricted to {word} 4711"
    job.saying("Error", f"DW Directive 0: User error: {text}")
