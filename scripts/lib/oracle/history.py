# Records all versions of the objects in an API server while a run goes on.
# SPDX-License-Identifier: LGPL-3.0-only
"""Watches by plain HTTP, each in a thread."""

from __future__ import annotations

import functools
import json
import pathlib
import threading
import time
from dataclasses import dataclass
from typing import Any

from kubernetes import client, config, watch
from urllib3.exceptions import HTTPError

Object = dict[str, Any]
Key = tuple[str, str, str]  # plural, namespace, name

GROUP = "dataworkflowservices.github.io"
# Workflows, and the kinds of objects that belong to them.
OF_WORKFLOWS = (
    "workflows",
    "clientmounts",
    "computes",
    "servers",
    "directivebreakdowns",
)
KINDS = (*OF_WORKFLOWS, "persistentstorageinstances", "storages", "systemstatuses")
AGAIN_S = 0.1
# Errors while the server is down, cuts off an answer or rewrites its kubeconfig.
AWAY = (OSError, ValueError, HTTPError, client.ApiException, config.ConfigException)
# Restart a watch after this silence: a server that was stopped, or killed without
# closing its sockets, may never continue the watch.
SILENT_S = 5.0


@dataclass(frozen=True)
class Seen:
    """A version of an object.

    Attributes:
        time: when it was seen, in s since the epoch.
        object: None once it is gone.
    """

    time: float
    object: Object | None


class History:
    """Distinct versions of each object, oldest first."""

    def __init__(self) -> None:
        self.seen: dict[Key, list[Seen]] = {}
        # times without a watch by kind, in s since the epoch: versions that came and
        # went then are missing
        self.gaps: dict[str, list[tuple[float, float]]] = {}
        self._lock = threading.Lock()

    def note(self, plural: str, item: Object, gone: bool = False) -> None:
        meta = item["metadata"]
        key = (plural, meta.get("namespace", ""), meta["name"])
        meta.pop("managedFields", None)
        with self._lock:
            self.seen.setdefault(key, []).append(
                Seen(time.time(), None if gone else item)
            )

    def listed(
        self, plural: str, items: list[Object], begin: float | None = None
    ) -> None:
        """Note a whole list. Objects that it lacks are gone.

        Args:
            begin: since when the kind was not watched.
        """
        there = {
            (i["metadata"].get("namespace", ""), i["metadata"]["name"]) for i in items
        }
        for key in list(self.seen):
            lost = key[0] == plural and key[1:] not in there
            if lost and self.seen[key][-1].object is not None:
                self.seen[key].append(Seen(time.time(), None))
        for item in items:
            self.note(plural, item)
        if begin is not None:
            self.gaps.setdefault(plural, []).append((begin, time.time()))

    def gap(self, begin: float, end: float) -> None:
        """Note that no kind was watched between these times."""
        for plural in KINDS:
            self.gaps.setdefault(plural, []).append((begin, end))

    def whole(self, plural: str, begin: float, end: float) -> bool:
        """Whether that kind was watched all the time between these times."""
        return not any(b < end and e > begin for b, e in self.gaps.get(plural, []))

    def of(self, plural: str) -> dict[Key, list[Seen]]:
        with self._lock:
            return {k: list(v) for k, v in self.seen.items() if k[0] == plural}

    def now(self, plural: str) -> list[Object]:
        """The objects of a kind that exist now."""
        last = [seen[-1].object for seen in self.of(plural).values()]
        return [item for item in last if item is not None]


class Recorder:
    """Fills a history until it is stopped. The server may restart meanwhile.

    Args:
        kubeconfig: read anew for each connection.
    """

    def __init__(self, kubeconfig: pathlib.Path) -> None:
        self.history = History()
        self._kubeconfig = kubeconfig
        self._stopped = threading.Event()
        # when each watch last received something
        self._ended: dict[str, float] = {}
        self._listed = {plural: threading.Event() for plural in KINDS}
        for plural in KINDS:
            threading.Thread(target=self._run, args=[plural], daemon=True).start()

    def wait(self, limit_s: float) -> bool:
        """Wait until each kind was listed once; False after limit_s."""
        end = time.monotonic() + limit_s
        return all(
            e.wait(max(0.0, end - time.monotonic())) for e in self._listed.values()
        )

    def stop(self) -> None:
        self._stopped.set()

    def _run(self, plural: str) -> None:
        while not self._stopped.is_set():
            try:
                self._watch(plural)
            except AWAY:
                pass  # the next attempt lists all objects again
            self._stopped.wait(AGAIN_S)

    def _watch(self, plural: str) -> None:
        connection = config.new_client_from_config(str(self._kubeconfig))
        groups = client.ApisApi(connection).get_api_versions().groups
        version = next(g.preferred_version.version for g in groups if g.name == GROUP)
        api = client.CustomObjectsApi(connection)
        read = functools.partial(
            api.list_cluster_custom_object,
            *(GROUP, version, plural),
            _request_timeout=SILENT_S,
        )
        listing = read()
        self.history.listed(plural, listing["items"], self._ended.get(plural))
        self._listed[plural].set()
        # Watch from the version of the list, so that no change is missed.
        since = listing["metadata"]["resourceVersion"]
        stream = read(watch=True, resource_version=since, _preload_content=False)
        self._ended.setdefault(plural, time.time())
        for line in watch.watch.iter_resp_lines(stream):
            self._ended[plural] = time.time()
            event = json.loads(line)
            if event["type"] == "ERROR" or self._stopped.is_set():
                return
            self.history.note(plural, event["object"], event["type"] == "DELETED")
