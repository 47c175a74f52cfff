# Plays Kubernetes' Job controller and kubelet: pods start, run until they end or are
# ended, and are retried when they fail. A switch decides the outcome of a pod, or with
# a Runner, the pod's processes.
# SPDX-License-Identifier: LGPL-3.0-only
"""Jobs and their pods."""

from __future__ import annotations

import base64
import functools
import re
import time

from dws_sim.controllers.cluster import Cluster
from dws_sim.controllers.common import (
    child,
    inherited_labels,
    is_deleting,
    owner_of,
)
from dws_sim.controllers.manager import Controller, Manager
from dws_sim.controllers.podspec import NODE_LABEL
from dws_sim.faults import Faults
from dws_sim.jsontree import Object, clone, dig, edit, now_seconds, parse_time
from dws_sim.podlog import Line
from dws_sim.processes import Runner, Terms
from dws_sim.schema.resources import DWS_GROUP

# The words of Kubernetes for a Job that has failed.
BACKOFF = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
DEADLINE = ("DeadlineExceeded", "Job was active longer than specified deadline")
WORKFLOW = f"{DWS_GROUP}/workflow"


def played_log(pod: Object) -> list[Line]:
    """The log of a pod without a process, one line for each thing that happened
    to it."""
    name, status = pod["metadata"]["name"], pod.get("status", {})
    happened = [("started", status.get("startTime"))]
    for condition in status.get("conditions", ()):
        happened.append((status["phase"].lower(), condition["lastTransitionTime"]))
    return [
        Line(int(parse_time(when)) * 1_000_000_000 + n, f"{name}: {what}\n".encode())
        for n, (what, when) in enumerate(happened)
        if when is not None
    ]


def _ended(phase: str) -> list[Object]:
    """Conditions of a pod in this phase that report the end of its containers."""
    reason = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase)
    if reason is None:
        return []
    return [
        {
            "type": "ContainersReady",
            "status": "False",
            "reason": reason,
            "lastTransitionTime": now_seconds(),
        }
    ]


def _conditions(*kinds: str, reason: str = "", message: str = "") -> list[Object]:
    words = {"reason": reason, "message": message} if reason else {}
    now = now_seconds()
    return [
        {"type": kind, "status": "True", "lastTransitionTime": now, **words}
        for kind in kinds
    ]


# Programs that do not end by themselves, and statuses with which others do.
_ENDLESS = re.compile(r"\bwhile (true|:)|\bsleep inf|\btail -f|\bhttp\.server\b")
_EXIT = re.compile(r"\bexit (\d+)")


def played(pod: Object) -> str:
    """Phase of a pod that runs no processes, by the command of its first container:
    Succeeded, Failed, or Running, if it does not end by itself."""
    containers = pod["spec"].get("containers") or [{}]
    first = containers[0]
    words = [*(first.get("command") or ()), *(first.get("args") or ())]
    text = " ".join(str(word) for word in words)
    if _ENDLESS.search(text):
        return "Running"
    status = _EXIT.search(text)
    return "Failed" if status and int(status.group(1)) else "Succeeded"


class PodController(Controller):
    """Pods that a client makes for a node: they are played at once."""

    plural = "pods"

    async def reconcile(self, namespace: str, name: str) -> float | None:
        pod = await self.cluster.get("pods", namespace, name)
        if pod is None or is_deleting(pod) or owner_of(pod, "Job") is not None:
            return None
        phase = pod.get("status", {}).get("phase", "Pending")
        if not pod["spec"].get("nodeName") or phase not in ("Pending", "Running"):
            return None
        ends = pod["spec"].get("restartPolicy") in ("Never", "OnFailure")
        new = edit(pod, "status")
        new["status"] = {**new.get("status", {}), "phase": "Running"}
        if ends:
            phase = new["status"]["phase"] = played(pod)
            if conditions := _ended(phase):
                new["status"]["conditions"] = conditions
        new["status"].setdefault("startTime", now_seconds())
        if new != pod:
            await self.cluster.update_status("pods", new)
        return None


class JobController(Controller):
    """batch/v1 Job."""

    plural = "jobs"

    def __init__(
        self,
        cluster: Cluster,
        manager: Manager,
        faults: Faults,
        runner: Runner | None = None,
    ) -> None:
        """
        Args:
            runner: what runs containers; None: nothing does.
        """
        super().__init__(cluster, manager)
        self._faults = faults
        self._runner = runner
        self._stuck: set[tuple[str, str]] = set()
        faults.listeners.append(self._released)

    def _released(self) -> None:
        stuck, self._stuck = self._stuck, set()
        for namespace, name in stuck:
            self.enqueue(namespace, name)

    def forget(self, obj: Object) -> None:
        if self._runner is not None:
            self._runner.end_job(obj["metadata"]["uid"])

    async def reconcile(self, namespace: str, name: str) -> float | None:
        job = await self.cluster.get("jobs", namespace, name)
        if job is None or is_deleting(job):
            return None
        # an API server leaves out what is zero
        status: Object = {"active": 0, "ready": 0, "failed": 0, "succeeded": 0}
        status.update(clone(job.get("status", {})))
        if status.get("conditions"):
            return None
        before = clone(status)
        status.setdefault("startTime", now_seconds())
        pod = await self._pod(job, status["failed"])
        left = self._time_left(job, status)
        phase = await self._phase(job, pod, left)
        if phase != pod["status"]["phase"]:
            new = edit(pod, "status")
            new["status"]["phase"] = phase
            new["status"].setdefault("startTime", now_seconds())
            if conditions := _ended(phase):
                new["status"]["conditions"] = conditions
            await self.cluster.update_status("pods", new)
        alive = phase in ("Pending", "Running")
        if alive:
            self._stuck.add((namespace, name))
        status.update(active=int(alive), ready=int(phase == "Running"))
        if phase == "Succeeded":
            done = _conditions("SuccessCriteriaMet", "Complete")
            status.update(succeeded=1, completionTime=now_seconds(), conditions=done)
        elif phase == "Failed":
            self._failed(job, status, left)
        if status != before or "status" not in job:
            new = {**job, "status": status}
            await self.cluster.update_status("jobs", new)
        # a pod that is ended triggers an event itself
        return left if alive and left else None

    @staticmethod
    def _failed(job: Object, status: Object, left: float | None) -> None:
        status["failed"] += 1
        reason = None
        if left is not None and left <= 0:
            reason, message = DEADLINE
        elif status["failed"] > job["spec"].get("backoffLimit", 6):
            reason, message = BACKOFF
        if reason:
            status["conditions"] = _conditions(
                "FailureTarget", "Failed", reason=reason, message=message
            )

    @staticmethod
    def _time_left(job: Object, status: Object) -> float | None:
        """Seconds until the deadline of a Job; None if it has none."""
        limit = job["spec"].get("activeDeadlineSeconds")
        if limit is None:
            return None
        began = parse_time(status["startTime"])
        return max(0.0, began + float(limit) - time.time())

    async def _phase(self, job: Object, pod: Object, left: float | None) -> str:
        """The pod's next phase, with 'left' seconds until its deadline."""
        phase, mode = str(pod["status"]["phase"]), self._faults.containers
        expired = left is not None and left <= 0
        # pods of MPI programs, which are never run here, have no name of their own
        named = "hostname" in pod["spec"]
        if self._runner is not None and mode == "ok" and named:
            meta, terms = job["metadata"], await self._terms(pod)
            wake = functools.partial(self.enqueue, meta["namespace"], meta["name"])
            return self._runner.phase(pod, terms, expired, wake)
        if phase == "Pending" and mode != "no-start" and not expired:
            phase = "Running"
        if phase == "Running" and mode == "fail":
            return "Failed"
        # a pod without a process ends once the workflow waits for it
        if phase == "Running" and mode == "ok" and left is not None and not expired:
            phase = played(pod)
        return "Failed" if expired else phase

    async def _terms(self, pod: Object) -> Terms:
        """Whose a pod is, and the files of the Secrets that it has."""
        labels, out = pod["metadata"]["labels"], {}
        of = (labels.get(f"{WORKFLOW}.namespace"), labels.get(f"{WORKFLOW}.name"))
        workflow = await self.cluster.get("workflows", *of)
        user = dig(workflow, "spec", "userID")
        for volume in pod["spec"].get("volumes", ()):
            name = dig(volume, "secret", "secretName")
            if name is None:
                continue
            namespace = pod["metadata"]["namespace"]
            found = await self.cluster.get("secrets", namespace, name) or {}
            data = found.get("data", {})
            out[name] = {k: base64.b64decode(v or "") for k, v in data.items()}
        return Terms(-1 if user is None else user, out)

    async def _pod(self, job: Object, attempt: int) -> Object:
        meta = job["metadata"]
        name = f"{meta['name']}-{attempt}"
        template = job["spec"]["template"]["spec"]
        node = template.get("nodeSelector", {}).get(NODE_LABEL, "")
        spec = {**template, "nodeName": node}
        body = child(job, meta["namespace"], name, inherited_labels(job), spec=spec)
        pod = await self.cluster.create("pods", body)
        if "status" not in pod:
            new = {**pod, "status": {"phase": "Pending"}}
            pod = await self.cluster.update_status("pods", new)
        return pod
