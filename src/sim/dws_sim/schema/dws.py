# The shapes of the kinds of dataworkflowservices.github.io.
# SPDX-License-Identifier: LGPL-3.0-only
"""DWS schemas, version v1alpha7."""

from __future__ import annotations

from typing import Any

from dws_sim.schema.types import array, boolean, enum, integer, schema
from dws_sim.states import STATES

_STATE = "|".join(STATES)
_DRIVER_STATUS = "Pending|Queued|Running|Completed|TransientCondition|Error|DriverWait"
_RESOURCE_STATUS = (
    "Starting|Ready|Disabled|NotPresent|Offline|Failed|Degraded|Drained|Fenced|Unknown"
)

REF: dict[str, Any] = dict.fromkeys(
    ("apiVersion", "fieldPath", "kind", "name", "namespace", "resourceVersion", "uid"),
    "str",
)
ERROR = {
    "debugMessage!": "str",
    "severity!": "Minor|Major|Fatal",
    "type!": "Internal|User|WLM",
    "userMessage": "str",
}

WORKFLOW = {
    "spec": {
        "desiredState!": _STATE,
        "dwDirectives!": ["str"],
        "forceReady!": boolean(False),
        "groupID!": "int",
        "hurry": boolean(False),
        "jobID!": "int|str",
        "userID!": "int",
        "wlmID!": "str",
    },
    "status": {
        "computes": REF,
        "desiredStateChange": "time",
        "directiveBreakdowns": [REF],
        "drivers": [
            {
                "completeTime": "time",
                "completed!": "bool",
                "driverID!": "str",
                "dwdIndex!": "int",
                "error": "str",
                "lastHB!": "int",
                "message": "str",
                "status": _DRIVER_STATUS,
                "taskID!": "str",
                "watchState!": _STATE,
            }
        ],
        "elapsedTimeLastState": "str",
        "env": {"*": "str"},
        "message": "str",
        "ready!": "bool",
        "readyChange": "time",
        "requires": ["str"],
        "state": _STATE,
        "status": "Completed|DriverWait|TransientCondition|Error",
        "workflowToken": {"secretName!": "str", "secretNamespace!": "str"},
    },
}

DIRECTIVE_BREAKDOWN = {
    "spec": {"directive!": "str", "userID!": "int"},
    "status": {
        "compute": {
            "constraints": {
                "location": [
                    {
                        "access!": [
                            {
                                "priority!": "mandatory|bestEffort",
                                "type!": "physical|network",
                            }
                        ],
                        "reference!": REF,
                    }
                ]
            }
        },
        "error": ERROR,
        "ready!": "bool",
        "requires": ["str"],
        "storage": {
            "allocationSets": [
                {
                    "allocationStrategy!": (
                        "AllocatePerCompute|AllocatePerServer|"
                        "AllocateAcrossServers|AllocateSingleServer"
                    ),
                    "constraints": {
                        "colocation": [{"key!": "str", "type!": enum("exclusive")}],
                        "count": integer(minimum=1),
                        "labels": ["str"],
                        "scale": integer(minimum=1, maximum=10),
                    },
                    "label!": "raw|xfs|gfs2|mgt|mdt|mgtmdt|ost",
                    "minimumCapacity!": integer(minimum=1),
                }
            ],
            "lifetime!": "job|persistent",
            "reference": REF,
        },
    },
}

SERVERS = {
    "spec": {
        "allocationSets": [
            {
                "allocationSize!": integer(minimum=1),
                "label!": "str",
                "storage!": [{"allocationCount!": integer(minimum=1), "name!": "str"}],
            }
        ]
    },
    "status": {
        "allocationSets": [
            {
                "label!": "str",
                "storage!": {"*": {"allocationSize!": "int", "ready!": "bool"}},
            }
        ],
        "error": ERROR,
        "lastUpdate": "time",
        "ready!": "bool",
    },
}

COMPUTES = {"data": [{"name!": "str"}]}

CLIENT_MOUNT = {
    "spec": {
        "desiredState!": "mounted|unmounted",
        "mounts!": array(
            {
                "compute": "str",
                "device!": {
                    "deviceReference": {"data": "int", "objectReference!": REF},
                    "lustre": {"fileSystemName!": "str", "mgsAddresses!": "str"},
                    "lvm": {
                        "deviceType!": enum("nvme"),
                        "logicalVolume": "str",
                        "nvmeInfo": [
                            {
                                "deviceSerial!": "str",
                                "namespaceGUID!": "str",
                                "namespaceID!": "str",
                            }
                        ],
                        "volumeGroup": "str",
                    },
                    "type!": "lustre|lvm|reference",
                },
                "groupID": "int",
                "mountPath!": "str",
                "options!": "str",
                "setPermissions!": "bool",
                "targetType!": "file|directory",
                "type!": "lustre|xfs|gfs2|none",
                "userID": "int",
            },
            min_items=1,
        ),
        "node!": "str",
    },
    "status": {
        "allReady!": "bool",
        "error": ERROR,
        "mounts!": [{"ready!": "bool", "state!": "mounted|unmounted"}],
    },
}

_ACCESS = [{"name": "str", "status": _RESOURCE_STATUS}]
STORAGE = {
    "spec!": {
        "mode": enum("Live|Testing", default="Live"),
        "state": enum("Enabled|Disabled", default="Enabled"),
    },
    "status": {
        "access": {
            "computes": _ACCESS,
            "protocol": enum("PCIe"),
            "servers": _ACCESS,
        },
        "capacity!": integer(default=0),
        "devices": [
            {
                "capacity": "int",
                "firmwareVersion": "str",
                "model": "str",
                "serialNumber": "str",
                "slot": "str",
                "status": _RESOURCE_STATUS,
                "wearLevel": "int",
            }
        ],
        "message": "str",
        "rebootRequired": "bool",
        "status": _RESOURCE_STATUS,
        "type": enum("NVMe"),
    },
}

SYSTEM_CONFIGURATION = {
    "spec": {
        "externalComputeNodes": [{"name!": "str"}],
        "ports": ["int|str"],
        "portsCooldownInSeconds!": integer(default=60),
        "storageNodes": [
            {
                "computesAccess": [{"index!": "int", "name!": "str"}],
                "name!": "str",
                "type!": "str",
            }
        ],
    },
    "status": {"error": ERROR, "ready!": "bool"},
}

SYSTEM_STATUS = {"data": {"nodes": {"*": "Enabled|Disabled"}}}

PERSISTENT_STORAGE_INSTANCE = {
    "spec": {
        "consumerReferences": [REF],
        "dwDirective!": "str",
        "fsType!": "raw|xfs|gfs2|lustre",
        "name!": "str",
        "state!": "Active|Destroying",
        "userID!": "int",
    },
    "status": {
        "error": ERROR,
        "servers": REF,
        "state!": "Creating|Active|Destroying|Degraded",
    },
}

DW_DIRECTIVE_RULE = {
    "spec": [
        {
            "command!": "str",
            "driverLabel": "str",
            "ruleDefs!": [
                {
                    "isRequired": "bool",
                    "isValueRequired": "bool",
                    "key!": "str",
                    "max": "int",
                    "min": "int",
                    "pattern": "str",
                    "patterns": ["str"],
                    "type!": "str",
                    "uniqueWithin": "str",
                }
            ],
            "watchStates": "str",
        }
    ]
}

SCHEMAS = {
    "workflows": schema(WORKFLOW),
    "directivebreakdowns": schema(DIRECTIVE_BREAKDOWN),
    "servers": schema(SERVERS),
    "computes": schema(COMPUTES),
    "clientmounts": schema(CLIENT_MOUNT),
    "storages": schema(STORAGE),
    "systemconfigurations": schema(SYSTEM_CONFIGURATION),
    "systemstatuses": schema(SYSTEM_STATUS),
    "persistentstorageinstances": schema(PERSISTENT_STORAGE_INSTANCE),
    "dwdirectiverules": schema(DW_DIRECTIVE_RULE),
}
__all__ = ["SCHEMAS", "STATES", "REF", "ERROR"]
