# The DWS side of a workflow: its state, the roll-up of its drivers, its
# Computes, and the last finalizer.
# SPDX-License-Identifier: LGPL-3.0-only
"""The DWS workflow controller."""

from __future__ import annotations

import asyncio
import time

from dws_sim.controllers.cluster import Cluster
from dws_sim.controllers.common import (
    DWS_FINALIZER,
    add_finalizer,
    child,
    drop_finalizer,
    is_deleting,
    ref,
    workflow_labels,
)
from dws_sim.controllers.manager import Controller, Manager
from dws_sim.faults import Faults
from dws_sim.jsontree import Object, now_micro, parse_time

_RANK = {"Completed": 0, "DriverWait": 1, "TransientCondition": 2, "Error": 3}


def duration(seconds: float) -> str:
    """Seconds as Go prints a duration, rounded to a microsecond."""
    micro = round(seconds * 1e6)
    if micro < 1000:
        return f"{micro}µs" if micro else "0s"
    if micro < 1000000:
        return f"{micro / 1e3:.3f}".rstrip("0").rstrip(".") + "ms"
    rest, micro = divmod(micro, 60 * 1000000)
    text = f"{micro / 1e6:.6f}".rstrip("0").rstrip(".") + "s"
    hours, minutes = divmod(rest, 60)
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text


def roll_up(drivers: list[Object]) -> Object:
    """status, message and ready of a workflow from the entries of its state."""
    worst, message = "Completed", ""
    for entry in drivers:
        status = entry.get("status", "Pending")
        if status not in _RANK:
            status = "DriverWait"
        if entry["completed"]:
            status = "Completed"
        if _RANK[status] > _RANK[worst]:
            worst, message = status, ""
        if status == worst and entry.get("message") and not message:
            message = f"DW Directive {entry['dwdIndex']}: {entry['message']}"
    ready = all(e["completed"] for e in drivers)
    return {"status": worst, "message": "" if ready else message, "ready": ready}


class WorkflowController(Controller):
    """DWS."""

    plural = "workflows"

    def __init__(self, cluster: Cluster, manager: Manager, faults: Faults) -> None:
        super().__init__(cluster, manager)
        self._faults = faults
        self._computes_subscribe()

    def _computes_subscribe(self) -> None:
        def changed(obj: Object, old: Object | None, gone: bool) -> None:
            for owner in obj["metadata"].get("ownerReferences", ()):
                if gone and owner["kind"] == "Workflow":
                    self.enqueue(obj["metadata"]["namespace"], owner["name"])

        self.cluster.subscribe("computes", changed)

    def forget(self, obj: Object) -> None:
        self._faults.forget(obj["metadata"]["uid"])

    async def reconcile(self, namespace: str, name: str) -> float | None:
        workflow = await self.cluster.get("workflows", namespace, name)
        if workflow is None:
            return None
        if is_deleting(workflow):
            await self._delete(workflow)
            return None
        if "spec" not in workflow:
            return None
        workflow = await add_finalizer(
            self.cluster, "workflows", workflow, DWS_FINALIZER
        )
        workflow = await self._take_state(workflow)
        if workflow["status"]["state"] == "Proposal":
            workflow = await self._add_computes(workflow)
        return await self._settle(workflow)

    async def _delete(self, workflow: Object) -> None:
        if workflow["metadata"].get("finalizers") != [DWS_FINALIZER]:
            return
        meta = workflow["metadata"]
        computes = await self.cluster.get("computes", meta["namespace"], meta["name"])
        if computes is not None and not is_deleting(computes):
            await self.cluster.delete("computes", meta["namespace"], meta["name"])
        await drop_finalizer(self.cluster, "workflows", workflow, DWS_FINALIZER)

    async def _take_state(self, workflow: Object) -> Object:
        """Begin the desired state."""
        desired = workflow["spec"]["desiredState"]
        if workflow.get("status", {}).get("state") == desired:
            return workflow
        spec = {**workflow["spec"], "forceReady": False}
        status = {
            **workflow.get("status", {}),
            "state": desired,
            "ready": False,
            "status": "DriverWait",
            "desiredStateChange": now_micro(),
        }
        status.pop("message", None)
        new = {**workflow, "spec": spec, "status": status}
        return await self.cluster.update("workflows", new)

    async def _add_computes(self, workflow: Object) -> Object:
        meta = workflow["metadata"]
        where = "computes", meta["namespace"], meta["name"]
        known = workflow["status"].get("computes", {}).get("name")
        if known and await self.cluster.get(*where) is not None:
            return workflow
        computes = await self.cluster.create(
            "computes",
            child(workflow, meta["namespace"], meta["name"], workflow_labels(workflow)),
        )
        status = {**workflow["status"], "computes": ref(computes)}
        new = {**workflow, "status": status}
        return await self.cluster.update("workflows", new)

    async def _settle(self, workflow: Object) -> float | None:
        """Bring ready, status and message in line with the drivers."""
        status = workflow["status"]
        if status["ready"]:
            return None
        drivers = [
            d for d in status.get("drivers", ()) if d["watchState"] == status["state"]
        ]
        delay = None
        if workflow["spec"]["forceReady"]:
            result = {"status": "Completed", "message": "Forced Ready", "ready": True}
        else:
            result = roll_up(drivers)
            if not drivers:
                delay = self._gate(workflow, result)
        if any(status.get(k, "") != v for k, v in result.items()):
            if result["ready"]:
                elapsed = time.time() - parse_time(status["desiredStateChange"])
                result["readyChange"] = now_micro()
                result["elapsedTimeLastState"] = duration(elapsed)
            new_status = {**status, **result}
            if not new_status["message"]:
                # an API server has no empty text
                del new_status["message"]
            new = {**workflow, "status": new_status}
            await self.cluster.update("workflows", new)
        return delay

    def _gate(self, workflow: Object, result: Object) -> float | None:
        """Holds, delays and failures of a state that has no driver to ask."""
        meta, state = workflow["metadata"], workflow["status"]["state"]
        now = asyncio.get_running_loop().time()
        left = self._faults.delay_left(state, workflow, now, empty=True)
        held = any(
            self._faults.held(state, meta["name"], late) for late in (False, True)
        )
        failure = self._faults.failure(state, workflow)
        if failure is not None:
            words = {"Major": "TransientCondition", "Fatal": "Error"}
            result.update(
                ready=False,
                status=words.get(failure.severity, "DriverWait"),
                message=f"Internal error: {failure.message}",
            )
            return 0.1
        if held or left > 0:
            result.update(ready=False, status="DriverWait", message="")
            return left if left > 0 else None
        return None
