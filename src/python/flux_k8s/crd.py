# The Kubernetes kinds that flux-dws reads or writes, by plural name.
# SPDX-License-Identifier: LGPL-3.0-only
"""Kinds, groups and versions (spec/dws-api.md section 1)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

DWS_GROUP = "dataworkflowservices.github.io"
NNF_GROUP = "nnf.cray.hpe.com"
CORE_GROUP = ""


@dataclass(frozen=True)
class Resource:
    """A kind of Kubernetes objects: its API group, plural and kind names."""

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

    Always use the newest: on reads of an older version the server embeds the whole
    object once more in an annotation.

    Raises:
        ValueError: there is no version.
    """
    return max(versions, key=version_priority)


class CRD:
    """The place of a kind's objects, as arguments for calls of CustomObjectsApi:
    `api.list_namespaced_custom_object(*WORKFLOW_CRD)`.

    A namespace of None means all namespaces, in list_cluster_custom_object().
    """

    def __init__(
        self, group: str, version: str, namespace: str | None, plural: str
    ) -> None:
        self.group = group
        self.version = version
        self.namespace = namespace
        self.plural = plural

    def __iter__(self) -> Iterator[str | None]:
        return iter((self.group, self.version, self.namespace, self.plural))


def _crd(plural: str, namespace: str | None = "default") -> CRD:
    group = RESOURCES[plural].group
    return CRD(group, DEFAULT_VERSIONS[group], namespace, plural)


# The versions before determine_api_versions() is called: every NNF since 2025 serves
# them.
DEFAULT_VERSIONS = {DWS_GROUP: "v1alpha7", NNF_GROUP: "v1alpha11"}

WORKFLOW_CRD = _crd("workflows")
RABBIT_CRD = _crd("storages")
DIRECTIVEBREAKDOWN_CRD = _crd("directivebreakdowns")
COMPUTE_CRD = _crd("computes")
SERVER_CRD = _crd("servers")
SYSTEMCONFIGURATION_CRD = _crd("systemconfigurations")
SYSTEMSTATUS_CRD = _crd("systemstatuses")
CLIENTMOUNT_CRD = _crd("clientmounts", None)
DATAMOVEMENT_CRD = _crd("nnfdatamovements", None)

_CRDS = (
    *(WORKFLOW_CRD, RABBIT_CRD, DIRECTIVEBREAKDOWN_CRD, COMPUTE_CRD, SERVER_CRD),
    *(SYSTEMCONFIGURATION_CRD, SYSTEMSTATUS_CRD, CLIENTMOUNT_CRD, DATAMOVEMENT_CRD),
)


def determine_api_versions(handle: Any, k8s_api: Any) -> None:
    """Set the constants above to the newest versions that a server offers.

    Args:
        handle: ignored. flux-coral2 reads rabbit.dws_api_version and
            rabbit.nnf_api_version with it; here the server names its versions.
        k8s_api: a kubernetes.client.CustomObjectsApi.
    Raises:
        RuntimeError: the server has no DWS, or no NNF.
    """
    import kubernetes.client

    found = kubernetes.client.ApisApi(k8s_api.api_client).get_api_versions().groups
    served = {group.name: [v.version for v in group.versions] for group in found}
    for group in DEFAULT_VERSIONS:
        if group not in served:
            raise RuntimeError(f"Kubernetes does not serve {group}")
    for crd in _CRDS:
        crd.version = newest(served[crd.group])
