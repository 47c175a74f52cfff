# Ports for containers: the NnfPortManager allocates them from the ranges in the
# SystemConfiguration, and does not reuse freed ports for a while.
# SPDX-License-Identifier: LGPL-3.0-only
"""The port manager."""

from __future__ import annotations

import time

from dws_sim.controllers.cluster import Cluster
from dws_sim.controllers.common import NNF_NAMESPACE
from dws_sim.controllers.manager import Controller, Manager
from dws_sim.jsontree import Object, clone, edit, now_micro, parse_time

PLURAL = "nnfportmanagers"
NAME = "nnf-port-manager"


def port_numbers(ranges: list[int | str]) -> list[int]:
    """The ports of a SystemConfiguration.

    Raises:
        ValueError: an entry is neither a port nor START-END.
    """
    out: list[int] = []
    for item in ranges:
        low, _, high = str(item).partition("-")
        first, last = int(low), int(high or low)
        if not 0 < first <= last < 65536:
            raise ValueError(f"no port range: {item!r}")
        out.extend(range(first, last + 1))
    return out


async def request_ports(
    cluster: Cluster, requester: dict[str, str], count: int
) -> None:
    """Ask for ports; asking again changes nothing."""
    obj = await cluster.get(PLURAL, NNF_NAMESPACE, NAME)
    if obj is None:
        return
    if any(a["requester"] == requester for a in obj["spec"]["allocations"]):
        return
    new = edit(obj, "spec")
    new["spec"]["allocations"].append({"requester": requester, "count": count})
    await cluster.update(PLURAL, new)


async def release_ports(cluster: Cluster, requester: dict[str, str]) -> None:
    """Give ports back. None is a success."""
    obj = await cluster.get(PLURAL, NNF_NAMESPACE, NAME)
    if obj is None:
        return
    new = edit(obj, "spec")
    new["spec"]["allocations"] = [
        a for a in new["spec"]["allocations"] if a["requester"] != requester
    ]
    if new != obj:
        await cluster.update(PLURAL, new)


async def ports_of(cluster: Cluster, requester: dict[str, str]) -> Object | None:
    """The entry in the port manager's status that is in force."""
    obj = await cluster.get(PLURAL, NNF_NAMESPACE, NAME)
    for entry in (obj or {}).get("status", {}).get("allocations", ()):
        if entry.get("requester") == requester and entry["status"] != "Cooldown":
            found: Object = entry
            return found
    return None


class PortController(Controller):
    """NnfPortManager.status."""

    plural = PLURAL

    def __init__(self, cluster: Cluster, manager: Manager) -> None:
        super().__init__(cluster, manager)
        cluster.subscribe("systemconfigurations", self._config)

    def _config(self, obj: Object, old: Object | None, gone: bool) -> None:
        self.enqueue(NNF_NAMESPACE, NAME)

    async def reconcile(self, namespace: str, name: str) -> float | None:
        obj = await self.cluster.get(PLURAL, namespace, name)
        if obj is None:
            return None
        config = await self.cluster.get("systemconfigurations", "default", "default")
        delay: float | None = None
        if config is None:
            status: Object = {"status": "SystemConfigurationNotFound"}
        else:
            entries, delay = self._deal(obj, config["spec"])
            status = {"status": "Ready", "allocations": entries}
        if status != obj.get("status"):
            await self.cluster.update_status(PLURAL, {**obj, "status": status})
        return delay

    def _deal(self, obj: Object, config: Object) -> tuple[list[Object], float | None]:
        """The entries that should be there, and when the next port is rested."""
        wanted = obj["spec"]["allocations"]
        requesters = [a["requester"] for a in wanted]
        rest_s, now = config["portsCooldownInSeconds"], time.time()
        entries: list[Object] = []
        delay: float | None = None
        for entry in clone(obj.get("status", {}).get("allocations", [])):
            if entry["status"] == "InUse" and entry["requester"] not in requesters:
                entry.update(status="Cooldown", timeUnallocated=now_micro())
            if entry["status"] == "Cooldown":
                left = parse_time(entry["timeUnallocated"]) + rest_s - now
                if left <= 0:
                    continue
                delay = left if delay is None else min(delay, left)
            elif entry["status"] != "InUse":
                continue
            entries.append(entry)
        taken = {p for e in entries for p in e.get("ports", ())}
        try:
            free = [p for p in port_numbers(config.get("ports", [])) if p not in taken]
            lacking = "InsufficientResources"
        except ValueError:
            free, lacking = [], "InvalidConfiguration"
        have = [e["requester"] for e in entries if e["status"] == "InUse"]
        for item in wanted:
            if item["requester"] in have:
                continue
            entry = {"requester": item["requester"], "status": lacking}
            if len(free) >= item["count"]:
                entry.update(status="InUse", ports=free[: item["count"]])
                del free[: item["count"]]
            entries.append(entry)
        return entries, delay
