# DWS's driver for tests: a directive for each state determines the outcome of the
# state, such as "#DW PreRun action=error message=no_luck severity=Major".
# SPDX-License-Identifier: LGPL-3.0-only
"""The test driver of workflows."""

from __future__ import annotations

from dws_sim.controllers.manager import Controller
from dws_sim.directive import TESTER, parse
from dws_sim.jsontree import Object, now_micro

_STATUS = {"Minor": "Running", "Major": "TransientCondition", "Fatal": "Error"}


class TesterController(Controller):
    """Brings the driver entries of its directives to what they ask for."""

    plural = "workflows"

    async def reconcile(self, namespace: str, name: str) -> float | None:
        workflow = await self.cluster.get("workflows", namespace, name)
        if workflow is None or "spec" not in workflow:
            return None
        status = workflow.get("status", {})
        state = status.get("state")
        if state != workflow["spec"]["desiredState"] or status["ready"]:
            return None
        drivers = [
            _act(entry, workflow["spec"]["dwDirectives"][entry["dwdIndex"]])
            if entry["driverID"] == TESTER
            and entry["watchState"] == state
            and entry["status"] == "Pending"
            else entry
            for entry in status.get("drivers", ())
        ]
        if drivers != status.get("drivers", []):
            new = {**workflow, "status": {**status, "drivers": drivers}}
            await self.cluster.update("workflows", new)
        return None


def _act(entry: Object, text: str) -> Object:
    """The driver entry after its directive's action. Without "complete" or "error" the
    entry is Running, and somebody else has to complete it."""
    directive = parse(text)
    # a directive has no words with spaces in them
    message = (directive.get("message") or "").replace("_", " ")
    action = directive.get("action")
    if action == "complete":
        return {
            **entry,
            "status": "Completed",
            "completed": True,
            "completeTime": now_micro(),
        }
    if action == "error":
        status = _STATUS[directive.get("severity") or "Fatal"]
        return {**entry, "status": status, "message": message, "error": message}
    return {**entry, "status": "Running", "message": message}
