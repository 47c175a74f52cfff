# The objects that DWS and NNF make for a workflow: fields, labels, owners, and
# how long each one lives. The same from dws-sim and from the real controllers.
# SPDX-License-Identifier: LGPL-3.0-only
"""Objects around a workflow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Callable

import pytest
from flux_k8s.crd import RESOURCES
from flux_rabbit.checks import NAMESPACES, RIGHTS
from parity_nnf import JOBDW, Job, Jobs, Machine, gone, wait
from parity_support import DWS, Object, User, profiles, unique

XFS = JOBDW.format("xfs")
GFS2 = JOBDW.format("gfs2")
PSI = "persistentstorageinstances"
PROFILES = "nnfstorageprofiles"
SYSTEM = "nnf-system"


def owners(obj: Object) -> list[tuple[str, str, bool]]:
    """Kind, name and whether each owner's deletion waits for the object."""
    return [
        (o["kind"], o["name"], o.get("blockOwnerDeletion", False))
        for o in obj["metadata"].get("ownerReferences", ())
    ]


def labels(obj: Object) -> dict[str, str]:
    found: dict[str, str] = obj["metadata"].get("labels", {})
    return found


def workflow_labels(obj: Object) -> list[str]:
    """The labels that tie an object to a workflow, a job or a directive."""
    words = (f"{DWS}/workflow.", "nnf.cray.hpe.com/")
    return [key for key in labels(obj) if key.startswith(words)]


@pytest.fixture
def profile(admin: User) -> Iterator[Callable[..., str]]:
    """Makes storage profiles: the default one with other xfs options."""
    with profiles(admin, "NnfStorageProfile") as made:

        def make(**options: Any) -> str:
            base = admin.get(PROFILES, "default", SYSTEM).expect(200)
            data = {**base["data"], "default": False}
            data["xfsStorage"] = {**data["xfsStorage"], **options}
            return made(data)

        yield make


# -- what a job has --------------------------------------------------------


@pytest.mark.observed(15)
def test_servers_have_zeros_as_soon_as_they_are_filled(
    wlm: User, jobs: Jobs, machine: Machine
) -> None:
    job = jobs.ready(XFS)
    name = job.servers_name()
    first = wait(wlm, "servers", name, lambda o: "status" in o)["status"]
    assert first["ready"] is False
    assert "allocationSets" not in first
    one, two = machine.names[:2]
    job.fill({one: 2, two: 1})
    obj = wait(wlm, "servers", name, lambda o: o["status"].get("allocationSets"))
    nothing = {"allocationSize": 0, "ready": False}
    assert obj["status"]["allocationSets"] == [
        {"label": "xfs", "storage": {one: nothing, two: nothing}}
    ]
    assert obj["status"]["ready"] is False
    assert job.get()["status"]["state"] == "Proposal"
    job.to("Setup")
    assert job.servers()["status"]["ready"] is True
    # ready stays when the space is given back
    job.to("Teardown")
    done = wait(
        wlm,
        "servers",
        name,
        lambda o: o["status"]["allocationSets"][0]["storage"][one] == nothing,
    )
    assert done["status"]["ready"] is True


@pytest.mark.observed(16)
def test_what_is_empty_is_absent(jobs: Jobs, wlm: User, machine: Machine) -> None:
    job = jobs.ready()
    assert "data" not in wlm.get("computes", job.name).expect(200)
    assert "message" not in job.get()["status"]
    job.to("Setup")
    assert "message" not in job.get()["status"]
    job.computes(machine.rabbits[machine.names[0]][0])
    assert len(wlm.get("computes", job.name).expect(200)["data"]) == 1


@pytest.mark.observed(29)
def test_a_breakdown_that_fails_has_its_servers(
    wlm: User, jobs: Jobs, profile: Callable[..., str]
) -> None:
    name = profile(allocationPadding="lots")
    job = jobs(f"{XFS} profile={name}")
    job.until(lambda o: o.get("status", {}).get("status") == "Error")
    status = job.breakdown()["status"]
    assert status["ready"] is False
    assert status["error"]["severity"] == "Fatal"
    assert status["storage"] == {
        "lifetime": "job",
        "reference": {
            "kind": "Servers",
            "name": f"{job.name}-0",
            "namespace": "default",
        },
    }
    wlm.get("servers", f"{job.name}-0").expect(200)


@pytest.mark.observed(30)
def test_padding_in_per_cent_is_cut(jobs: Jobs, profile: Callable[..., str]) -> None:
    name = profile(allocationPadding="3.5%", capacityScalingFactor="1.5")
    job = jobs.ready(f"{XFS} profile={name}")
    [need] = job.breakdown()["status"]["storage"]["allocationSets"]
    # 16669841817.6
    assert need["minimumCapacity"] == 16669841817


@pytest.mark.observed(31)
@pytest.mark.parametrize(
    "directive",
    [
        "#DW jobdw type=xfs capacity=0GiB name=test",
        "#DW container name=test profile=none-of-that-name",
    ],
)
def test_faults_that_are_not_called_the_users(jobs: Jobs, directive: str) -> None:
    job = jobs(directive)
    obj = job.until(lambda o: o.get("status", {}).get("status") == "Error")
    assert obj["status"]["message"].startswith("DW Directive 0: Internal error: ")


# -- persistent storage ----------------------------------------------------


class Persistent:
    """A persistent storage and the workflows around it."""

    def __init__(self, user: User, jobs: Jobs, machine: Machine) -> None:
        self.name = unique("persistent")
        self._user, self._jobs, self._machine = user, jobs, machine

    def propose(self) -> Job:
        """The workflow that creates it, in Proposal."""
        return self._jobs.ready(
            f"#DW create_persistent type=gfs2 capacity=10GiB name={self.name}"
        )

    def create(self) -> None:
        job = self.propose()
        job.fill({self._machine.names[0]: 1})
        job.through("Teardown")
        job.delete()

    def get(self) -> Object:
        found: Object = self._user.get(PSI, self.name).expect(200)
        return found

    def destroy(self) -> None:
        job = self._jobs.ready(f"#DW destroy_persistent name={self.name}")
        job.to("Teardown")
        job.delete()


@pytest.fixture
def persistent(wlm: User, jobs: Jobs, machine: Machine) -> Iterator[Persistent]:
    """A persistent file system, which is destroyed after the test if it exists."""
    storage = Persistent(wlm, jobs, machine)
    yield storage
    jobs.remove()
    if wlm.get(PSI, storage.name).code == 200:
        storage.destroy()


@pytest.mark.observed(22)
def test_an_instance_belongs_to_no_workflow(persistent: Persistent) -> None:
    job = persistent.propose()
    obj = persistent.get()
    assert obj["metadata"]["finalizers"] == ["nnf.cray.hpe.com/persistentStorage"]
    assert owners(obj) == [("DirectiveBreakdown", f"{job.name}-0", True)]
    assert workflow_labels(obj) == []
    assert labels(obj)[f"{DWS}/owner.name"] == f"{job.name}-0"
    assert "consumerReferences" not in obj["spec"]


@pytest.mark.observed(22)
def test_an_instance_knows_its_users(persistent: Persistent, jobs: Jobs) -> None:
    persistent.create()
    kept = persistent.get()
    assert labels(kept) == {}
    assert owners(kept) == []
    assert "consumerReferences" not in kept["spec"]
    user = jobs.ready(f"#DW persistentdw name={persistent.name}")
    user.to("Setup")
    assert persistent.get()["spec"]["consumerReferences"] == [
        {"kind": "Workflow", "name": f"{user.name}-0", "namespace": "default"}
    ]
    user.to("Teardown")
    assert "consumerReferences" not in persistent.get()["spec"]


@pytest.mark.observed(23)
def test_an_instance_that_was_never_made_goes_with_its_workflow(
    wlm: User, persistent: Persistent
) -> None:
    job = persistent.propose()
    job.to("Teardown")
    obj = persistent.get()
    assert "deletionTimestamp" not in obj["metadata"]
    assert owners(obj) == [("DirectiveBreakdown", f"{job.name}-0", True)]
    job.delete()
    gone(wlm, PSI, persistent.name)


# -- the system ------------------------------------------------------------


@pytest.mark.observed(24)
def test_the_system_configuration_never_gets_ready(wlm: User) -> None:
    config = wlm.get("systemconfigurations", "default").expect(200)
    # its controller may not have got as far as to write that it is not
    assert not config.get("status", {}).get("ready")


@pytest.mark.observed(25)
def test_a_storage_belongs_to_the_system_configuration(
    wlm: User, machine: Machine
) -> None:
    for rabbit in machine.names:
        obj = wlm.get("storages", rabbit).expect(200)
        assert owners(obj) == [("SystemConfiguration", "default", True)]
        kind = labels(obj)
        assert kind[f"{DWS}/storage"] == "Rabbit"
        assert kind[f"{DWS}/owner.kind"] == "SystemConfiguration"
        assert kind[f"{DWS}/owner.name"] == "default"
        assert kind[f"{DWS}/owner.namespace"] == "default"
        assert (
            kind[f"{DWS}/owner.uid"] == (obj["metadata"]["ownerReferences"][0]["uid"])
        )


@pytest.mark.observed(28)
def test_rights_of_a_workload_manager(wlm: User) -> None:
    def code(path: str) -> int:
        return wlm.send("GET", path).code

    for plural in ("computes", "workflows"):
        assert code(wlm.path(plural, "nobody") + "/status") == 403
    for plural in ("servers", "storages", "clientmounts", "nnfdatamovements"):
        assert code(wlm.path(plural, "nobody") + "/status") == 404


@pytest.mark.observed(28)
def test_the_product_asks_for_no_more(wlm: User) -> None:
    review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    for words, verbs in RIGHTS.items():
        resource, _, sub = words.partition("/")
        for verb in verbs.split():
            place = {
                "group": RESOURCES[resource].group,
                "resource": resource,
                "subresource": sub,
                "verb": verb,
                "namespace": NAMESPACES.get(resource, ""),
            }
            body = {
                "kind": "SelfSubjectAccessReview",
                "apiVersion": "authorization.k8s.io/v1",
                "spec": {"resourceAttributes": place},
            }
            answer = wlm.send("POST", review, body).expect(201)
            assert answer["status"]["allowed"], (words, verb)


# -- containers ------------------------------------------------------------


@pytest.mark.observed(26)
def test_a_container_has_rabbits_for_hosts_and_a_service(
    admin: User, jobs: Jobs, machine: Machine
) -> None:
    container = (
        "#DW container name=foo profile=example-success DW_JOB_foo_local_storage=test"
    )
    job = jobs.ready(GFS2, container)
    one, two = machine.names[:2]
    job.fill({one: 1, two: 1})
    job.computes(machine.rabbits[one][0], machine.rabbits[two][0])
    job.through("DataIn")
    # whether its pods are ever ready does not matter here
    job.go("PreRun")
    key = "NNF_CONTAINER_HOSTNAMES"
    obj = job.until(lambda o: key in o["status"]["env"])
    assert sorted(obj["status"]["env"][key].split(",")) == sorted([one, two])
    made = admin.get("services", job.name).expect(200)
    assert labels(made) == {}
    assert owners(made) == [("Workflow", job.name, True)]
    assert made["spec"]["selector"] == {"nnf.cray.hpe.com/container": job.name}
    batch = f"/apis/batch/v1/namespaces/default/jobs/{job.name}-{one}"
    pod = admin.send("GET", batch).expect(200)["spec"]["template"]["spec"]
    assert (pod["hostname"], pod["subdomain"]) == (one, job.name)
    job.to("Teardown")
    admin.get("services", job.name).expect(200)
    job.delete()
    gone(admin, "services", job.name)
