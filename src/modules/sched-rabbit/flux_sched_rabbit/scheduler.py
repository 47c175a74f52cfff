# The broker module sched-rabbit: policy and configuration.
# SPDX-License-Identifier: LGPL-3.0-only
"""First come, first served within a priority."""

from __future__ import annotations

import heapq
import json
from typing import Any

from flux.scheduler import PendingJob, Scheduler

from . import rset
from .pool import RabbitPool
from .request import Request


class RabbitScheduler(Scheduler):  # type: ignore[misc]
    """Allocates in order of priority and age. A job that cannot run now holds
    up those behind it."""

    pool_class = RabbitPool

    def __init__(self, h: Any, *args: str) -> None:
        super().__init__(h, *args)
        self.pool_kwargs = {"rabbits": self._read_mapping()}

    def _read_mapping(self) -> dict[str, tuple[int, list[str]]]:
        path = self.handle.conf_get("rabbit.mapping")
        if not path:
            return {}
        try:
            with open(path, encoding="utf-8") as file:
                return rset.rabbits_of_mapping(json.load(file))
        except (OSError, ValueError) as exc:
            raise ValueError(f"rabbit.mapping {path}: {exc}") from exc

    def alloc(
        self,
        request: Any,
        jobid: int,
        priority: int,
        userid: int,
        t_submit: float,
        jobspec: Any,
    ) -> None:
        try:
            wanted = self.resources.parse_resource_request(jobspec)
            reason = self.resources.machine.infeasible(wanted)
        except ValueError as exc:
            reason = str(exc)
        if reason:
            request.deny(reason)
            return
        heapq.heappush(
            self._queue, PendingJob(jobid, priority, t_submit, request, wanted)
        )

    def schedule(self) -> None:
        while self._queue and self._start(self._queue[0]):
            heapq.heappop(self._queue)

    def _start(self, job: PendingJob) -> bool:
        wanted: Request = job.resource_request
        alloc = self.resources.find(wanted)
        if alloc is None:
            return False
        summary = rset.summarize(alloc)
        R = self.resources.commit(job.jobid, alloc, wanted.duration_s)
        job.request.success(R, {"sched": {"resource_summary": summary}})
        return True

    def expiration(self, msg: Any, jobid: int, expiration: float) -> None:
        self.resources.update_expiration(jobid, expiration)
        super().expiration(msg, jobid, expiration)

    def stats_get(self) -> dict[str, Any]:
        stats: dict[str, Any] = super().stats_get()
        stats["rabbits"] = {
            rabbit.name: {
                "capacity_gib": rabbit.capacity_gib,
                "free_gib": rabbit.free_gib,
            }
            for rabbit in self.resources.machine.rabbits.values()
        }
        return stats
