# Computes from eventlogs (RFC 21) how long jobs have held nodes, and what for. Used by
# bench/workload and tier nnf.
# SPDX-License-Identifier: LGPL-3.0-only
"""Node-seconds with and without computing, and nodes allocated to two jobs at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]


@dataclass(frozen=True)
class Times:
    """Times of the events of a job that has had nodes, in seconds."""

    alloc: float
    free: float
    start: float | None  # None: the job has not run
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
    """A job with its nodes and times, its failure, and whether it was exclusive."""

    jobid: int
    nodes: tuple[str, ...]
    times: Times
    trouble: str  # the text of its first exception that ended it, or ""
    alone: bool = True


def times_of(eventlog: list[Object]) -> Times | None:
    """Times of a job; None if it has never had nodes, or holds them still."""
    first: dict[str, float] = {}
    for event in eventlog:
        first.setdefault(event["name"], event["timestamp"])
    if "alloc" not in first or "free" not in first:
        return None
    return Times(first["alloc"], first["free"], first.get("start"), first.get("finish"))


def trouble_of(eventlog: list[Object]) -> str:
    """Failure of the job: fatal exception or exit status; "" if it has succeeded."""
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
    """A line for each node that two jobs held at once although one of them was
    exclusive."""
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
