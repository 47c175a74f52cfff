# Allocations: NnfStorage takes space on rabbits and gives it back, Servers
# shows the workload manager how far that is.
# SPDX-License-Identifier: LGPL-3.0-only
"""NnfStorage and Servers controllers, and the ledger of space."""

from __future__ import annotations

from dws_sim.controllers.cluster import Cluster
from dws_sim.controllers.common import (
    OWNER_UID,
    SERVERS_FINALIZER,
    STORAGE_FINALIZER,
    ResourceError,
    add_finalizer,
    child,
    drop_finalizer,
    fatal,
    inherited_labels,
    is_deleting,
    not_picked_up,
    owner_of,
    ref,
)
from dws_sim.controllers.manager import Controller, Manager
from dws_sim.controllers.pool import note_user
from dws_sim.faults import Faults
from dws_sim.jsontree import Object, now_micro
from dws_sim.mounts import Mounts

LUSTRE_MINIMUM = 4_000_000_000


def backing_name(storage: Object) -> str:
    """The directory of an NnfStorage's data: unique, also over time."""
    return f"{storage['metadata']['name']}-{storage['metadata']['uid']}"


class Ledger:
    """Bytes in use on each rabbit."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}
        self._by_storage: dict[str, dict[str, int]] = {}

    def used(self, rabbit: str) -> int:
        return self._used.get(rabbit, 0)

    def total(self) -> dict[str, int]:
        """Bytes by rabbit, without the empty ones."""
        return {r: n for r, n in sorted(self._used.items()) if n}

    def take(self, uid: str, sizes: dict[str, int]) -> None:
        """Note the allocations of a storage. Once is enough."""
        if uid in self._by_storage:
            return
        self._by_storage[uid] = dict(sizes)
        for rabbit, size in sizes.items():
            self._used[rabbit] = self._used.get(rabbit, 0) + size

    def has(self, uid: str) -> bool:
        return uid in self._by_storage

    def give(self, uid: str) -> None:
        """Free the allocations of a storage. None is a success."""
        for rabbit, size in self._by_storage.pop(uid, {}).items():
            self._used[rabbit] -= size


def wanted_bytes(storage: Object) -> list[dict[str, int]]:
    """Bytes by rabbit that each allocation set asks for."""
    out = []
    for alloc in storage["spec"]["allocationSets"]:
        size = alloc["capacity"]
        if storage["spec"]["fileSystemType"] == "lustre":
            size = max(size, LUSTRE_MINIMUM)
        sizes: dict[str, int] = {}
        for node in alloc["nodes"]:
            sizes[node["name"]] = sizes.get(node["name"], 0) + size * node["count"]
        out.append(sizes)
    return out


class StorageController(Controller):
    """NnfStorage: space on rabbits."""

    plural = "nnfstorages"

    def __init__(
        self,
        cluster: Cluster,
        manager: Manager,
        ledger: Ledger,
        mounts: Mounts,
        faults: Faults,
    ) -> None:
        super().__init__(cluster, manager)
        self._faults = faults
        faults.listeners.append(self._look_again)
        self._ledger = ledger
        self._mounts = mounts
        cluster.subscribe("storages", self._rabbit)
        self._waiting: dict[str, set[tuple[str, str]]] = {}
        # uids of file systems that have their owner
        self._owned: set[str] = set()
        cluster.subscribe("clientmounts", self._mount)

    def _mount(self, obj: Object, old: Object | None, gone: bool) -> None:
        owner = owner_of(obj, "NnfStorage")
        if owner is not None:
            self.enqueue(*owner)

    def forget(self, obj: Object) -> None:
        self._owned.discard(obj["metadata"]["uid"])

    def _look_again(self) -> None:
        for waiting in self._waiting.values():
            for namespace, name in waiting:
                self.enqueue(namespace, name)

    def _rabbit(self, obj: Object, old: Object | None, gone: bool) -> None:
        for namespace, name in self._waiting.pop(obj["metadata"]["name"], ()):
            self.enqueue(namespace, name)

    async def reconcile(self, namespace: str, name: str) -> float | None:
        obj = await self.cluster.get(self.plural, namespace, name)
        if obj is None:
            return None
        if is_deleting(obj):
            await self._destroy(obj)
            return None
        if obj.get("status", {}).get("ready"):
            # after a restart the ledger is filled from what is there
            self._note(obj)
            return None
        obj = await add_finalizer(self.cluster, self.plural, obj, STORAGE_FINALIZER)
        try:
            await note_user(self.cluster, obj, True)
            done = await self._allocate(obj)
        except ResourceError as exc:
            status: Object = {"ready": False, "error": exc.to_object()}
            await self.cluster.update_status(self.plural, {**obj, "status": status})
            # space may become free
            return 1.0
        if done and obj["spec"]["fileSystemType"] == "lustre":
            done = await self._owner_group(obj)
        if done:
            status = {
                "ready": True,
                "allocationSets": [
                    {"ready": True, "allocatedBytes": sizes}
                    for sizes in wanted_bytes(obj)
                ],
            }
            await self.cluster.update_status(self.plural, {**obj, "status": status})
            return None
        return self._faults.child_time_left(obj)

    def _note(self, obj: Object) -> None:
        sizes: dict[str, int] = {}
        for part in wanted_bytes(obj):
            for rabbit, size in part.items():
                sizes[rabbit] = sizes.get(rabbit, 0) + size
        self._ledger.take(obj["metadata"]["uid"], sizes)

    async def _allocate(self, obj: Object) -> bool:
        if not self._ledger.has(obj["metadata"]["uid"]):
            sizes: dict[str, int] = {}
            for part in wanted_bytes(obj):
                for rabbit, size in part.items():
                    sizes[rabbit] = sizes.get(rabbit, 0) + size
            for rabbit, size in sizes.items():
                if not await self._fits(obj, rabbit, size):
                    return False
        self._note(obj)
        spec = obj["spec"]
        self._mounts.allocate(backing_name(obj), spec["userID"], spec["groupID"])
        return True

    async def _owner_group(self, obj: Object) -> bool:
        """Give a new Lustre file system its owner, for which a rabbit mounts it
        for a moment. True: that is done."""
        meta, spec = obj["metadata"], obj["spec"]
        if meta["uid"] in self._owned:
            return True
        node, name = spec["allocationSets"][0]["nodes"][0]["name"], meta["name"]
        name = f"{name}-ownergroup"
        mount = await self.cluster.get("clientmounts", node, name)
        if mount is None:
            body = {
                "mountPath": f"/mnt/nnf/{meta['uid']}",
                "options": "",
                "setPermissions": True,
                "targetType": "directory",
                "type": "lustre",
                "userID": spec["userID"],
                "groupID": spec["groupID"],
                "device": {
                    "type": "reference",
                    "deviceReference": {"data": 0, "objectReference": ref(obj)},
                },
            }
            new = {"node": node, "desiredState": "mounted", "mounts": [body]}
            labels = inherited_labels(obj)
            await self.cluster.create(
                "clientmounts", child(obj, node, name, labels, spec=new)
            )
            return False
        status = mount.get("status", {})
        if not status.get("allReady"):
            if status.get("error"):
                raise ResourceError.of(status["error"])
            return False
        self._owned.add(meta["uid"])
        await self.cluster.delete("clientmounts", node, name)
        return True

    async def _fits(self, obj: Object, rabbit: str, size: int) -> bool:
        """False: the rabbit does not answer now."""
        storage = await self.cluster.get("storages", "default", rabbit)
        status = (storage or {}).get("status", {})
        if status.get("status") in (None, "Offline", "NotPresent", "Unknown"):
            meta = obj["metadata"]
            waiting = self._waiting.setdefault(rabbit, set())
            waiting.add((meta["namespace"], meta["name"]))
            if self._faults.child_time_left(obj) <= 0:
                raise not_picked_up(rabbit, "NnfNodeStorage", self._faults)
            return False
        if self._ledger.used(rabbit) + size > status["capacity"]:
            raise fatal(f"{rabbit}: insufficient capacity available", "WLM")
        return True

    async def _destroy(self, obj: Object) -> None:
        meta = obj["metadata"]
        for mount in await self.cluster.find("clientmounts", {OWNER_UID: meta["uid"]}):
            place = mount["metadata"]
            await self.cluster.delete("clientmounts", place["namespace"], place["name"])
        await note_user(self.cluster, obj, False)
        self._ledger.give(meta["uid"])
        self._mounts.destroy(backing_name(obj), meta["name"])
        await drop_finalizer(self.cluster, self.plural, obj, STORAGE_FINALIZER)


class ServersController(Controller):
    """Servers.status mirrors the NnfStorage of the same name."""

    plural = "servers"

    def __init__(self, cluster: Cluster, manager: Manager) -> None:
        super().__init__(cluster, manager)
        cluster.subscribe("nnfstorages", self._storage)

    def _storage(self, obj: Object, old: Object | None, gone: bool) -> None:
        owner = owner_of(obj, "Servers")
        if owner is not None:
            self.enqueue(*owner)

    async def reconcile(self, namespace: str, name: str) -> float | None:
        obj = await self.cluster.get(self.plural, namespace, name)
        if obj is None:
            return None
        storage = await self.cluster.get("nnfstorages", namespace, name)
        if is_deleting(obj):
            if storage is None:
                await drop_finalizer(self.cluster, self.plural, obj, SERVERS_FINALIZER)
            elif not is_deleting(storage):
                await self.cluster.delete("nnfstorages", namespace, name)
            return None
        before = obj.get("status", {})
        status = self._status(obj, storage, bool(before.get("ready")))
        if status is None or status == {
            k: v for k, v in before.items() if k != "lastUpdate"
        }:
            return None
        new = {**obj, "status": {**status, "lastUpdate": now_micro()}}
        await self.cluster.update_status(self.plural, new)
        return None

    @staticmethod
    def _status(obj: Object, storage: Object | None, was_ready: bool) -> Object | None:
        sets = obj.get("spec", {}).get("allocationSets", ())
        if storage is None and not obj.get("status", {}).get("allocationSets"):
            # nothing was made yet
            return None
        made = (storage or {}).get("status", {}).get("allocationSets", ())
        out: list[Object] = []
        for i, alloc in enumerate(sets):
            sizes = made[i]["allocatedBytes"] if i < len(made) else {}
            out.append(
                {
                    "label": alloc["label"],
                    "storage": {
                        node["name"]: {
                            "allocationSize": sizes.get(node["name"], 0),
                            "ready": node["name"] in sizes,
                        }
                        for node in alloc["storage"]
                    },
                }
            )
        ready = was_ready or bool((storage or {}).get("status", {}).get("ready"))
        status: Object = {"ready": ready, "allocationSets": out}
        error = (storage or {}).get("status", {}).get("error")
        if error:
            status["error"] = error
        return status
