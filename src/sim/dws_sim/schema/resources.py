# The table of resources: group, names, versions, scope and schema.
# SPDX-License-Identifier: LGPL-3.0-only
"""Resources that the API serves."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from dws_sim.schema import dws, lustre, nnf
from dws_sim.schema.types import Schema

DWS_GROUP = "dataworkflowservices.github.io"
NNF_GROUP = "nnf.cray.hpe.com"
LUSTRE_GROUP = "lus.cray.hpe.com"


@dataclass(frozen=True, eq=False)
class Resource:
    """A kind of object.

    Attributes:
        versions: served versions, the storage version first.
        read_only: clients may read but not write.
        status: whether there is a status subresource.
        body: schema of all but metadata; None: not checked.
        short: names that kubectl takes for the plural.
        categories: names that kubectl takes for many kinds.
    """

    group: str
    plural: str
    kind: str
    singular: str
    versions: tuple[str, ...]
    namespaced: bool
    status: bool
    body: Schema | None = None
    read_only: bool = False
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()

    @property
    def storage_version(self) -> str:
        return self.versions[0]

    @functools.cached_property
    def api_version(self) -> str:
        return self.at(self.versions[0])

    @functools.cached_property
    def api_versions(self) -> tuple[str, ...]:
        """The apiVersion of every version that is served."""
        return tuple(self.at(v) for v in self.versions)

    def at(self, version: str) -> str:
        """The apiVersion of an object in a version."""
        return f"{self.group}/{version}" if self.group else version

    @property
    def qualified(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def __str__(self) -> str:
        return self.qualified


_WITH_STATUS = {
    "directivebreakdowns",
    "servers",
    "clientmounts",
    "storages",
    "systemconfigurations",
    "persistentstorageinstances",
    "nnfdatamovements",
    "nnfportmanagers",
    "nnfstorages",
    "nnfaccesses",
    "nnfnodes",
    "nnfsystemstorages",
    "nnflustremgts",
    "lustrefilesystems",
}
_DWS_KINDS = {
    "workflows": ("Workflow", "workflow"),
    "directivebreakdowns": ("DirectiveBreakdown", "directivebreakdown"),
    "servers": ("Servers", "servers"),
    "computes": ("Computes", "computes"),
    "clientmounts": ("ClientMount", "clientmount"),
    "storages": ("Storage", "storage"),
    "systemconfigurations": ("SystemConfiguration", "systemconfiguration"),
    "systemstatuses": ("SystemStatus", "systemstatus"),
    "persistentstorageinstances": (
        "PersistentStorageInstance",
        "persistentstorageinstance",
    ),
    "dwdirectiverules": ("DWDirectiveRule", "dwdirectiverule"),
}
_NNF_KINDS = {
    "nnfstorageprofiles": ("NnfStorageProfile", "nnfstorageprofile"),
    "nnfdatamovementprofiles": ("NnfDataMovementProfile", "nnfdatamovementprofile"),
    "nnfdatamovements": ("NnfDataMovement", "nnfdatamovement"),
    "nnfportmanagers": ("NnfPortManager", "nnfportmanager"),
    "nnfcontainerprofiles": ("NnfContainerProfile", "nnfcontainerprofile"),
    "nnfcontainerdata": ("NnfContainerData", "nnfcontainerdata"),
    "nnfstorages": ("NnfStorage", "nnfstorage"),
    "nnfaccesses": ("NnfAccess", "nnfaccess"),
    "nnfnodes": ("NnfNode", "nnfnode"),
    "nnfsystemstorages": ("NnfSystemStorage", "nnfsystemstorage"),
    "nnflustremgts": ("NnfLustreMGT", "nnflustremgt"),
}
_LUSTRE_KINDS = {"lustrefilesystems": ("LustreFileSystem", "lustrefilesystem")}


def _custom() -> list[Resource]:
    out = []
    for group, kinds, shapes, versions in (
        (DWS_GROUP, _DWS_KINDS, dws.SCHEMAS, ("v1alpha7", "v1alpha6")),
        (NNF_GROUP, _NNF_KINDS, nnf.SCHEMAS, ("v1alpha11", "v1alpha10")),
        (LUSTRE_GROUP, _LUSTRE_KINDS, lustre.SCHEMAS, ("v1beta1", "v1alpha1")),
    ):
        for plural, (kind, singular) in kinds.items():
            # the newest kind is in the newest version only
            served = versions[:1] if plural == "nnfcontainerdata" else versions
            out.append(
                Resource(
                    group,
                    plural,
                    kind,
                    singular,
                    served,
                    True,
                    plural in _WITH_STATUS,
                    shapes[plural],
                )
            )
    return out


def _core(
    plural: str,
    kind: str,
    group: str = "",
    short: str = "",
    all: bool = False,
    **more: bool,
) -> Resource:
    return Resource(
        group,
        plural,
        kind,
        kind.lower(),
        ("v1",),
        more.get("namespaced", True),
        more.get("status", False),
        read_only=more.get("read_only", False),
        short=tuple(short.split()),
        categories=("all",) if all else (),
    )


NAMESPACES = _core("namespaces", "Namespace", short="ns", namespaced=False)
DEFINITIONS = _core(
    "customresourcedefinitions",
    "CustomResourceDefinition",
    group="apiextensions.k8s.io",
    short="crd crds",
    namespaced=False,
    read_only=True,
)
ALL: list[Resource] = [
    NAMESPACES,
    _core("secrets", "Secret"),
    _core("configmaps", "ConfigMap", short="cm"),
    _core("services", "Service", short="svc", all=True),
    _core("pods", "Pod", short="po", all=True, status=True),
    _core("nodes", "Node", short="no", namespaced=False, status=True),
    _core("events", "Event", short="ev"),
    _core("jobs", "Job", group="batch", all=True, status=True),
    DEFINITIONS,
    *_custom(),
]

# by plural; the few plurals here do not repeat between groups
RESOURCES: dict[str, Resource] = {r.plural: r for r in ALL}
BY_KIND: dict[str, Resource] = {r.kind: r for r in ALL}
GROUPS: dict[str, list[Resource]] = {}
for _r in ALL:
    GROUPS.setdefault(_r.group, []).append(_r)


def find(group: str, version: str, plural: str) -> Resource | None:
    """The resource at a place in the URL space, if it is served."""
    res = RESOURCES.get(plural)
    if res is None or res.group != group or version not in res.versions:
        return None
    return res
