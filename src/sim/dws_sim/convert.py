# Objects in an older served version: what that version lacks is left out and
# kept, whole, in an annotation.
# SPDX-License-Identifier: LGPL-3.0-only
"""Conversion between API versions."""

from __future__ import annotations

from typing import Any

from dws_sim.errors import bad_request
from dws_sim.fields import with_managed
from dws_sim.jsontree import Object, clone, decode, dig, encode
from dws_sim.schema.resources import LUSTRE_GROUP, NNF_GROUP, Resource

_ANNOTATION = "dataworkflowservices.github.io/conversion-data"
_NNF_ANNOTATION = "nearnodeflash.github.io/conversion-data"


def annotation(res: Resource) -> str:
    return _NNF_ANNOTATION if res.group == NNF_GROUP else _ANNOTATION


def _without_fenced(value: Any) -> None:
    if isinstance(value, dict):
        if value.get("status") == "Fenced":
            value["status"] = "Unknown"
        for item in value.values():
            _without_fenced(item)
    elif isinstance(value, list):
        for item in value:
            _without_fenced(item)


def to_version(res: Resource, obj: Object, version: str) -> Object:
    """A stored object as a client of some version sees it."""
    if version == res.storage_version:
        return obj
    out: Object = clone(obj)
    out["apiVersion"] = res.at(version)
    if res.group == LUSTRE_GROUP:
        # its versions have the same fields
        return out
    annotations = out["metadata"].setdefault("annotations", {})
    annotations[annotation(res)] = encode(obj).decode()
    if res.plural == "storages":
        _without_fenced(out.get("status"))
    if res.plural == "directivebreakdowns":
        for alloc in dig(out, "status", "storage", "allocationSets") or ():
            if alloc["allocationStrategy"] == "AllocatePerServer":
                alloc["allocationStrategy"] = "AllocateAcrossServers"
    return out


def as_sent(res: Resource, obj: Object, version: str) -> Object:
    """The same with what the API server adds."""
    return with_managed(to_version(res, obj, version))


def from_version(res: Resource, body: Any, version: str) -> Any:
    """A client's object in the storage version.

    Raises:
        ApiError: 400, the annotation is not what to_version() wrote.
    """
    if version == res.storage_version or not isinstance(body, dict):
        return body
    out = clone(body)
    if out.get("apiVersion", res.at(version)) == res.at(version):
        out["apiVersion"] = res.api_version
    annotations = dig(out, "metadata", "annotations")
    if not isinstance(annotations, dict) or annotation(res) not in annotations:
        return out
    try:
        kept = decode(annotations.pop(annotation(res)).encode())
    except (AttributeError, ValueError) as exc:
        raise bad_request(f"annotation {annotation(res)}: {exc}") from exc
    # Restore fields that the older version lacks, in parts that were not changed.
    seen = to_version(res, kept, version) if isinstance(kept, dict) else None
    if seen is not None:
        for part in ("spec", "status", "data"):
            if part in out and out[part] == seen.get(part):
                out[part] = kept[part]
    return out
