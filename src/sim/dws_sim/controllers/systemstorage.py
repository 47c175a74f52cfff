# Storage that no workflow asks for: an allocation on each rabbit, and if it is
# wanted, mounted on their computes.
# SPDX-License-Identifier: LGPL-3.0-only
"""The NnfSystemStorage controller."""

from __future__ import annotations

from dws_sim.controllers.cluster import Cluster
from dws_sim.controllers.common import (
    ResourceError,
    add_finalizer,
    child,
    drop_finalizer,
    fatal,
    inherited_labels,
    is_deleting,
    missing,
    owner_of,
    ref,
)
from dws_sim.controllers.manager import Controller, Manager
from dws_sim.jsontree import Object
from dws_sim.schema.resources import NNF_GROUP

FINALIZER = f"{NNF_GROUP}/nnf_system_storage"


def rabbits_of(spec: Object, config: Object, disabled: set[str]) -> list[Object]:
    """The storage nodes that are meant, as the SystemConfiguration has them."""
    only, never = spec.get("includeRabbits"), spec.get("excludeRabbits", ())
    if spec.get("excludeDisabledRabbits"):
        never = {*never, *disabled}
    return [
        node
        for node in config["spec"].get("storageNodes", ())
        if (not only or node["name"] in only) and node["name"] not in never
    ]


def computes_of(spec: Object, node: Object) -> list[str]:
    """The computes of a rabbit that are meant."""
    target = spec.get("computesTarget", "all")
    slots = {
        "all": range(16),
        "even": range(0, 16, 2),
        "odd": range(1, 16, 2),
        "pattern": spec.get("computesPattern", ()),
    }[target]
    only, never = spec.get("includeComputes"), spec.get("excludeComputes", ())
    return [
        access["name"]
        for access in node.get("computesAccess", ())
        if access["index"] in slots
        and (not only or access["name"] in only)
        and access["name"] not in never
    ]


class SystemStorageController(Controller):
    """NnfSystemStorage: an NnfStorage of its name, with Computes and an NnfAccess
    where its computes mount it."""

    plural = "nnfsystemstorages"

    def __init__(self, cluster: Cluster, manager: Manager) -> None:
        super().__init__(cluster, manager)
        for plural in ("nnfstorages", "nnfaccesses"):
            cluster.subscribe(plural, self._child)

    def _child(self, obj: Object, old: Object | None, gone: bool) -> None:
        owner = owner_of(obj, "NnfSystemStorage")
        if owner is not None:
            self.enqueue(*owner)

    async def reconcile(self, namespace: str, name: str) -> float | None:
        obj = await self.cluster.get(self.plural, namespace, name)
        if obj is None:
            return None
        if is_deleting(obj):
            await self._remove(obj)
            return None
        obj = await add_finalizer(self.cluster, self.plural, obj, FINALIZER)
        try:
            status: Object = {"ready": await self._make(obj)}
        except ResourceError as exc:
            status = {"ready": False, "error": exc.to_object()}
        if obj.get("status") != status:
            await self.cluster.update_status(self.plural, {**obj, "status": status})
        return None

    async def _make(self, obj: Object) -> bool:
        """Create missing parts. Returns whether all parts exist.

        Raises:
            ResourceError: a part cannot be created.
        """
        meta, spec = obj["metadata"], obj["spec"]
        place = spec.get("systemConfiguration") or {}
        where = (place.get("namespace", "default"), place.get("name", "default"))
        config = await self.cluster.get("systemconfigurations", *where)
        if config is None:
            raise fatal("", "User", missing("SystemConfiguration", where[1]))
        profile = spec["storageProfile"]
        of = (profile.get("namespace", ""), profile.get("name", ""))
        if await self.cluster.get("nnfstorageprofiles", *of) is None:
            raise fatal("", "User", missing("NnfStorageProfile", of[1]))
        disabled = {
            s["metadata"]["name"]
            for s in await self.cluster.find("storages")
            if s["spec"]["state"] == "Disabled"
        }
        nodes = rabbits_of(spec, config, disabled)
        counts = {n["name"]: len(computes_of(spec, n)) for n in nodes}
        made = await self.cluster.create(
            "nnfstorages", self._storage(obj, {r: c for r, c in counts.items() if c})
        )
        ready = bool(made.get("status", {}).get("ready"))
        if error := made.get("status", {}).get("error"):
            raise ResourceError.of(error)
        if not ready or not spec["makeClientMounts"]:
            return ready
        names = [name for n in nodes for name in computes_of(spec, n)]
        labels = inherited_labels(obj)
        body = child(obj, meta["namespace"], meta["name"], labels)
        computes = await self.cluster.create(
            "computes", {**body, "data": [{"name": name} for name in names]}
        )
        access = await self.cluster.create("nnfaccesses", self._access(obj, computes))
        status = access.get("status", {})
        if error := status.get("error"):
            raise ResourceError.of(error)
        return bool(status.get("state") == "mounted" and status["ready"])

    @staticmethod
    def _storage(obj: Object, counts: dict[str, int]) -> Object:
        meta, spec = obj["metadata"], obj["spec"]
        if not counts:
            raise fatal("", "User", "no rabbits with computes are left")
        alloc = {
            "name": spec["type"],
            "capacity": spec["capacity"],
            "nodes": [
                {"name": rabbit, "count": 1 if spec["shared"] else count}
                for rabbit, count in counts.items()
            ],
        }
        body = {
            "fileSystemType": spec["type"],
            "userID": 0,
            "groupID": 0,
            "allocationSets": [alloc],
        }
        labels = inherited_labels(obj)
        return child(obj, meta["namespace"], meta["name"], labels, spec=body)

    @staticmethod
    def _access(obj: Object, computes: Object) -> Object:
        meta, spec = obj["metadata"], obj["spec"]
        body = {
            "desiredState": "mounted",
            "teardownState": "Teardown",
            "target": "shared" if spec["shared"] else "single",
            "userID": 0,
            "groupID": 0,
            "mountPath": spec.get("clientMountPath") or f"/mnt/nnf/{meta['name']}",
            "clientReference": ref(computes),
            "storageReference": {
                "kind": "NnfStorage",
                "name": meta["name"],
                "namespace": meta["namespace"],
            },
        }
        labels = inherited_labels(obj)
        return child(obj, meta["namespace"], meta["name"], labels, spec=body)

    async def _remove(self, obj: Object) -> None:
        """First what is mounted, then the storage."""
        meta = obj["metadata"]
        for plural in ("nnfaccesses", "nnfstorages"):
            found = await self.cluster.get(plural, meta["namespace"], meta["name"])
            if found is not None:
                if not is_deleting(found):
                    place = (meta["namespace"], meta["name"])
                    await self.cluster.delete(plural, *place)
                return
        await self.cluster.delete("computes", meta["namespace"], meta["name"])
        await drop_finalizer(self.cluster, self.plural, obj, FINALIZER)
