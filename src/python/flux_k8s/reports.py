# The reports that wait to be sent to the broker module: splits snapshots, and merges
# changes of one object. session.py puts reports in, agent.py sends them.
# SPDX-License-Identifier: LGPL-3.0-only
"""Reports for the module (doc/protocol.md, "Module and agent")."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from typing import Any

from flux_k8s.objects import Name, Object, name_of

# Objects in one part of a snapshot, by kind: the module answers no other requests while
# it works on a part.
OBJECTS_PER_PART = {"servers": 128, "workflows": 32}

Report = dict[str, Any]


def in_parts(snapshot: dict[str, list[Object]], kinds: Collection[str]) -> list[Report]:
    """Reports of a snapshot that is too large for one.

    Args:
        kinds: the kinds that may be split. Servers come before the workflows for which
            they were created.
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
    """Reports that wait to be sent.

    A change of an object replaces an older one that still waits: the module acts on the
    present state, and ignores older versions of an object. A change after a snapshot
    stays behind it, as the module drops objects that a snapshot lacks.
    """

    def __init__(self) -> None:
        self._reports: deque[Report] = deque()
        # by type and name: the newest change of an object
        self._changes: dict[tuple[str, Name], Report] = {}

    def __len__(self) -> int:
        return len(self._reports)

    def put(self, *reports: Report) -> None:
        """Add reports, with none between them."""
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
        """Remove and return the first report."""
        report = self._reports.popleft()
        if report.get("event") is not None:
            key = (report["type"], name_of(report["object"]))
            if self._changes.get(key) is report:
                del self._changes[key]
        return report

    def clear(self) -> None:
        self._reports.clear()
        self._changes.clear()
