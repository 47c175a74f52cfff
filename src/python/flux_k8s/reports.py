# What the agent tells the broker module: reports, from where they are found until
# they are sent.
# SPDX-License-Identifier: LGPL-3.0-only
"""Reports for the module (doc/protocol.md, "Module and agent")."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from typing import Any

from flux_k8s.objects import Name, Object, name_of

# Of which the module may take in so many in one go: it has others to answer.
OBJECTS_PER_PART = {"servers": 128, "workflows": 32}

Report = dict[str, Any]


def in_parts(snapshot: dict[str, list[Object]], kinds: Collection[str]) -> list[Report]:
    """Reports of a snapshot that is too large for one.

    Args:
        kinds: of what there may be a part in each: Servers first, as they were
            made for workflows.
    """
    parts: list[Report] = []
    rest = dict(snapshot)
    for kind, count in OBJECTS_PER_PART.items():
        if kind in kinds and kind in rest:
            objects = rest.pop(kind)
            starts = range(0, len(objects) or 1, count)
            parts += [
                {"type": "snapshot", kind: objects[i : i + count]} for i in starts
            ]
    parts = parts or [{"type": "snapshot"}]
    parts[0].update(rest)
    for part in parts[:-1]:
        part["more"] = True
    return parts


class Mailbox:
    """Reports that are to be sent.

    A change of an object that waits here already takes the older one's place:
    the receiver acts on what is, not on what was, and never goes back to an older
    version of an object. Only what comes after a snapshot has to stay after it:
    what is not in there does not exist.
    """

    def __init__(self) -> None:
        self._reports: deque[Report] = deque()
        # by type and name: the newest change of an object
        self._changes: dict[tuple[str, Name], Report] = {}

    def __len__(self) -> int:
        return len(self._reports)

    def put(self, *reports: Report) -> None:
        """Add reports, with nothing between them."""
        for report in reports:
            if not self._merge(report):
                self._reports.append(report)

    def _merge(self, report: Report) -> bool:
        event = report.get("event")
        if event is None:
            if report["type"] == "snapshot":
                self._changes.clear()
            return False
        key = (report["type"], name_of(report["object"]))
        if event == "MODIFIED" and key in self._changes:
            self._changes[key]["object"] = report["object"]
            return True
        if event == "DELETED":
            self._changes.pop(key, None)
        else:
            self._changes[key] = report
        return False

    def take(self) -> Report:
        """The first one."""
        report = self._reports.popleft()
        if report.get("event") is not None:
            key = (report["type"], name_of(report["object"]))
            if self._changes.get(key) is report:
                del self._changes[key]
        return report

    def clear(self) -> None:
        self._reports.clear()
        self._changes.clear()
