# The Kubernetes kinds that flux-dws touches, by plural name.
# SPDX-License-Identifier: LGPL-3.0-only
"""Kinds, groups and versions (spec/dws-api.md section 1)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

DWS_GROUP = "dataworkflowservices.github.io"
NNF_GROUP = "nnf.cray.hpe.com"
CORE_GROUP = ""


@dataclass(frozen=True)
class Resource:
    """One kind of Kubernetes object: its API group, plural and kind names."""

    group: str
    plural: str
    kind: str


_DWS = {
    "workflows": "Workflow",
    "directivebreakdowns": "DirectiveBreakdown",
    "servers": "Servers",
    "computes": "Computes",
    "clientmounts": "ClientMount",
    "storages": "Storage",
    "systemstatuses": "SystemStatus",
    "systemconfigurations": "SystemConfiguration",
    "persistentstorageinstances": "PersistentStorageInstance",
}
_NNF = {
    "nnfdatamovements": "NnfDataMovement",
    "nnfstorageprofiles": "NnfStorageProfile",
    "nnfcontainerprofiles": "NnfContainerProfile",
}
_CORE = {"secrets": "Secret", "pods": "Pod"}

RESOURCES: dict[str, Resource] = {
    plural: Resource(group, plural, kind)
    for group, kinds in ((DWS_GROUP, _DWS), (NNF_GROUP, _NNF), (CORE_GROUP, _CORE))
    for plural, kind in kinds.items()
}

_VERSION = re.compile(r"^v(\d+)(?:(alpha|beta)(\d+))?$")


def version_priority(version: str) -> tuple[int, int, int]:
    """Sort key of an API version as Kubernetes orders them: v2 > v1 >
    v1beta1 > v1alpha7 > v1alpha6; anything else comes last."""
    match = _VERSION.match(version)
    if not match:
        return (-1, 0, 0)
    stage = {None: 2, "beta": 1, "alpha": 0}[match.group(2)]
    return (stage, int(match.group(1)), int(match.group(3) or 0))


def newest(versions: Iterable[str]) -> str:
    """The newest of the versions that a server offers.

    Reading an older version makes the server embed the whole object once more
    in an annotation, so the newest is always the one to use.

    Raises:
        ValueError: there is no version.
    """
    return max(versions, key=version_priority)
