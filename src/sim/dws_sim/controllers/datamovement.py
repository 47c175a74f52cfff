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
    ref,
)
from dws_sim.controllers.filesystem import make_access
from dws_sim.controllers.manager import Controller, Manager
from dws_sim.controllers.profiles import find_profile, pin_profile
from dws_sim.controllers.step import Command, Step, Wait
from dws_sim.faults import Faults
from dws_sim.jsontree import Object, edit, now_micro, parse_time
from dws_sim.schema.resources import NNF_GROUP

PLURAL = "nnfdatamovements"
PROFILES = "nnfdatamovementprofiles"
DM_NAMESPACE = "nnf-dm-system"
FINALIZER = f"{NNF_GROUP}/nnf_datamovement"
INITIATOR = "dm.cray.hpe.com/initiator"
_VARIABLE = re.compile(r"^\$(DW_(JOB|PERSISTENT)_([A-Za-z0-9_]+))(/.*)?$")
# Global Lustre file systems that the site has registered.
GLOBAL_ROOTS = ("/lus/global", "/p/lustre")
# What each movement is said to carry.
FILES = 1000
DATA_GIB = 10.0


class End:
    """One end of a copy: a path, and the storage directive that it is in."""

    def __init__(self, step: Step, text: str) -> None:
        """Raises ResourceError when there is no such place."""
        self.path = text
        self.index: int | None = None
        self.prefix = ""
        match = _VARIABLE.match(text)
        if not match:
            if not text.startswith(tuple(f"{r}/" for r in GLOBAL_ROOTS)):
                raise fatal(f"'{text}' is not in a known global file system")
            return
        commands = {"JOB": "jobdw", "PERSISTENT": "persistentdw"}
        self.prefix = match.group(2)
        for i, directive in enumerate(step.directives()):
            name = (directive.get("name") or "").replace("-", "_")
            if directive.command == commands[self.prefix] and name == match.group(3):
                if directive.get("type") == "raw":
                    raise fatal(f"'{text}': raw storage cannot be copied")
                self.index = i
                self.path = step.at(i).mount_path + (match.group(4) or "/")
                return
        raise fatal(f"'{text}' names no storage of this workflow")

    def storage(self, step: Step) -> str:
        """The name of the NnfStorage of this end."""
        if self.index is None:
            return ""
        other = step.at(self.index)
        if self.prefix == "PERSISTENT":
            return other.directive.get("name") or ""
        return other.name


def ends(step: Step) -> tuple[End, End]:
    """Source and destination of a copy."""
    source, destination = (
        End(step, step.directive.get(key) or "") for key in ("source", "destination")
    )
    if source.index is None and destination.index is None:
        raise fatal("neither source nor destination is storage of this workflow")
    return source, destination


def movement_labels(step: Step) -> dict[str, str]:
    """What finds the movements of a directive."""
    labels = step.labels
    return {k: labels[k] for k in (WORKFLOW_UID, INDEX_LABEL)}


class Copy(Command):
    """#DW copy_in and #DW copy_out."""

    def __init__(self, state: str) -> None:
        self._state = state

    async def start(self, state: str, step: Step) -> Wait | None:
        if state == "Proposal":
            ends(step)
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
                return Wait("data movement")
            if status.get("status") != "Success":
                raise fatal(
                    f"data movement {obj['metadata']['name']} ended "
                    f"{status.get('status')}: {status.get('message', '')}"
                )
        return None

    async def remove(self, step: Step) -> Wait | None:
        left = False
        for obj in await step.cluster.find(PLURAL, movement_labels(step)):
            meta = obj["metadata"]
            left |= not await step.gone(PLURAL, meta["namespace"], meta["name"])
        return Wait("data movement") if left else None

    async def _copy(self, step: Step) -> Wait | None:
        source, destination = ends(step)
        near = destination if destination.index is not None else source
        storage = await step.cluster.get(
            "nnfstorages", step.namespace, near.storage(step)
        )
        if storage is None or near.index is None:
            raise ResourceError(f"storage {near.storage(step)} is gone")
        other = step.at(near.index)
        name = f"{other.name}-servers"
        await make_access(other, "servers", near.storage(step), "PreRun")
        access = await step.cluster.get("nnfaccesses", step.namespace, name)
        if not (access or {}).get("status", {}).get("ready"):
            return Wait("servers mounted")
        for place, movement, path in self._places(step, storage):
            body = {
                "source": {"path": source.path, "storageReference": {}},
                "destination": {"path": destination.path, "storageReference": {}},
                "userId": step.workflow["spec"]["userID"],
                "groupId": step.workflow["spec"]["groupID"],
                "profileReference": {
                    "kind": "NnfDataMovementProfile",
                    "name": step.name,
                    "namespace": step.namespace,
                },
            }
            side = "destination" if near is destination else "source"
            body[side]["storageReference"] = ref(storage)
            if path:
                tail = body[side]["path"][len(other.mount_path) :]
                body[side]["path"] = f"{other.mount_path}/{path}{tail}"
            labels = {
                **step.labels,
                TEARDOWN_LABEL: self._state,
                INITIATOR: step.directive.command,
            }
            await step.cluster.create(
                PLURAL, child(step.workflow, place, movement, labels, spec=body)
            )
        return None

    @staticmethod
    def _places(step: Step, storage: Object) -> list[tuple[str, str, str]]:
        """Namespace, name and path of each movement: one in all for lustre,
        else one for each allocation."""
        if storage["spec"]["fileSystemType"] == "lustre":
            return [(DM_NAMESPACE, step.name, "")]
        out: list[tuple[str, str, str]] = []
        for alloc in storage["spec"]["allocationSets"]:
            for node in alloc["nodes"]:
                for i in range(node["count"]):
                    path = f"{node['name']}-{i}"
                    out.append((node["name"], f"{step.name}-{len(out)}", path))
        return out


class MovementController(Controller):
    """NnfDataMovement: progress over time, cancellation, the end."""

    plural = PLURAL

    def __init__(self, cluster: Cluster, manager: Manager, faults: Faults) -> None:
        super().__init__(cluster, manager)
        self._faults = faults
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
        now = asyncio.get_running_loop().time()
        began, takes = self._began.setdefault(
            obj["metadata"]["uid"], (now, self._faults.copy_seconds(name))
        )
        new = edit(obj, "status")
        status = new.setdefault("status", {})
        status.setdefault("startTime", now_micro())
        part = 1.0 if takes <= 0 else min(1.0, (now - began) / takes)
        status["commandStatus"] = {
            "command": "mpirun dcp",
            "progress": int(part * 100),
            "elapsedTime": f"{now - began:.3f}s",
            "files": int(part * FILES),
            "items": int(part * FILES),
            "data": f"{part * DATA_GIB:.3f} GiB",
        }
        if now > began:
            rate = part * DATA_GIB / (now - began)
            status["commandStatus"]["rate"] = f"{rate:.3f} GiB/s"
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
