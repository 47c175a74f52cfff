# Plays the daemon on each node: mounts and unmounts by the node's ClientMounts, unless
# the node hangs.
# SPDX-License-Identifier: LGPL-3.0-only
"""The ClientMount controller: nnf-clientmount on every node."""

from __future__ import annotations

import asyncio

from dws_sim.controllers.cluster import Cluster
from dws_sim.controllers.common import (
    MOUNT_FINALIZER,
    ResourceError,
    add_finalizer,
    drop_finalizer,
    has_finalizer,
    is_deleting,
    owner_of,
)
from dws_sim.controllers.manager import Controller, Manager
from dws_sim.controllers.storage import backing_name
from dws_sim.faults import Faults
from dws_sim.jsontree import Object
from dws_sim.mounts import Mounts


class ClientMountController(Controller):
    """The node daemons."""

    plural = "clientmounts"

    def __init__(
        self, cluster: Cluster, manager: Manager, faults: Faults, mounts: Mounts
    ) -> None:
        super().__init__(cluster, manager)
        self._faults = faults
        self._mounts = mounts
        self._due: dict[tuple[str, str], float] = {}
        self._hung: set[tuple[str, str]] = set()
        faults.listeners.append(self._released)

    def _released(self) -> None:
        hung, self._hung = self._hung, set()
        for namespace, name in hung:
            self.enqueue(namespace, name)

    def forget(self, obj: Object) -> None:
        # The node may never have heard of the deletion: its mount goes with it.
        for mount in obj["spec"]["mounts"]:
            self._mounts.unmount(obj["spec"]["node"], mount["mountPath"])
        meta = obj["metadata"]
        self._due.pop((meta["namespace"], meta["name"]), None)

    async def reconcile(self, namespace: str, name: str) -> float | None:
        obj = await self.cluster.get(self.plural, namespace, name)
        if obj is None:
            return None
        node = obj["spec"]["node"]
        if node in self._faults.hung_nodes:
            self._hung.add((namespace, name))
            return None
        if is_deleting(obj):
            if has_finalizer(obj, MOUNT_FINALIZER):
                for mount in obj["spec"]["mounts"]:
                    self._mounts.unmount(node, mount["mountPath"])
                await drop_finalizer(self.cluster, self.plural, obj, MOUNT_FINALIZER)
            return None
        desired = obj["spec"]["desiredState"]
        status = obj.get("status", {})
        if status.get("allReady") and all(
            m["state"] == desired for m in status["mounts"]
        ):
            if desired == "mounted":
                await self._remember(obj, node)
            return None
        obj = await add_finalizer(self.cluster, self.plural, obj, MOUNT_FINALIZER)
        delay = self._delay_left(namespace, name)
        if delay > 0:
            return delay
        return await self._act(obj, desired)

    async def _remember(self, obj: Object, node: str) -> None:
        """Record mounts from before a restart of the simulator."""
        for mount in obj["spec"]["mounts"]:
            if not self._mounts.has(node, mount["mountPath"]):
                await self._mount(obj, node, mount["mountPath"])

    def _delay_left(self, namespace: str, name: str) -> float:
        now = asyncio.get_running_loop().time()
        due = self._due.get((namespace, name))
        if due is None:
            due = self._due[(namespace, name)] = now + self._faults.mount_delay(
                namespace, name
            )
        return due - now

    async def _act(self, obj: Object, desired: str) -> float | None:
        meta, node = obj["metadata"], obj["spec"]["node"]
        self._due.pop((meta["namespace"], meta["name"]), None)
        delay = None
        try:
            for mount in obj["spec"]["mounts"]:
                if desired == "mounted":
                    await self._mount(obj, node, mount["mountPath"])
                else:
                    self._mounts.unmount(node, mount["mountPath"])
            done, error = True, None
        except (OSError, ResourceError) as exc:
            done, delay = False, 1.0
            if not isinstance(exc, ResourceError):
                exc = ResourceError("unable to mount", "Internal", "Major", str(exc))
            error = exc.to_object()
        mounts = [{"state": desired, "ready": done} for _ in obj["spec"]["mounts"]]
        status: Object = {"allReady": done, "mounts": mounts}
        if error:
            status["error"] = error
        await self.cluster.update_status(self.plural, {**obj, "status": status})
        return delay

    async def _mount(self, obj: Object, node: str, path: str) -> None:
        owner = owner_of(obj, "NnfAccess")
        access = await self.cluster.get("nnfaccesses", *owner) if owner else None
        if access is not None:
            target = access["spec"]["storageReference"]
            place = [target["namespace"], target["name"]]
        else:
            # the mount that gives a Lustre its owner belongs to that
            place = owner_of(obj, "NnfStorage") or ["", ""]
        storage = await self.cluster.get("nnfstorages", *place)
        if storage is None:
            raise ResourceError("the storage is gone", "Internal", "Major")
        self._mounts.mount(node, path, backing_name(storage))
