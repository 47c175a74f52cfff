# Completes new objects as webhooks and Kubernetes do, and rejects invalid ones with
# their error texts.
# SPDX-License-Identifier: LGPL-3.0-only
"""Workflow admission."""

from __future__ import annotations

import base64
import json
from typing import Any, Callable

from dws_sim.directive import DirectiveError, DirectivePanic, check
from dws_sim.errors import ApiError, denied
from dws_sim.jsontree import Object, dig
from dws_sim.schema.dws import STATES
from dws_sim.schema.resources import RESOURCES
from dws_sim.store import Admission, Store

_MUTATOR = "mworkflow.kb.io"
_VALIDATOR = "vworkflow.kb.io"
_REFUSED = "failed to call webhook: connection refused"
# Go's names for the types of the fields of a spec.
_GO_TYPES = {
    "desiredState": "string",
    "dwDirectives": "[]string",
    "forceReady": "bool",
    "groupID": "uint32",
    "hurry": "bool",
    "userID": "uint32",
    "wlmID": "string",
}
_GO_ZEROS = {"string": "", "bool": False, "uint32": 0}
_GO_NAMES = {str: "string", bool: "bool", list: "array", dict: "object"}
_GO_FITS: dict[str, type] = {
    "string": str,
    "bool": bool,
    "uint32": int,
    "[]string": list,
}
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


def _decode(obj: Object) -> None:
    """Refuse what the webhook cannot decode, before anybody has looked at the
    schema."""
    spec: Any = obj.get("spec", {})
    if not isinstance(spec, dict):
        return
    for field, wanted in _GO_TYPES.items():
        value = spec.get(field)
        if value is None:
            continue
        fits = type(value) is _GO_FITS[wanted]
        if not fits:
            _undecodable(value, field, wanted)
        elif wanted == "uint32" and not 0 <= value < 1 << 32:
            _undecodable(value, field, wanted, f"number {value}")
        elif wanted == "[]string":
            for item in value:
                if not isinstance(item, str):
                    _undecodable(item, field, "string")

    job = spec.get("jobID")
    if job is not None and type(job) not in (str, int):
        found = _GO_NAMES.get(type(job), "number")
        raise _bad_json(f"{found} into Go value of type int32")


def _bad_json(text: str) -> ApiError:
    text = f"json: cannot unmarshal {text}"
    return ApiError(
        400, "", f'admission webhook "{_MUTATOR}" denied the request: {text}'
    )


def _undecodable(value: Any, field: str, wanted: str, found: str = "") -> None:
    found = found or _GO_NAMES.get(type(value), "number")
    raise _bad_json(
        f"{found} into Go struct field WorkflowSpec.spec.{field} of type {wanted}"
    )


def _fill(obj: Object) -> None:
    """Fill in what is missing, as Go does when it encodes a struct again: so
    a workflow without userID is root's. An array stays away."""
    spec = obj.setdefault("spec", {})
    for field, wanted in _GO_TYPES.items():
        if wanted in _GO_ZEROS and spec.get(field) is None:
            spec[field] = _GO_ZEROS[wanted]
    if spec.get("jobID") is None:
        spec["jobID"] = 0


def _entry(driver: str, index: int, state: str) -> Object:
    return {
        "driverID": driver,
        "taskID": "",
        "dwdIndex": index,
        "watchState": state,
        "lastHB": 0,
        "completed": False,
        "status": "Pending",
    }


class WorkflowAdmission(Admission):
    """The mutating and the validating webhook for workflows."""

    def __init__(self, rules: Callable[[], list[Object]]) -> None:
        """rules: returns the DWDirectiveRule objects."""
        self._rules = rules

    def _directives(self, obj: Object, hook: str) -> list[tuple[int, str, list[str]]]:
        directives = obj["spec"].get("dwDirectives", ())
        if not directives:
            return []
        objects = self._rules()
        if not objects:
            # DWS prints its list option here, which has the namespace alone
            raise _deny("unable to find ruleset in namespace: dws-system")
        rules = [
            (o["metadata"]["name"], rule) for o in objects for rule in o.get("spec", ())
        ]
        try:
            return check(directives, rules)
        except DirectiveError as exc:
            raise _deny(str(exc)) from exc
        except DirectivePanic as exc:
            raise webhook_failed(hook, "EOF") from exc

    def mutate(self, obj: Object) -> None:
        _decode(obj)
        _fill(obj)
        status = obj.setdefault("status", {"ready": False})
        self._register(obj)
        status.setdefault("env", {}).update(
            DW_WORKFLOW_NAME=obj["metadata"]["name"],
            DW_WORKFLOW_NAMESPACE=obj["metadata"]["namespace"],
        )
        status.setdefault("computes", {})

    def _register(self, obj: Object) -> None:
        """Enter the drivers. The validating webhook, not this one, reports faults of
        a directive."""
        try:
            found = self._directives(obj, _MUTATOR)
        except ApiError as exc:
            if exc.code == 500:
                raise
            return
        drivers = obj["status"].setdefault("drivers", [])
        known = {(d["driverID"], d["dwdIndex"], d["watchState"]) for d in drivers}
        for index, driver, states in found:
            for state in states:
                if (driver, index, state) not in known:
                    drivers.append(_entry(driver, index, state))
        if not drivers:
            del obj["status"]["drivers"]

    def validate(self, obj: Object, old: Object | None) -> None:
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
        self._directives(obj, _VALIDATOR)

    def _validate_change(self, obj: Object, old: Object) -> None:
        # a spec that was taken away is one of zeros
        spec, was = obj.get("spec", {}), old["spec"]
        desired = spec.get("desiredState", "")
        if spec.get("hurry") and desired != "Teardown":
            raise _bad_value(
                "Spec.Hurry", True, "the hurry flag may be set only in Teardown"
            )
        for key, name in _IMMUTABLE:
            if spec.get(key) != was[key]:
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
        for i, entry in enumerate(after):
            why = ""
            if i >= len(before):
                raise webhook_failed(_VALIDATOR, "EOF")
            if entry["watchState"] != state:
                if entry != before[i]:
                    why = "driver entry for non-current state cannot be changed"
            elif entry["completed"]:
                if entry.get("status") != "Completed":
                    why = "driver cannot be completed without status=Completed"
                elif entry.get("error"):
                    why = "driver cannot be completed when error is present"
            elif before[i]["completed"]:
                why = "driver cannot change from completed state"
            if why:
                raise _deny(f"Status.Drivers[{i}]: Internal error: {why}")


class Unreachable(Admission):
    """The webhooks of a DWS that is down."""

    def mutate(self, obj: Object) -> None:
        raise webhook_failed("mworkflow.kb.io", _REFUSED)

    def validate(self, obj: Object, old: Object | None) -> None:
        raise webhook_failed(_VALIDATOR, _REFUSED)


class PersistentAdmission(Admission):
    """The webhook for persistent storage: what it is does not change."""

    webhook = "vpersistentstorageinstance.kb.io"
    immutable = (("name", "Name"), ("fsType", "FsType"), ("dwDirective", "DWDirective"))

    def validate(self, obj: Object, old: Object | None) -> None:
        spec = obj.get("spec", {})
        if old is None:
            if spec.get("state") != "Active":
                raise denied(self.webhook, "Spec.State: Forbidden: must be Active")
            return
        for key, name in self.immutable:
            if spec.get(key) != old["spec"].get(key):
                text = f"Spec.{name}: Forbidden: field is immutable"
                raise denied(self.webhook, text)


class NamespaceAdmission(Admission):
    """Label, finalizer and phase that Kubernetes sets on a new namespace."""

    def mutate(self, obj: Object) -> None:
        meta = obj["metadata"]
        meta.setdefault("labels", {})["kubernetes.io/metadata.name"] = meta["name"]
        obj["spec"] = {"finalizers": ["kubernetes"]}
        obj["status"] = {"phase": "Active"}


class PodAdmission(Admission):
    """The phase of a pod that no kubelet has accepted yet."""

    def mutate(self, obj: Object) -> None:
        obj["status"] = {"phase": "Pending"}


class SecretAdmission(Admission):
    """Encodes the plain text of a Secret, as Kubernetes does."""

    def mutate(self, obj: Object) -> None:
        obj.setdefault("type", "Opaque")
        self.encode(obj)

    def validate(self, obj: Object, old: Object | None) -> None:
        self.encode(obj)

    @staticmethod
    def encode(obj: Object) -> None:
        plain = obj.pop("stringData", None)
        if isinstance(plain, dict):
            data = obj["data"] = dict(obj.get("data") or {})
            for key, text in plain.items():
                data[key] = base64.b64encode(str(text).encode()).decode()


def install(store: Store) -> None:
    """Put the webhooks in front of the store."""
    store.admission["namespaces"] = NamespaceAdmission()
    store.admission["pods"] = PodAdmission()
    store.admission["secrets"] = SecretAdmission()
    store.admission["persistentstorageinstances"] = PersistentAdmission()
    store.admission["workflows"] = WorkflowAdmission(
        lambda: store.find(RESOURCES["dwdirectiverules"])
    )
