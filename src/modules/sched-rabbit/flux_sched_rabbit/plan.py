# Which queued jobs start now: priority order, with conservative backfill.
# SPDX-License-Identifier: LGPL-3.0-only
"""Backfill. A job that cannot start now gets a reservation: a time, nodes and
GiB, found by letting running jobs end when their time is up. A job behind it
may start now only if it ends before that time, or keeps off those nodes and
leaves that many GiB. So no job with a reservation is ever put off by one behind
it. Reservations are made for the first ``depth`` jobs that have to wait, and
none starts before the one ahead of it.

Jobs without a time limit count as lasting a year.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace

from . import bits
from .machine import Allocation, Machine
from .request import Request

YEAR_S = 365 * 86400.0

# How many job ends are looked at one by one before the steps become longer.
FINE_STEPS = 64


@dataclass
class Reservation:
    """What a waiting job will get, and when."""

    t_start: float
    nodes: int
    spare_gib: dict[str, int]  # by rabbit: what others may hold at that time


@dataclass
class Decision:
    """Start with this allocation, or (None) wait. t_start is the estimate, if
    there is one."""

    alloc: Allocation | None = None
    t_start: float | None = None


class Planner:
    """One pass over the queue. Jobs must be considered in queue order, and an
    allocation that is returned must be committed before the next."""

    def __init__(self, machine: Machine, now: float, depth: int) -> None:
        """``depth`` 0: no backfill, a job that waits holds up all others."""
        self._machine = machine
        self._now = now
        self._depth = depth
        self._reservations: list[Reservation] = []
        self._reserved = [0]  # nodes of the first n reservations
        self._failed: set[tuple[Request, int]] = set()
        self._future: Machine | None = None
        self._ends: list[tuple[float, int]] = []
        self._t = now
        self._closed = False
        self._waiting = 0

    def consider(self, request: Request) -> Decision:
        """Decide about the next job in the queue."""
        if self._closed:
            return Decision()
        t_end = self._now + (request.duration_s or YEAR_S)
        # Those that start before this job would be over.
        crossed = 0
        for reservation in self._reservations:
            if reservation.t_start >= t_end:
                break
            crossed += 1
        # During a pass there is only ever less.
        key = (replace(request, duration_s=0.0), crossed)
        if key not in self._failed:
            limits = self._limits(crossed)
            alloc = self._machine.find(request, self._reserved[crossed], limits)
            if alloc is not None:
                self._spend(alloc, crossed)
                return Decision(alloc)
            self._failed.add(key)
        if self._depth == 0:
            self._closed = True
        elif self._waiting < self._depth:
            self._waiting += 1
            return Decision(None, self._reserve(request))
        return Decision()

    def _limits(self, crossed: int) -> dict[str, int]:
        limits: dict[str, int] = {}
        for reservation in self._reservations[:crossed]:
            for name, gib in reservation.spare_gib.items():
                limits[name] = min(gib, limits.get(name, gib))
        return limits

    def _spend(self, alloc: Allocation, crossed: int) -> None:
        for reservation in self._reservations[:crossed]:
            for name, gib in alloc.gib.items():
                if name in reservation.spare_gib:
                    reservation.spare_gib[name] -= gib

    def _reserve(self, request: Request) -> float | None:
        """Find out when the job can start, and keep that for it. None if that
        cannot be told, since it waits for nodes or rabbits that are down."""
        future = self._look_ahead()
        alloc = self._advance(future, request)
        if alloc is None:
            # All running jobs are over now, so no later job is told either.
            self._waiting = self._depth
            return None
        jobid = -len(self._reservations) - 1
        future.commit(jobid, alloc)
        heapq.heappush(self._ends, (self._t + (request.duration_s or YEAR_S), jobid))
        self._reservations.append(
            Reservation(
                self._t,
                bits.of(alloc.nodes),
                {name: future.rabbits[name].free_gib for name in alloc.gib},
            )
        )
        self._reserved.append(self._reserved[-1] | self._reservations[-1].nodes)
        return self._t

    def _look_ahead(self) -> Machine:
        if self._future is None:
            self._future = self._machine.copy()
            for jobid, alloc in self._future.allocations.items():
                t_end = alloc.t_end or self._now + YEAR_S
                self._ends.append((max(t_end, self._now), jobid))
            heapq.heapify(self._ends)
        return self._future

    def _advance(self, future: Machine, request: Request) -> Allocation | None:
        """Let jobs end until the request can be met."""
        steps = 0
        while True:
            alloc = future.find(request)
            if alloc is not None or not self._ends:
                return alloc
            for _ in range(1 + steps // FINE_STEPS):
                if self._ends:
                    self._t, jobid = heapq.heappop(self._ends)
                    future.release(jobid)
            steps += 1
