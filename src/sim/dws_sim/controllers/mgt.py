# The management targets of Lustre file systems: an NnfLustreMGT on a rabbit with such
# a target, as long as its file system exists.
# SPDX-License-Identifier: LGPL-3.0-only
"""The NnfLustreMGT controller."""

from __future__ import annotations

from dws_sim.controllers.cluster import Cluster
from dws_sim.controllers.common import child, inherited_labels, is_deleting, ref
from dws_sim.controllers.manager import Controller, Manager
from dws_sim.jsontree import Object

PLURAL = "nnflustremgts"
FIRST_NAME = "aaaaaaaa"


def after(name: str) -> str:
    """The next file system name: letters counted up."""
    letters = [ord(c) - ord("a") for c in name]
    for i in reversed(range(len(letters))):
        letters[i] = (letters[i] + 1) % 26
        if letters[i]:
            break
    return "".join(chr(ord("a") + n) for n in letters)


def rabbit_of(storage: Object) -> str:
    """The rabbit that has a file system's own management target, or ""."""
    for alloc in storage["spec"]["allocationSets"]:
        if alloc["name"] in ("mgt", "mgtmdt"):
            return str(alloc["nodes"][0]["name"])
    return ""


def address_of(storage: Object) -> str:
    """Where a file system's management target is, its own or another's."""
    return str(storage.get("status", {}).get("mgsAddress") or "")


class MgtController(Controller):
    """NnfLustreMGT, after the NnfStorages that have a management target."""

    plural = "nnfstorages"

    def __init__(self, cluster: Cluster, manager: Manager) -> None:
        super().__init__(cluster, manager)
        self._rabbits: dict[tuple[str, str], str] = {}

    def forget(self, obj: Object) -> None:
        meta = obj["metadata"]
        self.enqueue(meta["namespace"], meta["name"])

    async def reconcile(self, namespace: str, name: str) -> float | None:
        key = (namespace, name)
        storage = await self.cluster.get(self.plural, namespace, name)
        if storage is None or is_deleting(storage):
            rabbit = self._rabbits.pop(key, "")
            if rabbit:
                await self.cluster.delete(PLURAL, rabbit, name)
            return None
        if storage["spec"]["fileSystemType"] != "lustre":
            return None
        rabbit, address = rabbit_of(storage), address_of(storage)
        if not rabbit or not address:
            return None
        self._rabbits[key] = rabbit
        claim = ref(storage)
        spec = {
            "addresses": [address],
            "fsNameStart": FIRST_NAME,
            "fsNameStartReference": {},
            "claimList": [claim],
        }
        labels = inherited_labels(storage)
        made = await self.cluster.create(
            PLURAL, child(storage, rabbit, name, labels, spec=spec)
        )
        status = {
            "claimList": [{"fsname": FIRST_NAME, "reference": claim}],
            "fsNameNext": after(FIRST_NAME),
        }
        if made.get("status") != status:
            await self.cluster.update_status(PLURAL, {**made, "status": status})
        return None
