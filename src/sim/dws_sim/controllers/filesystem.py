# jobdw: a file system for the time of a job, from the breakdown to the
# variables that the job sees.
# SPDX-License-Identifier: LGPL-3.0-only
"""The jobdw command."""

from __future__ import annotations

from dws_sim.controllers.breakdown import requires_of
from dws_sim.controllers.common import (
    BREAKDOWN_FINALIZER,
    TEARDOWN_LABEL,
    TLS_SECRET,
    WORKFLOW_UID,
    ResourceError,
    child,
    fatal,
    met,
    missing,
    ref,
)
from dws_sim.controllers.pool import choose, wanted_pool
from dws_sim.controllers.profiles import find_profile, pin_profile
from dws_sim.controllers.step import Command, Step, Wait
from dws_sim.errors import ApiError
from dws_sim.jsontree import Object, edit

MOVEMENTS = "nnfdatamovements"
WITH_SERVER_MOUNT = ("gfs2", "lustre", "raw")
_NO_SECRET = (
    "the administrator must configure the user container TLS secret for the system. "
    f'See the copy-offload docs: Secret "{TLS_SECRET}" not found'
)
NO_STORAGE = "could not allocate storage"
_UNMET = "storage directive requirements were not satisfied"
_REQUIRES = {
    "copy-offload": ["copy-offload", "container-auth"],
    "user-container-auth": ["container-auth"],
}


async def take_requires(step: Step) -> None:
    """Enter the directive's 'requires' into the workflow, in NNF's own words.

    Raises:
        ResourceError: the site is not set up for it.
    """
    words = requires_of(step.directive)
    if not words:
        return
    status = step.workflow["status"]
    have = status.setdefault("requires", [])
    for word in words:
        have.extend(w for w in _REQUIRES[word] if w not in have)
    if await step.cluster.get("secrets", "default", TLS_SECRET) is None:
        # NNF has no text for users here
        raise ResourceError("", "Internal", "Fatal", _NO_SECRET)


async def make_breakdown(step: Step) -> Object:
    """The DirectiveBreakdown of a directive, and its place in the workflow."""
    obj = await step.cluster.create(
        "directivebreakdowns",
        child(
            step.workflow,
            step.namespace,
            step.name,
            step.labels,
            BREAKDOWN_FINALIZER,
            spec={
                "directive": step.directive.text,
                "userID": step.workflow["spec"]["userID"],
            },
        ),
    )
    refs: list[dict[str, str]] = step.workflow["status"].setdefault(
        "directiveBreakdowns", []
    )
    if ref(obj) not in refs:
        refs.append(ref(obj))
    return obj


async def breakdown_ready(step: Step) -> Wait | None:
    """Wait for the breakdown. Raises its error."""
    obj = await step.cluster.get("directivebreakdowns", step.namespace, step.name)
    status = (obj or {}).get("status", {})
    if status.get("error") and not status.get("ready"):
        raise ResourceError.of(status["error"])
    return None if status.get("ready") else Wait("status pending")


def _check_set(alloc: Object, wanted: Object) -> None:
    strategy, minimum = wanted["allocationStrategy"], wanted["minimumCapacity"]
    size = alloc["allocationSize"]
    counts = [s["allocationCount"] for s in alloc["storage"]]
    label = wanted["label"]
    if strategy == "AllocateSingleServer" and counts != [1]:
        debug = f"allocation set {label} expected single allocation"
        raise fatal(_UNMET, "WLM", debug)
    if strategy == "AllocateAcrossServers":
        size *= sum(counts)
    if size < minimum:
        debug = f"allocation set {label} specified insufficient capacity"
        raise fatal(_UNMET, "WLM", debug)


async def _check_servers(step: Step, breakdown: Object, servers: Object) -> None:
    wanted = breakdown["status"]["storage"]["allocationSets"]
    sets = servers.get("spec", {}).get("allocationSets", ())
    if len(sets) != len(wanted):
        raise fatal(
            "Allocation request does not meet directive requirements",
            "WLM",
            "Servers resource does not meet storage requirements for directive "
            f"'{breakdown['spec']['directive']}'",
        )
    by_label = {s["label"]: s for s in sets}
    for need in wanted:
        label = need["label"]
        alloc = by_label.get(label)
        if alloc is None:
            debug = f"allocation set {label} not found in Servers resource"
            raise fatal(_UNMET, "WLM", debug)
        _check_set(alloc, need)
        for node in alloc["storage"]:
            name = node["name"]
            if await step.cluster.get("storages", "default", name) is None:
                why = missing("Storage", name)
                debug = f"could not get storage: default/{name}: {why}"
                raise fatal(_UNMET, "Internal", debug)


async def the_servers(step: Step, name: str) -> Object:
    """The Servers that the workload manager has filled in.

    Raises:
        ResourceError: it is not there, or not enough for the breakdown.
    """
    where = f"{step.namespace}/{name}"
    breakdown = await step.cluster.get("directivebreakdowns", step.namespace, step.name)
    servers = await step.cluster.get("servers", step.namespace, name)
    if breakdown is None or servers is None:
        fault = ResourceError("could not read allocation request")
        raise fault.within(f"unable to get Servers: {where}")
    if step.outdates():
        servers = {**servers, "spec": {}}
    try:
        await _check_servers(step, breakdown, servers)
    except ResourceError as exc:
        raise exc.within(f"invalid Rabbit allocations for servers: {where}") from exc
    return servers


async def _pool_member(step: Step, name: str) -> Object | None:
    """The MGT that a file system takes from a pool, once and for all."""
    storage = await step.cluster.get("nnfstorages", step.namespace, name)
    if storage is not None:
        mgs: Object | None = storage["spec"].get("persistentMgs")
        return mgs
    profile = await step.cluster.get("nnfstorageprofiles", step.namespace, name)
    pool = wanted_pool((profile or {}).get("data", {}))
    if not pool:
        return None
    return await choose(step.cluster, pool, step.labels[WORKFLOW_UID])


def _nodes(alloc: Object) -> Object:
    """The rabbits of a set. An empty list is left out, and then missed."""
    nodes = [
        {"name": n["name"], "count": n["allocationCount"]} for n in alloc["storage"]
    ]
    return {"nodes": nodes} if nodes else {}


async def make_storage(
    step: Step,
    servers: Object,
    fs_type: str,
    labels: dict[str, str] | None = None,
) -> None:
    """Ask for the allocations that Servers names."""
    meta, spec = servers["metadata"], step.workflow["spec"]
    mgs = await _pool_member(step, meta["name"]) if fs_type == "lustre" else None
    profile = await step.cluster.get(
        "nnfstorageprofiles", meta["namespace"], meta["name"]
    )
    block = (profile or {}).get("data", {}).get(f"{fs_type}Storage", {})
    shared = (block.get("blockDeviceCommands") or {}).get("sharedVg", False)
    body = child(
        servers,
        meta["namespace"],
        meta["name"],
        step.labels if labels is None else labels,
        spec={
            "fileSystemType": fs_type,
            "userID": spec["userID"],
            "groupID": spec["groupID"],
            "allocationSets": [
                {
                    "name": alloc["label"],
                    "capacity": alloc["allocationSize"],
                    "sharedAllocation": shared,
                    **_nodes(alloc),
                }
                for alloc in servers["spec"]["allocationSets"]
            ],
        },
    )
    if mgs is not None:
        body["spec"]["persistentMgs"] = mgs
    try:
        obj = await step.cluster.create("nnfstorages", body)
    except ApiError as exc:
        where = f"{meta['namespace']}/{meta['name']}"
        raise (
            met(exc, f"CreateOrUpdate failed for NnfStorage: {where}").within(
                "could not create NnfStorage", "could not create allocation"
            )
        ) from exc
    if obj["spec"] != body["spec"] and not obj.get("status", {}).get("ready"):
        # Servers was corrected after it did not work
        new = edit(obj, "spec")
        new["spec"] = body["spec"]
        await step.cluster.update("nnfstorages", new)


async def storage_ready(step: Step, name: str) -> Wait | None:
    """Wait for an NnfStorage and its Servers. Raises the storage's error."""
    where = f"{step.namespace}/{name}"
    storage = await step.cluster.get("nnfstorages", step.namespace, name)
    if storage is None:
        fault = ResourceError(debug=missing("NnfStorage", name))
        raise fault.within(f"could not get NnfStorage: {where}", NO_STORAGE)
    status = storage.get("status", {})
    if len(status.get("allocationSets", ())) != len(storage["spec"]["allocationSets"]):
        return Wait("allocation")
    if status.get("error"):
        fault = ResourceError.of(status["error"])
        raise fault.within(f"storage resource error: {where}", NO_STORAGE)
    servers = await step.cluster.get("servers", step.namespace, name)
    if not (status["ready"] and (servers or {}).get("status", {}).get("ready")):
        return Wait("allocation set not ready")
    return None


async def make_access(
    step: Step, kind: str, storage: str, teardown: str, user: Step | None = None
) -> None:
    """Mount a storage on the computes or on its servers. An access that an earlier
    state has left is used again.

    Args:
        step: of the directive whose storage it is.
        kind: computes or servers.
        teardown: the state in which it is undone.
        user: the directive that needs it, if that is another one.
    """
    spec: Object = {
        "desiredState": "mounted",
        "teardownState": teardown,
        "target": "single" if kind == "computes" else "all",
        "userID": step.workflow["spec"]["userID"],
        "groupID": step.workflow["spec"]["groupID"],
        "mountPath": step.mount_path,
        "storageReference": {
            "kind": "NnfStorage",
            "name": storage,
            "namespace": step.namespace,
        },
    }
    if kind == "computes":
        spec["clientReference"] = step.workflow["status"]["computes"]
    labels = (user or step).labels
    if kind == "servers":
        labels[TEARDOWN_LABEL] = teardown
    name = f"{step.name}-{kind}"
    body = child(step.workflow, step.namespace, name, labels, spec=spec)
    obj = await step.cluster.create("nnfaccesses", body)
    new = edit(obj, "metadata", "spec")
    new["metadata"].setdefault("labels", {}).update(labels)
    new["spec"].update(desiredState="mounted", teardownState=teardown)
    if new != obj:
        await step.cluster.update("nnfaccesses", new)


async def access_ready(step: Step, kind: str, desired: str) -> Wait | None:
    """Bring an access to a state. Raises its error."""
    name = f"{step.name}-{kind}"
    obj = await step.cluster.get("nnfaccesses", step.namespace, name)
    if obj is None:
        if desired == "unmounted":
            return None
        fault = ResourceError(debug=missing("NnfAccess", name))
        raise fault.within(f"could not get NnfAccess: {step.namespace}/{name}")
    if obj["spec"]["desiredState"] != desired:
        new = edit(obj, "spec")
        new["spec"]["desiredState"] = desired
        obj = await step.cluster.update("nnfaccesses", new)
    status = obj.get("status", {})
    if status.get("state") == desired and status["ready"]:
        return None
    if status.get("state") == desired and status.get("error"):
        raise ResourceError.of(status["error"])
    return Wait("pending mount" if desired == "mounted" else "pending unmount")


def set_environment(step: Step, prefix: str, fs_type: str) -> None:
    """Tell the job where its file system is."""
    env = step.workflow["status"].setdefault("env", {})
    name, path = step.directive.get("name") or "", step.mount_path
    env[f"DW_{prefix}_{name.replace('-', '_')}"] = path
    env.setdefault(f"DW_{prefix}_{fs_type.upper()}", path)
    entries = [e for e in env.get(f"DW_{prefix}S", "").split(",") if e]
    if f"{name}:{path}" not in entries:
        entries.append(f"{name}:{path}")
    env[f"DW_{prefix}S"] = ",".join(entries)


def uses_servers(step: Step, prefix: str) -> bool:
    """Whether a copy_out or a container works with the rabbits' mounts after
    the job."""
    name = step.directive.get("name") or ""
    word = f"$DW_{prefix}_{name.replace('-', '_')}/"
    for other in step.directives():
        source = other.get("source") or ""
        if other.command == "copy_out" and f"{source}/".startswith(word):
            return True
        if other.command == "container" and any(
            key.startswith(f"DW_{prefix}_") and value == name
            for key, value in other.args
        ):
            return True
    return False


def state_of_unmount(step: Step, prefix: str) -> str:
    """When the rabbits' mounts of a storage are undone."""
    return "Teardown" if uses_servers(step, prefix) else "PostRun"


async def user_movements(step: Step) -> list[Object]:
    """Data movements that the job itself has asked for while it ran."""
    labels = {
        WORKFLOW_UID: step.labels[WORKFLOW_UID],
        TEARDOWN_LABEL: "PostRun",
    }
    return await step.cluster.find(MOVEMENTS, labels)


class MountedCommand(Command):
    """PreRun, PostRun and the unmounting of Teardown."""

    prefix = "JOB"

    async def fs_type(self, step: Step) -> str:
        return step.directive.get("type") or ""

    def storage(self, step: Step) -> str:
        """The name of the NnfStorage."""
        return step.name

    async def prerun(self, step: Step, part: str) -> Wait | None:
        fs_type = await self.fs_type(step)
        kinds = ["computes"]
        if fs_type in WITH_SERVER_MOUNT:
            kinds.append("servers")
        elif part == "start":
            # a copy has used it there
            wait = await access_ready(step, "servers", "unmounted")
            if wait is not None:
                return wait
        if part == "start":
            for kind in kinds:
                teardown = "PostRun"
                if kind == "servers":
                    teardown = state_of_unmount(step, self.prefix)
                await make_access(step, kind, self.storage(step), teardown)
            return None
        set_environment(step, self.prefix, fs_type if self.prefix == "JOB" else "")
        for kind in kinds:
            wait = await access_ready(step, kind, "mounted")
            if wait is not None:
                return wait
        return None

    async def postrun(self, step: Step, part: str) -> Wait | None:
        wait = await access_ready(step, "computes", "unmounted")
        if wait is not None:
            return wait
        for obj in await user_movements(step):
            status = obj.get("status", {})
            if status.get("state") != "Finished":
                return Wait("pending data movement")
            if part == "finish" and status.get("status") == "Failed":
                meta = obj["metadata"]
                debug = f"data movement {meta['namespace']}/{meta['name']} failed"
                raise fatal("data movement failed", "Internal", debug)
        if uses_servers(step, self.prefix):
            return None
        return await access_ready(step, "servers", "unmounted")

    async def unmount(self, step: Step) -> Wait | None:
        for obj in await user_movements(step):
            meta = obj["metadata"]
            if not await step.gone(MOVEMENTS, meta["namespace"], meta["name"]):
                return Wait("delete")
        for kind in ("computes", "servers"):
            if not await step.gone(
                "nnfaccesses", step.namespace, f"{step.name}-{kind}"
            ):
                return Wait("delete")
        return None


class JobDw(MountedCommand):
    """#DW jobdw."""

    async def start(self, state: str, step: Step) -> Wait | None:
        if state == "Proposal":
            await take_requires(step)
            await self._propose(step)
        elif state == "Setup":
            servers = await the_servers(step, step.name)
            await make_storage(step, servers, await self.fs_type(step))
        elif state == "PreRun":
            return await self.prerun(step, "start")
        elif state == "PostRun":
            return await self.postrun(step, "start")
        elif state == "Teardown":
            return await self.unmount(step)
        return None

    async def finish(self, state: str, step: Step) -> Wait | None:
        if state == "Proposal":
            return await breakdown_ready(step)
        if state == "Setup":
            return await storage_ready(step, step.name)
        if state == "PreRun":
            return await self.prerun(step, "finish")
        if state == "PostRun":
            return await self.postrun(step, "finish")
        if state == "Teardown":
            return await self._free(step)
        return None

    async def remove(self, step: Step) -> Wait | None:
        wait = await self.unmount(step) or await self._free(step)
        if wait is not None:
            return wait
        if await step.gone("directivebreakdowns", step.namespace, step.name):
            return None
        return Wait("delete")

    @staticmethod
    async def _propose(step: Step) -> None:
        plural = "nnfstorageprofiles"
        if await step.cluster.get(plural, step.namespace, step.name) is None:
            profile = await find_profile(
                step.cluster, plural, step.directive.get("profile")
            )
            await pin_profile(
                step.cluster, plural, profile, step.workflow, step.name, step.labels
            )
        await make_breakdown(step)

    @staticmethod
    async def _free(step: Step) -> Wait | None:
        if await step.gone("nnfstorages", step.namespace, step.name):
            servers = await step.cluster.get("servers", step.namespace, step.name)
            status = (servers or {}).get("status", {})
            for alloc in status.get("allocationSets", ()):
                if any(s["allocationSize"] for s in alloc["storage"].values()):
                    return Wait("delete")
            return None
        return Wait("delete")
