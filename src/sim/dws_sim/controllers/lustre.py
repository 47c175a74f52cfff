# Lustre file systems that exist for all jobs: LustreFileSystem.
# SPDX-License-Identifier: LGPL-3.0-only
"""Global file systems."""

from __future__ import annotations

from dws_sim.controllers.cluster import Cluster
from dws_sim.controllers.manager import Controller, Manager
from dws_sim.jsontree import Object

PLURAL = "lustrefilesystems"


async def find_global(cluster: Cluster, path: str) -> Object | None:
    """The file system that a path is in: the one mounted nearest to it."""
    best: Object | None = None
    for obj in await cluster.find(PLURAL):
        root = str(obj["spec"]["mountRoot"]).rstrip("/")
        inside = path == root or path.startswith(f"{root}/")
        if inside and (best is None or len(root) > len(best["spec"]["mountRoot"])):
            best = obj
    return best


def claim(name: str, namespace: str, mode: str) -> str:
    """The PersistentVolumeClaim by which a namespace has a file system."""
    return f"{name}-{namespace}-{mode.lower()}-pvc"


class LustreController(Controller):
    """LustreFileSystem.status: the volumes that each namespace has."""

    plural = PLURAL

    def __init__(self, cluster: Cluster, manager: Manager) -> None:
        super().__init__(cluster, manager)

    async def reconcile(self, namespace: str, name: str) -> float | None:
        obj = await self.cluster.get(PLURAL, namespace, name)
        if obj is None:
            return None
        spaces: Object = {}
        for space, wanted in obj["spec"].get("namespaces", {}).items():
            modes: Object = {}
            for mode in wanted.get("modes", ()):
                volume = claim(name, space, mode)
                modes[mode] = {
                    "state": "Ready",
                    "persistentVolumeRef": {"name": volume[: -len("c")]},
                    "persistentVolumeClaimRef": {"name": volume},
                }
            spaces[space] = {"modes": modes}
        status: Object = {"namespaces": spaces} if spaces else {}
        if obj.get("status", {}) != status:
            await self.cluster.update_status(PLURAL, {**obj, "status": status})
        return None
