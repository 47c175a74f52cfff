# The webhooks of DWS: what a new Workflow gets, and what is refused, in the
# words that users see.
# SPDX-License-Identifier: LGPL-3.0-only
"""Workflow admission."""

from __future__ import annotations

import json
from typing import Any, Callable

from dws_sim.directive import DirectiveError, DirectivePanic, check
from dws_sim.errors import ApiError, denied
from dws_sim.jsontree import Object, dig
from dws_sim.schema.dws import STATES
from dws_sim.schema.resources import RESOURCES
from dws_sim.store import Admission, Store

_VALIDATOR = "vworkflow.kb.io"
_IMMUTABLE = (
    ("wlmID", "WLMID"),
    ("jobID", "JobID"),
    ("userID", "UserID"),
    ("groupID", "GroupID"),
    ("dwDirectives", "DWDirectives"),
)


def _deny(text: str) -> ApiError:
    return denied(_VALIDATOR, text)


def _bad_value(field: str, value: Any, why: str) -> ApiError:
    return _deny(f"{field}: Invalid value: {json.dumps(value)}: {why}")


def webhook_failed(name: str, why: str) -> ApiError:
    """A webhook that is down or crashed."""
    return ApiError(
        500,
        "InternalError",
        f'Internal error occurred: failed calling webhook "{name}": {why}',
    )


class WorkflowAdmission(Admission):
    """The mutating and the validating webhook for workflows."""

    def __init__(self, rules: Callable[[], list[Object]]) -> None:
        """rules: returns the DWDirectiveRule objects."""
        self._rules = rules

    def _directives(self, obj: Object) -> list[tuple[int, str, list[str]]]:
        rules = [
            (o["metadata"]["name"], rule)
            for o in self._rules()
            for rule in o.get("spec", ())
        ]
        try:
            return check(obj["spec"]["dwDirectives"], rules)
        except DirectiveError as exc:
            raise _deny(str(exc)) from exc
        except DirectivePanic as exc:
            raise webhook_failed(_VALIDATOR, "EOF") from exc

    def mutate(self, obj: Object) -> None:
        status = obj.setdefault("status", {"ready": False})
        status.setdefault("env", {}).update(
            DW_WORKFLOW_NAME=obj["metadata"]["name"],
            DW_WORKFLOW_NAMESPACE=obj["metadata"]["namespace"],
        )
        status.setdefault("computes", {})
        if "spec" not in obj:
            return
        drivers = status.setdefault("drivers", [])
        for index, driver, states in self._directives(obj):
            for state in states:
                drivers.append(
                    {
                        "driverID": driver,
                        "taskID": "",
                        "dwdIndex": index,
                        "watchState": state,
                        "lastHB": 0,
                        "completed": False,
                        "status": "Pending",
                    }
                )
        if not drivers:
            del status["drivers"]

    def validate(self, obj: Object, old: Object | None) -> None:
        if "spec" not in obj:
            return
        if old is None:
            self._validate_new(obj)
        else:
            self._validate_change(obj, old)

    def _validate_new(self, obj: Object) -> None:
        spec = obj["spec"]
        if spec["desiredState"] != "Proposal":
            raise _bad_value(
                "Spec.DesiredState",
                spec["desiredState"],
                "desired state must start in Proposal",
            )
        if spec.get("hurry"):
            raise _deny(
                "Spec.Hurry: Forbidden: the hurry flag may not be set on creation"
            )
        if dig(obj, "status", "state"):
            raise _deny(
                "Status.State: Forbidden: the status state may not be set on creation"
            )
        self._directives(obj)

    def _validate_change(self, obj: Object, old: Object) -> None:
        spec, was = obj["spec"], old["spec"]
        desired = spec["desiredState"]
        if spec.get("hurry") and desired != "Teardown":
            raise _bad_value(
                "Spec.Hurry", True, "the hurry flag may be set only in Teardown"
            )
        for key, name in _IMMUTABLE:
            if spec[key] != was[key]:
                raise _deny(f"Spec.{name}: Forbidden: field is immutable")
        state = dig(old, "status", "state")
        if not state and desired == "Proposal":
            return
        self._validate_drivers(obj, old)
        if desired == "Teardown" or desired == state:
            return
        at = STATES.index(state) if state else -1
        if STATES.index(desired) < at:
            raise _bad_value(
                "Spec.DesiredState", desired, "DesiredState cannot progress backwards"
            )
        if STATES.index(desired) > at + 1:
            raise _bad_value("Spec.DesiredState", desired, "states cannot be skipped")
        if not dig(old, "status", "ready"):
            raise _bad_value(
                "Status.State", state or "", "current desired state not yet achieved"
            )

    @staticmethod
    def _validate_drivers(obj: Object, old: Object) -> None:
        before = dig(old, "status", "drivers") or []
        after = dig(obj, "status", "drivers") or []
        state = dig(old, "status", "state")

        def fault(index: int, why: str) -> ApiError:
            return _deny(f"Status.Drivers[{index}]: Internal error: {why}")

        for i, (was, now) in enumerate(zip(before, after)):
            if was == now:
                continue
            if now["watchState"] != was["watchState"]:
                raise fault(i, "watchState cannot change")
            if was["watchState"] != state:
                raise fault(i, "driver cannot be updated in this state")
            if was["completed"] and not now["completed"]:
                raise fault(i, "completed cannot be withdrawn")
            if now["completed"] and (
                now.get("status") != "Completed" or now.get("error")
            ):
                raise fault(i, "completed needs status Completed and no error")
        if len(before) != len(after):
            raise fault(min(len(before), len(after)), "entries cannot come or go")


def install(store: Store) -> None:
    """Put the webhooks in front of the store."""
    store.admission["workflows"] = WorkflowAdmission(
        lambda: store.find(RESOURCES["dwdirectiverules"])
    )
