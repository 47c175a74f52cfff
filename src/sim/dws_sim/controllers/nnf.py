# The NNF driver of workflows: walks the directives of a state through their
# steps and updates the driver entries of the workflow.
# SPDX-License-Identifier: LGPL-3.0-only
"""The NNF workflow controller."""

from __future__ import annotations

import asyncio
from functools import partial

from dws_sim.controllers.cluster import Cluster
from dws_sim.controllers.common import (
    NNF_FINALIZER,
    WORKFLOW_UID,
    ResourceError,
    add_finalizer,
    drop_finalizer,
    fatal,
    has_finalizer,
    is_deleting,
    owner_of,
)
from dws_sim.controllers.manager import Controller, Manager, Retry
from dws_sim.controllers.step import Command, Step, Wait
from dws_sim.controllers.stumble import stumble
from dws_sim.directive import parse
from dws_sim.faults import Faults
from dws_sim.jsontree import Object, clone, now_micro

DRIVER = "nnf"
# Children whose changes can let a workflow go on.
CHILDREN = (
    "directivebreakdowns",
    "servers",
    "nnfstorages",
    "nnfaccesses",
    "nnfdatamovements",
    "persistentstorageinstances",
    "jobs",
    "nnfportmanagers",
)
_WORKFLOW_NAME = "dataworkflowservices.github.io/workflow.name"
_WORKFLOW_NAMESPACE = "dataworkflowservices.github.io/workflow.namespace"
_STATUS = {"Minor": "Running", "Major": "TransientCondition", "Fatal": "Error"}


class NnfController(Controller):
    """NNF as a driver of DWS."""

    plural = "workflows"

    def __init__(
        self,
        cluster: Cluster,
        manager: Manager,
        faults: Faults,
        commands: dict[str, Command],
        mount_root: str,
    ) -> None:
        super().__init__(cluster, manager)
        self._faults = faults
        self._commands = commands
        self._mount_root = mount_root
        for plural in CHILDREN:
            cluster.subscribe(plural, self._child)

    def _child(self, obj: Object, old: Object | None, gone: bool) -> None:
        labels = obj["metadata"].get("labels", {})
        if WORKFLOW_UID in labels:
            self.enqueue(labels[_WORKFLOW_NAMESPACE], labels[_WORKFLOW_NAME])
            return
        # persistent storage only notifies the breakdown that requested it
        breakdown = owner_of(obj, "DirectiveBreakdown")
        if breakdown is not None:
            self.enqueue(breakdown[0], breakdown[1].rpartition("-")[0])

    async def reconcile(self, namespace: str, name: str) -> float | None:
        workflow = await self.cluster.get("workflows", namespace, name)
        if workflow is None or "spec" not in workflow:
            return None
        if is_deleting(workflow):
            return await self._delete(workflow)
        workflow = await add_finalizer(
            self.cluster, "workflows", workflow, NNF_FINALIZER
        )
        status = workflow.get("status", {})
        state = status.get("state")
        if state != workflow["spec"]["desiredState"] or status["ready"]:
            return None
        if not _unfinished(status, state):
            return None
        new = {**workflow, "status": _copy(status, state)}
        todo = _unfinished(new["status"], state)
        delay, failed = await self._run(new, state, todo)
        if new["status"] != status:
            await self.cluster.update("workflows", new)
        if failed:
            raise Retry("a step failed")
        return delay

    def _is_ours(self, workflow: Object, index: int) -> bool:
        """Other drivers have directives of their own."""
        return parse(workflow["spec"]["dwDirectives"][index]).command in self._commands

    def _step(self, workflow: Object, index: int) -> tuple[Command, Step]:
        directive = parse(workflow["spec"]["dwDirectives"][index])
        step = Step(self.cluster, workflow, index, directive, self._mount_root)
        uid = workflow["metadata"]["uid"]
        step.outdates = partial(self._faults.outdates, uid)
        return self._commands[directive.command], step

    async def _delete(self, workflow: Object) -> float | None:
        if not has_finalizer(workflow, NNF_FINALIZER):
            return None
        waits: list[Wait] = []
        # later directives use what earlier ones made
        for index in reversed(range(len(workflow["spec"]["dwDirectives"]))):
            if not self._is_ours(workflow, index):
                continue
            command, step = self._step(workflow, index)
            wait = await command.remove(step)
            if wait is not None:
                waits.append(wait)
        if not waits:
            await drop_finalizer(self.cluster, "workflows", workflow, NNF_FINALIZER)
            return None
        return _earliest(waits)

    async def _run(
        self, workflow: Object, state: str, todo: list[Object]
    ) -> tuple[float | None, bool]:
        """Go as far as possible; the workflow is changed in place.

        Returns:
            When to reconcile again, and whether an error requires backoff.
        """
        wait = self._gate(workflow, state, todo[0], late=False)
        if isinstance(wait, bool):
            return None, True
        if wait is not None:
            return wait.after_s, False
        for entry in todo:
            wait, failed = await self._part(workflow, state, entry, "start")
            if wait is not None or failed:
                return wait.after_s if wait else None, failed
        if self._faults.held(state, workflow["metadata"]["name"], True):
            return None, False
        for entry in todo:
            wait, failed = await self._part(workflow, state, entry, "finish")
            if wait is not None or failed:
                return wait.after_s if wait else None, failed
            entry.update(status="Completed", completed=True, completeTime=now_micro())
            entry.pop("message", None)
            entry.pop("error", None)
        return None, False

    def _gate(
        self, workflow: Object, state: str, entry: Object, late: bool
    ) -> Wait | None | bool:
        """Holds, delays and failures; True: the entry has an error now."""
        meta = workflow["metadata"]
        if self._faults.held(state, meta["name"], late):
            return Wait("held")
        now = asyncio.get_running_loop().time()
        left = self._faults.delay_left(state, workflow, now)
        if left > 0:
            return Wait("slow", left)
        failure = self._faults.failure(state, workflow)
        if failure is not None:
            fault = ResourceError(failure.message, "Internal", failure.severity)
            self._error(entry, fault)
            return True
        return None

    async def _part(
        self, workflow: Object, state: str, entry: Object, part: str
    ) -> tuple[Wait | None, bool]:
        command, step = self._step(workflow, entry["dwdIndex"])
        entry["status"] = "Running"
        entry.pop("message", None)
        entry.pop("error", None)
        try:
            if state == "Proposal" and part == "start":
                await self._check(workflow)
            if part == "start":
                wait = await command.start(state, step)
            else:
                self._stumble(state, step)
                wait = await command.finish(state, step)
        except ResourceError as exc:
            self._error(entry, exc)
            return None, True
        if wait is not None:
            entry["message"] = wait.reason
        return wait, False

    def _stumble(self, state: str, step: Step) -> None:
        """Raise the fault that a healthy directive passes through, if this one
        does."""
        if not self._faults.stumble:
            return
        fault = stumble(state, step)
        now = asyncio.get_running_loop().time()
        if fault and self._faults.stumbles(state, step.workflow, now):
            raise fault

    async def _check(self, workflow: Object) -> None:
        """Check all directives before any of them is begun. NNF reports a fault of any
        directive at the first one.

        Raises:
            ResourceError: there is one.
        """
        names = []
        for index in range(len(workflow["spec"]["dwDirectives"])):
            if not self._is_ours(workflow, index):
                continue
            command, step = self._step(workflow, index)
            names.append(step.directive.command)
            await command.check(step)
        if len(names) > 1 and {"create_persistent", "destroy_persistent"} & set(names):
            raise fatal(
                "only a single create_persistent or destroy_persistent directive is "
                "allowed per workflow"
            )
        if names.count("container") > 1:
            raise fatal("only a single container directive is supported per workflow")

    @staticmethod
    def _error(entry: Object, exc: ResourceError) -> None:
        entry["status"] = _STATUS[exc.severity]
        entry["message"] = f"{exc.type} error: {exc.user}"
        entry["error"] = f"{exc.type.lower()} error: {exc.story}"


def _unfinished(status: Object, state: str) -> list[Object]:
    """The entries of this driver that a state waits for."""
    return [
        d
        for d in status.get("drivers", ())
        if d["watchState"] == state and d["driverID"] == DRIVER and not d["completed"]
    ]


def _copy(status: Object, state: str) -> Object:
    """A status that steps may change: of the drivers, those of one state. The
    others stay shared with the stored object, which is quick to compare."""
    out = {k: clone(v) for k, v in status.items() if k != "drivers"}
    if "drivers" in status:
        out["drivers"] = [
            clone(d) if d["watchState"] == state else d for d in status["drivers"]
        ]
    return out


def _earliest(waits: list[Wait]) -> float | None:
    times = [w.after_s for w in waits if w.after_s is not None]
    return min(times) if times else None
