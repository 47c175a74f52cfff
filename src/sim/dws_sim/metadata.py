# Rules about metadata that hold for every kind: names, labels, finalizers,
# and which fields belong to the server.
# SPDX-License-Identifier: LGPL-3.0-only
"""Object metadata."""

from __future__ import annotations

import json
import re
from typing import Any

from dws_sim.errors import ApiError, Cause, bad_request, conflict, forbidden, invalid
from dws_sim.jsontree import Object
from dws_sim.schema.resources import Resource

_DNS_SUBDOMAIN = re.compile(
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
)
_LABEL_VALUE = re.compile(r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$")
_LABEL_NAME = re.compile(r"^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$")

_STRING_MAPS = ("labels", "annotations")
_KEPT = (
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
# A client's opinion on these is ignored in an update.
_SERVERS = (
    "uid",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


def normalise(obj: Object) -> Object:
    """Metadata with unknown and empty fields left out.

    Raises:
        ApiError: 400, a field has the wrong type.
    """
    meta = obj.get("metadata")
    if not isinstance(meta, dict):
        raise bad_request("metadata must be an object")
    out: Object = {}
    for key in _KEPT:
        value = meta.get(key)
        if value is None or value == "" or value == {} or value == []:
            continue
        if key in _STRING_MAPS:
            good = isinstance(value, dict) and all(
                isinstance(v, str) for v in value.values()
            )
        elif key == "finalizers":
            good = isinstance(value, list) and all(isinstance(v, str) for v in value)
        elif key == "ownerReferences":
            good = isinstance(value, list) and all(
                isinstance(v, dict) and isinstance(v.get("uid"), str) for v in value
            )
        elif key in ("generation", "deletionGracePeriodSeconds"):
            good = isinstance(value, int)
        else:
            good = isinstance(value, str)
        if not good:
            raise bad_request(f"metadata.{key} has the wrong type")
        out[key] = value
    return out


def _label_faults(meta: Object) -> list[Cause]:
    causes = []
    for key, value in (meta.get("labels") or {}).items():
        prefix, _, name = key.rpartition("/")
        shown = json.dumps(value)
        if len(value) > 63:
            causes.append(
                Cause(
                    "metadata.labels",
                    f"Invalid value: {shown}: must be no more than 63 bytes",
                )
            )
        elif not _LABEL_VALUE.match(value):
            causes.append(
                Cause(
                    "metadata.labels",
                    f"Invalid value: {shown}: a valid label must be an empty string "
                    "or consist of alphanumeric characters, '-', '_' or '.', and "
                    "must start and end with an alphanumeric character",
                )
            )
        if (
            not _LABEL_NAME.match(name)
            or len(name) > 63
            or (prefix and not _DNS_SUBDOMAIN.match(prefix))
        ):
            causes.append(
                Cause(
                    "metadata.labels",
                    f"Invalid value: {json.dumps(key)}: name part must consist of "
                    "alphanumeric characters, '-', '_' or '.'",
                )
            )
    return causes


def faults(meta: Object) -> list[Cause]:
    """What is wrong with the metadata of an object to be stored."""
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
    elif len(name) > 253 or not _DNS_SUBDOMAIN.match(name):
        causes.append(
            Cause(
                "metadata.name",
                f"Invalid value: {json.dumps(name)}: a lowercase RFC 1123 subdomain "
                "must consist of lower case alphanumeric characters, '-' or '.', and "
                "must start and end with an alphanumeric character",
            )
        )
    return causes + _label_faults(meta)


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
                    "Invalid value: 0x0: must be specified for an update",
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
            shown = json.dumps(sorted(added), separators=(",", ":"))
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
