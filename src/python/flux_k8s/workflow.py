# SPDX-License-Identifier: LGPL-3.0-only
#
# Workflows of jobs for programs of sites, by the names of flux-coral2. dws.so drives
# the workflows; these functions ask it. `flux rabbit` uses them too, so slow imports
# are inside functions.
"""Workflows of jobs, by requests to the broker module."""

from __future__ import annotations

import enum
import errno
import json
from collections.abc import Iterator
from typing import Any

from flux_k8s import names

Object = dict[str, Any]

# Jobs in one answer: a caller reads the first page while others arrive.
PAGE = 500
NAME_PREFIX = "fluxjob-"


class WorkflowState(str, enum.Enum):
    """The states of a workflow, and its transient condition."""

    PROPOSAL = "Proposal"
    SETUP = "Setup"
    DATAIN = "DataIn"
    PRERUN = "PreRun"
    POSTRUN = "PostRun"
    DATAOUT = "DataOut"
    TEARDOWN = "Teardown"
    TRANSIENTCONDITION = "TransientCondition"


def open_handle(handle: Any = None) -> Any:
    """The handle, or a new one to the enclosing instance. Raises OSError."""
    if handle is None:
        import flux

        handle = flux.Flux()
    return handle


def job_pages(handle: Any) -> Iterator[list[Object]]:
    """The rabbit jobs of dws.so in pages, in the order of their ids: JOB of dws.status
    in doc/protocol.md. Requests the next page before it yields one. Raises OSError."""
    request: Object = {"list": "jobs", "max": PAGE}
    pending = handle.rpc(names.TOPIC_STATUS, request)
    while pending is not None:
        answer = pending.get()
        pending = None
        if "next" in answer:
            more = {**request, "after": answer["next"]}
            pending = handle.rpc(names.TOPIC_STATUS, more)
        yield list(answer["jobs"])


def active_job(handle: Any, number: int) -> Object | None:
    """A job of dws.so: JOB of dws.status. None if dws.so does not know the job (yet),
    or the job is another user's. Raises OSError."""
    try:
        return dict(handle.rpc(names.TOPIC_STATUS, {"jobid": number}).get())
    except OSError as exc:
        if exc.errno in (errno.ENOENT, errno.EPERM, errno.EAGAIN):
            return None
        raise


def raise_exception(
    handle: Any, number: int, kind: str, note: str, severity: int = 0
) -> None:
    """Raise an exception of a job. Raises OSError."""
    request = {"id": number, "type": kind, "severity": severity, "note": note}
    handle.rpc("job-manager.raise", request).get()


def _key(handle: Any, number: int, key: str) -> str | None:
    """The text of a key of a job in the KVS, None if the job lacks it."""
    request = {"id": number, "keys": [key], "flags": 0}
    try:
        return str(handle.rpc("job-info.lookup", request).get()[key])
    except OSError as exc:
        if exc.errno == errno.ENOENT:
            return None
        raise


class WorkflowInfo:
    """The workflow of a job.

    Each property and method asks dws.so or the KVS, without a cache. For several
    properties at one moment use one status(). Each raises OSError: ENOSYS without
    dws.so.
    """

    def __init__(
        self,
        jobid: int,
        name: str | None = None,
        resources: Any = None,
        failure_tolerance: int = -1,
        handle: Any = None,
    ) -> None:
        """Args:
        name: of the workflow, if it is not the usual one.
        resources: stored but unused: dws.so reads the jobspec.
        failure_tolerance: stored but unused.
        handle: a flux.Flux; None to open one when it is needed.
        """
        self.jobid = int(jobid)
        self.name = name or self.get_name(jobid)
        self.resources = resources
        self.failure_tolerance = failure_tolerance
        self._handle = handle

    @classmethod
    def add(cls, jobid: int, *args: Any, **kwargs: Any) -> WorkflowInfo:
        """WorkflowInfo() by the name of flux-coral2: dws.so keeps the list of jobs."""
        return cls(jobid, *args, **kwargs)

    @classmethod
    def get(cls, jobid: int, handle: Any = None) -> WorkflowInfo:
        """The WorkflowInfo of a job, with or without a workflow."""
        return cls(jobid, handle=handle)

    @classmethod
    def get_name(cls, jobid: int) -> str:
        """The name of a job's workflow."""
        return f"{NAME_PREFIX}{int(jobid)}"

    @classmethod
    def is_recognized(cls, name: str) -> bool:
        """Whether a workflow of that name belongs to a job."""
        return name.startswith(NAME_PREFIX)

    @classmethod
    def known_workflows(cls, handle: Any = None) -> list[int]:
        """The ids of the jobs that dws.so knows."""
        pages = job_pages(open_handle(handle))
        return [job["id"] for page in pages for job in page]

    @property
    def handle(self) -> Any:
        self._handle = open_handle(self._handle)
        return self._handle

    def status(self) -> Object:
        """The job in dws.so, {} if it is unknown there: JOB of dws.status in
        doc/protocol.md."""
        return active_job(self.handle, self.jobid) or {}

    def _workflow(self) -> Object:
        return self.status().get("workflow") or {}

    @property
    def state(self) -> str:
        """A WorkflowState, or "" without a workflow."""
        return str(self._workflow().get("state", ""))

    @property
    def toredown(self) -> bool:
        """Whether the workflow's desired state is Teardown."""
        return self._workflow().get("desired") == WorkflowState.TEARDOWN.value

    @property
    def deleted(self) -> bool:
        """Whether the job has no workflow, any more or yet."""
        return not self._workflow()

    @property
    def rabbits(self) -> list[str]:
        """The rabbits on which the job has storage."""
        return _hosts(self.status().get("rabbits"))

    @property
    def failed_nodes(self) -> list[str]:
        """The waived nodes, which the job goes on without."""
        return _hosts(self.status().get("failed"))

    @property
    def lagging_nodes(self) -> list[str]:
        """Nodes of the job that are late to mount or unmount."""
        return _hosts(self.status().get("lagging"))

    @property
    def timings(self) -> dict[str, Any]:
        """The time of each completed state in the form of DWS ("1.2s"), also of an
        ended job."""
        result = {}
        for state in list(WorkflowState)[:-1]:
            key = names.KEY_TIMING % state.value.lower()
            text = _key(self.handle, self.jobid, key)
            if text is not None:
                result[state.value] = json.loads(text)
        return result

    @property
    def paths(self) -> dict[str, str]:
        """The environment variables set for the job ("DW_JOB_scratch": PATH), also of
        an ended job. {} before its file systems are mounted."""
        text = _key(self.handle, self.jobid, "eventlog") or ""
        for event in map(json.loads, reversed(text.splitlines())):
            if event["name"] == names.ENVIRONMENT:
                return dict(event["context"]["variables"])
        return {}

    def move_to_teardown(
        self,
        handle: Any,
        k8s_api: Any = None,
        workflow: Object | None = None,
        reason: str = "moved to Teardown",
    ) -> None:
        """Abandon the workflow: data that has not been staged out is lost.

        If dws.so knows the job, raise the fatal exception `dws-release`, in any state:
        dws.so unmounts, stores workflow and timings in the KVS, and moves the workflow
        to Teardown, as it does anyway after the end of the job. Pass any other workflow
        to cleanup.teardown_workflow(), which may refuse.

        Args:
            k8s_api, workflow: only for a job that dws.so does not know.
            reason: for the job's eventlog.
        Raises:
            OSError: dws.so or the job manager refuses.
            cleanup.CleanupError: the workflow has another owner.
        """
        job = active_job(handle, self.jobid)
        if job is None:
            from flux_k8s import cleanup

            name = {"metadata": {"name": self.name}}
            cleanup.teardown_workflow(workflow or name, k8s_api, handle)
        elif job["phase"] != "gone":
            raise_exception(handle, self.jobid, names.EXCEPTION_RELEASE, reason)

    def notify_of_node_failure(
        self, handle: Any, nodes: Any, k8s_api: Any = None
    ) -> None:
        """Report nodes that have lost their file systems to the job's owner, by an
        exception `dws-node-failure` that does not end the job.

        dws.so decides by the mounts themselves whether the job goes on without the
        nodes (dw_failure_tolerance, rabbit.prerun_timeout); it then removes them from
        Computes, and sets forceReady. Unlike in flux-coral2, `k8s_api` is unused, and
        too many nodes raise no ValueError. failed_nodes lists the waived nodes.

        Args:
            nodes: a hostlist, or names of nodes.
        """
        from flux.hostlist import Hostlist

        hosts = Hostlist(nodes).uniq().encode()
        raise_exception(handle, self.jobid, names.EXCEPTION_NODE_FAILURE, str(hosts), 1)


def _hosts(hostlist: str | None) -> list[str]:
    from flux_k8s import dws

    return dws.expand_hosts(hostlist) if hostlist else []
