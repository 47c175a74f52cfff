# Serves API discovery: the versions, groups and kinds that clients query first.
# SPDX-License-Identifier: LGPL-3.0-only
"""Discovery documents."""

from __future__ import annotations

from dws_sim import review
from dws_sim.jsontree import Object
from dws_sim.openapi import v2, v3, v3_index
from dws_sim.schema.resources import GROUPS, Resource

VERSION: Object = {
    "major": "1",
    "minor": "34",
    "gitVersion": "v1.34.0+dws-sim",
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


def _verbs(res: Resource) -> list[str]:
    if res.read_only:
        return ["get", "list", "watch"]
    if res.plural == "namespaces":
        return [v for v in _VERBS if v != "deletecollection"]
    return _VERBS


def _bare(entry: Object) -> Object:
    """The part of a kind's entry that its subresources share."""
    return {k: v for k, v in entry.items() if k not in ("shortNames", "categories")}


def _group(group: str) -> Object:
    versions: list[Object] = []
    if group in review.KINDS:
        versions.append({"groupVersion": f"{group}/v1", "version": "v1"})
    for res in GROUPS.get(group, ()):
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
            "verbs": _verbs(res),
        }
        if res.short:
            entry["shortNames"] = list(res.short)
        if res.categories:
            entry["categories"] = list(res.categories)
        found.append(entry)
        if res.status:
            found.append(
                {
                    **_bare(entry),
                    "name": f"{res.plural}/status",
                    "singularName": "",
                    "verbs": ["get", "patch", "update"],
                }
            )
        if res.plural == "pods":
            found.append(
                {
                    **_bare(entry),
                    "name": "pods/log",
                    "singularName": "",
                    "verbs": ["get"],
                }
            )
    for kind in review.KINDS.get(group, ()) if version == "v1" else ():
        found.append(
            {
                "name": review.resource(kind),
                "singularName": kind.lower(),
                "namespaced": False,
                "kind": kind,
                "verbs": ["create"],
            }
        )
    if not found:
        return None
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": found,
    }


def _openapi(parts: list[str]) -> Object | None:
    if parts == ["v2"]:
        return v2()
    if parts == ["v3"]:
        return v3_index()
    if parts[:2] == ["v3", "api"] and len(parts) == 3:
        return v3("", parts[2])
    if parts[:2] == ["v3", "apis"] and len(parts) == 4:
        return v3(parts[2], parts[3])
    return None


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
            "groups": [_group(g) for g in (*review.KINDS, *GROUPS) if g],
        }
    if parts[0] == "openapi":
        return _openapi(parts[1:])
    known = parts[1:2] and (parts[1] in GROUPS or parts[1] in review.KINDS)
    if parts[0] == "apis" and len(parts) == 2 and known and parts[1]:
        return {"kind": "APIGroup", "apiVersion": "v1", **_group(parts[1])}
    if parts[0] == "api" and len(parts) == 2:
        return _resources("", parts[1])
    if parts[0] == "apis" and len(parts) == 3 and parts[1]:
        return _resources(parts[1], parts[2])
    return None
