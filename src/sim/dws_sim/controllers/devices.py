# Builds the mounts of ClientMounts: the allocation or the Lustre file system, mount
# options, and the owner.
# SPDX-License-Identifier: LGPL-3.0-only
"""Mounts and their devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dws_sim.controllers.common import ref
from dws_sim.drives import WANTED
from dws_sim.jsontree import Object

_MOUNT_TYPES = {"raw": "none"}


@dataclass(frozen=True)
class Place:
    """An allocation: the NnfNodeStorage that it is part of, and which of that
    one's allocations it is."""

    rabbit: str
    storage: str
    index: int

    def reference(self) -> Object:
        out: Object = {
            "objectReference": {
                "kind": "NnfNodeStorage",
                "name": self.storage,
                "namespace": self.rabbit,
            }
        }
        # an API server leaves out what is zero
        return {"data": self.index, **out} if self.index else out


def places(storage: Object, rabbit: str) -> list[Place]:
    """The allocations that a storage has on a rabbit, in order."""
    meta = storage["metadata"]
    out = []
    for alloc in storage["spec"]["allocationSets"]:
        entries = [n for n in alloc["nodes"] if n["name"] == rabbit]
        for i, node in enumerate(entries):
            name = f"{meta['namespace']}-{meta['name']}-{alloc['name']}-{i}"
            out += [Place(rabbit, name, k) for k in range(node["count"])]
    return out


def first_ost(storage: Object) -> Place:
    """Where a Lustre has its first object storage target."""
    sets = storage["spec"]["allocationSets"]
    chosen = next((s for s in sets if s["name"] == "ost"), sets[0])
    rabbit = chosen["nodes"][0]["name"]
    meta = storage["metadata"]
    name = f"{meta['namespace']}-{meta['name']}-{chosen['name']}-0"
    return Place(rabbit, name, 0)


def file_system_name(storage: Object) -> str:
    """Name of a Lustre file system: eight letters."""
    return str(storage["metadata"]["uid"][:8])


def lustre_device(storage: Object, reference: Object) -> Object:
    mgs = storage["spec"]["allocationSets"][-1]["nodes"][0]["name"]
    return {
        "type": "lustre",
        "deviceReference": reference,
        "lustre": {
            "fileSystemName": file_system_name(storage),
            "mgsAddresses": f"{mgs}@tcp",
        },
    }


def lvm_device(place: Place, drives: list[Object]) -> Object:
    """An allocation as a compute sees it: a namespace on each of its drives."""
    return {
        "type": "lvm",
        "deviceReference": place.reference(),
        "lvm": {
            "deviceType": "nvme",
            "nvmeInfo": [
                {
                    "deviceSerial": drive["serialNumber"],
                    "namespaceGUID": "",
                    "namespaceID": str(place.index + 1),
                }
                for drive in drives[:WANTED]
            ],
        },
    }


def owner_fields(spec: Object) -> Object:
    """The user and group that own a file system after its mount."""
    ids = {key: spec[key] for key in ("userID", "groupID") if spec[key]}
    return {"setPermissions": True, **ids}


def mount_of(access: Object, storage: Object, path: str, device: Object) -> Object:
    """An entry of ClientMount.spec.mounts."""
    fs_type = storage["spec"]["fileSystemType"]
    raw = fs_type == "raw"
    owner: dict[str, Any] = {"setPermissions": False}
    if raw:
        owner = owner_fields(access["spec"])
    return {
        "mountPath": path,
        "options": "bind" if raw else "",
        "targetType": "file" if raw else "directory",
        "type": _MOUNT_TYPES.get(fs_type, fs_type),
        "device": device,
        **owner,
    }


def mounts_of_rabbit(access: Object, storage: Object, rabbit: str) -> list[Object]:
    """Mounts of a rabbit: each of its allocations, or the whole Lustre."""
    path = access["spec"]["mountPath"]
    if storage["spec"]["fileSystemType"] == "lustre":
        return [mount_of_lustre(access, storage)]
    return [
        mount_of(
            access,
            storage,
            f"{path}/{rabbit}-{i}",
            {"type": "reference", "deviceReference": place.reference()},
        )
        for i, place in enumerate(places(storage, rabbit))
    ]


def mount_of_lustre(access: Object, storage: Object) -> Object:
    device = lustre_device(storage, {"objectReference": ref(storage)})
    return mount_of(access, storage, access["spec"]["mountPath"], device)
