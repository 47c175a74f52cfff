# copy_in and copy_out: data movements between global file systems and those
# of the job, and the controller that makes them advance.
# SPDX-License-Identifier: LGPL-3.0-only
"""Data movement."""

from __future__ import annotations

import asyncio
import re

from dws_sim.controllers.cluster import Cluster
from dws_sim.controllers.common import (
    INDEX_LABEL,
    JOB_LABEL,
    TEARDOWN_LABEL,
    WORKFLOW_UID,
    ResourceError,
    add_finalizer,
    child,
    drop_finalizer,
    fatal,
    is_deleting,
    missing,
    ref,
)
from dws_sim.controllers.devices import places
from dws_sim.controllers.filesystem import (
    WITH_SERVER_MOUNT,
    make_access,
    state_of_unmount,
)
from dws_sim.controllers.lustre import find_global
from dws_sim.controllers.manager import Controller, Manager
from dws_sim.controllers.profiles import find_profile, pin_profile
from dws_sim.controllers.step import Command, Step, Wait
from dws_sim.faults import Faults
from dws_sim.jsontree import Object, edit, now_micro, parse_time
from dws_sim.mounts import Mounts
from dws_sim.schema.resources import NNF_GROUP

PLURAL = "nnfdatamovements"
PROFILES = "nnfdatamovementprofiles"
DM_NAMESPACE = "nnf-dm-system"
FINALIZER = f"{NNF_GROUP}/nnf_datamovement"
INITIATOR = "dm.cray.hpe.com/initiator"
_VARIABLE = re.compile(r"^\$(DW_(JOB|PERSISTENT)_([A-Za-z0-9_-]+))(/.*)?$")
_COMMANDS = {"JOB": "jobdw", "PERSISTENT": "persistentdw"}
_NO_RAW = "data movement can not be used with raw allocations"
# Reported size of every data movement.
FILES = 1000
DATA_MIB = 10240.0


class End:
    """Source or destination of a copy: a path, and the directive of its storage."""

    def __init__(self, step: Step, text: str) -> None:
        """Raises ResourceError when there is no such place."""
        self.path = text
        self.index: int | None = None
        self.prefix = ""
        match = _VARIABLE.match(text)
        if not match:
            return
        self.prefix = match.group(2)
        wanted = match.group(3).replace("_", "-")
        for i, directive in enumerate(step.directives()):
            name = (directive.get("name") or "").replace("_", "-")
            if directive.command == _COMMANDS[self.prefix] and name == wanted:
                self.index = i
                self.path = step.at(i).mount_path + (match.group(4) or "/")
                if directive.get("type") == "raw":
                    raise fatal(_NO_RAW)
                return
        if self.prefix == "JOB":
            raise fatal(f"job storage instance '{wanted}' not found")
        raise fatal(f"persistentdw directive mentioning '{wanted}' not found")

    async def check(self, step: Step) -> None:
        """Raises ResourceError for persistent storage that cannot be copied, and for
        a path that is in no file system."""
        if not self.prefix and await find_global(step.cluster, self.path) is None:
            what = f"global Lustre file system containing '{self.path}'"
            raise fatal(f"{what} not found")
        if self.prefix != "PERSISTENT":
            return
        name = self.storage(step)
        instance = await step.cluster.get(
            "persistentstorageinstances", step.namespace, name
        )
        spec = (instance or {"spec": {}})["spec"]
        if instance is None or is_deleting(instance) or spec["fsType"] == "raw":
            raise fatal(f"persistent storage instance '{name}' not found")

    def storage(self, step: Step) -> str:
        """The name of the NnfStorage of this end."""
        if self.index is None:
            return ""
        other = step.at(self.index)
        if self.prefix == "PERSISTENT":
            return other.directive.get("name") or ""
        return other.name


def end(step: Step, key: str) -> End:
    """The source or destination of a copy.

    Raises:
        ResourceError: there is no such place.
    """
    text = step.directive.get(key) or ""
    try:
        return End(step, text)
    except ResourceError as exc:
        raise exc.within(f"Invalid {key} argument: '{text}'") from exc


def ends(step: Step) -> tuple[End, End]:
    """Source and destination of a copy."""
    source, destination = end(step, "source"), end(step, "destination")
    if source.index is None and destination.index is None:
        # NNF does not check this in Proposal
        user = "could not find storage allocations"
        raise ResourceError(user, debug="could not get NnfStorage: neither end is one")
    return source, destination


def movement_labels(step: Step) -> dict[str, str]:
    """Labels that select the data movements of a directive."""
    labels = step.labels
    return {k: labels[k] for k in (WORKFLOW_UID, INDEX_LABEL)}


class Copy(Command):
    """#DW copy_in and #DW copy_out."""

    def __init__(self, state: str) -> None:
        self._state = state

    async def check(self, step: Step) -> None:
        for key in ("source", "destination"):
            place = end(step, key)
            try:
                await place.check(step)
            except ResourceError as exc:
                text = step.directive.get(key)
                raise exc.within(f"Invalid {key} argument: '{text}'") from exc

    async def start(self, state: str, step: Step) -> Wait | None:
        if state == "Proposal":
            if await step.cluster.get(PROFILES, step.namespace, step.name) is None:
                profile = await find_profile(
                    step.cluster, PROFILES, step.directive.get("profile")
                )
                await pin_profile(
                    step.cluster,
                    PROFILES,
                    profile,
                    step.workflow,
                    step.name,
                    step.labels,
                )
        elif state == self._state:
            return await self._copy(step)
        elif state == "Teardown":
            return await self.remove(step)
        return None

    async def finish(self, state: str, step: Step) -> Wait | None:
        if state != self._state:
            return None
        for obj in await step.cluster.find(PLURAL, movement_labels(step)):
            status = obj.get("status", {})
            if status.get("state") != "Finished":
                return Wait("pending data movement")
            if status.get("status") != "Success":
                why = status.get("message", "")
                text = f"data movement operation failed during '{state}'"
                raise fatal(f"{text}, message: {why}", "Internal")
        return None

    async def remove(self, step: Step) -> Wait | None:
        left = False
        for obj in await step.cluster.find(PLURAL, movement_labels(step)):
            meta = obj["metadata"]
            left |= not await step.gone(PLURAL, meta["namespace"], meta["name"])
        return Wait("delete") if left else None

    async def _copy(self, step: Step) -> Wait | None:
        source, destination = ends(step)
        storages: list[Object | None] = []
        waits = False
        for place in (source, destination):
            storage = await self._storage(step, place)
            storages.append(storage)
            if storage is not None and place.index is not None:
                waits |= not await self._mounted(step, place, storage)
        if waits:
            return Wait("status pending")
        near = storages[1] or storages[0]
        for where, movement, path in self._places(step, near or {}):
            body = {
                "source": self._end(step, source, storages[0], path),
                "destination": self._end(step, destination, storages[1], path),
                "userId": step.workflow["spec"]["userID"],
                "groupId": step.workflow["spec"]["groupID"],
                "profileReference": {
                    "kind": "NnfDataMovementProfile",
                    "name": step.name,
                    "namespace": step.namespace,
                },
            }
            labels = {
                **step.labels,
                TEARDOWN_LABEL: self._state,
                INITIATOR: step.directive.command,
            }
            await step.cluster.create(
                PLURAL, child(step.workflow, where, movement, labels, spec=body)
            )
        return None

    @staticmethod
    async def _storage(step: Step, end: End) -> Object | None:
        """The NnfStorage of an end; None: it is in a global file system."""
        if end.index is None:
            return None
        name = end.storage(step)
        storage = await step.cluster.get("nnfstorages", step.namespace, name)
        if storage is None:
            fault = ResourceError(debug=missing("NnfStorage", name))
            raise fault.within(
                f"could not get NnfStorage {step.namespace}/{name}",
                "could not find storage allocation",
            )
        return storage

    async def _mounted(self, step: Step, end: End, storage: Object) -> bool:
        """Mount a storage on its rabbits; whether it is."""
        other = step.at(end.index or 0)
        teardown = "Teardown"
        if self._state == "DataIn":
            # what computes and rabbits mount at once stays for the job
            shared = storage["spec"]["fileSystemType"] in WITH_SERVER_MOUNT
            teardown = state_of_unmount(other, end.prefix) if shared else "PreRun"
        await make_access(other, "servers", end.storage(step), teardown, step)
        access = await step.cluster.get(
            "nnfaccesses", step.namespace, f"{other.name}-servers"
        )
        status = (access or {}).get("status", {})
        return bool(status.get("state") == "mounted" and status["ready"])

    @staticmethod
    def _end(step: Step, end: End, storage: Object | None, path: str) -> Object:
        """Source or destination of a movement.

        Args:
            path: the allocation that it works on; "": the whole file system.
        """
        if storage is None or end.index is None:
            return {"path": end.path, "storageReference": {}}
        whole = step.at(end.index).mount_path
        out = {"path": end.path, "storageReference": ref(storage)}
        if path and storage["spec"]["fileSystemType"] != "lustre":
            out["path"] = f"{whole}/{path}{end.path[len(whole) :]}"
        return out

    @staticmethod
    def _places(step: Step, storage: Object) -> list[tuple[str, str, str]]:
        """Namespace, name and path of each movement: one in all for lustre,
        else one for each allocation."""
        if storage["spec"]["fileSystemType"] == "lustre":
            return [(DM_NAMESPACE, step.name, "")]
        rabbits = dict.fromkeys(
            node["name"]
            for alloc in storage["spec"]["allocationSets"]
            for node in alloc["nodes"]
        )
        return [
            (rabbit, f"{step.name}-{i}", f"{rabbit}-{i}")
            for rabbit in rabbits
            for i in range(len(places(storage, rabbit)))
        ]


def command_status(part: float, elapsed_s: float) -> Object:
    """Status that NNF parses from dcp's output: progress lines, then a summary."""
    status: Object = {
        "command": "mpirun dcp",
        "progress": int(part * 100),
        "elapsedTime": f"{elapsed_s:.3f}s",
    }
    size = f"{part * DATA_MIB:.3f} MiB"
    rate = f"{part * DATA_MIB / max(elapsed_s, 0.001):.3f} MiB/s"
    if part < 1.0:
        left_s = elapsed_s * (1.0 - part) / max(part, 1e-9)
        status["lastMessage"] = (
            f"Copied {size} ({int(part * 100)}%) in {elapsed_s:.3f} secs ({rate}) "
            f"{left_s:.0f} secs left ...\n"
        )
        return status
    moved = int(DATA_MIB * (1 << 20))
    status["rate"] = f"{rate} ({moved} bytes in {elapsed_s:.3f} seconds)"
    status["lastMessage"] = f"Rate: {status['rate']}\n"
    return {**status, "files": FILES, "items": FILES, "data": f"{size} ({moved} bytes)"}


class MovementController(Controller):
    """NnfDataMovement: progress over time, cancellation, the end."""

    plural = PLURAL

    def __init__(
        self, cluster: Cluster, manager: Manager, faults: Faults, mounts: Mounts
    ) -> None:
        super().__init__(cluster, manager)
        self._faults = faults
        self._mounts = mounts
        self._began: dict[str, tuple[float, float]] = {}

    def forget(self, obj: Object) -> None:
        self._began.pop(obj["metadata"]["uid"], None)

    async def reconcile(self, namespace: str, name: str) -> float | None:
        obj = await self.cluster.get(PLURAL, namespace, name)
        if obj is None:
            return None
        if is_deleting(obj):
            await drop_finalizer(self.cluster, PLURAL, obj, FINALIZER)
            return None
        if obj.get("status", {}).get("state") == "Finished":
            return None
        obj = await add_finalizer(self.cluster, PLURAL, obj, FINALIZER)
        if (fault := await self._no_source(obj)) is not None:
            new = edit(obj, "status")
            new["status"] = {
                "state": "Finished",
                "status": "Invalid",
                "error": fault.to_object(),
                "message": f"{fault.type.lower()} error: {fault.story}",
            }
            await self.cluster.update_status(PLURAL, new)
            return None
        now = asyncio.get_running_loop().time()
        began, takes = self._began.setdefault(
            obj["metadata"]["uid"], (now, self._faults.copy_seconds(name))
        )
        new = edit(obj, "status")
        status = new.setdefault("status", {})
        status.setdefault("startTime", now_micro())
        part = 1.0 if takes <= 0 else min(1.0, (now - began) / takes)
        status["commandStatus"] = command_status(part, now - began)
        if obj["spec"].get("cancel"):
            self._finish(status, "Cancelled", "cancelled by request")
        elif part >= 1.0:
            self._finish(status, *self._result(obj))
        else:
            status["state"] = "Running"
        await self.cluster.update_status(PLURAL, new)
        if status["state"] == "Finished":
            return None
        return min(1.0, takes / 10 + 0.001)

    async def _no_source(self, obj: Object) -> ResourceError | None:
        """nnf-dm's error if the source does not exist, which it checks before the copy.
        The simulator checks sources in global file systems only."""
        source = obj["spec"]["source"]
        path = str(source["path"])
        if source.get("storageReference") or "status" in obj:
            return None
        lustre = await find_global(self.cluster, path)
        if lustre is None or not self._mounts.lacks(lustre["spec"]["mountRoot"], path):
            return None
        command = f"mpirun -np 1 -- setpriv stat --cached never -c '%F' {path}"
        return fatal(
            "",
            "Internal",
            "could not determine source type: could not stat path "
            f"('{path}'): command: {command} - stderr: stat: cannot statx '{path}': "
            "No such file or directory\n - stdout:  - error: exit status 1",
        )

    def _result(self, obj: Object) -> tuple[str, str]:
        job = obj["metadata"].get("labels", {}).get(JOB_LABEL, "")
        message = self._faults.copy_failure(job)
        return ("Failed", message) if message else ("Success", "")

    @staticmethod
    def _finish(status: Object, word: str, message: str) -> None:
        status.update(state="Finished", status=word, endTime=now_micro())
        if message:
            status["message"] = message
        elapsed = parse_time(status["endTime"]) - parse_time(status["startTime"])
        status["commandStatus"]["seconds"] = f"{elapsed:.3f}"
