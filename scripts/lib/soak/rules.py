# Rules for every moment of a soak run, whatever was just killed: no user exceeds the
# limits, and no file system is deleted before its lease ends.
# SPDX-License-Identifier: LGPL-3.0-only
"""Rules, checked against what Kubernetes says."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from flux_k8s.errors import ApiError
from flux_k8s.kube import Kube

from soak import features
from soak.jobs import GIB, LENT_S, Job

# Limit on the storage of one user's jobs, low enough that jobs have to wait.
TOTAL_GIB = 240
CONFIG = f"""
[rabbit.limits.everybody]
job = "100GiB"
total = "{TOTAL_GIB}GiB"
{features.presets()}
"""


def _has_storage(workflow: Mapping[str, Any], made: set[str]) -> bool:
    """Whether a workflow counts for limits.

    Args:
        made: names of the workflows with storage on rabbits. Teardown deletes the
            storage some time before it is ready.
    """
    spec, status = workflow["spec"], workflow.get("status", {})
    if spec["desiredState"] != "Teardown":
        return True
    ready = status.get("state") == "Teardown" and status.get("ready")
    return workflow["metadata"]["name"] in made and not ready


def _made(servers: Sequence[Mapping[str, Any]]) -> set[str]:
    """Names of the workflows whose Servers have storage on a rabbit."""
    return {
        item["metadata"]["name"].rpartition("-")[0]
        for item in servers
        for one in item.get("status", {}).get("allocationSets") or []
        for where in (one.get("storage") or {}).values()
        if where.get("allocationSize", 0) > 0
    }


class Rules:
    """Checks the rules again and again.

    Args:
        kube: connects to the cluster, which need not answer.
        jobs: all submitted jobs, by their ids.
        completed: whether Flux reports a job as completed.
        clock: the time in s since the epoch.
    """

    def __init__(
        self,
        kube: Callable[[], Kube],
        jobs: dict[int, Job],
        completed: Callable[[int], bool],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._kube = kube
        self._jobs = jobs
        self._completed = completed
        self._clock = clock
        # earliest time at which each file system with a lease may be deleted, by name
        self._lent: dict[str, float] = {}
        self.most = 0  # highest sum of bytes of one user's jobs

    def check(self) -> list[str]:
        """Violations now."""
        try:
            kube = self._kube()
            workflows, _ = kube.list_all("workflows")
            servers, _ = kube.list_all("servers")
            persistent, _ = kube.list_all("persistentstorageinstances")
        except ApiError:
            return []
        total = self._total(workflows, _made(servers))
        # The answers may have taken long: what is gone had this time to go.
        return [*total, *self._time(persistent, self._clock())]

    def _total(
        self, workflows: Sequence[Mapping[str, Any]], made: set[str]
    ) -> list[str]:
        """Users whose jobs exceed the limit. Persistent file systems count for the
        limit too, but not here: the check is lenient. Workflows that came back from a
        backup are left out, since no limit was checked for them."""
        by_name = {
            job.workflow: job
            for job in self._jobs.values()
            if not (job.forgotten or job.brought_back)
        }
        wrong = []
        for guest in (False, True):
            having = [
                job
                for w in workflows
                if _has_storage(w, made)
                if (job := by_name.get(w["metadata"]["name"]))
                if job.kind.guest == guest
            ]
            had = sum(job.asked for job in having)
            self.most = max(self.most, had)
            if had > TOTAL_GIB * GIB:
                names = ", ".join(job.workflow for job in having)
                text = f"more than the limit of {TOTAL_GIB} GiB"
                wrong.append(f"{text}: {had} bytes by {names}")
        return wrong

    def _time(self, persistent: Sequence[Mapping[str, Any]], now: float) -> list[str]:
        there = {o["metadata"]["name"] for o in persistent}
        gone = {name: t for name, t in self._lent.items() if name not in there}
        wrong = []
        for name, expires in gone.items():
            del self._lent[name]
            maker = next(j for j in self._jobs.values() if j.makes == name)
            if now < expires and maker.stands and self._completed(maker.id):
                wrong.append(f"{name} went {expires - now:.1f} s before its time")
        for item in persistent:
            name, made = item["metadata"]["name"], item["metadata"]["creationTimestamp"]
            if any(job.makes == name for job in self._jobs.values()):
                since = datetime.fromisoformat(made.replace("Z", "+00:00")).timestamp()
                self._lent.setdefault(name, since + LENT_S)
        return wrong
