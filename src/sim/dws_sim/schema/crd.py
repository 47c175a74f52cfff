# The kinds of DWS and NNF as CustomResourceDefinitions: for clients to read,
# and for an API server that does not know them yet.
# SPDX-License-Identifier: LGPL-3.0-only
"""CustomResourceDefinitions."""

from __future__ import annotations

from typing import Any

from dws_sim.jsontree import Object
from dws_sim.schema.columns import COLUMNS
from dws_sim.schema.resources import (
    ALL,
    DWS_GROUP,
    LUSTRE_GROUP,
    NNF_GROUP,
    Resource,
)

# Versions that are still defined but no longer served, oldest first.
_UNSERVED: dict[str, tuple[str, ...]] = {
    DWS_GROUP: ("v1alpha4", "v1alpha5"),
    NNF_GROUP: ("v1alpha9",),
    LUSTRE_GROUP: (),
}
_SERVICES = {
    LUSTRE_GROUP: ("lustre-fs-system", "lustre-fs-operator-webhook-service"),
    DWS_GROUP: ("dws-system", "dws-webhook-service"),
    NNF_GROUP: ("nnf-system", "nnf-webhook-service"),
}


def open_schema(res: Resource) -> Object:
    """The OpenAPI schema of a kind."""
    schema: dict[str, Any] = res.body.openapi() if res.body else {"type": "object"}
    schema["properties"] = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        **schema.get("properties", {}),
    }
    return schema


def _version(res: Resource, version: str, schema: Object) -> Object:
    out: Object = {
        "name": version,
        "served": version in res.versions,
        "storage": version == res.storage_version,
        "schema": {"openAPIV3Schema": schema},
    }
    if res.status:
        out["subresources"] = {"status": {}}
    columns = COLUMNS.get(res.plural)
    if columns is not None:
        out["additionalPrinterColumns"] = [c.definition() for c in columns]
    return out


def definition(res: Resource, convert: Object | None) -> Object:
    """The definition of a custom resource.

    Args:
        convert: clientConfig of the conversion webhook; None: only the
            apiVersion is rewritten.
    """
    schema = open_schema(res)
    # a kind with one version is too new to have had the old ones
    old = _UNSERVED[res.group] if len(res.versions) > 1 else ()
    spec: Object = {
        "group": res.group,
        "names": {
            "kind": res.kind,
            "listKind": f"{res.kind}List",
            "plural": res.plural,
            "singular": res.singular,
        },
        "scope": "Namespaced" if res.namespaced else "Cluster",
        "versions": [_version(res, v, schema) for v in (*old, *reversed(res.versions))],
    }
    if convert is not None and res.group != LUSTRE_GROUP:
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


def established(res: Resource) -> Object:
    """The definition as an API server shows it that serves the kind."""
    namespace, service = _SERVICES[res.group]
    place = {"name": service, "namespace": namespace, "path": "/convert", "port": 443}
    obj = definition(res, {"service": place} if len(res.versions) > 1 else None)
    obj["spec"].setdefault("conversion", {"strategy": "None"})
    obj["status"] = {
        "acceptedNames": obj["spec"]["names"],
        "storedVersions": [res.storage_version],
        "conditions": [
            {"type": "NamesAccepted", "status": "True", "reason": "NoConflicts"},
            {"type": "Established", "status": "True", "reason": "InitialNamesAccepted"},
        ],
    }
    return obj


def custom_resources() -> list[Resource]:
    """The resources that are not part of Kubernetes itself."""
    return [r for r in ALL if r.body is not None]
