# Storage that outlives a job: create_persistent, destroy_persistent and
# persistentdw, and the PersistentStorageInstance between them.
# SPDX-License-Identifier: LGPL-3.0-only
"""Persistent storage."""

from __future__ import annotations

from dws_sim.controllers.breakdown import check_user, make_servers
from dws_sim.controllers.cluster import Cluster
from dws_sim.controllers.common import (
    PSI_FINALIZER,
    ResourceError,
    add_finalizer,
    drop_finalizer,
    fatal,
    is_deleting,
    missing,
    ref,
)
from dws_sim.controllers.filesystem import (
    MountedCommand,
    breakdown_ready,
    make_breakdown,
    make_storage,
    storage_ready,
    take_requires,
    the_servers,
)
from dws_sim.controllers.manager import Controller, Manager
from dws_sim.controllers.pool import POOL_LABEL, note_consumer
from dws_sim.controllers.step import Command, Step, Wait
from dws_sim.jsontree import Object, edit
from dws_sim.schema.resources import DWS_GROUP

PLURAL = "persistentstorageinstances"
_LABEL = f"{DWS_GROUP}/persistentstorage"


async def find(step: Step) -> Object | None:
    """The instance that a directive names."""
    name = step.directive.get("name") or ""
    return await step.cluster.get(PLURAL, step.namespace, name)


async def usable(step: Step) -> Object:
    """The instance of a persistentdw.

    Raises:
        ResourceError: there is none, it is going, or it is someone else's.
    """
    name = step.directive.get("name") or ""
    instance = await find(step)
    if instance is None:
        text = f"PersistentStorageInstance '{name}' not found"
        raise fatal(text, "User", missing("PersistentStorageInstance", name))
    if is_deleting(instance):
        raise fatal(f"Persistent storage instance '{name}' is deleting")
    check_user(instance, step.workflow["spec"]["userID"], "existing ")
    return instance


class CreatePersistent(Command):
    """#DW create_persistent."""

    async def start(self, state: str, step: Step) -> Wait | None:
        name = step.directive.get("name") or ""
        if state == "Proposal":
            await make_breakdown(step)
        elif state == "Setup":
            servers = await the_servers(step, name)
            fs_type = step.directive.get("type") or ""
            # no workflow labels: the storage outlives the workflow
            await make_storage(step, servers, fs_type, labels={})
        return None

    async def finish(self, state: str, step: Step) -> Wait | None:
        name = step.directive.get("name") or ""
        if state == "Proposal":
            return await breakdown_ready(step)
        if state == "Setup":
            return await storage_ready(step, name) or await self._active(step)
        if state == "Teardown":
            await self._let_go(step)
        return None

    async def remove(self, step: Step) -> Wait | None:
        breakdown = await step.cluster.get(
            "directivebreakdowns", step.namespace, step.name
        )
        instance = await find(step)
        owners = (instance or {}).get("metadata", {}).get("ownerReferences", ())
        mine = breakdown and any(
            o["uid"] == breakdown["metadata"]["uid"] for o in owners
        )
        name = step.directive.get("name") or ""
        if mine and not await step.gone(PLURAL, step.namespace, name):
            return Wait("delete")
        if await step.gone("directivebreakdowns", step.namespace, step.name):
            return None
        return Wait("delete")

    @staticmethod
    async def _active(step: Step) -> Wait | None:
        instance = await find(step)
        if (instance or {}).get("status", {}).get("state") == "Active":
            return None
        return Wait("allocation set not ready")

    @staticmethod
    async def _let_go(step: Step) -> None:
        """Detach an instance that was created without error from the workflow. Any
        other is deleted with the workflow."""
        instance = await find(step)
        if instance is None or not instance["metadata"].get("ownerReferences"):
            return
        done = all(
            d["completed"]
            for d in step.workflow["status"]["drivers"]
            if d["dwdIndex"] == step.index and d["watchState"] != "Teardown"
        )
        if not done:
            return
        new = edit(instance, "metadata")
        del new["metadata"]["ownerReferences"]
        labels = instance["metadata"].get("labels", {})
        new["metadata"]["labels"] = {k: v for k, v in labels.items() if k == POOL_LABEL}
        await step.cluster.update(PLURAL, new)


class DestroyPersistent(Command):
    """#DW destroy_persistent."""

    async def start(self, state: str, step: Step) -> Wait | None:
        if state == "Proposal":
            return None
        name = step.directive.get("name") or ""
        instance = await find(step)
        if instance is None:
            return None
        user = step.workflow["spec"]["userID"]
        check_user(instance, user, "Existing ", lifted=False)
        users = len(instance["spec"].get("consumerReferences", ()))
        if users:
            text = f"cannot be deleted with {users} consumers"
            raise fatal(
                "persistent storage cannot be deleted while in use",
                "User",
                f"persistent storage {text}: PersistentStorage {text}",
            )
        if not is_deleting(instance):
            # With the workflow's labels the end of the object reconciles this workflow.
            new = edit(instance, "metadata", "spec")
            new["spec"]["state"] = "Destroying"
            new["metadata"].setdefault("labels", {}).update(step.labels)
            await step.cluster.update(PLURAL, new)
        if await step.gone(PLURAL, step.namespace, name):
            return None
        return Wait("delete")

    async def remove(self, step: Step) -> Wait | None:
        return None


class PersistentDw(MountedCommand):
    """#DW persistentdw."""

    prefix = "PERSISTENT"

    async def fs_type(self, step: Step) -> str:
        instance = await find(step)
        return str(instance["spec"]["fsType"]) if instance else ""

    def storage(self, step: Step) -> str:
        return step.directive.get("name") or ""

    async def check(self, step: Step) -> None:
        await usable(step)

    async def start(self, state: str, step: Step) -> Wait | None:
        if state == "Proposal":
            await take_requires(step)
            await make_breakdown(step)
        elif state == "Setup":
            instance = await find(step)
            if instance is None:
                text = f"PersistentStorage '{self.storage(step)}' not found"
                raise ResourceError(text, "User", "Major")
            if instance.get("status", {}).get("state") != "Active":
                raise fatal("PersistentStorage is not active")
            await self._consume(step, instance, True)
        elif state == "PreRun":
            return await self.prerun(step, "start")
        elif state == "PostRun":
            return await self.postrun(step, "start")
        elif state == "Teardown":
            return await self._release(step)
        return None

    async def finish(self, state: str, step: Step) -> Wait | None:
        if state == "Proposal":
            return await breakdown_ready(step)
        if state == "PreRun":
            return await self.prerun(step, "finish")
        if state == "PostRun":
            return await self.postrun(step, "finish")
        return None

    async def remove(self, step: Step) -> Wait | None:
        wait = await self._release(step)
        if wait is not None:
            return wait
        if await step.gone("directivebreakdowns", step.namespace, step.name):
            return None
        return Wait("delete")

    async def _release(self, step: Step) -> Wait | None:
        wait = await self.unmount(step)
        if wait is None:
            instance = await find(step)
            if instance is not None:
                await self._consume(step, instance, False)
        return wait

    @staticmethod
    async def _consume(step: Step, instance: Object, use: bool) -> None:
        """Add the directive to, or remove it from, the users of the instance."""
        mine = {"kind": "Workflow", "name": step.name, "namespace": step.namespace}
        new = note_consumer(instance, mine, use)
        if new != instance:
            await step.cluster.update(PLURAL, new)


class PersistentController(Controller):
    """PersistentStorageInstance: its Servers and its state."""

    plural = PLURAL

    def __init__(self, cluster: Cluster, manager: Manager) -> None:
        super().__init__(cluster, manager)
        cluster.subscribe("servers", self._same_name)
        cluster.subscribe("storages", self._rabbit)
        # rabbits that have a failed drive, and the instances on each rabbit
        self._degraded: set[str] = set()
        self._on: dict[str, set[tuple[str, str]]] = {}

    def _rabbit(self, obj: Object, old: Object | None, gone: bool) -> None:
        name = obj["metadata"]["name"]
        drives = obj.get("status", {}).get("devices", ())
        bad = not gone and any(d.get("status") != "Ready" for d in drives)
        if bad != (name in self._degraded):
            (self._degraded.add if bad else self._degraded.discard)(name)
            for item in self._on.get(name, ()):
                self.enqueue(*item)

    def forget(self, obj: Object) -> None:
        meta = obj["metadata"]
        for instances in self._on.values():
            instances.discard((meta["namespace"], meta["name"]))

    def _is_degraded(self, servers: Object) -> bool:
        """Whether a rabbit that it is on has lost redundancy."""
        meta = servers["metadata"]
        rabbits = {
            node["name"]
            for alloc in servers.get("spec", {}).get("allocationSets", ())
            for node in alloc["storage"]
        }
        for rabbit in rabbits:
            self._on.setdefault(rabbit, set()).add((meta["namespace"], meta["name"]))
        return not rabbits.isdisjoint(self._degraded)

    def _same_name(self, obj: Object, old: Object | None, gone: bool) -> None:
        self.enqueue(obj["metadata"]["namespace"], obj["metadata"]["name"])

    async def reconcile(self, namespace: str, name: str) -> float | None:
        obj = await self.cluster.get(PLURAL, namespace, name)
        if obj is None:
            return None
        servers = await self.cluster.get("servers", namespace, name)
        if is_deleting(obj):
            if servers is None:
                await drop_finalizer(self.cluster, PLURAL, obj, PSI_FINALIZER)
                return None
            if not is_deleting(servers):
                await self.cluster.delete("servers", namespace, name)
            await self._set(obj, servers, "Destroying")
            return None
        obj = await add_finalizer(self.cluster, PLURAL, obj, PSI_FINALIZER)
        if servers is None:
            labels = {f"{_LABEL}.name": name, f"{_LABEL}.namespace": namespace}
            servers = await make_servers(self, obj, name, labels)
        # Update the instance last, after Servers: a workflow that waits for both gets
        # events of the instance only.
        ready = servers.get("status", {}).get("ready")
        if obj["spec"]["state"] == "Destroying":
            state = "Destroying"
        elif ready:
            state = "Degraded" if self._is_degraded(servers) else "Active"
        else:
            state = "Creating"
        await self._set(obj, servers, state)
        return None

    async def _set(self, obj: Object, servers: Object, state: str) -> None:
        status = {"servers": ref(servers), "state": state}
        if obj.get("status") != status:
            new = {**obj, "status": status}
            await self.cluster.update_status(PLURAL, new)
