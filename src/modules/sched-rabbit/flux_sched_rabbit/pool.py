# Adapts the machine to the resource pool that flux.scheduler.Scheduler expects.
# SPDX-License-Identifier: LGPL-3.0-only
"""A resource pool that knows rabbits."""

from __future__ import annotations

import syslog
import time
from typing import Any

from flux.idset import IDset
from flux.resource import InfeasibleRequest, InsufficientResources
from flux.resource.Rv1Pool import Rv1Pool
from flux.resource.Rv1Set import Rv1Set
from flux_k8s import dws, names

from . import bits, request, rset
from .machine import Machine
from .parts import Allocation, Node
from .request import Request


class RabbitPool(Rv1Pool):  # type: ignore[misc]
    """The pool of the whole instance, or the R of one job.

    The base class reads and writes R; the machine tracks nodes that are up, and
    allocations. It is created at its first use, as the R of a job needs none.
    """

    name = "RabbitPool"
    known_options = frozenset({"rabbits", "held", "health"})

    def __init__(
        self,
        R: Any,
        log: Any = None,
        rabbits: Any = None,
        held: Any = None,
        health: Any = None,
    ) -> None:
        super().__init__(R, log=log)
        self.impl = self  # the scheduler base class asks for it
        self._rabbits = rabbits
        self._held = held or {}
        self._health = health or {}
        self._machine: Machine | None = None

    @property
    def machine(self) -> Machine:
        if self._machine is None:
            self._machine = Machine(
                (
                    Node(
                        rank,
                        info["hostname"],
                        bits.of(info["cores"]),
                        bits.of(info["gpus"]),
                    )
                    for rank, info in self._ranks.items()
                ),
                self._properties,
                self._rabbits,
                dws.expand_hosts,
            )
            for jobid, gib in self._held.items():
                self._machine.hold(jobid, gib)
            try:
                rset.take_health(self._health, self._machine, unknown=True)
            except ValueError as exc:
                self.log(syslog.LOG_ERR, f"{names.KEY_HEALTH}: {exc}")
        return self._machine

    def set_rabbits(self, rabbits: dict[str, tuple[int, list[str]]]) -> None:
        """Raises ValueError."""
        self.machine.set_rabbits(rabbits)
        self._rabbits = rabbits
        self._bump()

    # Availability

    def _mask(self, ids: str) -> int:
        if ids == "all":
            return self.machine.all_nodes
        return bits.of(IDset(ids))

    def mark_up(self, ids: str) -> None:
        self.machine.set_up(self._mask(ids), True)
        self._bump()

    def mark_down(self, ids: str) -> None:
        self.machine.set_up(self._mask(ids), False)
        self._bump()

    def remove_ranks(self, ranks: Any) -> None:
        """Remove nodes for good. From a job's R, remove released nodes (housekeeping),
        and all GiB at the first call."""
        super().remove_ranks(ranks)
        if self._machine is not None:
            self._machine.remove(IDset(ranks) if isinstance(ranks, str) else ranks)
        else:
            self.scheduling = None

    # Jobs

    def parse_resource_request(self, jobspec: Any) -> Request:
        """Raises ValueError with a text for the user."""
        result = request.parse(jobspec)
        self.machine.matching(result)
        return result

    def check_feasibility(self, wanted: Request) -> None:
        reason = self.machine.infeasible(wanted)
        if reason:
            raise InfeasibleRequest(reason)

    def find(self, wanted: Request) -> Allocation | None:
        return self.machine.find(wanted)

    def commit(
        self, jobid: int, alloc: Allocation, duration_s: float
    ) -> dict[str, Any]:
        """Allocate resources to a job and return its R."""
        now = time.time()
        expiration = self.get_expiration()
        if duration_s > 0:
            expiration = now + duration_s
        alloc.t_end = expiration
        self.machine.commit(jobid, alloc)
        self._bump()
        hosts = {rank: self._ranks[rank]["hostname"] for rank in alloc.nodes}
        return rset.encode(
            alloc.nodes,
            hosts,
            self._properties,
            (now, expiration),
            alloc.nslots,
            alloc.gib,
        )

    def alloc(self, jobid: int, wanted: Request) -> RabbitPool:
        alloc = self.find(wanted)
        if alloc is None:
            self.check_feasibility(wanted)
            raise InsufficientResources("insufficient resources")
        return type(self)(self.commit(jobid, alloc, wanted.duration_s), log=self.log)

    def register_alloc(self, jobid: int, R: Any) -> None:
        """Register a job that ran before the scheduler started. Raises ValueError."""
        alloc = Allocation(t_end=R.get_expiration())
        for rank, info in R._ranks.items():
            alloc.nodes[rank] = (bits.of(info["cores"]), bits.of(info["gpus"]))
        alloc.gib = rset.gib_of_scheduling(R.scheduling)
        alloc.beside = rset.gib_of_ssds(R.scheduling)
        self.machine.commit(jobid, alloc)
        self._bump()

    def free(self, jobid: int, R: Any = None, final: bool = False) -> None:
        ranks = None
        if R is not None and not final:
            ranks = list(getattr(R, "impl", R)._ranks)
        self.machine.release(jobid, ranks)
        self._bump()

    def update_expiration(self, jobid: int, expiration: float) -> None:
        alloc = self.machine.allocations.get(jobid)
        if alloc is not None:
            alloc.t_end = expiration

    def job_end_times(self) -> list[tuple[int, float]]:
        allocations = self.machine.allocations.items()
        return [(jobid, alloc.t_end) for jobid, alloc in allocations]

    # Views

    def copy(self) -> RabbitPool:
        new: RabbitPool = super().copy()
        new.impl = new
        new._rabbits = self._rabbits
        new._held = self._held
        new._health = self._health
        new._machine = self.machine.copy()
        return new

    def _subset(self, nodes: dict[int, tuple[int, int]]) -> Rv1Set:
        hosts = {rank: self._ranks[rank]["hostname"] for rank in nodes}
        return Rv1Set(rset.encode(nodes, hosts, self._properties))

    def copy_allocated(self) -> Rv1Set:
        return self._subset(
            {
                node.rank: (node.cores & ~node.free_cores, node.gpus & ~node.free_gpus)
                for node in self.machine.nodes.values()
                if node.free_cores != node.cores or node.free_gpus != node.gpus
            }
        )

    def copy_down(self) -> Rv1Set:
        machine = self.machine
        return self._subset(
            {
                rank: (machine.nodes[rank].cores, machine.nodes[rank].gpus)
                for rank in bits.members(machine.all_nodes & ~machine.up)
            }
        )
