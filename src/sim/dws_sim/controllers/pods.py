# What Kubernetes does with a Job: pods that start, run until they are asked
# to stop, and are tried again when they fail. No process is started.
# SPDX-License-Identifier: LGPL-3.0-only
"""Jobs and their pods."""

from __future__ import annotations

from dws_sim.controllers.cluster import Cluster
from dws_sim.controllers.common import child, inherited_labels, is_deleting
from dws_sim.controllers.manager import Controller, Manager
from dws_sim.faults import Faults
from dws_sim.jsontree import Object, clone, edit, now_seconds

# Set on a Job when its containers were told to shut down.
SHUTDOWN = "dws-sim/shutdown"


def pod_log_text(pod: Object) -> str:
    """The log of a pod, one line for each thing that happened to it."""
    name = pod["metadata"]["name"]
    lines = [f"{name}: started"]
    phase = pod.get("status", {}).get("phase")
    if phase in ("Succeeded", "Failed"):
        lines.append(f"{name}: {phase.lower()}")
    return "".join(f"{line}\n" for line in lines if phase != "Pending")


class JobController(Controller):
    """batch/v1 Job."""

    plural = "jobs"

    def __init__(self, cluster: Cluster, manager: Manager, faults: Faults) -> None:
        super().__init__(cluster, manager)
        self._faults = faults
        self._stuck: set[tuple[str, str]] = set()
        faults.listeners.append(self._released)

    def _released(self) -> None:
        stuck, self._stuck = self._stuck, set()
        for namespace, name in stuck:
            self.enqueue(namespace, name)

    async def reconcile(self, namespace: str, name: str) -> float | None:
        job = await self.cluster.get("jobs", namespace, name)
        if job is None or is_deleting(job):
            return None
        # an API server leaves out what is zero
        status: Object = {"active": 0, "ready": 0, "failed": 0, "succeeded": 0}
        status.update(clone(job.get("status", {})))
        if (
            status.get("completionTime")
            or status["failed"] > job["spec"]["backoffLimit"]
        ):
            return None
        before = clone(status)
        pod = await self._pod(job, status["failed"])
        mode = self._faults.containers
        phase = pod["status"]["phase"]
        if phase == "Pending" and mode != "no-start":
            phase = "Running"
        if phase == "Running" and mode == "fail":
            phase = "Failed"
        elif phase == "Running" and mode != "no-stop" and self._told_to_stop(job):
            phase = "Succeeded"
        if phase != pod["status"]["phase"]:
            new = edit(pod, "status")
            new["status"]["phase"] = phase
            new["status"].setdefault("startTime", now_seconds())
            await self.cluster.update_status("pods", new)
        if phase in ("Pending", "Running"):
            self._stuck.add((namespace, name))
        status["active"] = int(phase in ("Pending", "Running"))
        status["ready"] = int(phase == "Running")
        status.setdefault("startTime", now_seconds())
        if phase == "Succeeded":
            now = now_seconds()
            status.update(succeeded=1, completionTime=now)
            status["conditions"] = [
                {"type": word, "status": "True", "lastTransitionTime": now}
                for word in ("SuccessCriteriaMet", "Complete")
            ]
        elif phase == "Failed":
            status["failed"] += 1
        if status != before or "status" not in job:
            new = {**job, "status": status}
            await self.cluster.update_status("jobs", new)
        return None

    @staticmethod
    def _told_to_stop(job: Object) -> bool:
        return bool(job["metadata"].get("annotations", {}).get(SHUTDOWN))

    async def _pod(self, job: Object, attempt: int) -> Object:
        meta = job["metadata"]
        name = f"{meta['name']}-{attempt}"
        template = job["spec"]["template"]["spec"]
        body = child(job, meta["namespace"], name, inherited_labels(job), spec=template)
        pod = await self.cluster.create("pods", body)
        if "status" not in pod:
            new = {**pod, "status": {"phase": "Pending"}}
            pod = await self.cluster.update_status("pods", new)
        return pod
