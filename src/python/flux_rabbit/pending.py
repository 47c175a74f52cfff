# SPDX-License-Identifier: LGPL-3.0-only
#
# Why the scheduler has not allocated nodes to a queued rabbit job yet (flux rabbit
# show, jobs, top). The scheduler reports no reason, so libdws counts as it does: idle
# nodes, and free space on the rabbits next to them.
"""Why a job has no nodes yet."""

from __future__ import annotations

import dataclasses
import json
import time
from typing import Any

from flux_k8s import dws, names

from flux_rabbit import rpc
from flux_rabbit.foresee import GIB
from flux_rabbit.units import Size

Object = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Need:
    """The request of a job: `groups` times `nodes` nodes, with `gib` of the rabbit next
    to each group. With `chassis` each group needs a rabbit of its own. `cores` is per
    node; 0 requests whole nodes."""

    groups: int
    nodes: int
    gib: int
    chassis: bool
    cores: int

    @property
    def total(self) -> int:
        """How many nodes in all."""
        return self.groups * self.nodes


@dataclasses.dataclass
class Place:
    """The nodes next to one rabbit that the job may be allocated; `rabbit` is "" for
    nodes without a rabbit."""

    rabbit: str
    state: str = "Ready"
    space: int = 0  # bytes
    free: int = 0
    busy: int = 0
    broken: int = 0  # up, without a working rabbit
    down: int = 0

    def groups(self, need: Need, gib: int) -> int:
        """The number of the job's groups, of `gib` each, that fit here now."""
        fit = self.free // need.nodes
        if gib:
            usable = self.space // GIB if self.rabbit and self.state == "Ready" else 0
            fit = min(fit, usable // gib)
        return min(fit, 1) if need.chassis else fit


def need_of(resources: list[Any]) -> Need | None:
    """The request in the resources of a jobspec with storage; None if they request
    anything but nodes."""
    found = dws.need(resources)
    return None if found is None else Need(**found)


def _nodes(count: int) -> str:
    return f"{count} node{'' if count == 1 else 's'}"


def lacking(need: Need, place: Place) -> str:
    """The reason why one more group of nodes does not fit into a place."""
    fit = place.groups(need, need.gib)
    if need.gib and place.state != "Ready":
        return f"is {place.state}"
    if need.chassis and fit:
        return "has all that one rabbit gives to this job"
    nodes = (fit + 1) * need.nodes - place.free
    space = (fit + 1) * need.gib * GIB - place.space
    more = [_nodes(nodes)] if nodes > 0 else []
    if need.gib and space > 0:
        more.append(str(Size(space)))
    return f"lacks {', '.join(more)}"


def reasons(need: Need, where: list[Place]) -> list[str]:
    """A line for each place: its free nodes and space, and the lack of either."""
    lines = []
    gib = need.gib
    where = sorted(where, key=lambda p: (-p.groups(need, gib), not p.rabbit, p.rabbit))
    for place in where:
        total = place.free + place.busy + place.broken + place.down
        text = f"{place.rabbit or 'no rabbit'}: {place.free} of {total} nodes"
        if gib and not place.rabbit:
            lines.append(f"{text} free, no storage")
            continue
        if gib:
            text += f" and {Size(place.space)}"
        fit = place.groups(need, gib) * need.nodes
        lines.append(f"{text} free, fits {fit}; {lacking(need, place)}")
    return lines


@dataclasses.dataclass
class Pending:
    """Why a job has no nodes yet: in a clause, and by rabbit."""

    text: str
    lines: list[str] = dataclasses.field(default_factory=list)


class Explainer:
    """Explains why queued jobs have no nodes yet. Nodes, rabbits and queues are
    requested once, and equal requests of jobs are evaluated once: on a large machine
    one evaluation takes some 50 ms."""

    def __init__(self, handle: rpc.Handle) -> None:
        self._handle = handle
        self._rabbits = handle.rpc(names.TOPIC_STATUS, {"list": "rabbits"})
        self._nodes = handle.rpc("resource.sched-status")
        self._there: tuple[Object, Object] | None = None
        self._queues: dict[str, str] = {}
        self._known: dict[tuple[Need, str, bool], Pending | None] = {}

    def explain(self, job: Object, jobspec: Object) -> Pending | None:
        """Why `job` (of job-list) has no nodes yet; None if it requests anything but
        nodes. Raises RpcError."""
        resources = jobspec.get("resources") or []
        need = need_of(resources)
        if need is None:
            return None
        system = (jobspec.get("attributes") or {}).get("system") or {}
        if job.get("urgency") == 0:
            return Pending("its release: it is held, with urgency 0")
        if stopped := self._queue(str(system.get("queue") or "")):
            return Pending(stopped)
        constraint = system.get("constraints")
        linked = dws.uses_storage(system.get("dw"))
        key = (need, json.dumps(constraint, sort_keys=True), linked)
        if key not in self._known:
            self._known[key] = self._look(need, resources, constraint, linked)
        return self._known[key]

    def _queue(self, queue: str) -> str:
        """The text for a job in a stopped queue, "" if the queue is started."""
        if queue not in self._queues:
            payload = {"name": queue} if queue else {}
            status = self._handle.call("job-manager.queue-status", payload)
            why = f" ({status['stop_reason']})" if status.get("stop_reason") else ""
            stopped = not status.get("start", True)
            self._queues[queue] = f"its queue, which is stopped{why}" * stopped
        return self._queues[queue]

    def _look(
        self, need: Need, resources: list[Any], constraint: Object | None, linked: bool
    ) -> Pending | None:
        if self._there is None:
            self._there = (self._nodes.get(), self._rabbits.get())
        status, listed = self._there
        bad = listed.get(names.BAD_PROPERTY, "") if linked else ""
        rabbits = listed["rabbits"]
        found = dws.shortage(status, resources, constraint, rabbits, bad)
        if found is None:
            return None
        where = [Place(**place) for place in found["places"]]
        return Pending(found["text"], reasons(need, where))


def explain(handle: rpc.Handle, job: Object) -> Pending | None:
    """Explain why one job has no nodes yet. Raises RpcError."""
    lookup = rpc.Lookup(handle)
    lookup.ask(job["id"], "jobspec", current=True)
    explainer = Explainer(handle)
    return explainer.explain(job, json.loads(lookup.get(job["id"], "jobspec") or "{}"))


class Reasons:
    """Explains in `waiting` of queued jobs, as dws.status lists them, why they have no
    nodes yet: for the first `most` jobs, until `most_s` seconds have passed. Other jobs
    and those that leave the queue meanwhile stay unchanged."""

    def __init__(self, handle: rpc.Handle, most: int, most_s: float = 1.0) -> None:
        self._handle = handle
        self._most = most
        self._until = time.monotonic() + most_s
        self._explainer: Explainer | None = None

    def note(self, queued: list[Object]) -> None:
        jobs = queued[: self._most]
        if not jobs or time.monotonic() > self._until:
            return
        self._most -= len(jobs)
        if self._explainer is None:
            self._explainer = Explainer(self._handle)
        lookup = rpc.Lookup(self._handle)
        listed = []
        for job in jobs:
            lookup.ask(job["id"], "jobspec", current=True)
            request = {"id": job["id"], "attrs": ["urgency"]}
            listed.append(self._handle.rpc("job-list.list-id", request))
        for job, pending in zip(jobs, listed):
            if time.monotonic() > self._until:
                break
            try:
                known = pending.get()["job"]
                jobspec = json.loads(lookup.get(job["id"], "jobspec") or "{}")
                found = self._explainer.explain(known, jobspec)
            except rpc.RpcError:
                continue
            if found:
                job["waiting"], job["note"] = found.text, ""
