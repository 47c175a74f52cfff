# What the broker module reads of each Kubernetes object: of what the API server sends,
# this alone goes on to it.
# SPDX-License-Identifier: LGPL-3.0-only
"""The fields of Kubernetes objects that the module reads, by kind.

A table has the shape of the object. A type is what a value has to be: `str`, `bool`,
`int` (of 64 bits), or `ANY` where C reads all that there is and says itself what is
wrong with it. `[FIELDS]` is an array of such, `{EACH: FIELDS}` an object with keys that
are names. What is null, or not there, is left out: all may be missing but the name.

Who reads another field in C adds it here.
"""

from __future__ import annotations

from typing import Any, Callable

from flux_k8s import names
from flux_k8s.crd import DWS_GROUP, NNF_GROUP
from flux_k8s.objects import Object, to_json

EACH = "*"
ANY = object

Table = dict[str, Any]

# Nothing that Kubernetes has, or C reads, is nested so deeply.
DEPTH = 32

_METADATA = {"name": str, "namespace": str, "uid": str, "resourceVersion": str}


def _said(driver: Any) -> bool:
    """Drivers have an entry for each state, and most of them say nothing."""
    return driver.__class__ is not dict or bool(
        driver.get("error")
        or driver.get("message")
        or driver.get("status") in ("Error", "TransientCondition")
    )


class Some(list[Any]):
    """An array of which only some entries go on."""

    def __init__(self, fields: Any, chosen: Callable[[Any], bool]) -> None:
        super().__init__([fields])
        self.chosen = chosen


_DRIVER = {
    "watchState": str,
    "status": str,
    "completed": bool,
    "message": str,
    "error": str,
}

FIELDS: dict[str, Table] = {
    "workflows": {
        "kind": str,
        "metadata": {
            **_METADATA,
            "deletionTimestamp": str,
            "finalizers": [str],
            "labels": {names.INSTANCE_LABEL: str},
            "annotations": {
                names.INSTANCE_LABEL: str,
                names.FAILED_ANNOTATION: str,
                names.WAIVED_ANNOTATION: str,
                names.TRANSIENT_ANNOTATION: str,
                names.STAGE_OUT_FAILED_ANNOTATION: str,
                names.STAGE_OUT_RETRY_ANNOTATION: str,
                names.DATA_FIRST_ANNOTATION: str,
            },
        },
        "spec": {
            "desiredState": str,
            "dwDirectives": [str],
            "forceReady": bool,
            "jobID": ANY,  # a number, or a text
            "userID": int,
            "wlmID": str,
        },
        "status": {
            "state": str,
            "ready": bool,
            "status": str,
            "message": str,
            "desiredStateChange": str,
            "readyChange": str,
            "elapsedTimeLastState": str,
            "drivers": Some(_DRIVER, _said),
            "directiveBreakdowns": [{"name": str, "namespace": str}],
            "computes": {"name": str, "namespace": str},
            "workflowToken": {"secretName": str, "secretNamespace": str},
            "env": {EACH: str},
        },
    },
    "directivebreakdowns": {
        "kind": str,
        "metadata": _METADATA,
        "status": {
            "ready": ANY,
            "storage": ANY,
            "compute": ANY,
            "requires": ANY,
            "requiredDaemons": ANY,
        },
    },
    "servers": {
        "metadata": {
            **_METADATA,
            "labels": {
                f"{DWS_GROUP}/workflow.name": str,
                f"{DWS_GROUP}/persistentstorage.name": str,
            },
            "annotations": {names.COLOCATION_ANNOTATION: str},
        },
        "spec": {
            "allocationSets": [
                {
                    "label": str,
                    "allocationSize": int,
                    "storage": [{"name": str, "allocationCount": int}],
                }
            ]
        },
        "status": {
            "ready": bool,
            "allocationSets": [
                {"storage": {EACH: {"allocationSize": int, "ready": bool}}}
            ],
        },
    },
    "computes": {"metadata": _METADATA, "data": [{"name": str}]},
    "clientmounts": {
        "metadata": {**_METADATA, "deletionTimestamp": str, "finalizers": [str]},
        "spec": {
            "node": str,
            "desiredState": str,
            "mounts": [{"type": str, "mountPath": str}],
        },
        "status": {"mounts": [{"state": str, "ready": bool}], "error": ANY},
    },
    "storages": {
        "metadata": {
            **_METADATA,
            "labels": {EACH: str},
            "annotations": {
                "disable_reason": str,
                "disable_date": str,
                names.DISABLED_BY_ANNOTATION: str,
            },
        },
        "spec": {"state": str},
        "status": {
            "status": str,
            "message": str,
            "capacity": int,
            "access": {"computes": [{"name": str, "status": str}]},
            "devices": [{"status": str, "capacity": int, "wearLevel": int}],
        },
    },
    "systemstatuses": {"metadata": _METADATA, "data": {"nodes": {EACH: str}}},
    "persistentstorageinstances": {
        "metadata": {
            **_METADATA,
            "creationTimestamp": str,
            "annotations": {f"{DWS_GROUP}/ignore-uid": str},
        },
        "spec": {
            "fsType": str,
            "userID": int,
            "dwDirective": str,
            "consumerReferences": [{"name": str}],
        },
        "status": {"state": str},
    },
    "nnfdatamovements": {
        "metadata": {
            **_METADATA,
            "labels": {
                f"{NNF_GROUP}/teardown_state": str,
                "dm.cray.hpe.com/initiator": str,
            },
        },
        "status": {
            "state": str,
            "status": str,
            "message": str,
            "commandStatus": {
                "progress": int,
                "files": int,
                "lastMessage": str,
                "data": str,
                "rate": str,
            },
        },
    },
}

# The module may keep a workflow that is ready in one of these states with its job, as
# it is: so its text goes on as well.
KEPT_STATES = ("Proposal", "DataOut")


class FieldError(ValueError):
    """A field of an object is of another type than wanted: the text says which."""


_TYPES = {str: "a string", bool: "true or false", int: "an integer of 64 bits"}


def _check_any(value: Any, depth: int = 0) -> None:
    """Raises FieldError if a JSON parser in C may refuse it."""
    if isinstance(value, (int, float)):
        if not -(2**63) <= value < 2**63:
            raise FieldError(": a number is too large")
    elif isinstance(value, (dict, list)):
        if depth >= DEPTH:
            raise FieldError(": it is nested too deeply")
        for entry in value.values() if isinstance(value, dict) else value:
            _check_any(entry, depth + 1)


def _pick(value: Any, fields: Any) -> Any:
    """Raises FieldError, with a text that begins with the rest of the path."""
    if fields.__class__ is dict:
        return _pick_object(value, fields)
    if isinstance(fields, list):
        return _pick_array(value, fields)
    if fields is ANY:
        _check_any(value)
    elif value.__class__ is not fields or (
        fields is int and not -(2**63) <= value < 2**63
    ):
        raise FieldError(f": expected {_TYPES[fields]}")
    return value


def _pick_array(values: Any, fields: list[Any]) -> list[Any]:
    if values.__class__ is not list:
        raise FieldError(": expected an array")
    picked = []
    for index, value in enumerate(values):
        if fields.__class__ is Some and not fields.chosen(value):
            continue
        try:
            picked.append(_pick(value, fields[0]))
        except FieldError as exc:
            raise FieldError(f"[{index}]{exc}") from None
    return picked


def _pick_object(values: Any, fields: Table) -> dict[str, Any]:
    if values.__class__ is not dict:
        raise FieldError(": expected an object")
    each = fields.get(EACH)
    picked = {}
    for key, value in values.items():
        wants = each or fields.get(key)
        if value.__class__ is wants and wants is not int:  # as most are
            picked[key] = value
        elif wants is not None and value is not None:
            try:
                picked[key] = _pick(value, wants)
            except FieldError as exc:
                raise FieldError(f".{key}{exc}") from None
    return picked


def _is_kept(workflow: Object) -> bool:
    status = workflow.get("status") or {}
    return status.get("ready") is True and status.get("state") in KEPT_STATES


def project(plural: str, obj: Object, whole: bool = False) -> Object:
    """What goes to the module of an object of a kind. Without a table that is all but
    managedFields. With `whole`, and of a workflow that the module may keep, its "text"
    has all of it.

    Raises:
        FieldError: it is not of the form that the module reads.
    """
    fields = FIELDS.get(plural)
    try:
        if fields is None:
            _check_any(obj)
            found = _without_managed(obj)
        else:
            found = _pick_object(obj, fields)
    except FieldError as exc:
        name = obj["metadata"]["name"]
        raise FieldError(f"{plural} {name}: {str(exc).lstrip('.: ')}") from None
    if whole or (plural == "workflows" and _is_kept(found)):
        found["text"] = text_of(plural, obj)
    return found


def _without_managed(obj: Object) -> Object:
    """Nobody reads metadata.managedFields, and they make objects big."""
    metadata = {k: v for k, v in obj["metadata"].items() if k != "managedFields"}
    return {**obj, "metadata": metadata}


def text_of(plural: str, obj: Object) -> str:
    """All of an object as JSON.

    Raises:
        FieldError: it is nested too deeply.
    """
    try:
        return to_json(_without_managed(obj)).decode()
    except ValueError as exc:
        raise FieldError(f"{plural} {obj['metadata']['name']}: {exc}") from exc
