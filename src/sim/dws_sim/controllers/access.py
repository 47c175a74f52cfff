# Who mounts what where: an NnfAccess becomes one ClientMount for each node,
# and is as far as they are.
# SPDX-License-Identifier: LGPL-3.0-only
"""The NnfAccess controller."""

from __future__ import annotations

from collections import Counter
from collections import Counter as CounterType

from dws_sim.controllers.cluster import Cluster
from dws_sim.controllers.common import (
    ACCESS_FINALIZER,
    OWNER_UID,
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
from dws_sim.faults import Faults
from dws_sim.jsontree import Object, edit

# Words in Storage that mean: do not wait for this node.
LOST = ("Offline", "Fenced")
_NOT_MOUNTED = "unable to mount file system on client nodes"
_MOUNT_TYPES = {"raw": "none"}


async def node_names(cluster: Cluster, access: Object, storage: Object) -> list[str]:
    """The nodes of an access: its Computes, or the rabbits of the storage."""
    client = access["spec"].get("clientReference")
    if client is None:
        names: list[str] = []
        for alloc in storage["spec"]["allocationSets"]:
            names.extend(n["name"] for n in alloc["nodes"])
        return list(dict.fromkeys(names))
    computes = await cluster.get("computes", client["namespace"], client["name"])
    if computes is None:
        raise fatal("Computes resource not found", "WLM")
    return [c["name"] for c in computes.get("data", ())]


class LostNodes:
    """Nodes that nobody waits for: Offline or Fenced in a Storage, or
    Disabled in the SystemStatus. Kept up to date by events."""

    def __init__(self) -> None:
        self._by_source: dict[str, frozenset[str]] = {}
        self._fenced: dict[str, frozenset[str]] = {}

    def fenced(self, nodes: list[str]) -> list[str]:
        """Those that were fenced."""
        return [n for n in nodes if any(n in f for f in self._fenced.values())]

    def __contains__(self, node: str) -> bool:
        return any(node in nodes for nodes in self._by_source.values())

    def storage(self, obj: Object, gone: bool) -> bool:
        """Take in a Storage; returns whether anything is different now."""
        access = obj.get("status", {}).get("access", {})
        entries = [*access.get("computes", ()), *access.get("servers", ())]
        lost = [e["name"] for e in entries if e.get("status") in LOST]
        source = f"storage/{obj['metadata']['name']}"
        fenced = [e["name"] for e in entries if e.get("status") == "Fenced"]
        before = self._fenced.pop(source, None)
        if fenced and not gone:
            self._fenced[source] = frozenset(fenced)
        changed = before != self._fenced.get(source)
        return self._set(source, lost, gone) or changed

    def system(self, obj: Object, gone: bool) -> bool:
        """Take in a SystemStatus."""
        nodes = obj.get("data", {}).get("nodes", {})
        lost = [n for n, word in nodes.items() if word == "Disabled"]
        return self._set(f"system/{obj['metadata']['name']}", lost, gone)

    def _set(self, source: str, nodes: list[str], gone: bool) -> bool:
        before = self._by_source.pop(source, frozenset())
        after: frozenset[str] = frozenset() if gone else frozenset(nodes)
        if after:
            self._by_source[source] = after
        return before != after


class AccessController(Controller):
    """NnfAccess."""

    plural = "nnfaccesses"

    def __init__(self, cluster: Cluster, manager: Manager, faults: Faults) -> None:
        super().__init__(cluster, manager)
        self._faults = faults
        faults.listeners.append(self._look_again)
        cluster.subscribe("clientmounts", self._mount)
        cluster.subscribe("storages", self._storage)
        cluster.subscribe("systemstatuses", self._system)
        self._lost = LostNodes()
        # accesses with mounts that are on their way
        self._open: set[tuple[str, str]] = set()

    def _mount(self, obj: Object, old: Object | None, gone: bool) -> None:
        owner = owner_of(obj, "NnfAccess")
        if owner is not None:
            self.enqueue(*owner)

    def _storage(self, obj: Object, old: Object | None, gone: bool) -> None:
        if self._lost.storage(obj, gone):
            self._look_again()

    def _system(self, obj: Object, old: Object | None, gone: bool) -> None:
        if self._lost.system(obj, gone):
            self._look_again()

    def _look_again(self) -> None:
        for namespace, name in self._open:
            self.enqueue(namespace, name)

    def forget(self, obj: Object) -> None:
        meta = obj["metadata"]
        self._open.discard((meta["namespace"], meta["name"]))

    async def reconcile(self, namespace: str, name: str) -> float | None:
        obj = await self.cluster.get(self.plural, namespace, name)
        if obj is None:
            return None
        if is_deleting(obj):
            self._open.add((namespace, name))
            await self._delete(obj)
            return None
        obj = await add_finalizer(self.cluster, self.plural, obj, ACCESS_FINALIZER)
        desired = obj["spec"]["desiredState"]
        status: Object = {"state": desired, "ready": False}
        delay = None
        try:
            status["ready"], delay = await self._drive(obj, desired)
            if status["ready"] or desired == "mounted":
                await self._check_fenced(obj)
        except ResourceError as exc:
            status.update(ready=False, error=exc.to_object())
            delay = 1.0
        if status["ready"]:
            self._open.discard((namespace, name))
        else:
            self._open.add((namespace, name))
        if obj.get("status") != status:
            new = {**obj, "status": status}
            await self.cluster.update_status(self.plural, new)
        return delay

    async def _mounts(self, obj: Object) -> dict[str, Object]:
        found = await self.cluster.find(
            "clientmounts", {OWNER_UID: obj["metadata"]["uid"]}
        )
        return {m["metadata"]["namespace"]: m for m in found}

    async def _check_fenced(self, obj: Object) -> None:
        """Raise ResourceError if a compute of this access was fenced."""
        client = obj["spec"].get("clientReference")
        if client is None:
            return
        computes = await self.cluster.get(
            "computes", client["namespace"], client["name"]
        )
        names = [c["name"] for c in (computes or {}).get("data", ())]
        fenced = self._lost.fenced(names)
        if fenced:
            words = " ".join(fenced)
            raise fatal(
                f"compute nodes were fenced during the job: {words}", "Internal"
            )

    async def _drive(self, obj: Object, desired: str) -> tuple[bool, float | None]:
        """Bring the ClientMounts to the desired state. Returns whether all are
        there, and when to look again without an event."""
        mounts = await self._mounts(obj)
        if desired == "mounted":
            await self._create(obj, mounts)
        waiting = []
        delay: float | None = None
        for node, mount in mounts.items():
            if mount["spec"]["desiredState"] != desired:
                new = edit(mount, "spec")
                new["spec"]["desiredState"] = desired
                mount = await self.cluster.update("clientmounts", new)
            error = mount.get("status", {}).get("error")
            if error and not mount["status"]["allReady"]:
                raise ResourceError.of(error)
            status = mount.get("status", {})
            reached = status.get("allReady") and all(
                m["state"] == desired for m in status["mounts"]
            )
            if reached:
                continue
            waiting.append(node)
            if not mount["metadata"].get("finalizers"):
                left = self._faults.child_time_left(mount)
                if left <= 0 and node not in self._lost:
                    raise not_picked_up(node, "ClientMount", self._faults, _NOT_MOUNTED)
                delay = left if delay is None else min(delay, left)
        if not waiting:
            return True, None
        if desired == "unmounted" and all(n in self._lost for n in waiting):
            return True, None
        return False, delay if delay is None else max(delay, 0.01)

    async def _create(self, obj: Object, mounts: dict[str, Object]) -> None:
        spec = obj["spec"]
        target = spec["storageReference"]
        storage = await self.cluster.get(
            "nnfstorages", target["namespace"], target["name"]
        )
        if storage is None:
            raise fatal(f"storage {target['name']} is gone", "Internal")
        nodes = await node_names(self.cluster, obj, storage)
        rabbit_of: dict[str, str] = {}
        if "clientReference" in spec and storage["spec"]["fileSystemType"] != "lustre":
            rabbit_of = await self._assign(storage, nodes)
        # a node can be taken off the list while it is waited for
        for node in set(mounts) - set(nodes):
            mount = mounts.pop(node)
            if not is_deleting(mount):
                await self.cluster.delete(
                    "clientmounts", node, mount["metadata"]["name"]
                )
        for node in nodes:
            if node not in mounts:
                body = self._body(obj, storage, node, rabbit_of.get(node))
                mounts[node] = await self.cluster.create("clientmounts", body)

    async def _assign(self, storage: Object, nodes: list[str]) -> dict[str, str]:
        """The rabbit of each compute: one allocation each, from the rabbit
        that lists the compute."""
        places: CounterType[str] = Counter()
        for alloc in storage["spec"]["allocationSets"]:
            for node in alloc["nodes"]:
                places[node["name"]] += node["count"]
        near: dict[str, str] = {}
        for rabbit in places:
            obj = await self.cluster.get("storages", "default", rabbit)
            access = (obj or {}).get("status", {}).get("access", {})
            for entry in access.get("computes", ()):
                near[entry["name"]] = rabbit
        shared = storage["spec"]["fileSystemType"] == "gfs2"
        out: dict[str, str] = {}
        for node in nodes:
            found = near.get(node)
            if found is None or (places[found] <= 0 and not shared):
                raise fatal(f"no allocation is left for compute node {node}", "WLM")
            places[found] -= 1
            out[node] = found
        return out

    @staticmethod
    def _body(obj: Object, storage: Object, node: str, rabbit: str | None) -> Object:
        spec, meta = obj["spec"], obj["metadata"]
        fs_type = storage["spec"]["fileSystemType"]
        path = spec["mountPath"]
        if "clientReference" not in spec and fs_type != "lustre":
            path = f"{path}/{node}-0"
        mount: Object = {
            "mountPath": path,
            "options": "",
            "setPermissions": True,
            "targetType": "file" if fs_type == "raw" else "directory",
            "type": _MOUNT_TYPES.get(fs_type, fs_type),
            "userID": spec["userID"],
            "groupID": spec["groupID"],
            "device": {
                "type": "reference",
                "deviceReference": {"data": 0, "objectReference": ref(storage)},
            },
        }
        if rabbit is not None:
            mount["compute"] = node
        if fs_type == "lustre":
            mount["device"] = {
                "type": "lustre",
                "lustre": {
                    "fileSystemName": storage["metadata"]["uid"][:8],
                    "mgsAddresses": storage["spec"]["allocationSets"][-1]["nodes"][0][
                        "name"
                    ]
                    + "@tcp",
                },
            }
        return child(
            obj,
            node,
            f"{meta['namespace']}-{meta['name']}",
            inherited_labels(obj),
            spec={"node": node, "desiredState": "mounted", "mounts": [mount]},
        )

    async def _delete(self, obj: Object) -> None:
        mounts = await self._mounts(obj)
        for node, mount in mounts.items():
            name = mount["metadata"]["name"]
            if not is_deleting(mount):
                await self.cluster.delete("clientmounts", node, name)
                left = await self.cluster.get("clientmounts", node, name)
            else:
                left = mount
            if left is None:
                continue
            if node in self._lost and left["metadata"].get("finalizers"):
                new = edit(left, "metadata")
                new["metadata"]["finalizers"] = []
                await self.cluster.update("clientmounts", new)
        if not await self._mounts(obj):
            await drop_finalizer(self.cluster, self.plural, obj, ACCESS_FINALIZER)
