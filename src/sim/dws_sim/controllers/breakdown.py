# What a directive needs, worked out for the workload manager: allocation
# sets with their constraints, where computes must be, an empty Servers.
# SPDX-License-Identifier: LGPL-3.0-only
"""The DirectiveBreakdown controller."""

from __future__ import annotations

from typing import Any

from dws_sim.controllers.common import (
    BREAKDOWN_FINALIZER,
    SERVERS_FINALIZER,
    STORAGE_LABEL,
    ResourceError,
    add_finalizer,
    child,
    drop_finalizer,
    fatal,
    inherited_labels,
    is_deleting,
    ref,
)
from dws_sim.controllers.manager import Controller
from dws_sim.controllers.profiles import find_profile, padded
from dws_sim.directive import Directive, capacity_bytes, parse
from dws_sim.jsontree import Object

PHYSICAL = {"type": "physical", "priority": "mandatory"}
NETWORK = {"type": "network", "priority": "mandatory"}
NEAR = {"type": "physical", "priority": "bestEffort"}
_MGT_KEY = "lustre-mgt"
Access = list[dict[str, str]]


def _constraints(options: Object, exclusive: str | None = None) -> Object:
    out: Object = {
        "labels": [
            *options.get("storageLabels", ()),
            f"{STORAGE_LABEL}=Rabbit",
        ]
    }
    for key in ("count", "scale"):
        if key in options:
            out[key] = options[key]
    if exclusive is not None:
        out["colocation"] = [{"type": "exclusive", "key": exclusive}]
    return out


def _set(strategy: str, label: str, capacity: int, constraints: Object) -> Object:
    return {
        "allocationStrategy": strategy,
        "label": label,
        "minimumCapacity": capacity,
        "constraints": constraints,
    }


def _lustre_access(options: Object) -> Access:
    return [NETWORK, NEAR] if options.get("colocateComputes") else [NETWORK]


def standalone_pool(profile: Object) -> str:
    """The pool for which a profile makes management targets, and nothing else."""
    lustre = profile.get("lustreStorage", {})
    if lustre.get("combinedMgtMdt"):
        return ""
    return str(lustre.get("mgtOptions", {}).get("standaloneMgtPoolName") or "")


def _lustre(profile: Object, capacity: int) -> list[tuple[Object, Access]]:
    across = "AllocateAcrossServers"
    lustre = profile.get("lustreStorage", {})
    mgt, mdt = lustre.get("mgtOptions", {}), lustre.get("mdtOptions", {})
    ost, both = lustre.get("ostOptions", {}), lustre.get("mgtMdtOptions", {})

    def size(options: Object) -> int:
        return capacity_bytes(options.get("capacity", "5GiB"))

    single = _set("AllocateSingleServer", "mgt", size(mgt), _constraints(mgt, _MGT_KEY))
    if standalone_pool(profile):
        return [(single, _lustre_access(mgt))]
    wanted = padded(capacity, ost.get("capacityScalingFactor", "1.0"), None)
    sets = [(_set(across, "ost", wanted, _constraints(ost)), _lustre_access(ost))]
    alone = "" if mdt.get("exclusive") else None
    if lustre.get("combinedMgtMdt"):
        key = _MGT_KEY if alone is None else alone
        limits = _constraints(both, key)
        sets.append((_set(across, "mgtmdt", size(mdt), limits), _lustre_access(both)))
        return sets
    sets.append(
        (
            _set(across, "mdt", size(mdt), _constraints(mdt, alone)),
            _lustre_access(mdt),
        )
    )
    if not mgt.get("externalMgs"):
        sets.append((single, _lustre_access(mgt)))
    return sets


def allocation_sets(
    directive: Directive, profile: Object
) -> list[tuple[Object, Access]]:
    """The allocation sets of a jobdw or create_persistent directive, each
    with the access that computes need.

    Raises:
        ResourceError: 'capacity' is missing or zero.
    """
    kind, text = directive.get("type") or "", directive.get("capacity")
    if kind == "lustre" and standalone_pool(profile):
        if directive.command != "create_persistent":
            raise fatal("standaloneMgtPoolName is for create_persistent only")
        if text is not None:
            raise fatal("'capacity' is not used with a standalone MGT")
        return _lustre(profile, 0)
    if text is None:
        raise fatal("'capacity' is required")
    capacity = capacity_bytes(text)
    if capacity == 0:
        raise fatal("'capacity' must be a non-zero value")
    if kind == "lustre":
        return _lustre(profile, capacity)
    options = profile.get(f"{kind}Storage", {})
    size = padded(
        capacity,
        options.get("capacityScalingFactor", "1.0"),
        options.get("allocationPadding"),
    )
    access = [NETWORK, PHYSICAL] if kind == "gfs2" else [PHYSICAL]
    only = _set("AllocatePerCompute", kind, size, _constraints(options))
    return [(only, access)]


def requires_of(directive: Directive) -> list[str]:
    text = directive.get("requires")
    return text.split(",") if text else []


def _compute(servers: Object, accesses: list[Access]) -> Object:
    locations: list[Object] = [
        {
            "access": access,
            "reference": {
                **ref(servers),
                "fieldPath": f"servers.spec.allocationSets[{i}]",
            },
        }
        for i, access in enumerate(accesses)
    ]
    return {"constraints": {"location": locations}}


async def make_servers(
    controller: Controller, owner: Object, name: str, labels: dict[str, str]
) -> Object:
    """The empty Servers that the workload manager fills in."""
    namespace = owner["metadata"]["namespace"]
    return await controller.cluster.create(
        "servers", child(owner, namespace, name, labels, SERVERS_FINALIZER, spec={})
    )


class BreakdownController(Controller):
    """NNF's DirectiveBreakdown controller."""

    plural = "directivebreakdowns"

    async def reconcile(self, namespace: str, name: str) -> float | None:
        obj = await self.cluster.get(self.plural, namespace, name)
        if obj is None:
            return None
        if is_deleting(obj):
            await drop_finalizer(self.cluster, self.plural, obj, BREAKDOWN_FINALIZER)
            return None
        if obj.get("status", {}).get("ready"):
            return None
        obj = await add_finalizer(self.cluster, self.plural, obj, BREAKDOWN_FINALIZER)
        status: Object
        failed: ResourceError | None = None
        try:
            status = await self._status(obj)
        except ResourceError as exc:
            failed = exc
            status = {"ready": False, "error": exc.to_object()}
        new = {**obj, "status": status}
        await self.cluster.update_status(self.plural, new)
        # A wrong profile may be put right: look again in a while.
        return 1.0 if failed else None

    async def _status(self, obj: Object) -> Object:
        directive = parse(obj["spec"]["directive"])
        status: Object = {"ready": True}
        words = requires_of(directive)
        if words:
            status["requires"] = words
        if directive.command == "persistentdw":
            status["compute"] = await self._persistent(obj, directive)
            return status
        meta = obj["metadata"]
        name = meta["name"]
        if directive.command == "create_persistent":
            name = directive.get("name") or ""
        profile = await self.cluster.get("nnfstorageprofiles", meta["namespace"], name)
        if profile is None:
            profile = await find_profile(
                self.cluster, "nnfstorageprofiles", directive.get("profile")
            )
        sets = allocation_sets(directive, profile.get("data", {}))
        lifetime = "persistent"
        servers: Object = {
            "kind": "Servers",
            "metadata": {"name": name, "namespace": meta["namespace"]},
        }
        if directive.command == "jobdw":
            lifetime = "job"
            servers = await make_servers(self, obj, name, inherited_labels(obj))
            status["compute"] = _compute(servers, [a for _, a in sets])
        status["storage"] = {
            "lifetime": lifetime,
            "reference": ref(servers),
            "allocationSets": [s for s, _ in sets],
        }
        return status

    async def _persistent(self, obj: Object, directive: Directive) -> Any:
        namespace, name = obj["metadata"]["namespace"], directive.get("name") or ""
        servers = await self.cluster.get("servers", namespace, name)
        if servers is None:
            raise fatal(f"PersistentStorageInstance '{name}' not found")
        sets = servers.get("spec", {}).get("allocationSets", ())
        return _compute(servers, [[PHYSICAL] for _ in sets])
