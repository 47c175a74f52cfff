# Reports the health of the hardware, rabbits, links and drives, in Storage.status.
# SPDX-License-Identifier: LGPL-3.0-only
"""The Storage health controller."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Callable

from dws_sim.controllers.cluster import Cluster
from dws_sim.controllers.manager import Controller, Manager
from dws_sim.jsontree import Object
from dws_sim.nodes import (
    NNF_NODE,
    is_drained,
    nnf_node_status,
    node_status,
)
from dws_sim.world import Machine, storage_status

# Asks for the free bytes of a rabbit.
Free = Callable[[str], Awaitable[int]]


@dataclass
class Hardware:
    """What is broken."""

    down: set[str] = field(default_factory=set)
    # rabbits that have never been up since they were put there
    unbooted: set[str] = field(default_factory=set)
    drained: set[str] = field(default_factory=set)
    # words other than Ready for links, by compute
    links: dict[str, str] = field(default_factory=dict)
    # failed drives: rabbit -> slots
    drives: dict[str, set[int]] = field(default_factory=dict)
    # percent by rabbit and slot, of drives that are worn
    wear: dict[tuple[str, int], int] = field(default_factory=dict)
    # rabbits that seem well, but whose controller has ended
    dead: set[str] = field(default_factory=set)
    # rabbits that were fenced and wait for a reboot
    fenced: set[str] = field(default_factory=set)

    def reboot(self, rabbit: str) -> None:
        self.down.discard(rabbit)
        self.dead.discard(rabbit)
        self.unbooted.discard(rabbit)
        self.fenced.discard(rabbit)


class HealthController(Controller):
    """Storage.status."""

    plural = "storages"

    def __init__(
        self,
        cluster: Cluster,
        manager: Manager,
        machine: Machine,
        hardware: Hardware,
        free: Free,
    ) -> None:
        super().__init__(cluster, manager)
        self._machine = machine
        self._hardware = hardware
        self._free = free
        # free bytes of each rabbit when it last looked
        self._seen: dict[str, int] = {}
        self._was_disabled: set[str] = set()
        cluster.subscribe("nodes", self._node)

    def _node(self, obj: Object, old: Object | None, gone: bool) -> None:
        if obj["metadata"]["name"] in self._machine.rabbits:
            self.enqueue("default", obj["metadata"]["name"])

    def look(self, rabbit: str) -> None:
        """Refresh a rabbit's drives, as its controller does when it starts, or when a
        link or a drive changes. Allocations cause no refresh."""
        if rabbit not in self._hardware.dead | self._hardware.down:
            self._seen.pop(rabbit, None)
        self.enqueue("default", rabbit)

    async def reconcile(self, namespace: str, name: str) -> float | None:
        obj = await self.cluster.get(self.plural, namespace, name)
        if obj is None or name not in self._machine.rabbits:
            return None
        if obj["spec"]["mode"] == "Testing":
            return None
        disabled = obj["spec"]["state"] == "Disabled"
        if disabled:
            self._was_disabled.add(name)
        elif name in self._was_disabled:
            # enabling again clears the fence
            self._was_disabled.discard(name)
            self._hardware.fenced.discard(name)
        if name in self._hardware.unbooted:
            if "status" in obj:
                new = {k: v for k, v in obj.items() if k != "status"}
                await self.cluster.update_status(self.plural, new)
            return None
        if name not in self._seen:
            self._seen[name] = await self._free(name)
        node = await self.cluster.get("nodes", "", name)
        status = self._status(name, disabled, is_drained(node))
        await self._write(self.plural, obj, status)
        if node is not None:
            is_up = name not in self._hardware.down
            await self._write("nodes", node, node_status(node, is_up))
        report = await self.cluster.get("nnfnodes", name, NNF_NODE)
        if report is not None and name not in self._hardware.down | self._hardware.dead:
            is_fenced = name in self._hardware.fenced
            said = nnf_node_status(name, status, is_fenced)
            await self._write("nnfnodes", report, said)
        return None

    async def _write(self, plural: str, obj: Object, status: Object) -> None:
        if status != obj.get("status"):
            await self.cluster.update_status(plural, {**obj, "status": status})

    def _status(self, name: str, disabled: bool, drained: bool) -> Object:
        hardware = self._hardware
        status = storage_status(self._machine, name, self._seen[name])
        for entry in status["access"]["computes"]:
            entry["status"] = hardware.links.get(entry["name"], "Ready")
        failed = {str(slot) for slot in hardware.drives.get(name, ())}
        status["devices"] = [
            {"slot": d["slot"], "status": "Failed"} if d["slot"] in failed else d
            for d in status["devices"]
        ]
        for d in status["devices"]:
            if d["status"] == "Ready" and (name, int(d["slot"])) in hardware.wear:
                d["wearLevel"] = hardware.wear[name, int(d["slot"])]
        if disabled:
            status.update(status="Disabled", message="Storage node manually disabled")
        elif name in hardware.down:
            status.update(status="Offline", message="Kubernetes node is offline")
        elif drained or name in hardware.drained:
            status["status"] = "Drained"
        elif name in hardware.fenced:
            status.update(status="Degraded", rebootRequired=True)
        if name in hardware.down:
            for entry in status["access"]["servers"]:
                entry["status"] = "Offline"
        return status
