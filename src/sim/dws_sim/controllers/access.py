# Reconciles NnfAccess: creates a ClientMount for each node, and reports the state that
# all of these have reached.
# SPDX-License-Identifier: LGPL-3.0-only
"""The NnfAccess controller."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections import Counter as CounterType
from dataclasses import dataclass

from dws_sim.controllers.cluster import Cluster
from dws_sim.controllers.common import (
    ACCESS_FINALIZER,
    INDEX_LABEL,
    OWNER_UID,
    TARGET_LABEL,
    ResourceError,
    add_finalizer,
    child,
    drop_finalizer,
    fatal,
    inherited_labels,
    is_deleting,
    met,
    missing,
    not_picked_up,
    owner_of,
)
from dws_sim.controllers.devices import (
    Place,
    lvm_device,
    mount_of,
    mount_of_lustre,
    mounts_of_rabbit,
    places,
)
from dws_sim.controllers.manager import Controller, Manager, Retry
from dws_sim.errors import ApiError
from dws_sim.faults import Faults
from dws_sim.jsontree import Object, edit

# Words in Storage that mean: do not wait for this node.
LOST = ("Offline", "Fenced")

# On xfs storage: the access that may mount it.
LOCK = "nnf.cray.hpe.com/access"


def _lock_of(access: Object) -> str:
    meta = access["metadata"]
    return f"{meta['name']}/{meta['namespace']}"


def _mount_labels(access: Object, storage: Object) -> dict[str, str]:
    """The labels of an access' ClientMounts: the access' own, and the index of the
    storage's directive."""
    out = inherited_labels(access)
    target = storage["metadata"].get("labels", {}).get(INDEX_LABEL)
    if target is not None:
        out[TARGET_LABEL] = target
    return out


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
        raise ResourceError(debug=missing("Computes", client["name"]))
    return [c["name"] for c in computes.get("data", ())]


@dataclass(frozen=True)
class Reach:
    """The allocation that is for one compute: the rabbit that has it, and which
    of the rabbit's allocations it is. Without a rabbit it has none."""

    rabbit: str = ""
    index: int = 0


def _is_at(mount: Object, desired: str) -> bool:
    """Whether all of a ClientMount is in a state."""
    status = mount.get("status", {})
    return bool(
        status.get("allReady") and all(m["state"] == desired for m in status["mounts"])
    )


def _is_of(mounts: list[Object], near: list[Place], reach: Reach) -> bool:
    """Whether what is mounted is the allocation that is for this compute."""
    if len(mounts) != 1:
        return False
    found: Object = mounts[0]["device"]["deviceReference"]
    return found == near[reach.index].reference()


class LostNodes:
    """Nodes whose mounts are not awaited: Offline or Fenced in a Storage, or Disabled
    in the SystemStatus. Updated by events."""

    def __init__(self) -> None:
        self._by_source: dict[str, frozenset[str]] = {}
        self._fenced: dict[str, frozenset[str]] = {}

    def fenced(self, nodes: list[str]) -> list[str]:
        """The nodes among these that are fenced."""
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
        cluster.subscribe("computes", self._computes)
        cluster.subscribe("storages", self._storage)
        cluster.subscribe("systemstatuses", self._system)
        self._lost = LostNodes()
        # accesses with mounts that are on their way
        self._open: set[tuple[str, str]] = set()
        # of each access, by its desired state: the version of Computes at the first
        # look for devices, and when to look again
        self._looks: dict[str, dict[str, tuple[str | None, float]]] = {}
        # names of the accesses that are for the nodes of a Computes
        self._users: dict[tuple[str, str], set[str]] = {}

    def _mount(self, obj: Object, old: Object | None, gone: bool) -> None:
        owner = owner_of(obj, "NnfAccess")
        if owner is not None:
            self.enqueue(*owner)

    def _computes(self, obj: Object, old: Object | None, gone: bool) -> None:
        """Reconcile the accesses of a Computes, whose nodes may change at any time."""
        meta = obj["metadata"]
        for name in self._users.get((meta["namespace"], meta["name"]), ()):
            self.enqueue(meta["namespace"], name)

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
        self._looks.pop(meta["uid"], None)
        self._open.discard((meta["namespace"], meta["name"]))
        client = obj["spec"].get("clientReference")
        if client is not None:
            users = self._users.get((client["namespace"], client["name"]), set())
            users.discard(meta["name"])
            if not users:
                self._users.pop((client["namespace"], client["name"]), None)

    async def reconcile(self, namespace: str, name: str) -> float | None:
        obj = await self.cluster.get(self.plural, namespace, name)
        if obj is None:
            return None
        client = obj["spec"].get("clientReference")
        if client is not None:
            key = (client["namespace"], client["name"])
            self._users.setdefault(key, set()).add(name)
        try:
            reaches = await self._map(obj)
        except ResourceError as exc:
            if "state" not in obj.get("status", {}):
                # what cannot be stored, since a status needs a state, is lost
                raise Retry(exc.story) from exc
            await self._say(obj, {**obj["status"], "error": exc.to_object()})
            return 1.0
        # so what cannot be mapped cannot go, either
        if is_deleting(obj):
            self._open.add((namespace, name))
            await self._delete(obj)
            return None
        obj = await add_finalizer(self.cluster, self.plural, obj, ACCESS_FINALIZER)
        desired = obj["spec"]["desiredState"]
        status: Object = {"state": desired, "ready": False}
        delay = None
        try:
            status["ready"], delay = await self._drive(obj, desired, reaches)
            if status["ready"] or desired == "mounted":
                await self._check_fenced(obj)
        except ResourceError as exc:
            word, of = (
                ("unmount", "from") if desired == "unmounted" else ("mount", "on")
            )
            text = f"unable to {word} file system {of} client nodes"
            was_ready = self._was_ready(obj, desired)
            status.update(ready=was_ready, error=exc.within("", text).to_object())
            delay = 1.0
        if status["ready"]:
            self._open.discard((namespace, name))
        else:
            self._open.add((namespace, name))
        await self._say(obj, status)
        return delay

    @staticmethod
    def _was_ready(obj: Object, desired: str) -> bool:
        """Ready does not go away with a fault, only with another state."""
        status = obj.get("status", {})
        return bool(status.get("state") == desired and status.get("ready"))

    async def _say(self, obj: Object, status: Object) -> None:
        if obj.get("status") != status:
            new = {**obj, "status": status}
            await self.cluster.update_status(self.plural, new)

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
                f"Workflow failed: compute nodes [{words}] were fenced during the job",
                "Internal",
                f"compute nodes have been fenced: [{words}]",
            )

    async def _drive(
        self, obj: Object, desired: str, reaches: dict[str, Reach]
    ) -> tuple[bool, float | None]:
        """Bring the ClientMounts to the desired state. Returns whether all have reached
        it, and when to reconcile again without an event."""
        mounts = await self._mounts(obj)
        storage = await self._storage_of(obj)
        if desired == "mounted":
            if not await self._lock(obj, storage):
                return False, 1.0
            if (poll := await self._devices_awaited(obj, desired)) is not None:
                return False, poll
            await self._create(obj, storage, mounts, reaches)
        waiting = False
        delay: float | None = None
        what = f"unable to {'check' if desired == 'mounted' else 'get'} ClientMount"
        for node, mount in mounts.items():
            if node not in reaches:
                # off the list: it stays as it is until the end
                continue
            mount = await self._update(obj, storage, mount, desired, reaches[node])
            status = mount.get("status", {})
            error = status.get("error")
            if error and not status["allReady"]:
                fault = ResourceError.of(error).within(f"Node: {node}")
                raise fault.within(f"{what} status")
            if not mount["metadata"].get("finalizers"):
                left = self._faults.child_time_left(mount)
                if left <= 0:
                    fault = not_picked_up(node, "ClientMount", self._faults)
                    raise fault.within(f"{what} status")
                delay = left if delay is None else min(delay, left)
                waiting = True
            elif not _is_at(mount, desired) and not (
                desired == "unmounted" and status.get("mounts") and node in self._lost
            ):
                # nobody is passed by who has never answered
                waiting = True
        if not waiting:
            if desired == "unmounted":
                poll = await self._devices_awaited(obj, desired)
                if poll is None:
                    await self._unlock(obj)
                return poll is None, poll
            return True, None
        return False, delay if delay is None else max(delay, 0.01)

    async def _lock(self, obj: Object, storage: Object) -> bool:
        """Is the storage this access's? An xfs file system is mounted for one access
        at a time: an annotation says for which."""
        if storage["spec"]["fileSystemType"] != "xfs":
            return True
        own = _lock_of(obj)
        holder = storage["metadata"].get("annotations", {}).get(LOCK)
        if holder is None:
            new = edit(storage, "metadata")
            new["metadata"]["annotations"] = {
                **new["metadata"].get("annotations", {}),
                LOCK: own,
            }
            await self.cluster.update("nnfstorages", new)
        return holder in (None, own)

    async def _unlock(self, obj: Object) -> None:
        target = obj["spec"]["storageReference"]
        storage = await self.cluster.get(
            "nnfstorages", target["namespace"], target["name"]
        )
        if storage is None:
            return
        holder = storage["metadata"].get("annotations", {}).get(LOCK)
        if holder == _lock_of(obj):
            new = edit(storage, "metadata")
            new["metadata"]["annotations"] = {
                k: v for k, v in storage["metadata"]["annotations"].items() if k != LOCK
            }
            await self.cluster.update("nnfstorages", new)

    async def _devices_awaited(self, obj: Object, desired: str) -> float | None:
        """When to check again whether the devices have been attached to the computes,
        or detached; None: they have. The first check never succeeds, and the next one
        follows a change of Computes, or the poll interval."""
        poll, client = self._faults.device_poll_s, obj["spec"].get("clientReference")
        if not poll or client is None:
            return None
        computes = await self.cluster.get(
            "computes", client["namespace"], client["name"]
        )
        version = (computes or {}).get("metadata", {}).get("resourceVersion")
        now = asyncio.get_running_loop().time()
        looks = self._looks.setdefault(obj["metadata"]["uid"], {})
        first, due = looks.setdefault(desired, (version, now + poll))
        return due - now if version == first and now < due else None

    async def _storage_of(self, obj: Object) -> Object:
        target = obj["spec"]["storageReference"]
        storage = await self.cluster.get(
            "nnfstorages", target["namespace"], target["name"]
        )
        assert storage is not None
        return storage

    async def _update(
        self, obj: Object, storage: Object, mount: Object, desired: str, reach: Reach
    ) -> Object:
        """Bring the spec of a ClientMount up to date. A compute's allocation follows
        from its position, and changes when a node before it has left."""
        meta, spec = mount["metadata"], mount["spec"]
        mounts = spec["mounts"]
        if reach.rabbit and not _is_of(mounts, places(storage, reach.rabbit), reach):
            body = await self._body(obj, storage, meta["namespace"], reach)
            mounts = body["spec"]["mounts"]
        if spec["desiredState"] == desired and mounts is spec["mounts"]:
            return mount
        new = edit(mount, "metadata", "spec")
        new["spec"].update(desiredState=desired, mounts=mounts)
        # another directive may use it now
        new["metadata"]["labels"].update(inherited_labels(obj))
        return await self.cluster.update("clientmounts", new)

    async def _create(
        self,
        obj: Object,
        storage: Object,
        mounts: dict[str, Object],
        reaches: dict[str, Reach],
    ) -> None:
        """Make the ClientMounts that are missing.

        Raises:
            ResourceError: one cannot be made; the others are.
        """
        fault: ApiError | None = None
        for node, reach in reaches.items():
            if node in mounts:
                continue
            body = await self._body(obj, storage, node, reach)
            try:
                mounts[node] = await self.cluster.create("clientmounts", body)
            except ApiError as exc:
                fault = fault or exc
        if fault is not None:
            raise met(fault, "unable to create ClientMount resources")

    async def _map(self, obj: Object) -> dict[str, Reach]:
        """The mounts of an access by node.

        Raises:
            ResourceError: nodes and storage do not go together.
        """
        target = obj["spec"]["storageReference"]
        storage = await self.cluster.get(
            "nnfstorages", target["namespace"], target["name"]
        )
        if storage is None:
            raise ResourceError(debug=missing("NnfStorage", target["name"]))
        nodes = await node_names(self.cluster, obj, storage)
        if "clientReference" not in obj["spec"]:
            return {node: Reach() for node in nodes}
        if storage["spec"]["fileSystemType"] == "lustre":
            return {node: Reach() for node in nodes}
        return await self._assign(storage, nodes)

    async def _assign(self, storage: Object, nodes: list[str]) -> dict[str, Reach]:
        """The rabbit of each compute: one allocation each, from the rabbit
        that lists the compute, while there are some."""
        there: CounterType[str] = Counter()
        for alloc in storage["spec"]["allocationSets"]:
            for node in alloc["nodes"]:
                there[node["name"]] += node["count"]
        out = dict.fromkeys(nodes, Reach())
        for rabbit, count in there.items():
            taken = 0
            obj = await self.cluster.get("storages", "default", rabbit)
            access = (obj or {}).get("status", {}).get("access", {})
            for entry in access.get("computes", ()):
                if entry["name"] not in out:
                    continue
                if taken == count:
                    text = "Too many clients for storage"
                    raise fatal(
                        f"invalid matching between clients and storage. {text}", "WLM"
                    )
                out[entry["name"]] = Reach(rabbit, taken)
                taken += 1
        return out

    async def _body(
        self, obj: Object, storage: Object, node: str, reach: Reach
    ) -> Object:
        """The ClientMount of a node."""
        meta = obj["metadata"]
        mounts = []
        if storage["spec"]["fileSystemType"] == "lustre":
            mounts = [mount_of_lustre(obj, storage)]
        elif "clientReference" not in obj["spec"]:
            mounts = mounts_of_rabbit(obj, storage, node)
        elif reach.rabbit:
            near = await self.cluster.get("storages", "default", reach.rabbit)
            drives = (near or {}).get("status", {}).get("devices", [])
            good = [d for d in drives if "serialNumber" in d]
            device = lvm_device(places(storage, reach.rabbit)[reach.index], good)
            path = obj["spec"]["mountPath"]
            mounts = [mount_of(obj, storage, path, device)]
        return child(
            obj,
            node,
            f"{meta['namespace']}-{meta['name']}",
            _mount_labels(obj, storage),
            spec={"node": node, "desiredState": "mounted", "mounts": mounts},
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
            await self._unlock(obj)
            await drop_finalizer(self.cluster, self.plural, obj, ACCESS_FINALIZER)
