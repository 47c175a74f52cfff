# Rules about metadata that hold for every kind: names, labels, finalizers,
# and which fields belong to the server.
# SPDX-License-Identifier: LGPL-3.0-only
"""Object metadata."""

from __future__ import annotations

import functools
import json
import re
from typing import Any

from dws_sim.errors import ApiError, Cause, bad_request, conflict, forbidden, invalid
from dws_sim.jsontree import Object, clone
from dws_sim.schema.resources import Resource

_DNS_SUBDOMAIN = re.compile(
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z"
)
_LABEL_VALUE = re.compile(r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?\Z")
_LABEL_NAME = re.compile(r"^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]\Z")

_STRING_MAPS = ("labels", "annotations")
_NUMBERS = ("generation", "deletionGracePeriodSeconds")
KEPT = frozenset(
    (
        "name",
        "generateName",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "ownerReferences",
        "finalizers",
    )
)
# A client's opinion on these is ignored in an update.
_SERVERS = (
    "uid",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
)


def normalise(meta: Any, old: Object) -> Object:
    """A copy of metadata with unknown and empty fields left out.

    Args:
        old: the metadata that is stored; parts that are still the same object
            are shared with it.
    Raises:
        ApiError: 400, a field has the wrong type.
    """
    if not isinstance(meta, dict):
        raise bad_request("metadata must be an object")
    if meta is old:
        return dict(old)
    out: Object = {}
    for key, value in meta.items():
        if value is None or key not in KEPT:
            continue
        if value is not old.get(key):
            if not value and value is not False and value != 0:
                continue
            value = _checked(key, value)
        out[key] = value
    return out


def _checked(key: str, value: Any) -> Any:
    """A copy of the value of a field of the metadata."""
    if key in _STRING_MAPS:
        if isinstance(value, dict) and all(isinstance(v, str) for v in value.values()):
            return dict(value)
    elif key == "finalizers":
        if isinstance(value, list) and all(isinstance(v, str) for v in value):
            return list(value)
    elif key == "ownerReferences":
        if isinstance(value, list) and all(
            isinstance(v, dict) and isinstance(v.get("uid"), str) for v in value
        ):
            return clone(value)
    elif isinstance(value, int if key in _NUMBERS else str):
        return value
    raise bad_request(f"metadata.{key} has the wrong type")


@functools.lru_cache(maxsize=1024)
def _is_label_key(key: str) -> bool:
    prefix, _, name = key.rpartition("/")
    return (
        len(name) <= 63
        and _LABEL_NAME.match(name) is not None
        and (not prefix or _DNS_SUBDOMAIN.match(prefix) is not None)
    )


@functools.lru_cache(maxsize=4096)
def _is_label_value(value: str) -> bool:
    return _LABEL_VALUE.match(value) is not None


def _label_faults(labels: Object) -> list[Cause]:
    causes = []
    for key, value in labels.items():
        if len(value) > 63:
            causes.append(
                Cause(
                    "metadata.labels",
                    f"Invalid value: {json.dumps(value)}: must be no more than 63 "
                    "bytes",
                )
            )
        elif not _is_label_value(value):
            causes.append(
                Cause(
                    "metadata.labels",
                    f"Invalid value: {json.dumps(value)}: a valid label must be an "
                    "empty string or consist of alphanumeric characters, '-', '_' or "
                    "'.', and must start and end with an alphanumeric character",
                )
            )
        if not _is_label_key(key):
            causes.append(
                Cause(
                    "metadata.labels",
                    f"Invalid value: {json.dumps(key)}: name part must consist of "
                    "alphanumeric characters, '-', '_' or '.'",
                )
            )
    return causes


def faults(meta: Object, old: Object) -> list[Cause]:
    """Faults in the metadata of an object to be stored.

    Args:
        old: the metadata that is stored, or {}.
    """
    causes = []
    name = meta.get("name", "")
    if not name:
        causes.append(
            Cause(
                "metadata.name",
                "Required value: name or generateName is required",
                "FieldValueRequired",
            )
        )
    elif name != old.get("name") and (
        len(name) > 253 or not _DNS_SUBDOMAIN.match(name)
    ):
        causes.append(
            Cause(
                "metadata.name",
                f"Invalid value: {json.dumps(name)}: a lowercase RFC 1123 subdomain "
                "must consist of lower case alphanumeric characters, '-' or '.', and "
                "must start and end with an alphanumeric character",
            )
        )
    labels = meta.get("labels")
    if labels is not None and labels is not old.get("labels"):
        causes.extend(_label_faults(labels))
    return causes


def for_update(
    res: Resource, old: Object, new: Object, must_have_version: bool
) -> None:
    """Check the metadata of an update against the stored object and put the
    server's own fields back in place.

    Raises:
        ApiError: 409 for another version or uid, 422 for a rule broken.
    """
    was, meta = old["metadata"], new["metadata"]
    name = was["name"]
    version = meta.get("resourceVersion", "")
    if version in ("", "0") and must_have_version:
        raise invalid(
            res.group,
            res.plural,
            name,
            [
                Cause(
                    "metadata.resourceVersion",
                    "Invalid value: 0: must be specified for an update",
                )
            ],
        )
    if version not in ("", "0", was["resourceVersion"]):
        raise conflict(res.group, res.plural, name)
    if meta.get("uid", was["uid"]) != was["uid"]:
        raise conflict(
            res.group,
            res.plural,
            name,
            f"Precondition failed: UID in precondition: {meta['uid']}, "
            f"UID in object meta: {was['uid']}",
        )
    for key in _SERVERS:
        meta.pop(key, None)
        if key in was:
            meta[key] = was[key]
    if "deletionTimestamp" in was:
        added = set(meta.get("finalizers", [])) - set(was.get("finalizers", []))
        if added:
            words = ", ".join(json.dumps(word) for word in sorted(added))
            shown = f"[]string{{{words}}}"
            raise invalid(
                res.group,
                res.kind,
                name,
                [
                    Cause(
                        "metadata.finalizers",
                        "Forbidden: no new finalizers can be added if the object "
                        f"is being deleted, found new finalizers {shown}",
                        "FieldValueForbidden",
                    )
                ],
            )


def check_place(res: Resource, namespace: str, obj: Object) -> None:
    """An object's namespace must be that of the URL.

    Raises:
        ApiError: 400.
    """
    meta = obj["metadata"]
    if not res.namespaced:
        meta.pop("namespace", None)
    elif meta.setdefault("namespace", namespace) != namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace "
            "sent on the request"
        )


def terminating(res: Resource, name: str, namespace: str) -> ApiError:
    """The refusal to create something in a namespace that is going away."""
    return forbidden(
        f'{res.qualified} "{name}" is forbidden: unable to create new content in '
        f"namespace {namespace} because it is being terminated"
    )


def owner_uids(obj: Object) -> list[Any]:
    return [r["uid"] for r in obj["metadata"].get("ownerReferences", ())]
