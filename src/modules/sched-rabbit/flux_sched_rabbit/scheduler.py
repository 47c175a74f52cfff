# The broker module sched-rabbit: queue, policy, configuration, and the requests of the
# module dws.
# SPDX-License-Identifier: LGPL-3.0-only
"""Priority order, first come first served within a priority, with backfill."""

from __future__ import annotations

import errno
import heapq
import json
import sys
import time
from typing import Any

import flux.kvs
from flux.brokermod import BrokerLogger, request_handler
from flux.job import JobID
from flux.scheduler import PendingJob, Scheduler
from flux_k8s import names, texts

from . import rset
from .plan import Decision, Pass
from .pool import RabbitPool

DEFAULT_DEPTH = 8
NOTIFIED_MAX = 16  # streams of sched-rabbit.notify; only the module dws needs one
LINE_MAX = 500  # characters

# Flux accepts JSON nested up to 2048 deep, for which Python's decoder needs more than
# the default limit of 1000 calls.
RECURSION_LIMIT = 10000


def read_mapping(path: str | None) -> dict[str, tuple[int, list[str]]]:
    """The rabbits of a mapping file; {} without a path. Raises ValueError."""
    if not path:
        return {}
    if not isinstance(path, str):
        raise ValueError(f"rabbit.mapping: expected a text, got {json.dumps(path)}")
    try:
        with open(path, encoding="utf-8") as file:
            return rset.rabbits_of_mapping(json.load(file))
    except OSError as exc:
        raise ValueError(f"rabbit.mapping: {path}: {exc.strerror}") from exc
    except json.JSONDecodeError as exc:
        raise ValueError(
            f"rabbit.mapping: {path}: line {exc.lineno}: not JSON"
        ) from exc
    except (RecursionError, ValueError) as exc:
        raise ValueError(f"rabbit.mapping: {path}: {exc}") from exc


class CleanLogger(BrokerLogger):  # type: ignore[misc]
    """The broker's log, for lines that may contain text of users."""

    def __call__(self, level: int, msg: str) -> None:
        # flux_log() interprets the line as a printf format.
        super().__call__(level, texts.clean(msg).replace("%", "%%"))


def one_line(text: str) -> str:
    """A text that may contain text of users as one line for an eventlog or a log."""
    return texts.clean(text[:LINE_MAX])


class RabbitScheduler(Scheduler):  # type: ignore[misc]
    """The scheduler. Its options are ``reservation-depth=N`` (see plan.py) and those of
    flux.scheduler."""

    pool_class = RabbitPool

    def __init__(self, h: Any, *args: str) -> None:
        super().__init__(h, *args)
        level = self.log.level
        self.log: BrokerLogger = CleanLogger(h)
        self.log.level = level
        self._queue: list[PendingJob]
        self._depth = DEFAULT_DEPTH
        for arg in list(self._pending_args):
            name, _, value = arg.partition("=")
            if name == "reservation-depth":
                if not value.isdigit():
                    raise ValueError(f"{arg}: expected a number, 0 or more")
                self._depth = int(value)
                self._pending_args.remove(arg)
        self._mapping: str | None = self.handle.conf_get("rabbit.mapping")
        self.pool_kwargs = {
            "rabbits": self._first_mapping(),
            "held": self._read_held(),
            "health": self._read_health(),
        }
        self._notified: list[Any] = []
        self._nodes = 0

    def _first_mapping(self) -> dict[str, tuple[int, list[str]]]:
        try:
            return read_mapping(self._mapping)
        except ValueError as exc:
            # Start without rabbits, so that other jobs run until it is repaired.
            self.log.error(f"{exc}: going without rabbits")
            return {}

    def _read_kvs(self, key: str) -> Any:
        """The value of a KVS key that the module dws writes, {} without one."""
        try:
            return flux.kvs.get(self.handle, key)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as exc:
            self.log.error(f"{key}: {exc}")
            return {}

    def _read_held(self) -> dict[int, dict[str, int]]:
        """The held storage recorded in the KVS, so that jobs need not wait for the
        module's first request to hold()."""
        try:
            return rset.parse_hold({"jobs": self._read_kvs(names.KEY_HELD)})
        except ValueError as exc:
            self.log.error(f"{names.KEY_HELD}: {exc}")
            return {}

    def _read_health(self) -> Any:
        """The health of rabbits and nodes recorded in the KVS."""
        return self._read_kvs(names.KEY_HEALTH)

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
        except Exception as exc:
            reason = self._explain(JobID(jobid).f58, exc)
        if reason:
            request.deny(one_line(reason))
            return
        heapq.heappush(
            self._queue, PendingJob(jobid, priority, t_submit, request, wanted)
        )

    def alloc_deny(self, msg: Any, note: str | None = None) -> None:
        """Deny a job. Clean the note of the exception, which may contain text of the
        user."""
        super().alloc_deny(msg, texts.clean(note) if note else note)

    def feasibility_check(self, msg: Any, jobspec: Any) -> None:
        errnum = errno.EOVERFLOW
        try:
            wanted = self.resources.parse_resource_request(jobspec)
            reason = self.resources.machine.infeasible(wanted)
        except Exception as exc:
            reason = self._explain("feasibility", exc)
            errnum = errno.EINVAL
        if reason:
            self.handle.respond_error(msg, errnum, one_line(reason))
        else:
            self.handle.respond(msg, None)

    def _explain(self, who: str, exc: Exception) -> str:
        """The text for the user about an exception. A ValueError reports a fault of the
        request; any other exception is a defect, which is logged."""
        if isinstance(exc, ValueError):
            return str(exc)
        fault = f"{type(exc).__name__}: {exc}"
        self.log.error(one_line(f"{who}: {fault}"))
        return f"the scheduler cannot make sense of this request ({fault})"

    def _deny(self, job: PendingJob, exc: Exception) -> None:
        """Deny a queued job, and release a partly made allocation."""
        self.resources.free(job.jobid)
        job.request.deny(one_line(self._explain(JobID(job.jobid).f58, exc)))

    def _feasible(self, jobs: list[PendingJob]) -> list[PendingJob]:
        """Deny infeasible jobs; returns the others."""
        result = []
        for job in jobs:
            try:
                reason = self.resources.machine.infeasible(job.resource_request)
            except Exception as exc:
                self._deny(job, exc)
                continue
            if reason:
                job.request.deny(one_line(reason))
            else:
                result.append(job)
        return result

    def schedule(self) -> None:
        queue = sorted(self._queue)
        try:
            requests = (job.resource_request for job in queue)
            planned = Pass(self.resources.machine, time.time(), self._depth, requests)
        except Exception as exc:
            self.log.error(one_line(f"{type(exc).__name__}: {exc}"))
            self._queue = self._feasible(queue)
            if len(self._queue) < len(queue):
                self._request_schedule()
            return
        waiting = []
        for at, job in enumerate(queue):
            try:
                if not self._consider(job, planned):
                    waiting.append(job)
            except Exception as exc:
                self._deny(job, exc)
                # The plan may be inconsistent: make a new one for the rest.
                self._queue = waiting + queue[at + 1 :]
                self._request_schedule()
                return
        self._queue = waiting  # sorted, so a heap too

    def _consider(self, job: PendingJob, planned: Pass) -> bool:
        """Start the job, or annotate why it waits. Returns whether it starts."""
        wanted = job.resource_request
        decision = planned.consider(wanted)
        if decision.alloc is None:
            self._annotate(job, decision)
            return False
        summary = rset.summarize(decision.alloc)
        R = self.resources.commit(job.jobid, decision.alloc, wanted.duration_s)
        job.request.success(R, {"sched": {"resource_summary": summary}})
        return True

    @staticmethod
    def _annotate(job: PendingJob, decision: Decision) -> None:
        """Annotate a job with its estimated start in whole seconds, or with the reason
        why there is none."""
        sched: dict[str, float | str | None] = {}
        note: float | str | None = None
        if isinstance(job._last_annotation, str):
            sched["reason_pending"] = None
        elif job._last_annotation is not None:
            sched["t_estimate"] = None
        if decision.reason:
            note = sched["reason_pending"] = decision.reason
        elif decision.t_start is not None:
            note = sched["t_estimate"] = float(round(decision.t_start))
        if note != job._last_annotation:
            job._last_annotation = note
            job.request.annotate({"sched": sched})

    def resource_update(self) -> None:
        """After nodes were removed, deny jobs that have become infeasible."""
        nodes = len(self.resources.machine.nodes)
        if nodes < self._nodes:
            self._queue = self._feasible(self._queue)
            heapq.heapify(self._queue)
        self._nodes = nodes

    def run(self) -> None:
        sys.setrecursionlimit(max(sys.getrecursionlimit(), RECURSION_LIMIT))
        try:
            super().run()
        finally:
            for msg in self._notified:
                self.handle.respond_error(msg, errno.ECANCELED, "unloaded")

    @request_handler("config-reload")  # type: ignore[untyped-decorator]
    def config_reload(self, msg: Any) -> None:
        """Read the mapping again, as the module dws does at a reload."""
        try:
            path = msg.payload.get("rabbit", {}).get("mapping")
            self.resources.set_rabbits(read_mapping(path))
        except (AttributeError, ValueError) as exc:
            self.handle.respond_error(msg, errno.EINVAL, str(exc))
            return
        self._mapping = path
        self._request_schedule()
        self.handle.respond(msg, None)

    @request_handler("notify")  # type: ignore[untyped-decorator]
    def notify(self, msg: Any) -> None:
        """Open a stream whose end tells the module dws that the scheduler was unloaded
        and has lost the health of rabbits. The answer says that the jobspecs of jobs
        with storage need no constraint to keep them off broken nodes. Read the mapping
        again, as the module dws has just started and read it, too."""
        try:
            self.resources.set_rabbits(read_mapping(self._mapping))
        except ValueError as exc:
            self.log.error(f"{exc}: going on with the rabbits of before")
        self._request_schedule()
        self.handle.respond(msg, {"avoids": names.BAD_PROPERTY})
        self._notified.append(msg)
        if len(self._notified) > NOTIFIED_MAX:
            oldest = self._notified.pop(0)
            text = f"there are {NOTIFIED_MAX} newer streams"
            self.handle.respond_error(oldest, errno.ECANCELED, text)

    @request_handler("health")  # type: ignore[untyped-decorator]
    def health(self, msg: Any) -> None:
        """Set the health of rabbits and properties of nodes, all or none; see
        doc/protocol.md."""
        machine = self.resources.machine
        try:
            rset.take_health(msg.payload or {}, machine)
        except ValueError as exc:
            self.handle.respond_error(msg, errno.EINVAL, str(exc))
            return
        self._request_schedule()
        self.handle.respond(msg, None)

    @request_handler("hold")  # type: ignore[untyped-decorator]
    def hold(self, msg: Any) -> None:
        """Set the GiB that the storage of jobs holds, also after the jobs have released
        their nodes; see doc/protocol.md."""
        machine = self.resources.machine
        payload = msg.payload or {}
        try:
            jobs = rset.parse_hold(payload)
        except ValueError as exc:
            self.handle.respond_error(msg, errno.EINVAL, str(exc))
            return
        if payload.get("complete"):
            for jobid in machine.held.keys() - jobs.keys():
                machine.hold(jobid, {})
        for jobid, gib in jobs.items():
            machine.hold(jobid, gib)
        self._request_schedule()
        self.handle.respond(msg, None)

    def expiration(self, msg: Any, jobid: int, expiration: float) -> None:
        self.resources.update_expiration(jobid, expiration)
        super().expiration(msg, jobid, expiration)

    def stats_get(self) -> dict[str, Any]:
        stats: dict[str, Any] = super().stats_get()
        stats["rabbits"] = {
            rabbit.name: {
                "capacity_gib": rabbit.capacity_gib,
                "free_gib": rabbit.free_gib,
                "up": rabbit.up,
            }
            for rabbit in self.resources.machine.rabbits.values()
        }
        return stats
