# The kinds of DWS and NNF as CustomResourceDefinitions, for an API server
# that does not know them yet.
# SPDX-License-Identifier: LGPL-3.0-only
"""CustomResourceDefinitions."""

from __future__ import annotations

from typing import Any

from dws_sim.jsontree import Object
from dws_sim.schema.resources import ALL, Resource


def _version(res: Resource, version: str) -> Object:
    assert res.body is not None
    schema: dict[str, Any] = res.body.openapi()
    schema["properties"] = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        **schema.get("properties", {}),
    }
    out: Object = {
        "name": version,
        "served": True,
        "storage": version == res.storage_version,
        "schema": {"openAPIV3Schema": schema},
    }
    if res.status:
        out["subresources"] = {"status": {}}
    return out


def definition(res: Resource, convert: Object | None) -> Object:
    """The definition of a custom resource.

    Args:
        convert: clientConfig of the conversion webhook; None: only the
            apiVersion is rewritten.
    """
    spec: Object = {
        "group": res.group,
        "names": {
            "kind": res.kind,
            "listKind": f"{res.kind}List",
            "plural": res.plural,
            "singular": res.singular,
            "shortNames": list(res.short),
        },
        "scope": "Namespaced" if res.namespaced else "Cluster",
        "versions": [_version(res, v) for v in res.versions],
    }
    if convert is not None:
        spec["conversion"] = {
            "strategy": "Webhook",
            "webhook": {"clientConfig": convert, "conversionReviewVersions": ["v1"]},
        }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": res.qualified},
        "spec": spec,
    }


def custom_resources() -> list[Resource]:
    """The resources that are not part of Kubernetes itself."""
    return [r for r in ALL if r.body is not None]
