# The columns that kubectl shows of the kinds of DWS, NNF and Lustre, as their
# definitions declare them.
# SPDX-License-Identifier: LGPL-3.0-only
"""additionalPrinterColumns."""

from __future__ import annotations

from dataclasses import dataclass

from dws_sim.jsontree import Object


@dataclass(frozen=True)
class Column:
    """One column; with a priority above 0 for kubectl get -o wide alone."""

    name: str
    path: str
    type: str = "string"
    priority: int = 0
    description: str = ""

    def definition(self) -> Object:
        """The column as a CustomResourceDefinition has it."""
        out: Object = {"name": self.name, "type": self.type, "jsonPath": self.path}
        if self.description:
            out["description"] = self.description
        if self.priority:
            out["priority"] = self.priority
        return out


_AGE = Column("AGE", ".metadata.creationTimestamp", "date")
_ERROR = Column("ERROR", ".status.error.severity")
_READY = Column("READY", ".status.ready", "boolean")
_STATE = Column("STATE", ".status.state")
_STATUS = Column("STATUS", ".status.status")
_DEFAULT = Column("DEFAULT", ".data.default", "boolean")
_WANTED = Column("DESIREDSTATE", ".spec.desiredState")

COLUMNS: dict[str, tuple[Column, ...]] = {
    "clientmounts": (
        _WANTED,
        Column("READY", ".status.allReady", "boolean"),
        _ERROR,
        _AGE,
    ),
    "directivebreakdowns": (_READY, _ERROR, _AGE),
    "persistentstorageinstances": (_ERROR, _AGE),
    "servers": (_READY, _ERROR, _AGE),
    "storages": (
        Column("State", ".spec.state"),
        Column("Status", ".status.status"),
        Column("Mode", ".spec.mode"),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ),
    "systemconfigurations": (_READY, _AGE),
    "workflows": (
        _STATE,
        _READY,
        _STATUS,
        Column("JOBID", ".spec.jobID"),
        _AGE,
        Column("DESIREDSTATE", ".spec.desiredState", priority=1),
        Column("DESIREDSTATECHANGE", ".status.desiredStateChange", "date", 1),
        Column("ELAPSEDTIMELASTSTATE", ".status.elapsedTimeLastState", priority=1),
        Column("UID", ".spec.userID", priority=1),
        Column("GID", ".spec.groupID", priority=1),
    ),
    "lustrefilesystems": (
        Column("FSNAME", ".spec.name"),
        Column("MGSNIDS", ".spec.mgsNids"),
        _AGE,
        Column("MountRoot", ".spec.mountRoot", priority=1),
        Column("StorageClass", ".spec.storageClassName", priority=1),
    ),
    "nnfaccesses": (_WANTED, _STATE, _READY, _ERROR, _AGE),
    "nnfdatamovementprofiles": (_DEFAULT, _AGE),
    "nnfdatamovements": (_STATE, _STATUS, _ERROR, _AGE),
    "nnfnodes": (
        Column("STATE", ".spec.state"),
        Column("HEALTH", ".status.health"),
        _STATUS,
        _AGE,
        Column("POD", ".spec.pod", priority=1),
    ),
    "nnfstorageprofiles": (_DEFAULT, _AGE),
    "nnfstorages": (Column("READY", ".status.ready"), _AGE, _ERROR),
}
