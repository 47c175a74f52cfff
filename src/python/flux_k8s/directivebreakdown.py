# SPDX-License-Identifier: LGPL-3.0-only
#
# DirectiveBreakdowns for programs of sites, by the names of flux-coral2: fetch the
# objects, and pass them to libdws, which decides.
"""The storage of a job by its DirectiveBreakdowns."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from flux_k8s import dws
from flux_k8s.crd import DEFAULT_VERSIONS, RESOURCES

if TYPE_CHECKING:
    from flux_k8s import shapes

_RESOURCE = RESOURCES["directivebreakdowns"]

GIB = 1 << 30
# Labels of allocation sets other than Lustre's.
PER_COMPUTE_TYPES = ("xfs", "gfs2", "raw")


class AllocationStrategy(enum.Enum):
    """The placement of a set's allocations."""

    PER_COMPUTE = "AllocatePerCompute"
    SINGLE_SERVER = "AllocateSingleServer"
    ACROSS_SERVERS = "AllocateAcrossServers"


class ResourceLimits:
    """Checks storage against limits, as libdws does for rabbit.policy.maximums: all
    parts of a Lustre file system count, not the data alone.

    The limits are class attributes, in GiB per node, None for no limit: a subclass or
    an assignment sets them. The instance's attributes are the sums requested.
    """

    TYPES = (*PER_COMPUTE_TYPES, "lustre")
    xfs: float | None = None
    gfs2: float | None = None
    raw: float | None = None
    lustre: float | None = None

    def __init__(self) -> None:
        self._sets: list[dict[str, Any]] = []
        for attr in self.TYPES:
            setattr(self, attr, 0)

    def increment(self, attr: str, capacity: int) -> None:
        """Add the GiB of an allocation set with this label; they are per node except
        for Lustre. Raises AttributeError for an unknown label."""
        name, strategy = attr, AllocationStrategy.PER_COMPUTE
        if dws.is_lustre(attr):
            name, strategy = "lustre", AllocationStrategy.ACROSS_SERVERS
        elif attr not in PER_COMPUTE_TYPES:
            raise AttributeError(attr)
        self._sets.append(
            {
                "allocationStrategy": strategy.value,
                "label": attr,
                "minimumCapacity": int(capacity * GIB),
            }
        )
        setattr(self, name, getattr(self, name) + capacity)

    def validate(self, nodecount: int) -> None:
        """Raises ValueError, with a text for the user, if a job with `nodecount` nodes
        exceeds a limit."""
        limits = {attr: getattr(type(self), attr) for attr in self.TYPES}
        maximums = {k: float(v) for k, v in limits.items() if v is not None}
        resources = [{"type": "node", "count": nodecount}]
        dws.apply_breakdowns(resources, [_breakdown(self._sets)], 0, maximums)


def check_is_lustre(breakdown_alloc_sets: list[dict[str, Any]]) -> bool:
    """Whether `status.storage.allocationSets` of a breakdown make a Lustre file
    system."""
    return any(dws.is_lustre(alloc["label"]) for alloc in breakdown_alloc_sets)


def _breakdown(alloc_sets: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "kind": "DirectiveBreakdown",
        "status": {
            "ready": True,
            "storage": {
                "allocationSets": alloc_sets,
                "reference": {"name": "servers", "namespace": "default"},
            },
        },
    }


def fetch_breakdowns(
    k8s_api: Any, workflow: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Read the breakdowns that a Workflow refers to, in directive order.

    Directives such as destroy_persistent and copy_in have none. The API version
    is the workflow's. Raises kubernetes.client.ApiException.
    """
    status = workflow.get("status") or {}
    version = workflow.get("apiVersion", "").rpartition("/")[2]
    for ref in status.get("directiveBreakdowns") or []:
        yield k8s_api.get_namespaced_custom_object(
            _RESOURCE.group,
            version or DEFAULT_VERSIONS[_RESOURCE.group],
            ref["namespace"],
            _RESOURCE.plural,
            ref["name"],
        )


def apply_breakdowns(
    k8s_api: Any,
    workflow: dict[str, Any],
    resources: list[Any],
    min_size: int,
    maximums: dict[str, float] | None = None,
) -> list[Any]:
    """Return `resources` (jobspec) with the storage that the workflow needs.

    `min_size` is the smallest allocation in GiB, `maximums` the limits per
    node in GiB by type of file system. Resources with storage are returned
    unchanged. Raises ValueError with a text for the user, and dws.NotReadyError
    if a breakdown is not ready.
    """
    breakdowns = list(fetch_breakdowns(k8s_api, workflow))
    return dws.apply_breakdowns(resources, breakdowns, min_size, maximums)


def build_allocation_sets(
    breakdown_alloc_sets: list[dict[str, Any]],
    nodes_per_nnf: dict[str, int],
    compute_node_count: int,
    min_alloc_size: int,
    storages: list[Any] | None = None,
    used: dict[str, int] | None = None,
    resources: list[Any] | None = None,
) -> list[shapes.AllocationSet]:
    """Return the allocationSets of one Servers object.

    `breakdown_alloc_sets` is `status.storage.allocationSets` of a breakdown,
    `nodes_per_nnf` counts the job's nodes by rabbit, `compute_node_count` is
    their sum, `min_alloc_size` is in GiB. See dws.allocation_sets() for the
    rest; it also lays out several breakdowns at once, which this cannot.
    """
    if compute_node_count != sum(nodes_per_nnf.values()):
        raise ValueError(
            f"the rabbits have {sum(nodes_per_nnf.values())} of the job's "
            f"{compute_node_count} nodes"
        )
    breakdowns = [_breakdown(breakdown_alloc_sets)]
    result = dws.allocation_sets(
        breakdowns, nodes_per_nnf, min_alloc_size, storages, used, resources
    )
    return result[0]["allocationSets"]
