# What must hold at every moment of a soak run, whatever was just killed: nobody has
# more than the limits allow, and no file system goes before its time.
# SPDX-License-Identifier: LGPL-3.0-only
"""Rules, checked against what Kubernetes says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from flux_k8s.errors import ApiError
from flux_k8s.kube import Kube

from soak import features
from soak.jobs import GIB, LENT_S, Job

# The most that jobs of one user may have at one time: fewer than want to run.
TOTAL_GIB = 240
CONFIG = f"""
[rabbit.limits.everybody]
job = "100GiB"
total = "{TOTAL_GIB}GiB"
{features.presets()}
"""


def _has_storage(workflow: Mapping[str, Any]) -> bool:
    spec, status = workflow["spec"], workflow.get("status", {})
    torn_down = spec["desiredState"] == status.get("state") == "Teardown"
    return not (torn_down and status.get("ready"))


class Rules:
    """Looks again and again, and says what was broken.

    Args:
        kube: makes a connection to the cluster, which need not answer.
        jobs: all that were submitted, by their ids.
        completed: whether Flux says that of a job.
    """

    def __init__(
        self,
        kube: Callable[[], Kube],
        jobs: dict[int, Job],
        completed: Callable[[int], bool],
    ) -> None:
        self._kube = kube
        self._jobs = jobs
        self._completed = completed
        # file systems that are to expire, by name, and the earliest time for that
        self._lent: dict[str, float] = {}
        self.most = 0  # bytes that jobs were seen to have

    def check(self, now: float) -> list[str]:
        """What is wrong now (s since the epoch)."""
        try:
            kube = self._kube()
            workflows, _ = kube.list_all("workflows")
            persistent, _ = kube.list_all("persistentstorageinstances")
        except ApiError:
            return []
        return [*self._total(workflows), *self._time(persistent, now)]

    def _total(self, workflows: Sequence[Mapping[str, Any]]) -> list[str]:
        """Jobs only: what persistent file systems take on rabbits counts as well, so
        that less than all may be had by them. What has come back from a backup nobody
        has let in."""
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
                if _has_storage(w) and (job := by_name.get(w["metadata"]["name"]))
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
