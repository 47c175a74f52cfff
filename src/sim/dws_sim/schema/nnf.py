# The schemas of the kinds of nnf.cray.hpe.com. Parts that dws-sim does not read
# (command lines, pod templates) are stored unchecked.
# SPDX-License-Identifier: LGPL-3.0-only
"""NNF schemas, version v1alpha11."""

from __future__ import annotations

from typing import Any

from dws_sim.schema.dws import ERROR, REF
from dws_sim.schema.types import array, boolean, integer, schema, string

_CAPACITY = r"^\d+(KiB|KB|MiB|MB|GiB|GB|TiB|TB)$"


def _block() -> dict[str, Any]:
    """xfs, gfs2 and raw."""
    return {
        "allocationPadding": "str",
        "blockDeviceCommands": "any",
        "capacityScalingFactor": string(default="1.0"),
        "fileSystemCommands": "any",
        "sharedAllocation": "bool",
        "storageLabels": ["str"],
        "userCommands": "any",
        "variableOverride": {"*": "str"},
    }


def _target(**more: Any) -> dict[str, Any]:
    """Schema of the settings for a kind of Lustre target."""
    return {
        "colocateComputes!": boolean(False),
        "commandlines": "any",
        "count": integer(minimum=1),
        "scale": integer(minimum=1, maximum=10),
        "storageLabels": ["str"],
        "variableOverride": {"*": "str"},
        **more,
    }


_SIZE = string(default="5GiB", pattern=_CAPACITY)
STORAGE_PROFILE = {
    "data": {
        "default": boolean(False),
        "pinned": boolean(False),
        "xfsStorage": _block(),
        "gfs2Storage": _block(),
        "rawStorage": _block(),
        "lustreStorage": {
            "clientOptions": "any",
            "combinedMgtMdt": boolean(False),
            "mgtOptions": _target(
                capacity=_SIZE,
                externalMgs="str",
                standaloneMgtPoolName="str",
                preMountCommands=["str"],
            ),
            "mdtOptions": _target(capacity=_SIZE, exclusive=boolean(False)),
            "mgtMdtOptions": _target(capacity=_SIZE),
            "ostOptions": _target(capacityScalingFactor=string(default="1.0")),
        },
    }
}

DM_PROFILE = {
    "data": {
        "default": boolean(False),
        "pinned": boolean(False),
        "command": "str",
        "slots": integer(default=8),
        "maxSlots": "int",
        "logStdout": "bool",
        "storeStdout": "bool",
        "createDestDir": boolean(True),
        "statCommand": "str",
        "progressIntervalSeconds": integer(default=5),
    }
}

DATA_MOVEMENT = {
    "spec": {
        "cancel": boolean(False),
        "destination": {"path": "str", "storageReference": REF},
        "source": {"path": "str", "storageReference": REF},
        "groupId": "int",
        "userId": "int",
        "profileReference": REF,
        "userConfig": "any",
    },
    "status": {
        "commandStatus": {
            "command": "str",
            "data": "str",
            "directories": "int",
            "elapsedTime": "str",
            "files": "int",
            "items": "int",
            "lastMessage": "str",
            "lastMessageTime": "time",
            "links": "int",
            "progress": "int",
            "rate": "str",
            "seconds": "str",
        },
        "endTime": "time",
        "error": ERROR,
        "message": "str",
        "restarts": "int",
        "startTime": "time",
        "state": "Starting|Running|Finished",
        "status": "Success|Failed|Invalid|Cancelled",
    },
}

PORT_MANAGER = {
    "spec": {
        "allocations!": [{"count!": integer(default=1), "requester!": REF}],
        "systemConfiguration!": REF,
    },
    "status": {
        "allocations": [
            {
                "ports": ["int"],
                "requester": REF,
                "status!": (
                    "InUse|Free|Cooldown|InvalidConfiguration|InsufficientResources"
                ),
                "timeUnallocated": "time",
            }
        ],
        "status!": "Ready|SystemConfigurationNotFound",
    },
}

CONTAINER_PROFILE = {
    "data": {
        "pinned": boolean(False),
        "createContainer!": boolean(True),
        "storages": [{"name!": "str", "optional!": boolean(False), "pvcMode": "str"}],
        "preRunTimeoutSeconds": integer(default=300, minimum=0),
        "postRunTimeoutSeconds": integer(default=300, minimum=0),
        "retryLimit!": integer(default=6, minimum=0),
        "userID": "int",
        "groupID": "int",
        "numPorts": integer(minimum=0),
        "spec": "any",
        "mpiSpec": {
            "launcher!": "any",
            "worker!": "any",
            "copyOffload": boolean(False),
            "slotsPerWorker": integer(default=1, minimum=1),
        },
    }
}

CONTAINER_DATA = {"data": "any"}

# Kinds that the WLM never reads: allocations on rabbits, and their mounts by node.
NNF_STORAGE = {
    "spec": {
        "fileSystemType!": "raw|xfs|gfs2|lustre",
        "persistentMgs": REF,
        "userID!": "int",
        "groupID!": "int",
        "allocationSets!": array(
            {
                "name!": "str",
                "capacity!": integer(minimum=1),
                "nodes!": [{"name!": "str", "count!": integer(minimum=1)}],
                "sharedAllocation": "bool",
            }
        ),
    },
    "status": {
        "ready": "bool",
        "error": ERROR,
        # the management target that it has found by its address
        "mgsAddress": "str",
        "fileSystemName": "str",
        "allocationSets": [
            {
                "ready": "bool",
                "allocatedBytes": {"*": "int"},
                # rabbits that have not made all of their part
                "waitingFor": ["str"],
            }
        ],
    },
}

NNF_ACCESS = {
    "spec": {
        "desiredState!": "mounted|unmounted",
        "teardownState!": "str",
        "target!": "single|all|shared",
        "userID!": "int",
        "groupID!": "int",
        "mountPath!": "str",
        "mountPathPrefix": "str",
        "clientReference": REF,
        "storageReference!": REF,
    },
    "status": {"state": "mounted|unmounted", "ready!": "bool", "error": ERROR},
}

# Kinds for the reports of rabbits' controllers, and for storage outside of workflows.
NODE = {
    "spec": {"name": "str", "pod": "str", "state!": "Enable|Disable"},
    "status": {
        "capacity": "int",
        "capacityAllocated": "int",
        "drives": [
            {
                "capacity": "int",
                "firmwareVersion": "str",
                "health": "str",
                "id": "str",
                "model": "str",
                "name": "str",
                "serialNumber": "str",
                "slot": "str",
                "status": "str",
                "wearLevel": "int",
            }
        ],
        "fenced": "bool",
        "health": "str",
        "lnetNid": "str",
        "servers": [
            {
                "health": "str",
                "hostname": "str",
                "id": "str",
                "name": "str",
                "status": "str",
            }
        ],
        "status": "str",
    },
}

SYSTEM_STORAGE = {
    "spec": {
        "capacity!": integer(default=1 << 30),
        "clientMountPath": "str",
        "computesPattern": [integer(minimum=0, maximum=15)],
        "computesTarget": string(default="all", enum=("all", "even", "odd", "pattern")),
        "excludeComputes": ["str"],
        "excludeDisabledRabbits": boolean(False),
        "excludeRabbits": ["str"],
        "ignoreOfflineComputes!": boolean(False),
        "includeComputes": ["str"],
        "includeRabbits": ["str"],
        "makeClientMounts!": boolean(False),
        "shared!": boolean(True),
        "storageProfile!": REF,
        "systemConfiguration": REF,
        "type": string(default="raw", enum=("raw", "xfs", "gfs2")),
    },
    "status": {"ready!": "bool", "error": ERROR},
}

LUSTRE_MGT = {
    "spec": {
        "addresses!": ["str"],
        "claimList": [REF],
        "commandList": [{"commands": ["str"], "reference": REF}],
        "fsNameBlackList": ["str"],
        "fsNameStart": "str",
        "fsNameStartReference": REF,
    },
    "status": {
        "claimList": [{"fsname": "str", "reference": REF}],
        "commandList": [{"error": ERROR, "ready!": "bool", "reference": REF}],
        "error": ERROR,
        "fsNameNext": "str",
    },
}

SCHEMAS = {
    "nnfstorageprofiles": schema(STORAGE_PROFILE),
    "nnfdatamovementprofiles": schema(DM_PROFILE),
    "nnfdatamovements": schema(DATA_MOVEMENT),
    "nnfportmanagers": schema(PORT_MANAGER),
    "nnfcontainerprofiles": schema(CONTAINER_PROFILE),
    "nnfcontainerdata": schema(CONTAINER_DATA),
    "nnfstorages": schema(NNF_STORAGE),
    "nnfaccesses": schema(NNF_ACCESS),
    "nnfnodes": schema(NODE),
    "nnfsystemstorages": schema(SYSTEM_STORAGE),
    "nnflustremgts": schema(LUSTRE_MGT),
}
