# Adds metadata.managedFields to the objects that the server sends.
# SPDX-License-Identifier: LGPL-3.0-only
"""metadata.managedFields, as kube-apiserver 1.34 has it. Managers of applied fields are
stored (apply.py); all other fields belong to one manager."""

from __future__ import annotations

from typing import Any

from dws_sim.jsontree import Object

MANAGER = "dws-sim"
PARTS = ("spec", "status", "data")


def _keys(part: Any) -> Object:
    return {f"f:{key}": {} for key in part} if isinstance(part, dict) else {}


def _of_metadata(meta: Object) -> Object:
    found: Object = {}
    for name in ("annotations", "labels"):
        if name in meta:
            found[f"f:{name}"] = {".": {}, **_keys(meta[name])}
    # The entries of lists are keys.
    if "finalizers" in meta:
        values: Object = {f'v:"{value}"': {} for value in meta["finalizers"]}
        found["f:finalizers"] = {".": {}, **values}
    if "ownerReferences" in meta:
        uids = (owner["uid"] for owner in meta["ownerReferences"])
        owners: Object = {f'k:{{"uid":"{uid}"}}': {} for uid in uids}
        found["f:ownerReferences"] = {".": {}, **owners}
    return found


def with_managed(obj: Object) -> Object:
    """A stored object with them; its parts are shared."""
    meta = obj["metadata"]
    fields = {f"f:{part}": _keys(obj[part]) for part in PARTS if part in obj}
    entry = {
        "apiVersion": obj["apiVersion"],
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": _of_metadata(meta), **fields},
        "manager": MANAGER,
        "operation": "Update",
        "time": meta["creationTimestamp"],
    }
    applied = meta.get("managedFields", ())
    return {**obj, "metadata": {**meta, "managedFields": [*applied, entry]}}
