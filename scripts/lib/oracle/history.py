# Records all versions of the objects in an API server while a run goes on.
# SPDX-License-Identifier: LGPL-3.0-only
"""Watches by plain HTTP, each in a thread."""

from __future__ import annotations

import functools
import json
import math
import pathlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kubernetes import client, config, watch
from urllib3.exceptions import HTTPError

Object = dict[str, Any]
Key = tuple[str, str, str]  # plural, namespace, name

# Longest delay with which the recorder sees a change of which no later one tells, and
# tolerance when times are compared, as clocks are rounded.
LAG_S, TICK_S = 3.0, 0.001
GROUP = "dataworkflowservices.github.io"
# Workflows, and the kinds of objects that belong to them.
PARTS = ("clientmounts", "computes", "servers", "directivebreakdowns")
OF_WORKFLOWS = ("workflows", *PARTS)
KINDS = (*OF_WORKFLOWS, "persistentstorageinstances", "storages", "systemstatuses")
AGAIN_S = 0.1
# Errors while the server is down, cuts off an answer or rewrites its kubeconfig.
AWAY = (OSError, ValueError, HTTPError, client.ApiException, config.ConfigException)
# Restart a watch after this silence: a server that was stopped, or killed without
# closing its sockets, may never continue the watch.
SILENT_S = 5.0
# More than all versions of a run: a restored server counts from lower versions.
RESTORED = 10**12


def stamp(text: str) -> float:
    """A time in an object, in s since the epoch."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def _newest(item: Object | None) -> str:
    """The latest time in a workflow."""
    status = (item or {}).get("status", {})
    return max(status.get("desiredStateChange") or "", status.get("readyChange") or "")


@dataclass(frozen=True)
class Seen:
    """A version of an object: when it was seen, in s since the epoch; None once the
    object is gone; its place among all versions of all objects, 0 if unknown."""

    time: float
    object: Object | None
    version: int = 0


class History:
    """Distinct versions of each object, oldest first; times without a watch, by kind,
    of which versions may be missing; versions with the time at which they were made."""

    def __init__(self, began: float = 0.0) -> None:
        self.began = began
        self.seen: dict[Key, list[Seen]] = {}
        self.gaps: dict[str, list[tuple[float, float]]] = {}
        self.marks: list[tuple[int, float]] = []

    def note(
        self, plural: str, item: Object, gone: bool = False, before: int = 0
    ) -> int:
        """Add a version, which is one of 'before' versions more. Returns its place."""
        meta = item["metadata"]
        meta.pop("managedFields", None)
        version = before + int(meta["resourceVersion"])
        key = plural, meta.get("namespace", ""), meta["name"]
        seen = self.seen.setdefault(key, [])
        made = _newest(item) if plural == "workflows" else ""
        if made and made != _newest(seen[-1].object if seen else None):
            self.marks.append((version, stamp(made)))
        seen.append(Seen(time.time(), None if gone else item, version))
        return version

    def gap(self, begin: float, end: float, kinds: tuple[str, ...] = KINDS) -> None:
        """Note that these kinds were not watched between these times."""
        for plural in kinds:
            self.gaps.setdefault(plural, []).append((begin, end))

    def whole(self, plural: str, begin: float, end: float) -> bool:
        """Whether that kind was watched all the time between these times."""
        return not any(b < end and e > begin for b, e in self.gaps.get(plural, []))

    def of(self, plural: str) -> dict[Key, list[Seen]]:
        # Other threads add objects: a copy is made at once, a list of items is not.
        return {k: v for k, v in self.seen.copy().items() if k[0] == plural}

    def now(self, plural: str) -> list[Object]:
        """The objects of a kind that exist now."""
        return [v[-1].object for v in self.of(plural).values() if v[-1].object]

    def steps(self, plural: str) -> Iterator[tuple[str, Object, Object, float, float]]:
        """Each version of each object of a kind, {} for none: name, the version before,
        this one, and the times at which it and the next one were seen."""
        for (_, _, name), seen in self.of(plural).items():
            items = [one.object or {} for one in seen]
            times = [*(one.time for one in seen), math.inf]
            for args in zip([{}, *items], items, times, times[1:]):
                yield name, *args

    def latest(self, seen: Seen) -> float:
        """The latest time at which a version can have been made: before each later one.
        A recorder that gets no processor sees all of them late."""
        later = (t for version, t in self.marks if version > seen.version > 0)
        return min(later, default=seen.time)


class Recorder:
    """Fills a history until it is stopped. The server may restart meanwhile.

    Args:
        kubeconfig: read anew for each connection.
    """

    def __init__(self, kubeconfig: pathlib.Path) -> None:
        self.history = History(time.time())
        self._kubeconfig = kubeconfig
        self._stopped = threading.Event()
        # when each watch last received something, and the version of the last list
        self._ended: dict[str, float] = {}
        self._last = dict.fromkeys(KINDS, 0)
        self._listed = {plural: threading.Event() for plural in KINDS}
        self._threads = [
            threading.Thread(target=self._run, args=[plural], daemon=True)
            for plural in KINDS
        ]
        for thread in self._threads:
            thread.start()

    def wait(self, limit_s: float) -> bool:
        """Wait until each kind was listed once; False after limit_s."""
        end = time.monotonic() + limit_s
        return all(
            e.wait(max(0.0, end - time.monotonic())) for e in self._listed.values()
        )

    def stop(self) -> None:
        """Wait until nothing is recorded any more, at most SILENT_S and a little: the
        end of the interpreter may abort a thread that holds a lock."""
        self._stopped.set()
        for thread in self._threads:
            thread.join(2 * SILENT_S)

    def _run(self, plural: str) -> None:
        while not self._stopped.wait(AGAIN_S):
            try:
                self._watch(plural)
            except AWAY:
                pass  # the next attempt lists all objects again

    def _watch(self, plural: str) -> None:
        connection = config.new_client_from_config(str(self._kubeconfig))
        groups = client.ApisApi(connection).get_api_versions().groups
        version = next(g.preferred_version.version for g in groups if g.name == GROUP)
        read = functools.partial(
            client.CustomObjectsApi(connection).list_cluster_custom_object,
            *(GROUP, version, plural),
            _request_timeout=SILENT_S,
        )
        listing = read()
        since = int(listing["metadata"]["resourceVersion"])
        # A restored server counts on from a lower version.
        before = self._last[plural] // RESTORED * RESTORED
        before += RESTORED if before + since < self._last[plural] else 0
        there = {i["metadata"]["uid"] for i in listing["items"]}
        for seen in self.history.of(plural).values():
            item = seen[-1].object
            if item and item["metadata"]["uid"] not in there:
                seen.append(Seen(time.time(), None, before + since))
        for item in listing["items"]:
            self.history.note(plural, item, before=before)
        if plural in self._ended:
            self.history.gap(self._ended[plural], time.time(), (plural,))
        self._last[plural] = before + since
        self._listed[plural].set()
        # Watch from the version of the list, so that no change is missed.
        stream = read(watch=True, resource_version=f"{since}", _preload_content=False)
        self._ended.setdefault(plural, time.time())
        for line in watch.watch.iter_resp_lines(stream):
            self._ended[plural] = time.time()
            event = json.loads(line)
            if event["type"] == "ERROR" or self._stopped.is_set():
                return
            gone = event["type"] == "DELETED"
            place = self.history.note(plural, event["object"], gone, before)
            self._last[plural] = max(self._last[plural], place)
