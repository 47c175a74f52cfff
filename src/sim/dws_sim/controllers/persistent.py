# Storage that outlives a job: create_persistent, destroy_persistent and
# persistentdw, and the PersistentStorageInstance between them.
# SPDX-License-Identifier: LGPL-3.0-only
"""Persistent storage."""

from __future__ import annotations

from dws_sim.controllers.breakdown import make_servers, standalone_pool
from dws_sim.controllers.cluster import Cluster
from dws_sim.controllers.common import (
    PSI_FINALIZER,
    ResourceError,
    add_finalizer,
    child,
    drop_finalizer,
    fatal,
    is_deleting,
    owner_reference,
    ref,
)
from dws_sim.controllers.filesystem import (
    MountedCommand,
    breakdown_ready,
    check_servers,
    make_breakdown,
    make_storage,
    storage_ready,
    take_requires,
)
from dws_sim.controllers.manager import Controller, Manager
from dws_sim.controllers.pool import POOL_LABEL
from dws_sim.controllers.profiles import find_profile, pin_profile
from dws_sim.controllers.step import Command, Step, Wait
from dws_sim.jsontree import Object, edit
from dws_sim.schema.resources import DWS_GROUP

PLURAL = "persistentstorageinstances"
PROFILES = "nnfstorageprofiles"
_LABEL = f"{DWS_GROUP}/persistentstorage"
IGNORE_UID = f"{DWS_GROUP}/ignore-uid"


async def find(step: Step) -> Object | None:
    """The instance that a directive names."""
    name = step.directive.get("name") or ""
    return await step.cluster.get(PLURAL, step.namespace, name)


def _is_foreign(step: Step, instance: Object, lifted: bool) -> bool:
    """Whether an instance belongs to another user."""
    if instance["spec"]["userID"] == step.workflow["spec"]["userID"]:
        return False
    annotations = instance["metadata"].get("annotations", {})
    return not (lifted and annotations.get(IGNORE_UID) == "true")


async def usable(step: Step) -> Object:
    """The instance of a persistentdw.

    Raises:
        ResourceError: there is none, it is going, or it is someone else's.
    """
    name = step.directive.get("name")
    instance = await find(step)
    if instance is None:
        raise fatal(f"PersistentStorageInstance '{name}' not found")
    if is_deleting(instance) or instance["spec"]["state"] == "Destroying":
        raise fatal(f"PersistentStorageInstance '{name}' is being deleted")
    if _is_foreign(step, instance, lifted=True):
        raise fatal(f"PersistentStorageInstance '{name}' belongs to another user")
    return instance


def _only_directive(step: Step) -> None:
    if len(step.workflow["spec"]["dwDirectives"]) != 1:
        raise fatal(f"only a single {step.directive.command} directive is allowed")


class CreatePersistent(Command):
    """#DW create_persistent."""

    async def start(self, state: str, step: Step) -> Wait | None:
        name = step.directive.get("name") or ""
        if state == "Proposal":
            await self._propose(step, name)
        elif state == "Setup":
            servers = await step.cluster.get("servers", step.namespace, name)
            if servers is None:
                raise ResourceError(f"Servers {name} is gone")
            await check_servers(step, servers)
            fs_type = step.directive.get("type") or ""
            # no workflow labels: it is there when the workflow is gone
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
        instance = await find(step)
        owners = (instance or {}).get("metadata", {}).get("ownerReferences", ())
        name = step.directive.get("name") or ""
        if owners and not await step.gone(PLURAL, step.namespace, name):
            return Wait("persistent storage")
        if await step.gone("directivebreakdowns", step.namespace, step.name):
            return None
        return Wait("breakdown")

    @staticmethod
    async def _propose(step: Step, name: str) -> None:
        _only_directive(step)
        instance = await find(step)
        if instance is not None and _is_foreign(step, instance, lifted=True):
            raise fatal(f"Existing persistent storage '{name}' has another user")
        profile = await find_profile(
            step.cluster, PROFILES, step.directive.get("profile")
        )
        if instance is not None:
            await make_breakdown(step)
            return
        # The profile is pinned first: the breakdown is made from it.
        if await step.cluster.get(PROFILES, step.namespace, name) is None:
            await pin_profile(step.cluster, PROFILES, profile, step.workflow, name, {})
        breakdown = await make_breakdown(step)
        spec = {
            "name": name,
            "fsType": step.directive.get("type"),
            "dwDirective": step.directive.text,
            "userID": step.workflow["spec"]["userID"],
            "state": "Active",
            "consumerReferences": [],
        }
        labels = step.labels
        pool = standalone_pool(profile.get("data", {}))
        if pool and spec["fsType"] == "lustre":
            labels[POOL_LABEL] = pool
        await step.cluster.create(
            PLURAL, child(breakdown, step.namespace, name, labels, spec=spec)
        )

    @staticmethod
    async def _active(step: Step) -> Wait | None:
        instance = await find(step)
        if (instance or {}).get("status", {}).get("state") == "Active":
            return None
        return Wait("persistent storage")

    @staticmethod
    async def _let_go(step: Step) -> None:
        """Keep the instance if all went well, else delete it."""
        instance = await find(step)
        if instance is None or not instance["metadata"].get("ownerReferences"):
            return
        name = instance["metadata"]["name"]
        done = all(
            d["completed"]
            for d in step.workflow["status"]["drivers"]
            if d["dwdIndex"] == step.index and d["watchState"] != "Teardown"
        )
        if not done:
            await step.cluster.delete(PLURAL, step.namespace, name)
            return
        new = edit(instance, "metadata")
        del new["metadata"]["ownerReferences"]
        labels = instance["metadata"].get("labels", {})
        new["metadata"]["labels"] = {k: v for k, v in labels.items() if k == POOL_LABEL}
        instance = await step.cluster.update(PLURAL, new)
        profile = await step.cluster.get(PROFILES, step.namespace, name)
        if profile is not None:
            new = edit(profile, "metadata")
            new["metadata"]["ownerReferences"] = [owner_reference(instance)]
            await step.cluster.update(PROFILES, new)


class DestroyPersistent(Command):
    """#DW destroy_persistent."""

    async def start(self, state: str, step: Step) -> Wait | None:
        name = step.directive.get("name") or ""
        if state == "Proposal":
            _only_directive(step)
            return None
        instance = await find(step)
        if instance is None:
            return None
        if _is_foreign(step, instance, lifted=False):
            raise fatal(f"persistent storage '{name}' belongs to another user")
        if instance["spec"].get("consumerReferences"):
            raise fatal(f"persistent storage '{name}' is in use")
        if not is_deleting(instance):
            # This workflow shall hear when it is gone.
            new = edit(instance, "metadata", "spec")
            new["spec"]["state"] = "Destroying"
            new["metadata"].setdefault("labels", {}).update(step.labels)
            await step.cluster.update(PLURAL, new)
        if await step.gone(PLURAL, step.namespace, name):
            return None
        return Wait("persistent storage")

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

    async def start(self, state: str, step: Step) -> Wait | None:
        if state == "Proposal":
            await usable(step)
            await take_requires(step)
            await make_breakdown(step)
        elif state == "Setup":
            instance = await usable(step)
            if instance.get("status", {}).get("state") != "Active":
                raise fatal(f"persistent storage '{self.storage(step)}' is not active")
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
        return Wait("breakdown")

    async def _release(self, step: Step) -> Wait | None:
        wait = await self.unmount(step)
        if wait is None:
            instance = await find(step)
            if instance is not None:
                await self._consume(step, instance, False)
        return wait

    @staticmethod
    async def _consume(step: Step, instance: Object, use: bool) -> None:
        """Enter the directive among those that use the instance, or not."""
        mine = {
            "kind": "DirectiveBreakdown",
            "name": step.name,
            "namespace": step.namespace,
        }
        new = edit(instance, "spec")
        users = [u for u in new["spec"].get("consumerReferences", []) if u != mine] + (
            [mine] if use else []
        )
        new["spec"]["consumerReferences"] = users
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
        # Servers follows the storage, and a workflow that waits for both
        # hears of the instance only: so that comes last.
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
