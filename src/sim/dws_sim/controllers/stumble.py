# Transient faults of healthy workflows: the real controllers read cached objects,
# which may be out of date for a moment.
# SPDX-License-Identifier: LGPL-3.0-only
"""Faults that are gone at the next reconcile."""

from __future__ import annotations

from dws_sim.controllers.common import ResourceError, missing
from dws_sim.controllers.containers import not_mounted
from dws_sim.controllers.filesystem import NO_STORAGE
from dws_sim.controllers.step import Step

_MAKERS = ("jobdw", "create_persistent")


def stumble(state: str, step: Step) -> ResourceError | None:
    """The fault that has been seen of a directive in a state, if any."""
    directive = step.directive
    if state == "PreRun" and directive.command == "container":
        return not_mounted(step, f"{step.workflow['metadata']['name']}-0-servers")
    if state != "Setup" or directive.command not in _MAKERS:
        return None
    name = step.name
    if directive.command == "create_persistent":
        name = directive.get("name") or ""
    where = f"{step.namespace}/{name}"
    if directive.get("type") == "lustre":
        text = "no NnfLustreMGT resource found for MGS address: unknown@tcp"
        fault = ResourceError(text, "Internal", "Major")
        fault = fault.within("could not get NnfLustreMGT for address: unknown@tcp")
        return fault.within(f"storage resource error: {where}")
    fault = ResourceError(debug=missing("NnfStorage", name))
    return fault.within(f"could not get NnfStorage: {where}", NO_STORAGE)
