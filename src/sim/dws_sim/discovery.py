# What a client finds out before it asks for objects: versions, groups, kinds.
# SPDX-License-Identifier: LGPL-3.0-only
"""Discovery documents."""

from __future__ import annotations

from typing import Any

from dws_sim.jsontree import Object
from dws_sim.schema.resources import GROUPS, Resource

VERSION: Object = {
    "major": "1",
    "minor": "31",
    "gitVersion": "v1.31.0+dws-sim",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}
_VERBS = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
]


def _group(group: str) -> Object:
    versions: list[Object] = []
    for res in GROUPS[group]:
        for v in res.versions:
            entry = {"groupVersion": f"{group}/{v}", "version": v}
            if entry not in versions:
                versions.append(entry)
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _resources(group: str, version: str) -> Object | None:
    found: list[Object] = []
    for res in GROUPS.get(group, ()):
        if version not in res.versions:
            continue
        entry: Object = {
            "name": res.plural,
            "singularName": res.singular,
            "namespaced": res.namespaced,
            "kind": res.kind,
            "verbs": _VERBS,
        }
        found.append(entry)
        if res.status:
            found.append(
                {
                    **entry,
                    "name": f"{res.plural}/status",
                    "singularName": "",
                    "verbs": ["get", "patch", "update"],
                }
            )
        if res.plural == "pods":
            found.append(
                {**entry, "name": "pods/log", "singularName": "", "verbs": ["get"]}
            )
    if not found:
        return None
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": found,
    }


def document(parts: list[str]) -> Object | None:
    """The discovery document at a path (split at /), if there is one."""
    if parts == ["version"]:
        return VERSION
    if parts == ["api"]:
        return {
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [],
        }
    if parts == ["apis"]:
        return {
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": [_group(g) for g in GROUPS if g],
        }
    if parts == ["openapi", "v3"]:
        return {"paths": {}}
    if parts[0] == "apis" and len(parts) == 2 and parts[1] in GROUPS and parts[1]:
        return {"kind": "APIGroup", "apiVersion": "v1", **_group(parts[1])}
    if parts[0] == "api" and len(parts) == 2:
        return _resources("", parts[1])
    if parts[0] == "apis" and len(parts) == 3 and parts[1]:
        return _resources(parts[1], parts[2])
    return None


def openapi(res: Resource) -> dict[str, Any]:
    """The schema of one kind."""
    body: Object = res.body.openapi() if res.body else {"type": "object"}
    properties = body.setdefault("properties", {})
    properties.update(
        apiVersion={"type": "string"},
        kind={"type": "string"},
        metadata={"type": "object"},
    )
    return body
