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
Key = tuple[str, Name]  # type of a report, and the object


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
        # each with the key of the object that has changed
        self._reports: deque[tuple[Key | None, Report]] = deque()
        self._changes: dict[Key, Report] = {}  # the newest change of an object

    def __len__(self) -> int:
        return len(self._reports)

    def put(self, *reports: Report) -> None:
        """Add reports, with none between them."""
        for report in reports:
            event, key = report.get("event"), None
            if event is not None:
                key = (report["type"], name_of(report["object"]))
                if event == "MODIFIED" and key in self._changes:
                    self._changes[key]["object"] = report["object"]
                    continue
                if event == "DELETED":
                    self._changes.pop(key, None)
                else:
                    self._changes[key] = report
            elif report["type"] == "snapshot":
                self._changes.clear()
            self._reports.append((key, report))

    def take(self) -> Report:
        """Remove and return the first report."""
        key, report = self._reports.popleft()
        if key is not None and self._changes.get(key) is report:
            del self._changes[key]
        return report

    def clear(self) -> None:
        self._reports.clear()
        self._changes.clear()
