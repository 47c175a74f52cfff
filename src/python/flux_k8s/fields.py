# Reduces Kubernetes objects to the fields that the broker module reads, for the reports
# and results of agent.py, and checks the types of these fields.
# SPDX-License-Identifier: LGPL-3.0-only
"""The fields of Kubernetes objects that the module reads, by kind.

The type of a value is `str`, `bool`, `int` (of 64 bits), or `ANY` for a value that C
reads whole and checks itself. `[FIELDS]` is an array of FIELDS, `{EACH: FIELDS}` an
object whose keys are names. Null values are left out, and every field but the name may
be missing.

Objects keep their shape, except for workflows, which are reported thirty times for a
job: they become flat records, whose fields are those of the record in C
(libdws/facts/workflow.h), each with its path in the object.

Code in C that reads another field needs an entry here.
"""

from __future__ import annotations

from typing import Annotated, Any, Callable, TypedDict, Union

from flux_k8s import names, objects
from flux_k8s.crd import DWS_GROUP, NNF_GROUP
from flux_k8s.objects import Object, parse, to_json

EACH = "*"
ANY = object

Table = dict[str, Any]

# A bound on nesting, deeper than any object of Kubernetes and any value that C reads.
DEPTH = 32

_METADATA = {"name": str, "namespace": str, "uid": str, "resourceVersion": str}


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
    "finalizers": (("metadata", "finalizers"), [str]),
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
    "noted": (("spec", "jobID"), ANY),  # a number, or a text
    "userid": (("spec", "userID"), int),
    "wlm": (("spec", "wlmID"), str),
    "state": (("status", "state"), str),
    "ready": (("status", "ready"), bool),
    "status": (("status", "status"), str),
    "message": (("status", "message"), str),
    "t_desired": (("status", "desiredStateChange"), str),
    "t_ready": (("status", "readyChange"), str),
    "elapsed": (("status", "elapsedTimeLastState"), str),
    "drivers": (("status", "drivers"), [_DRIVER]),
    "breakdowns": (
        ("status", "directiveBreakdowns"),
        [{"name": str, "namespace": str}],
    ),
    "computes": (("status", "computes", "name"), str),
    "computes_namespace": (("status", "computes", "namespace"), str),
    "token": (("status", "workflowToken", "secretName"), str),
    "token_namespace": (("status", "workflowToken", "secretNamespace"), str),
    "env": (("status", "env"), {EACH: str}),
}


def _by_path(leaves: dict[str, Any]) -> Table:
    """A leaf for each field, at the field's path."""
    table: Table = {}
    for field, (path, _) in WORKFLOW.items():
        holder = table
        for key in path[:-1]:
            holder = holder.setdefault(key, {})
        holder[path[-1]] = leaves[field]
    return table


_WORKFLOW = _by_path({field: field for field in WORKFLOW})

FIELDS: dict[str, Table] = {
    "workflows": _by_path({field: wants for field, (_, wants) in WORKFLOW.items()}),
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
            "ownerReferences": [{"name": str}],
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

# States in which the module may store a ready workflow unchanged with its job.
KEPT_STATES = ("Proposal", "DataOut")


class FieldError(ValueError):
    """A field of an object has a wrong type; the text names the field."""


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
    """The fields of a value. Raises FieldError with a text that begins with the rest of
    the path."""
    if fields.__class__ is dict:
        return _pick_object(value, fields)
    if fields.__class__ is list:
        return _pick_array(value, fields[0])
    if fields is ANY:
        _check_any(value)
    elif value.__class__ is not fields or (
        fields is int and not -(2**63) <= value < 2**63
    ):
        raise FieldError(f": expected {_TYPES[fields]}")
    return value


def _pick_array(values: Any, wants: Any) -> list[Any]:
    if values.__class__ is not list:
        raise FieldError(": expected an array")
    picked = []
    for index, value in enumerate(values):
        try:
            picked.append(_pick(value, wants))
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
        if wants is not None and value is not None:
            try:
                picked[key] = _pick(value, wants)
            except FieldError as exc:
                raise FieldError(f".{key}{exc}") from None
    return picked


def _flatten(holder: Object, tree: Table, flat: Object) -> None:
    """Copy the values that have a name in a tree into a flat record, without null and
    false."""
    for key, value in holder.items():
        field = tree.get(key)
        if field is None or value is None or value is False:
            continue
        if field.__class__ is str:
            flat[field] = value
        else:
            _flatten(value, field, flat)


def _says_something(driver: Object) -> bool:
    return bool(
        driver.get("error")
        or driver.get("message")
        or driver.get("status") in ("Error", "TransientCondition")
    )


def _flat_workflow(picked: Object) -> Object:
    """The flat record of a workflow, without fields that the module ignores in the
    workflow's present state."""
    flat: Object = {}
    _flatten(picked, _WORKFLOW, flat)
    state = flat.get("state")
    # DWS lists a driver for each state: keep unfinished ones of the present state that
    # report an error or a message.
    drivers = [
        driver
        for driver in flat.pop("drivers", ())
        if driver.get("watchState") == state
        and driver.get("completed") is not True
        and _says_something(driver)
    ]
    if drivers:
        flat["drivers"] = drivers
        if all(driver.get("message") for driver in drivers):
            # The module reports the drivers' messages; DWS copies one of them here,
            # with a delay.
            flat.pop("message", None)
    if names.FINALIZER in flat.pop("finalizers", ()):
        flat["finalizers"] = [names.FINALIZER]
    maker, label = flat.get("maker"), flat.get("label")
    if maker is not None or label is not None:
        # wlmID and jobID matter only for workflows that flux-coral2 may have created.
        flat.pop("wlm", None)
        flat.pop("noted", None)
        if maker == label:  # they differ only after somebody has changed the label
            del flat["maker"]
    if flat.get("computes_namespace") == flat.get("namespace"):
        flat.pop("computes_namespace", None)
    if state != "PreRun":  # variables are set at the job's start
        flat.pop("env", None)
    return flat


def _is_kept(flat: Object) -> bool:
    """Whether the module may store the workflow unchanged with its job."""
    state = flat.get("state")
    return state in KEPT_STATES and state == flat.get("desired") and "ready" in flat


def project(
    plural: str, obj: Object, whole: bool = False, listed: bool = False
) -> Object:
    """Reduce an object of a kind to the fields that the module reads; for a kind
    without a table drop only managedFields. Add the whole object as "text" with
    `whole`, and for a workflow that the module may store unless it comes from a list.

    Raises:
        FieldError: a field has a wrong type.
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
    if plural == "workflows":
        found = _flat_workflow(found)
        whole = whole or (_is_kept(found) and not listed)
    if whole:
        found["text"] = text_of(plural, obj)
    return found


def _as_type(fields: Any) -> Any:
    """The type for msgspec, which is stricter than project() about ANY."""
    if isinstance(fields, list):
        return list[_as_type(fields[0])]  # type: ignore[misc]
    if isinstance(fields, dict):
        if EACH in fields:
            return dict[str, _as_type(fields[EACH])]  # type: ignore[misc]
        types = {key: _as_type(entry) for key, entry in fields.items()}
        return TypedDict("Fields", types, total=False)  # type: ignore[operator]
    number = Annotated[int, objects.msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
    return {int: number, ANY: Union[str, number]}.get(fields, fields)


class Picked(dict[str, Any]):
    """An object reduced to the fields that the module reads."""


class Reader:
    """Decodes and projects JSON of objects of a kind in one step, with the result of
    project(). Raises ValueError where project() has to decide, and always without
    msgspec."""

    def __init__(self, plural: str) -> None:
        self._plural = plural
        self._object: Callable[[bytes], Any] = _read_nothing
        self._event: Callable[[bytes], Any] = _read_nothing
        table = FIELDS.get(plural)
        if objects.msgspec is not None and table is not None:
            event = {"type": str, "object": table}
            self._object = objects.msgspec.json.Decoder(_as_type(table)).decode
            self._event = objects.msgspec.json.Decoder(_as_type(event)).decode

    def object(self, text: bytes) -> Picked:
        try:
            return Picked(self._pick(self._object(text), text, parse))
        except (KeyError, RecursionError) as exc:
            raise ValueError(str(exc)) from None

    def event(self, line: bytes) -> tuple[str, Object]:
        """The type of an event of a watch, ADDED, MODIFIED or DELETED, and the object
        in it."""
        try:
            event = self._event(line)
            kind, obj = event["type"], event["object"]
            if kind not in ("ADDED", "MODIFIED", "DELETED"):
                raise ValueError(kind)
            return kind, self._pick(obj, line, lambda line: parse(line)["object"])
        except (KeyError, RecursionError) as exc:
            raise ValueError(str(exc)) from None

    def _pick(
        self, obj: Object, text: bytes, whole: Callable[[bytes], Object]
    ) -> Object:
        obj["metadata"]["name"]  # or KeyError
        if b"\\u0000" in text:
            raise ValueError("NUL")
        if self._plural == "workflows":
            obj = _flat_workflow(obj)
            if _is_kept(obj):
                obj["text"] = text_of(self._plural, whole(text))
        return obj


def _read_nothing(text: bytes) -> Any:
    raise ValueError("no msgspec, or no fields")


def _without_managed(obj: Object) -> Object:
    """The object without metadata.managedFields, which are large and unused."""
    metadata = {k: v for k, v in obj["metadata"].items() if k != "managedFields"}
    return {**obj, "metadata": metadata}


def text_of(plural: str, obj: Object) -> str:
    """A whole object as JSON.

    Raises:
        FieldError: the object is nested too deeply.
    """
    try:
        return to_json(_without_managed(obj)).decode()
    except ValueError as exc:
        raise FieldError(f"{plural} {obj['metadata']['name']}: {exc}") from exc
