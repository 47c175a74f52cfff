# Allocations: reconciles NnfStorage, which allocates and frees space on rabbits, and
# Servers, which reports the progress to the workload manager.
# SPDX-License-Identifier: LGPL-3.0-only
"""NnfStorage and Servers controllers."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

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
)
from dws_sim.controllers.devices import (
    file_system_name,
    first_ost,
    lustre_device,
    owner_fields,
)
from dws_sim.controllers.health import Hardware
from dws_sim.controllers.manager import Controller, Manager
from dws_sim.controllers.pool import note_user
from dws_sim.drives import Ledger, NoRoomError
from dws_sim.faults import Faults
from dws_sim.jsontree import Object, edit, now_micro
from dws_sim.mounts import Mounts

LUSTRE_MINIMUM = 4_000_000_000
_NO_ROOM = (
    "Node: {rabbit}: unable to allocate NVMe namespaces for allocation {index}: could "
    "not create storage pool: could not allocate storage pool: Error 406: Not "
    "Acceptable, Retry-Delay: 0s, Resource: #StorageService.v1_5_0.StorageService, "
    "Cause: Insufficient capacity available, Internal Error: {why}"
)
_TWO_MGTS = (
    "could not get available fsname: could not get NnfLustreMGT for address: "
    "{address}: multiple MGTs found for address {address}"
)


def backing_name(storage: Object) -> str:
    """The directory of an NnfStorage's data: unique, also over time."""
    return f"{storage['metadata']['name']}-{storage['metadata']['uid']}"


@dataclass(frozen=True)
class Pool:
    """Space that is taken at once: an allocation, or all of a rabbit's."""

    rabbit: str
    name: str
    # among those of the same rabbit and set
    index: int
    size: int


def pools(storage: Object) -> list[list[Pool]]:
    """The pools of each allocation set."""
    out = []
    for i, alloc in enumerate(storage["spec"]["allocationSets"]):
        size = alloc["capacity"]
        if storage["spec"]["fileSystemType"] == "lustre":
            size = max(size, LUSTRE_MINIMUM)
        found: list[Pool] = []
        for k, node in enumerate(alloc["nodes"]):
            sizes = [size] * node["count"]
            if alloc.get("sharedAllocation"):
                sizes = [sum(sizes)]
            for n, each in enumerate(sizes):
                found.append(Pool(node["name"], f"{i}-{k}-{n}", n, each))
        out.append(found)
    return out


def mgs_address(storage: Object) -> str:
    """Where a Lustre file system would have its own management target, or "" if it
    has none, or not yet."""
    made = storage.get("status", {}).get("allocationSets", ())
    for alloc, have in zip(storage["spec"]["allocationSets"], made):
        if alloc["name"] in ("mgt", "mgtmdt") and have["ready"]:
            return f"{alloc['nodes'][0]['name']}@tcp"
    return ""


async def find_mgs(cluster: Cluster, storage: Object) -> str:
    """Address of a file system's own management target, from its status if known.

    Raises:
        ResourceError: Fatal, another file system has one there.
    """
    address = str(storage.get("status", {}).get("mgsAddress") or "")
    if address:
        return address
    address = mgs_address(storage)
    uid = storage["metadata"]["uid"]
    for other in await cluster.find("nnfstorages") if address else ():
        if other["metadata"]["uid"] != uid and mgs_address(other) == address:
            raise fatal("", "WLM", _TWO_MGTS.format(address=address))
    return address


async def recover(cluster: Cluster, ledger: Ledger) -> None:
    """Learn from the objects what has been allocated in an earlier life. Once
    is enough."""
    if ledger.recovered:
        return
    ledger.recovered = True
    for obj in await cluster.find("nnfstorages"):
        made = obj.get("status", {}).get("allocationSets", ())
        for have, wanted in zip(made, pools(obj)):
            for pool in wanted:
                if not have["allocatedBytes"].get(pool.rabbit):
                    continue
                with contextlib.suppress(NoRoomError):
                    uid = obj["metadata"]["uid"]
                    ledger.take(uid, pool.rabbit, pool.name, pool.size)


def bring_back(obj: Object, mounts: Mounts) -> None:
    """Allocate for an NnfStorage that a restore has brought back. Storage that was
    destroyed since the backup comes back empty."""
    if obj.get("status", {}).get("ready"):
        spec = obj["spec"]
        mounts.allocate(backing_name(obj), spec["userID"], spec["groupID"])


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
        hardware: Hardware,
    ) -> None:
        super().__init__(cluster, manager)
        self._faults = faults
        self._hardware = hardware
        faults.listeners.append(self._look_again)
        self._ledger = ledger
        self._mounts = mounts
        cluster.subscribe("storages", self._rabbit)
        self._waiting: dict[str, set[tuple[str, str]]] = {}
        cluster.subscribe("clientmounts", self._mount)

    def _mount(self, obj: Object, old: Object | None, gone: bool) -> None:
        owner = owner_of(obj, "NnfStorage")
        if owner is not None:
            self.enqueue(*owner)

    def _look_again(self) -> None:
        for waiting in self._waiting.values():
            for namespace, name in waiting:
                self.enqueue(namespace, name)

    def _rabbit(self, obj: Object, old: Object | None, gone: bool) -> None:
        for namespace, name in self._waiting.pop(obj["metadata"]["name"], ()):
            self.enqueue(namespace, name)

    def forget(self, obj: Object) -> None:
        # Also of one that is lost with what has come since a backup.
        self._ledger.give(obj["metadata"]["uid"])
        self._mounts.destroy(backing_name(obj), obj["metadata"]["name"])

    async def reconcile(self, namespace: str, name: str) -> float | None:
        obj = await self.cluster.get(self.plural, namespace, name)
        if obj is None:
            return None
        if is_deleting(obj):
            await self._destroy(obj)
            return None
        if obj.get("status", {}).get("ready"):
            return None
        obj = await add_finalizer(self.cluster, self.plural, obj, STORAGE_FINALIZER)
        count = len(obj["spec"]["allocationSets"])
        if len(obj.get("status", {}).get("allocationSets", ())) != count:
            sets = [{"ready": False, "allocatedBytes": {}} for _ in range(count)]
            await self._say(obj, {"ready": False, "allocationSets": sets})
            return None
        sets, fault = await self._allocate(obj)
        done = fault is None and all(s["ready"] for s in sets)
        status: Object = {"ready": False, "allocationSets": sets}
        if mgs := obj.get("status", {}).get("mgsAddress"):
            status["mgsAddress"] = mgs
        try:
            lustre = fault is None and obj["spec"]["fileSystemType"] == "lustre"
            if lustre and (
                mgs := await find_mgs(self.cluster, {**obj, "status": status})
            ):
                status["mgsAddress"] = mgs
            if lustre:
                status["fileSystemName"] = file_system_name(obj)
            await note_user(self.cluster, obj, True)
            if fault is not None:
                raise fault
            if done:
                spec = obj["spec"]
                name = backing_name(obj)
                self._mounts.allocate(name, spec["userID"], spec["groupID"])
                if spec["fileSystemType"] == "lustre":
                    done = await self._owner_group(obj)
        except ResourceError as exc:
            await self._say(obj, {**status, "error": exc.to_object()})
            # space may become free
            return 1.0
        await self._say(obj, {**status, "ready": done})
        return None if done else self._faults.child_time_left(obj)

    async def _say(self, obj: Object, status: Object) -> None:
        if obj.get("status") != status:
            await self.cluster.update_status(self.plural, {**obj, "status": status})

    async def _allocate(self, obj: Object) -> tuple[list[Object], ResourceError | None]:
        """Take the space that there is: rabbits do not know of each other.
        Returns how far that is, set by set, and the first fault."""
        await recover(self.cluster, self._ledger)
        uid, late = obj["metadata"]["uid"], None
        faults: list[ResourceError] = []
        out: list[Object] = []
        for wanted in pools(obj):
            sizes: dict[str, int] = {}
            waiting: set[str] = set()
            for pool in wanted:
                rabbit = pool.rabbit
                have = self._ledger.taken(uid, rabbit, pool.name)
                if not have and rabbit not in waiting:
                    try:
                        have = await self._take(obj, pool)
                    except ResourceError as exc:
                        faults.append(exc)
                if not have:
                    waiting.add(rabbit)
                sizes[rabbit] = sizes.get(rabbit, 0) + have
            if waiting and self._faults.child_time_left(obj) <= 0:
                late = late or min(waiting)
            out.append(
                {
                    "ready": not waiting,
                    "allocatedBytes": {r: n for r, n in sizes.items() if n},
                    "waitingFor": sorted(waiting),
                }
            )
        if not faults and late is not None:
            faults = [not_picked_up(late, "NnfNodeBlockStorage", self._faults)]
        return out, faults[0] if faults else None

    async def _take(self, obj: Object, pool: Pool) -> int:
        """Allocate the space of a pool; 0: the rabbit does not answer now.

        Raises:
            ResourceError: the rabbit has less space.
        """
        rabbit, meta = pool.rabbit, obj["metadata"]
        storage = await self.cluster.get("storages", "default", rabbit)
        word = (storage or {}).get("status", {}).get("status")
        away = word in (None, "Offline", "NotPresent", "Unknown")
        if away or rabbit in self._hardware.dead or rabbit not in self._ledger:
            waiting = self._waiting.setdefault(rabbit, set())
            waiting.add((meta["namespace"], meta["name"]))
            return 0
        failed = self._hardware.drives.get(rabbit, ())
        try:
            return self._ledger.take(meta["uid"], rabbit, pool.name, pool.size, failed)
        except NoRoomError as exc:
            debug = _NO_ROOM.format(rabbit=rabbit, index=pool.index, why=exc)
            user = f"{rabbit}: insufficient capacity available"
            raise fatal(user, "WLM", debug) from exc

    async def _owner_group(self, obj: Object) -> bool:
        """Give a new Lustre file system its owner, for which a rabbit mounts it
        for a moment. The ClientMount stays. True: that is done."""
        meta, spec = obj["metadata"], obj["spec"]
        place = first_ost(obj)
        node, name = place.rabbit, f"{meta['name']}-ownergroup"
        mount = await self.cluster.get("clientmounts", node, name)
        if mount is None:
            reference = {"name": place.storage, "namespace": node}
            body: Object = {
                "mountPath": f"/mnt/nnf/{meta['uid']}",
                "options": "",
                "targetType": "directory",
                "type": "lustre",
                "device": lustre_device(obj, {"objectReference": reference}),
                **owner_fields(spec),
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
                raise ResourceError.of(status["error"]).within(f"Node: {node}")
            return False
        if mount["spec"]["desiredState"] == "mounted":
            back = edit(mount, "spec")
            back["spec"]["desiredState"] = "unmounted"
            await self.cluster.update("clientmounts", back)
            return False
        return bool(status["mounts"][0]["state"] == "unmounted")

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
                return None
            # Teardown of the workflow alone deletes the storage of a job.
            if owner_of(obj, "PersistentStorageInstance") is not None:
                if not is_deleting(storage):
                    await self.cluster.delete("nnfstorages", namespace, name)
                return None
        before = obj.get("status", {})
        status = self._status(obj, storage, bool(before.get("ready")))
        if status == {k: v for k, v in before.items() if k != "lastUpdate"}:
            return None
        new = {**obj, "status": {**status, "lastUpdate": now_micro()}}
        await self.cluster.update_status(self.plural, new)
        return None

    @staticmethod
    def _status(obj: Object, storage: Object | None, was_ready: bool) -> Object:
        sets = obj.get("spec", {}).get("allocationSets", ())
        made = (storage or {}).get("status", {}).get("allocationSets", ())
        out: list[Object] = []
        for i, alloc in enumerate(sets):
            sizes = made[i]["allocatedBytes"] if i < len(made) else {}
            open_ = made[i].get("waitingFor", ()) if i < len(made) else ()
            out.append(
                {
                    "label": alloc["label"],
                    "storage": {
                        node["name"]: {
                            "allocationSize": sizes.get(node["name"], 0),
                            "ready": node["name"] in sizes
                            and node["name"] not in open_,
                        }
                        for node in alloc["storage"]
                    },
                }
            )
        ready = was_ready or bool((storage or {}).get("status", {}).get("ready"))
        status: Object = {"ready": ready}
        if out:
            status["allocationSets"] = out
        return status
