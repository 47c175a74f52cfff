# What the broker module reads of each Kubernetes object: of what the API server sends,
# this alone goes on to it.
# SPDX-License-Identifier: LGPL-3.0-only
"""The fields of Kubernetes objects that the module reads, by kind.

A type is what a value has to be: `str`, `bool`, `int` (of 64 bits), or `ANY` where C
reads all that there is and says itself what is wrong with it. `[FIELDS]` is an array of
such, `{EACH: FIELDS}` an object with keys that are names. What is null, false, or not
there, is left out: all may be missing but the name.

Of most kinds an object keeps its shape, which the table has, too. Of workflows, which
are reported thirty times for a job, it is flat: a field of the record in C
(libdws/facts/workflow.h) is found by its path.

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


def _said(drivers: list[Any], status: Object) -> list[Any]:
    """Drivers have an entry for each state, and most of them say nothing."""
    state = status.get("state")
    return [
        driver
        for driver in drivers
        if driver.__class__ is not dict
        or (
            driver.get("watchState") == state
            and driver.get("completed") is not True
            and (
                driver.get("error")
                or driver.get("message")
                or driver.get("status") in ("Error", "TransientCondition")
            )
        )
    ]


def _ours(finalizers: list[Any], _metadata: Object) -> list[Any]:
    return [entry for entry in finalizers if entry == names.FINALIZER]


class Some(list[Any]):
    """An array of which some entries go on: chosen(array, the object that has it)."""

    def __init__(
        self, fields: Any, chosen: Callable[[list[Any], Object], list[Any]]
    ) -> None:
        super().__init__([fields])
        self.chosen = chosen


_DRIVER = {
    "watchState": str,
    "status": str,
    "completed": bool,
    "message": str,
    "error": str,
}

# Field -> path, and type.
WORKFLOW: dict[str, tuple[tuple[str, ...], Any]] = {
    "kind": (("kind",), str),
    "name": (("metadata", "name"), str),
    "namespace": (("metadata", "namespace"), str),
    "uid": (("metadata", "uid"), str),
    "version": (("metadata", "resourceVersion"), str),
    "deleting": (("metadata", "deletionTimestamp"), str),
    "finalizers": (("metadata", "finalizers"), Some(str, _ours)),
    "label": (("metadata", "labels", names.INSTANCE_LABEL), str),
    "maker": (("metadata", "annotations", names.INSTANCE_LABEL), str),
    "failed": (("metadata", "annotations", names.FAILED_ANNOTATION), str),
    "waived": (("metadata", "annotations", names.WAIVED_ANNOTATION), str),
    "stamp": (("metadata", "annotations", names.TRANSIENT_ANNOTATION), str),
    "failed_at": (("metadata", "annotations", names.STAGE_OUT_FAILED_ANNOTATION), str),
    "retry": (("metadata", "annotations", names.STAGE_OUT_RETRY_ANNOTATION), str),
    "first": (("metadata", "annotations", names.DATA_FIRST_ANNOTATION), str),
    "desired": (("spec", "desiredState"), str),
    "directives": (("spec", "dwDirectives"), [str]),
    "force_ready": (("spec", "forceReady"), bool),
    "userid": (("spec", "userID"), int),
    "state": (("status", "state"), str),
    "ready": (("status", "ready"), bool),
    "status": (("status", "status"), str),
    "message": (("status", "message"), str),
    "t_desired": (("status", "desiredStateChange"), str),
    "t_ready": (("status", "readyChange"), str),
    "elapsed": (("status", "elapsedTimeLastState"), str),
    "drivers": (("status", "drivers"), Some(_DRIVER, _said)),
    "breakdowns": (
        ("status", "directiveBreakdowns"),
        [{"name": str, "namespace": str}],
    ),
    "computes": (("status", "computes", "name"), str),
    "computes_namespace": (("status", "computes", "namespace"), str),
    "token": (("status", "workflowToken", "secretName"), str),
    "token_namespace": (("status", "workflowToken", "secretNamespace"), str),
}
# Of one that carries neither label nor annotation: flux-coral2 may have made it.
STRAY = {
    "noted": (("spec", "jobID"), ANY),  # a number, or a text
    "wlm": (("spec", "wlmID"), str),
}
# In PreRun, for the job's start.
START = {"env": (("status", "env"), {EACH: str})}


# The same by key: the name of the field and its type, or None and what is in there.
Tree = list[tuple[str, Any, Any]]


def _as_tree(table: dict[str, Any]) -> Tree:
    holders: dict[str, dict[str, Any]] = {}
    tree: Tree = []
    for field, ((key, *rest), wants) in table.items():
        if rest:
            holders.setdefault(key, {})[field] = rest, wants
        else:
            tree.append((key, field, wants))
    return tree + [(key, None, _as_tree(inside)) for key, inside in holders.items()]


_WORKFLOW, _STRAY, _START = _as_tree(WORKFLOW), _as_tree(STRAY), _as_tree(START)

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

# In which a workflow that is ready may be kept with its job, as it is.
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


def _pick(value: Any, fields: Any, holder: Object) -> Any:
    """Raises FieldError, with a text that begins with the rest of the path."""
    if fields.__class__ is dict:
        return _pick_object(value, fields)
    if isinstance(fields, list):
        return _pick_array(value, fields, holder)
    if fields is ANY:
        _check_any(value)
    elif value.__class__ is not fields or (
        fields is int and not -(2**63) <= value < 2**63
    ):
        raise FieldError(f": expected {_TYPES[fields]}")
    return value


def _pick_array(values: Any, fields: list[Any], holder: Object) -> list[Any]:
    if values.__class__ is not list:
        raise FieldError(": expected an array")
    picked = []
    wants = fields[0]
    if fields.__class__ is Some:
        values = fields.chosen(values, holder)
    for index, value in enumerate(values):
        if value.__class__ is wants and wants is str:
            picked.append(value)
            continue
        try:
            picked.append(_pick(value, wants, holder))
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
            if value is not False:
                picked[key] = value
        elif wants is not None and value is not None:
            try:
                picked[key] = _pick(value, wants, values)
            except FieldError as exc:
                raise FieldError(f".{key}{exc}") from None
    return picked


def _pick_flat(holder: Object, tree: Tree, picked: Object) -> None:
    for key, field, wants in tree:
        value = holder.get(key)
        if value is None or value is False:
            continue
        if value.__class__ is wants is not int:  # as most are
            picked[field] = value
            continue
        try:
            if field is None:
                if value.__class__ is not dict:
                    raise FieldError(": expected an object")
                _pick_flat(value, wants, picked)
                continue
            found = _pick(value, wants, holder)
            if found not in ([], {}):
                picked[field] = found
        except FieldError as exc:
            raise FieldError(f".{key}{exc}") from None


def _pick_workflow(obj: Object, whole: bool) -> Object:
    found: Object = {}
    _pick_flat(obj, _WORKFLOW, found)
    maker, label = found.get("maker"), found.get("label")
    if maker is None and label is None:
        _pick_flat(obj, _STRAY, found)
    elif maker == label:  # as always, but where somebody has changed the label
        del found["maker"]
    state = found.get("state")
    if state == "PreRun":
        _pick_flat(obj, _START, found)
    # The module may keep it with its job, as it is.
    kept = state in KEPT_STATES and state == found.get("desired")
    if whole or (kept and "ready" in found):
        found["text"] = text_of("workflows", obj)
    return found


def project(plural: str, obj: Object, whole: bool = False) -> Object:
    """What goes to the module of an object of a kind. Without a table that is all but
    managedFields. With `whole`, and of a workflow that the module may keep, its "text"
    has all of it.

    Raises:
        FieldError: it is not of the form that the module reads.
    """
    fields = FIELDS.get(plural)
    try:
        if plural == "workflows":
            return _pick_workflow(obj, whole)
        if fields is None:
            _check_any(obj)
            found = _without_managed(obj)
        else:
            found = _pick_object(obj, fields)
    except FieldError as exc:
        name = obj["metadata"]["name"]
        raise FieldError(f"{plural} {name}: {str(exc).lstrip('.: ')}") from None
    if whole:
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
