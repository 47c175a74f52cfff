# Computes the storage of a directive for the workload manager: allocation sets with
# their constraints, the location of computes, and an empty Servers.
# SPDX-License-Identifier: LGPL-3.0-only
"""The DirectiveBreakdown controller."""

from __future__ import annotations

from typing import Any

from dws_sim.controllers.cluster import Cluster
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
    met,
    missing,
    owner_of,
    ref,
)
from dws_sim.controllers.manager import Controller, Manager, Retry
from dws_sim.controllers.pool import POOL_LABEL
from dws_sim.controllers.profiles import find_profile, padded, pin_profile
from dws_sim.directive import Directive, capacity_bytes, parse
from dws_sim.errors import ApiError
from dws_sim.jsontree import Object, edit
from dws_sim.schema.resources import DWS_GROUP

PHYSICAL = {"type": "physical", "priority": "mandatory"}
NETWORK = {"type": "network", "priority": "mandatory"}
NEAR = {"type": "physical", "priority": "bestEffort"}
INSTANCES = "persistentstorageinstances"
PROFILES = "nnfstorageprofiles"
IGNORE_UID = f"{DWS_GROUP}/ignore-uid"
# what the API can store
MOST_BYTES = (1 << 63) - 1
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
            raise fatal(
                "standaloneMgtPoolName option can only be used with "
                "'create_persistent' directive"
            )
        if text is not None:
            raise fatal("creating persistent MGT does not accept 'capacity' argument")
        return _lustre(profile, 0)
    if text is None:
        raise fatal("creating persistent storage requires 'capacity' argument")
    capacity = capacity_bytes(text)
    if capacity == 0:
        raise fatal("'capacity' must be a non-zero value", "Internal")
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


def check_user(instance: Object, user: int, word: str, lifted: bool = True) -> None:
    """Whether a user may do something with an instance.

    Args:
        word: begins the story.
        lifted: whether the instance may allow all users.
    Raises:
        ResourceError: it belongs to another user.
    """
    owner = instance["spec"]["userID"]
    annotations = instance["metadata"].get("annotations", {})
    if owner == user or (lifted and annotations.get(IGNORE_UID) == "true"):
        return
    text = f"{'U' if lifted else 'u'}ser ID does not match existing persistent storage"
    debug = f"persistent storage user ID {owner} does not match user ID {user}"
    raise fatal(text, "User", word + debug)


class BreakdownController(Controller):
    """NNF's DirectiveBreakdown controller."""

    plural = "directivebreakdowns"

    def __init__(self, cluster: Cluster, manager: Manager) -> None:
        super().__init__(cluster, manager)
        cluster.subscribe(INSTANCES, self._instance_changed)
        cluster.subscribe("servers", self._servers_changed)

    def _servers_changed(self, obj: Object, old: Object | None, gone: bool) -> None:
        owner = owner_of(obj, "DirectiveBreakdown")
        if gone and owner is not None:
            self.enqueue(*owner)

    def _instance_changed(self, obj: Object, old: Object | None, gone: bool) -> None:
        # its owner hears of it, and no other that names it
        owner = owner_of(obj, "DirectiveBreakdown")
        if owner is not None:
            self.enqueue(*owner)

    async def reconcile(self, namespace: str, name: str) -> float | None:
        obj = await self.cluster.get(self.plural, namespace, name)
        if obj is None:
            return None
        if is_deleting(obj):
            await drop_finalizer(self.cluster, self.plural, obj, BREAKDOWN_FINALIZER)
            return None
        if obj.get("status", {}).get("ready"):
            await self._keep_servers(obj)
            return None
        obj = await add_finalizer(self.cluster, self.plural, obj, BREAKDOWN_FINALIZER)
        status: Object = {"ready": False}
        failed = False
        try:
            status["ready"] = await self._fill(obj, status)
        except ResourceError as exc:
            failed = True
            status["error"] = exc.to_object()
        except ApiError as exc:
            if exc.code not in (403, 422):
                raise
            failed = True
            status["error"] = met(exc).to_object()
        if (status["ready"] or failed) and status != obj.get("status"):
            await self.cluster.update_status(self.plural, {**obj, "status": status})
        # An admin may correct a wrong profile: try again later.
        return 1.0 if failed else None

    async def _keep_servers(self, obj: Object) -> None:
        """Create the Servers of a job again, empty, if a user has deleted it."""
        storage = obj["status"].get("storage", {})
        namespace, name = obj["metadata"]["namespace"], obj["metadata"]["name"]
        if storage.get("lifetime") != "job":
            return
        if await self.cluster.get("servers", namespace, name) is None:
            await make_servers(self, obj, name, inherited_labels(obj))

    async def _fill(self, obj: Object, status: Object) -> bool:
        """Fill in a status. False: something is still missing.

        Raises:
            ResourceError: there is a fault; what was done before it counts.
        """
        directive = parse(obj["spec"]["directive"])
        words = requires_of(directive)
        if words:
            status["requires"] = words
        if directive.command == "persistentdw":
            status["compute"] = await self._persistent(obj, directive)
            return True
        name = obj["metadata"]["name"]
        if directive.command == "create_persistent":
            instance = await self._instance(obj, directive)
            servers = instance.get("status", {}).get("servers")
            if servers is None:
                return False
            name = directive.get("name") or ""
            status["storage"] = {"lifetime": "persistent", "reference": servers}
        else:
            labels = inherited_labels(obj)
            made = await make_servers(self, obj, name, labels)
            status["storage"] = {"lifetime": "job", "reference": ref(made)}
        profile = await self.cluster.get(PROFILES, obj["metadata"]["namespace"], name)
        if profile is None:
            profile = await find_profile(
                self.cluster, PROFILES, directive.get("profile")
            )
        sets = allocation_sets(directive, profile.get("data", {}))
        if any(s["minimumCapacity"] > MOST_BYTES for s, _ in sets):
            # the API server rejects such an object, so no status reports the error
            raise Retry(f"a capacity beyond 64 bits: {directive.text}")
        status["storage"]["allocationSets"] = [s for s, _ in sets]
        if directive.command == "jobdw":
            status["compute"] = _compute(made, [a for _, a in sets])
        return True

    async def _instance(self, obj: Object, directive: Directive) -> Object:
        """The persistent storage that a directive creates, unless another workflow of
        the same user has created it before."""
        namespace, name = obj["metadata"]["namespace"], directive.get("name") or ""
        user = obj["spec"]["userID"]
        found = await self.cluster.get(INSTANCES, namespace, name)
        if found is not None:
            check_user(found, user, "existing ")
            wanted = {"fsType": directive.get("type"), "dwDirective": directive.text}
            new = edit(found, "spec")
            new["spec"].update(wanted)
            if new != found:
                await self.cluster.update(INSTANCES, new)
            return found
        profile = await find_profile(self.cluster, PROFILES, directive.get("profile"))
        spec = {
            "name": name,
            "fsType": directive.get("type"),
            "dwDirective": directive.text,
            "userID": user,
            "state": "Active",
        }
        # none of the workflow, which it outlives
        labels: dict[str, str] = {}
        pool = standalone_pool(profile.get("data", {}))
        if pool and spec["fsType"] == "lustre":
            labels[POOL_LABEL] = pool
        made = await self.cluster.create(
            INSTANCES, child(obj, namespace, name, labels, spec=spec)
        )
        # its Servers and its breakdown are made from its own copy
        await pin_profile(self.cluster, PROFILES, profile, made, name, {})
        return made

    async def _persistent(self, obj: Object, directive: Directive) -> Any:
        namespace, name = obj["metadata"]["namespace"], directive.get("name") or ""
        servers = await self.cluster.get("servers", namespace, name)
        if servers is None:
            raise ResourceError(debug=missing("Servers", name))
        sets = servers.get("spec", {}).get("allocationSets", ())
        return _compute(servers, [[PHYSICAL] for _ in sets])
