# Selects the queued jobs that start now: priority order, with conservative backfill.
# scheduler.py runs a Pass over the queue for each scheduling decision.
# SPDX-License-Identifier: LGPL-3.0-only
"""Backfill. A job that cannot start now gets a reservation: a time, nodes and GiB,
found by assuming that running jobs end at their time limits. A later job may start
now only if it ends before that time, or avoids those nodes and leaves those GiB, so
later jobs never delay a job with a reservation. In each part of the machine the first
``depth`` waiting jobs get reservations, with start times in queue order.

Some jobs could not start even if all others were over. If the cause is nodes or rabbits
that are down, or space of persistent storage or other clients, the job gets no
reservation and delays no other job. If the cause is storage of ended jobs, GiB are
reserved and no nodes: the end of stage-out is unknown, and until then other jobs can
use the nodes.

Jobs without a time limit count as lasting a year.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, replace

from . import bits
from .machine import Machine
from .parts import Allocation
from .request import Request

YEAR_S = 365 * 86400.0
DOWN = "waits for nodes or rabbits that are down"
HELD = "waits for storage of jobs that are over"
OUTSIDE = "waits for space on rabbits that others than jobs have"


@dataclass
class Reservation:
    """The resources reserved for a waiting job, and its start time."""

    t_start: float
    nodes: int
    spare_gib: dict[str, int]  # by rabbit: GiB that others may hold at that time


@dataclass
class Decision:
    """Start a job with ``alloc``, or let it wait (None). ``t_start`` is the estimated
    start, if any; ``reason`` tells why there is no estimate."""

    alloc: Allocation | None = None
    t_start: float | None = None
    reason: str = ""


@dataclass
class _End:
    """The jobs that end at one time, and their allocations."""

    t_end: float
    jobs: list[tuple[int, Allocation]]

    def release(self, machine: Machine) -> None:
        for jobid, _ in self.jobs:
            machine.release(jobid)

    def undo(self, machine: Machine) -> None:
        for jobid, alloc in self.jobs:
            machine.commit(jobid, alloc.copy())


def parts(machine: Machine, requests: Iterable[Request]) -> dict[tuple[str, bool], int]:
    """The part of the machine for each Request.where, as a number: requests that can
    use a common node or rabbit compete, so they share a part."""
    masks: list[int] = []
    by_where = {r.where: machine.part(r) for r in requests}
    for mask in set(by_where.values()):
        apart = [other for other in masks if not other & mask]
        for other in masks:
            if other & mask:
                mask |= other
        masks = [*apart, mask]
    return {
        where: next((i for i, m in enumerate(masks) if m & mask), -1)
        for where, mask in by_where.items()
    }


class Pass:
    """A pass over the queue, with a planner for each part of the machine, so that
    queues with separate nodes do not wait for each other."""

    def __init__(
        self, machine: Machine, now: float, depth: int, requests: Iterable[Request]
    ) -> None:
        self._parts = parts(machine, requests)
        self._planners = {
            part: Planner(machine, now, depth) for part in self._parts.values()
        }

    def consider(self, request: Request) -> Decision:
        return self._planners[self._parts[request.where]].consider(request)


class Planner:
    """A pass over the jobs of a part of the machine. The caller considers jobs in
    queue order, and commits a returned allocation before the next job."""

    def __init__(self, machine: Machine, now: float, depth: int) -> None:
        """``depth`` 0: no backfill, a waiting job delays all later ones."""
        self._machine = machine
        self._now = now
        self._depth = depth
        self._reservations: list[Reservation] = []
        self._reserved = [0]  # nodes of the first n reservations
        self._limits: dict[int, dict[str, int]] = {}  # by number of reservations
        self._failed: set[tuple[Request, int]] = set()
        self._idle: Machine | None = None  # without jobs, but with held storage
        self._settled: Machine | None = None  # also without storage held by jobs
        self._hopeless: dict[Request, str] = {}  # jobs that cannot start, and why
        self._future: Machine | None = None  # at the time _t
        self._future_jobs = 0
        self._ends: list[tuple[float, int]] = []
        self._t = now
        self._closed = False
        self._waiting = 0

    def consider(self, request: Request) -> Decision:
        """Decide about the next job in the queue."""
        if self._closed:
            return Decision()
        t_end = self._now + (request.duration_s or YEAR_S)
        # The number of reservations that begin before this job would end.
        crossed = 0
        for reservation in self._reservations:
            if reservation.t_start >= t_end:
                break
            crossed += 1
        # Resources only shrink during a pass, so remember failures.
        timeless = replace(request, duration_s=0.0)
        key = (timeless, crossed)
        if key not in self._failed:
            limits = self._limits_of(crossed) if request.group_gib else None
            alloc = self._machine.find(request, self._reserved[crossed], limits)
            if alloc is not None:
                self._spend(alloc, crossed)
                # A job that ends after _t avoids all reserved resources, so it fits
                # into the future machine.
                if self._future and t_end > self._t:
                    self._start_in_future(self._future, alloc.copy(), t_end)
                return Decision(alloc)
            self._failed.add(key)
        if self._depth == 0:
            self._closed = True
        elif self._waiting < self._depth:
            return self._wait(request, timeless)
        return Decision()

    def _wait(self, request: Request, timeless: Request) -> Decision:
        """Decide about a job that cannot start now, among the first ``depth``."""
        if timeless in self._hopeless:
            return Decision(reason=self._hopeless[timeless])
        if self._idle is None or self._settled is None:
            self._idle = self._machine.idle_copy(held=True)
            self._settled = self._machine.idle_copy()
        if self._idle.find(timeless) is not None:
            self._waiting += 1
            return self._reserve(request)
        alloc = self._settled.find(timeless)
        if alloc is None:
            if self._machine.idle_copy(outside=False).find(timeless) is None:
                self._hopeless[timeless] = DOWN
            else:
                self._hopeless[timeless] = OUTSIDE
            return Decision(reason=self._hopeless[timeless])
        self._waiting += 1
        self._reserve_gib(alloc, self._idle)
        return Decision(reason=HELD)

    def _limits_of(self, crossed: int) -> dict[str, int]:
        """The GiB by rabbit that the first ``crossed`` reservations leave."""
        limits = self._limits.get(crossed)
        if limits is None:
            limits = self._limits[crossed] = {}
            for reservation in self._reservations[:crossed]:
                for name, gib in reservation.spare_gib.items():
                    limits[name] = min(gib, limits.get(name, gib))
        return limits

    def _spend(self, alloc: Allocation, crossed: int) -> None:
        if alloc.gib:
            self._limits.clear()
        for reservation in self._reservations[:crossed]:
            for name, gib in alloc.gib.items():
                if name in reservation.spare_gib:
                    reservation.spare_gib[name] -= gib

    def _reserve(self, request: Request) -> Decision:
        """Find the earliest start of the job, and reserve its resources."""
        future = self._look_ahead()
        alloc = self._advance(future, request)
        if alloc is None:
            return Decision()
        self._start_in_future(future, alloc, self._t + (request.duration_s or YEAR_S))
        self._reservations.append(
            Reservation(
                self._t,
                bits.of(alloc.nodes),
                {name: future.rabbits[name].free_gib for name in alloc.gib},
            )
        )
        self._reserved.append(self._reserved[-1] | self._reservations[-1].nodes)
        return Decision(t_start=self._t)

    def _reserve_gib(self, alloc: Allocation, idle: Machine) -> None:
        """Reserve GiB for a job that waits for storage of ended jobs."""
        self._future_jobs += 1
        for machine in (idle, self._look_ahead()):
            machine.hold(-self._future_jobs, alloc.gib)
        spare = {}
        for name, gib in alloc.gib.items():
            free = self._machine.rabbits[name].free_gib
            free += sum(h.get(name, 0) for h in self._machine.held_by_nobody())
            spare[name] = max(0, free - gib)
        self._reservations.append(Reservation(self._t, 0, spare))
        self._reserved.append(self._reserved[-1])

    def _look_ahead(self) -> Machine:
        if self._future is None:
            self._future = self._machine.copy()
            for jobid, alloc in self._future.allocations.items():
                t_end = alloc.t_end or self._now + YEAR_S
                self._ends.append((max(t_end, self._now), jobid))
            heapq.heapify(self._ends)
        return self._future

    def _start_in_future(
        self, future: Machine, alloc: Allocation, t_end: float
    ) -> None:
        self._future_jobs += 1
        future.commit(-self._future_jobs, alloc)
        heapq.heappush(self._ends, (t_end, -self._future_jobs))

    def _advance(self, future: Machine, request: Request) -> Allocation | None:
        """End jobs in the order of their end times, and no more than the request needs.
        Sets _t to the last one's end; returns None if all do not suffice."""
        batch: list[_End] = []
        size = 1
        while (alloc := future.find(request)) is None:
            if not self._ends:
                return None
            batch = []
            while self._ends and len(batch) < size:
                batch.append(self._next_end(future))
                batch[-1].release(future)
            size *= 2
        if not batch:
            return alloc
        # Bisect the batch: after its first ``low`` ends the request does not fit, after
        # the first ``high`` it does. ``over`` ends are in effect.
        low, high, over = 0, len(batch), len(batch)
        while high - low > 1:
            middle = (low + high) // 2
            for end in batch[middle:over]:
                end.undo(future)
            for end in batch[over:middle]:
                end.release(future)
            over = middle
            found = future.find(request)
            if found is None:
                low = middle
            else:
                high, alloc = middle, found
        for end in batch[over:high]:
            end.release(future)
        for end in batch[high:]:
            for jobid, _ in end.jobs:
                heapq.heappush(self._ends, (end.t_end, jobid))
        self._t = batch[high - 1].t_end
        return alloc

    def _next_end(self, future: Machine) -> _End:
        end = _End(self._ends[0][0], [])
        while self._ends and self._ends[0][0] == end.t_end:
            jobid = heapq.heappop(self._ends)[1]
            end.jobs.append((jobid, future.allocations[jobid].copy()))
        return end
