# What jobs have held nodes for, out of their eventlogs (RFC 21); for bench/workload and
# tier nnf.
# SPDX-License-Identifier: LGPL-3.0-only
"""Node-seconds that jobs compute, and that they hold nodes without computing; and
whether a node was ever given to two of them at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]


@dataclass(frozen=True)
class Times:
    """When what happened to a job, in seconds; it has had nodes."""

    alloc: float
    free: float
    start: float | None  # None: it has not run
    finish: float | None

    @property
    def held_s(self) -> float:
        return self.free - self.alloc

    @property
    def computing_s(self) -> float:
        if self.start is None or self.finish is None:
            return 0.0
        return self.finish - self.start


@dataclass(frozen=True)
class Held:
    """A job, its nodes and its times; whether it has ended well, and had its nodes
    for itself."""

    jobid: int
    nodes: tuple[str, ...]
    times: Times
    trouble: str  # the text of its first exception that ended it, or ""
    alone: bool = True


def times_of(eventlog: list[Object]) -> Times | None:
    """None for a job that has never had nodes, or has them still."""
    first: dict[str, float] = {}
    for event in eventlog:
        first.setdefault(event["name"], event["timestamp"])
    if "alloc" not in first or "free" not in first:
        return None
    return Times(first["alloc"], first["free"], first.get("start"), first.get("finish"))


def trouble_of(eventlog: list[Object]) -> str:
    """What ended the job: an exception, or how it finished; "" if it ended well."""
    for event in eventlog:
        context = event.get("context", {})
        if event["name"] == "exception" and context["severity"] == 0:
            return f"{context['type']}: {context.get('note', '')}"
        if event["name"] == "finish" and context["status"] != 0:
            return f"finished with status {context['status']}"
    return "" if any(e["name"] == "clean" for e in eventlog) else "not clean"


@dataclass(frozen=True)
class Sums:
    """Node-seconds."""

    computing: float
    waiting: float  # nodes held, nothing computed

    @classmethod
    def of(cls, jobs: list[Held]) -> Sums:
        computing = sum(len(j.nodes) * j.times.computing_s for j in jobs)
        held = sum(len(j.nodes) * j.times.held_s for j in jobs)
        return cls(computing, held - computing)


def given_twice(jobs: list[Held]) -> list[str]:
    """A line for each time that a node was given to a job while another had it, and one
    of them was to have it alone."""
    wrong = []
    last: dict[str, Held] = {}
    for job in sorted(jobs, key=lambda j: j.times.alloc):
        for node in job.nodes:
            other = last.get(node)
            shared = other and not (other.alone or job.alone)
            if other and not shared and other.times.free > job.times.alloc:
                wrong.append(f"{node}: {other.jobid} and {job.jobid}")
            if not other or other.times.free < job.times.free:
                last[node] = job
    return wrong
