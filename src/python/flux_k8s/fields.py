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

from typing import Any

from flux_k8s import names
from flux_k8s.crd import DWS_GROUP
from flux_k8s.objects import Object

EACH = "*"
ANY = object

Table = dict[str, Any]

# Nothing that Kubernetes has, or C reads, is nested so deeply.
DEPTH = 32

_METADATA = {"name": str, "namespace": str, "uid": str, "resourceVersion": str}


FIELDS: dict[str, Table] = {
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
}


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
        try:
            picked.append(_pick(value, fields[0]))
        except FieldError as exc:
            raise FieldError(f"[{index}]{exc}") from None
    return picked


def _pick_object(values: Any, fields: Table) -> dict[str, Any]:
    if not isinstance(values, dict):
        raise FieldError(": expected an object")
    each = fields.get(EACH)
    wanted = fields if each is None else dict.fromkeys(values, each)
    picked = {}
    for key, wants in wanted.items():
        value = values.get(key)
        if value is None:
            continue
        # as _pick() has it, for most
        if value.__class__ is wants and wants is not int:
            picked[key] = value
            continue
        try:
            picked[key] = _pick(value, wants)
        except FieldError as exc:
            raise FieldError(f".{key}{exc}") from None
    return picked


def project(plural: str, obj: Object) -> Object:
    """What goes to the module of an object of a kind. Without a table that is all but
    managedFields, which nobody reads and which make it big.

    Raises:
        FieldError: it is not of the form that the module reads.
    """
    fields = FIELDS.get(plural)
    try:
        if fields is not None:
            return _pick_object(obj, fields)
        _check_any(obj)
    except FieldError as exc:
        name = obj["metadata"]["name"]
        raise FieldError(f"{plural} {name}: {str(exc).lstrip('.: ')}") from None
    metadata = {k: v for k, v in obj["metadata"].items() if k != "managedFields"}
    return {**obj, "metadata": metadata}
