# SPDX-License-Identifier: LGPL-3.0-only
#
# Jobs' workflows for programs of sites, by the names of flux-coral2. dws.so leads the
# workflows; all that is here asks it. `flux rabbit` uses this too, so nothing is
# imported at the top that takes time.
"""Workflows of jobs, as the broker module knows them."""

from __future__ import annotations

import enum
import errno
import json
from collections.abc import Iterator
from typing import Any

from flux_k8s import names

Object = dict[str, Any]

# Jobs in one answer: a reader looks at the first page while others come.
PAGE = 500
NAME_PREFIX = "fluxjob-"


class WorkflowState(str, enum.Enum):
    """The states of a workflow, and the condition that may pass."""

    PROPOSAL = "Proposal"
    SETUP = "Setup"
    DATAIN = "DataIn"
    PRERUN = "PreRun"
    POSTRUN = "PostRun"
    DATAOUT = "DataOut"
    TEARDOWN = "Teardown"
    TRANSIENTCONDITION = "TransientCondition"


def open_handle(handle: Any = None) -> Any:
    """The handle, or a new one of the instance that we are in. Raises OSError."""
    if handle is None:
        import flux

        handle = flux.Flux()
    return handle


def job_pages(handle: Any) -> Iterator[list[Object]]:
    """The rabbit jobs that dws.so knows in the order of their ids, some at a time:
    JOB of dws.status in doc/protocol.md. The next page is on its way while the caller
    looks at one. Raises OSError."""
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
    """What dws.so knows about a job, None if it does not know the job (yet), or it is
    somebody else's. Raises OSError."""
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
    """The text of a key of a job in the KVS, None if it is not there."""
    request = {"id": number, "keys": [key], "flags": 0}
    try:
        return str(handle.rpc("job-info.lookup", request).get()[key])
    except OSError as exc:
        if exc.errno == errno.ENOENT:
            return None
        raise


class WorkflowInfo:
    """The workflow of a job.

    Nothing is kept: each property and method asks dws.so, or the KVS. To look at
    several properties of one moment, take them from one status(). All of them raise
    OSError: ENOSYS without dws.so.
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
        resources: kept, and nothing more: dws.so has those of the jobspec.
        failure_tolerance: the same.
        handle: a flux.Flux; without it one is opened when it is needed.
        """
        self.jobid = int(jobid)
        self.name = name or self.get_name(jobid)
        self.resources = resources
        self.failure_tolerance = failure_tolerance
        self._handle = handle

    @classmethod
    def add(cls, jobid: int, *args: Any, **kwargs: Any) -> WorkflowInfo:
        """The same as WorkflowInfo(): dws.so has its own list."""
        return cls(jobid, *args, **kwargs)

    @classmethod
    def get(cls, jobid: int, handle: Any = None) -> WorkflowInfo:
        """That of a job, whether it has a workflow or not."""
        return cls(jobid, handle=handle)

    @classmethod
    def get_name(cls, jobid: int) -> str:
        """The name of a job's workflow."""
        return f"{NAME_PREFIX}{int(jobid)}"

    @classmethod
    def is_recognized(cls, name: str) -> bool:
        """Whether a workflow of that name is a job's."""
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
        """All that dws.so knows, {} if it does not know the job: JOB of dws.status in
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
        """Whether it was asked to go to Teardown."""
        return self._workflow().get("desired") == WorkflowState.TEARDOWN.value

    @property
    def deleted(self) -> bool:
        """Whether there is no workflow: not any more, or not yet."""
        return not self._workflow()

    @property
    def rabbits(self) -> list[str]:
        """The rabbits on which the job has storage."""
        return _hosts(self.status().get("rabbits"))

    @property
    def failed_nodes(self) -> list[str]:
        """Nodes of the job that it does without."""
        return _hosts(self.status().get("failed"))

    @property
    def lagging_nodes(self) -> list[str]:
        """Nodes of the job that have not mounted, or not unmounted, in time."""
        return _hosts(self.status().get("lagging"))

    @property
    def timings(self) -> dict[str, Any]:
        """How long each state took that is over, as DWS has it ("1.2s"); also of a job
        that has ended."""
        result = {}
        for state in list(WorkflowState)[:-1]:
            key = names.KEY_TIMING % state.value.lower()
            text = _key(self.handle, self.jobid, key)
            if text is not None:
                result[state.value] = json.loads(text)
        return result

    @property
    def paths(self) -> dict[str, str]:
        """The variables that the job was given ("DW_JOB_scratch": PATH); also of a job
        that has ended. {} before its file systems are mounted."""
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
        """Give the workflow up: data that has not been copied out is lost.

        Of a job that dws.so knows: a fatal exception `dws-release` ends it, whichever
        state it is in; dws.so unmounts, keeps workflow and timing in the KVS, and goes
        to Teardown. One that has ended goes there by itself. Any other workflow:
        cleanup.teardown_workflow(), which may refuse.

        Args:
            k8s_api, workflow: only for a job that dws.so does not know.
            reason: for the job's eventlog.
        Raises:
            OSError: dws.so or the job manager refuses.
            cleanup.CleanupError: the workflow belongs to somebody else.
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
        """Tell the job's owner, by an exception `dws-node-failure` that does not end
        the job, of nodes that have lost their file systems.

        Whether the job goes on without them is for dws.so to decide, which looks at the
        mounts themselves (dw_failure_tolerance, rabbit.prerun_timeout), leaves the
        nodes out of Computes, and sets forceReady: so `k8s_api` is not used, and there
        is no ValueError for too many of them. failed_nodes has those that were left
        out.

        Args:
            nodes: a hostlist, or names of nodes.
        """
        from flux.hostlist import Hostlist

        hosts = Hostlist(nodes).uniq().encode()
        raise_exception(handle, self.jobid, names.EXCEPTION_NODE_FAILURE, str(hosts), 1)


def _hosts(hostlist: str | None) -> list[str]:
    from flux_k8s import dws

    return dws.expand_hosts(hostlist) if hostlist else []
