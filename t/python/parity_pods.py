# Controls the pods of containers in the server under test: dws-sim plays pods by its
# switches; on a rig without a kubelet the test writes the status of the Jobs as
# Kubernetes and the mpi-operator would.
# SPDX-License-Identifier: LGPL-3.0-only
"""Pods for the parity tests of containers."""

from __future__ import annotations

import abc
import time
from typing import Callable

from parity_nnf import wait
from parity_support import Object, User

WORKFLOW = "dataworkflowservices.github.io/workflow.name"
# The words of Kubernetes' Job controller.
REASONS = {
    "BackoffLimitExceeded": "Job has reached the specified backoff limit",
    "DeadlineExceeded": "Job was active longer than specified deadline",
}


def jobs_of(user: User, name: str) -> list[Object]:
    """The Kubernetes Jobs of a workflow."""
    found: list[Object] = user.send(
        "GET", user.path("jobs"), labelSelector=f"{WORKFLOW}={name}"
    ).expect(200)["items"]
    return found


def has_limit(job: Object) -> bool:
    """Whether a Job has a deadline. NNF sets it on one Job of a workflow after the
    other, in any order."""
    return "activeDeadlineSeconds" in job["spec"]


class Pods(abc.ABC):
    """Controls the pods of a workflow's Jobs, which NNF has created. Workflows are
    given by name."""

    @abc.abstractmethod
    def hold(self) -> None:
        """Let no pod start from now on."""

    @abc.abstractmethod
    def run(self, name: str) -> None:
        """Start the pods, which do not end by themselves."""

    @abc.abstractmethod
    def succeed(self, name: str) -> None:
        """Let the pods succeed."""

    @abc.abstractmethod
    def fail(self, name: str) -> None:
        """Let the pods fail until their retries are used up."""

    @abc.abstractmethod
    def expire(self, name: str) -> None:
        """Let the deadline pass that NNF has set."""

    @abc.abstractmethod
    def run_mpi(self, name: str, rabbit: str) -> None:
        """Start the pods of an MPI program, its launcher on a rabbit."""

    @abc.abstractmethod
    def mend(self) -> None:
        """Restore the state before the test."""


class SimPods(Pods):
    """Pods of dws-sim, controlled by its switches."""

    def __init__(self, ctl: Callable[..., None]) -> None:
        self._ctl = ctl

    def hold(self) -> None:
        self._ctl("containers", "no-start")

    def run(self, name: str) -> None:
        self._ctl("containers", "no-stop")

    def succeed(self, name: str) -> None:
        self._ctl("containers", "ok")

    def fail(self, name: str) -> None:
        self._ctl("containers", "fail")

    def expire(self, name: str) -> None:
        """No-op: dws-sim applies deadlines itself."""

    def run_mpi(self, name: str, rabbit: str) -> None:
        self.run(name)

    def mend(self) -> None:
        self._ctl("containers", "ok")


class RigPods(Pods):
    """Pods of real controllers without a kubelet."""

    def __init__(self, admin: User) -> None:
        self._admin = admin

    def hold(self) -> None:
        """No-op: without a kubelet no pod ever starts."""

    def run(self, name: str) -> None:
        self._write(jobs_of(self._admin, name), active=1, ready=1)

    def succeed(self, name: str) -> None:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._write(
            jobs_of(self._admin, name),
            active=0,
            ready=0,
            succeeded=1,
            completionTime=now,
            conditions=self._conditions(SuccessCriteriaMet="", Complete=""),
        )

    def fail(self, name: str) -> None:
        status = self._failed("BackoffLimitExceeded")
        self._write(jobs_of(self._admin, name), **status)

    def expire(self, name: str) -> None:
        for each in jobs_of(self._admin, name):
            made = wait(self._admin, "jobs", each["metadata"]["name"], has_limit)
            self._write([made], **self._failed("DeadlineExceeded"))

    def run_mpi(self, name: str, rabbit: str) -> None:
        """Play mpi-operator, as far as NNF depends on it."""
        mpi = self._admin.get("mpijobs", name).expect(200)
        meta = mpi["metadata"]
        owner = {
            "apiVersion": mpi["apiVersion"],
            "kind": "MPIJob",
            "name": name,
            "uid": meta["uid"],
        }
        pod = {
            "containers": [{"name": "launcher", "image": "none"}],
            "restartPolicy": "Never",
            "nodeSelector": {"kubernetes.io/hostname": rabbit},
        }
        launcher = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": f"{name}-launcher",
                "namespace": "default",
                "labels": {"app": name},
                "ownerReferences": [owner],
            },
            "spec": {"template": {"spec": pod}},
        }
        self._admin.send("POST", self._admin.path("jobs"), launcher).expect(201)
        mpi["status"] = {"conditions": self._conditions(Created="", Running="")}
        path = self._admin.path("mpijobs", name)
        self._admin.send("PUT", f"{path}/status", mpi).expect(200)

    def mend(self) -> None:
        """The Jobs go with their workflow."""

    def _failed(self, reason: str) -> Object:
        words = self._conditions(FailureTarget=reason, Failed=reason)
        return {"active": 0, "ready": 0, "failed": 1, "conditions": words}

    @staticmethod
    def _conditions(**reasons: str) -> list[Object]:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        return [
            {
                "type": kind,
                "status": "True",
                "lastTransitionTime": now,
                "reason": reason,
                "message": REASONS.get(reason, ""),
            }
            for kind, reason in reasons.items()
        ]

    def _write(self, found: list[Object], **status: object) -> None:
        assert found, "there is no Job"
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        for each in found:
            # NNF writes to them, too: an answer of 409 is asked again
            while True:
                each = self._admin.get("jobs", each["metadata"]["name"]).expect(200)
                each["status"] = {"startTime": now, **each["status"], **status}
                path = self._admin.path("jobs", each["metadata"]["name"])
                answer = self._admin.send("PUT", f"{path}/status", each)
                if answer.code != 409:
                    answer.expect(200)
                    break
