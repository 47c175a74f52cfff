# A workflow with storage, and the workload manager's part in it, on whichever
# server the fixture "server" names: nothing here knows names of rabbits or
# computes but from the server's Storages.
# SPDX-License-Identifier: LGPL-3.0-only
"""Support for the parity tests of NNF."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable

from parity_support import STATES, Object, User, in_state, reached, unique, workflow

# Controllers retry with growing pauses.
LIMIT_S = 120
LOST_RACE = "the object has been modified; please apply your changes to the latest"
JOBDW = "#DW jobdw type={} capacity=10GiB name=test"


@dataclass
class Machine:
    """Rabbits in order, each with its computes."""

    rabbits: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, user: User) -> Machine:
        """Learn it from the Storages."""
        machine = cls()
        items = user.list("storages").expect(200)["items"]
        for obj in sorted(items, key=lambda o: str(o["metadata"]["name"])):
            computes = obj["status"]["access"].get("computes", ())
            names = [entry["name"] for entry in computes]
            machine.rabbits[obj["metadata"]["name"]] = names
        return machine

    @property
    def names(self) -> list[str]:
        """The rabbits."""
        return list(self.rabbits)


def wait(
    user: User,
    plural: str,
    name: str,
    done: Callable[[Object], Any],
    ns: str = "default",
) -> Object:
    """Wait for an object of any kind to be there and as asked for."""
    while True:
        found = user.list(plural, ns, fieldSelector=f"metadata.name={name}").expect(200)
        last = None
        for last in found["items"]:
            if done(last):
                return last
        events = user.watch(
            plural,
            ns,
            LIMIT_S,
            resourceVersion=found["metadata"]["resourceVersion"],
            fieldSelector=f"metadata.name={name}",
        )
        for event in events:
            last = event["object"]
            if event["type"] == "ERROR":
                break
            if event["type"] != "DELETED" and done(last):
                return last
        else:
            raise AssertionError(f"{plural} {ns}/{name} does not get there: {last}")


def gone(user: User, plural: str, name: str, ns: str = "default") -> None:
    """Wait until an object of any kind is gone."""
    found = user.list(plural, ns, fieldSelector=f"metadata.name={name}").expect(200)
    if not found["items"]:
        return
    last: Object = {}
    for event in user.watch(
        plural,
        ns,
        LIMIT_S,
        resourceVersion=found["metadata"]["resourceVersion"],
        fieldSelector=f"metadata.name={name}",
    ):
        last = event
        if event["type"] == "DELETED":
            return
    raise AssertionError(f"{plural} {ns}/{name} does not go: {last}")


def patch(user: User, plural: str, name: str, body: Any, ns: str = "default") -> Object:
    """A merge patch, in any namespace."""
    path = user.path(plural, name, ns)
    done: Object = user.send(
        "PATCH", path, body, "application/merge-patch+json"
    ).expect(200)
    return done


class Job:
    """A workflow and what a workload manager does with it."""

    def __init__(self, user: User, *directives: str, **spec: Any) -> None:
        self.user = user
        self.name = unique("parity")
        body = workflow(self.name, *directives, **spec)
        self.created = user.create("workflows", body).expect(201)

    def get(self) -> Object:
        found: Object = self.user.get("workflows", self.name).expect(200)
        return found

    def until(self, done: Callable[[Object], Any]) -> Object:
        """Wait for the workflow to be as asked for."""
        return wait(self.user, "workflows", self.name, done)

    # -- states -----------------------------------------------------------

    def at(self, state: str) -> Object:
        """Wait until a state is ready."""
        return self.until(reached(state))

    def go(self, state: str) -> Object:
        """Ask for a state and wait until it has begun."""
        body = {"spec": {"desiredState": state}}
        patch(self.user, "workflows", self.name, body)
        return self.until(in_state(state))

    def to(self, state: str) -> Object:
        """Ask for a state and wait until it is ready."""
        self.go(state)
        return self.at(state)

    def through(self, last: str, first: str = "Setup") -> Object:
        """Go through the states from first to last."""
        obj: Object = {}
        for state in STATES[STATES.index(first) : STATES.index(last) + 1]:
            obj = self.to(state)
        return obj

    def saying(self, status: str, text: str) -> Object:
        """Wait until a workflow that is not ready has a status and a message.

        An update of one of the real controllers may lose a race against another
        of them. The loser reports this, retries, and reaches the same result.
        """

        def done(obj: Object) -> bool:
            found = obj.get("status", {})
            if found.get("ready"):
                raise AssertionError(f"ready in {found['state']}")
            if any(LOST_RACE in d.get("error", "") for d in found.get("drivers", ())):
                return False
            words = (found.get("status"), found.get("message", ""))
            return words == (status, text)

        return self.until(done)

    def entry(self, index: int = 0, obj: Object | None = None) -> Object:
        """The driver's entry of a directive in the state of the workflow."""
        obj = obj or self.get()
        state = obj["status"]["state"]
        found: Object = next(
            d
            for d in obj["status"]["drivers"]
            if (d["dwdIndex"], d["watchState"]) == (index, state)
        )
        return found

    # -- what the workload manager fills in ------------------------------

    def breakdown(self, index: int = 0) -> Object:
        found: Object = self.user.get(
            "directivebreakdowns", f"{self.name}-{index}"
        ).expect(200)
        return found

    def servers_name(self, index: int = 0) -> str:
        return str(self.breakdown(index)["status"]["storage"]["reference"]["name"])

    def servers(self, index: int = 0) -> Object:
        found: Object = self.user.get("servers", self.servers_name(index)).expect(200)
        return found

    def storage(self, index: int = 0) -> Object:
        """The NnfStorage."""
        found: Object = self.user.get("nnfstorages", self.servers_name(index)).expect(
            200
        )
        return found

    def give(self, sets: list[Object], index: int = 0) -> Object:
        """Write the allocation sets of Servers."""
        body = {"spec": {"allocationSets": sets}}
        return patch(self.user, "servers", self.servers_name(index), body)

    def fill(
        self, counts: dict[str, int], size: int | None = None, index: int = 0
    ) -> Object:
        """Fill Servers, every set alike: allocations by rabbit, of a size or
        of what is needed. A set for a single server has the first rabbit only."""
        wanted = self.breakdown(index)["status"]["storage"]["allocationSets"]
        sets = []
        for need in wanted:
            places = dict(counts)
            if need["allocationStrategy"] == "AllocateSingleServer":
                places = {next(iter(counts)): 1}
            sets.append(
                {
                    "label": need["label"],
                    "allocationSize": size or need["minimumCapacity"],
                    "storage": [
                        {"name": rabbit, "allocationCount": count}
                        for rabbit, count in places.items()
                    ],
                }
            )
        return self.give(sets, index)

    def computes(self, *names: str) -> Object:
        """Fill Computes."""
        data = [{"name": name} for name in names]
        return patch(self.user, "computes", self.name, {"data": data})

    # -- the end ----------------------------------------------------------

    def delete(self) -> None:
        """Delete the workflow, in whatever state, and wait until it is gone."""
        assert self.user.delete("workflows", self.name).code in (200, 404)
        gone(self.user, "workflows", self.name)

    def remove(self) -> None:
        """Teardown and delete, if it is still there."""
        found = self.user.get("workflows", self.name)
        if found.code == 404:
            return
        if "deletionTimestamp" not in found.object["metadata"]:
            self.to("Teardown")
        self.delete()


class Jobs:
    """Makes jobs, and removes them in the end."""

    def __init__(self, user: User) -> None:
        self._user = user
        self._jobs: list[Job] = []

    def __call__(self, *directives: str, **spec: Any) -> Job:
        job = Job(self._user, *directives, **spec)
        self._jobs.append(job)
        return job

    def ready(self, *directives: str, **spec: Any) -> Job:
        """A job that is ready in Proposal."""
        job = self(*directives, **spec)
        job.at("Proposal")
        return job

    def remove(self) -> None:
        for job in reversed(self._jobs):
            job.remove()
