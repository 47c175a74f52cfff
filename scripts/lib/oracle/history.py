# Records what the API server has shown, object by object, while a run goes on.
# SPDX-License-Identifier: LGPL-3.0-only
"""Watches by plain HTTP, each in a thread."""

from __future__ import annotations

import base64
import http.client
import json
import os
import pathlib
import ssl
import tempfile
import threading
import time
import urllib.parse
from dataclasses import dataclass
from typing import Any

import yaml

Object = dict[str, Any]
Key = tuple[str, str, str]  # plural, namespace, name

GROUP = "dataworkflowservices.github.io"
KINDS = (
    "workflows",
    "clientmounts",
    "computes",
    "servers",
    "directivebreakdowns",
    "persistentstorageinstances",
    "storages",
    "systemstatuses",
)
AGAIN_S = 0.1
# A watch that is silent for so long is made anew: a server that was stopped, or killed
# without a word, may not come back to it.
SILENT_S = 5.0


@dataclass(frozen=True)
class Seen:
    """What an object was from some time on.

    Attributes:
        time: when it was seen, in s since the epoch.
        object: None once it is gone.
    """

    time: float
    object: Object | None


class Server:
    """The API server that the current context of a kubeconfig names."""

    def __init__(self, kubeconfig: pathlib.Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())

        def entry(kind: str, name: str) -> Object:
            found = next(e for e in config[f"{kind}s"] if e["name"] == name)
            value: Object = found[kind]
            return value

        context = entry("context", config["current-context"])
        cluster = entry("cluster", context["cluster"])
        user = entry("user", context["user"])
        self._url = urllib.parse.urlsplit(cluster["server"])
        self._headers = {"Accept": "application/json"}
        if "token" in user:
            self._headers["Authorization"] = f"Bearer {user['token']}"
        self._tls = ssl.create_default_context(
            cadata=_text(cluster, "certificate-authority")
        )
        if certificate := _text(user, "client-certificate"):
            key = _text(user, "client-key")
            with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
                file.write(f"{certificate}\n{key}\n")
                file.flush()
                self._tls.load_cert_chain(file.name)

    def get(self, path: str) -> http.client.HTTPResponse:
        """The response to GET; OSError and HTTPException where there is none."""
        host, port = self._url.hostname or "", self._url.port
        connection: http.client.HTTPConnection
        if self._url.scheme == "https":
            connection = http.client.HTTPSConnection(
                host, port, context=self._tls, timeout=SILENT_S
            )
        else:
            connection = http.client.HTTPConnection(host, port, timeout=SILENT_S)
        connection.request("GET", path, headers=self._headers)
        return connection.getresponse()

    def json(self, path: str) -> Object:
        response = self.get(path)
        answer: Object = json.loads(response.read())
        if response.status != http.client.OK:
            raise OSError(f"{path}: {response.status} {answer.get('message')}")
        return answer


def _text(entry: Object, key: str) -> str | None:
    """What a key of a kubeconfig stands for, be it a file or the data."""
    if data := entry.get(f"{key}-data"):
        return base64.b64decode(data).decode()
    if path := entry.get(key):
        return pathlib.Path(os.path.expanduser(path)).read_text()
    return None


class History:
    """All that was seen, by object, oldest first. What is unchanged is not repeated."""

    def __init__(self) -> None:
        self.seen: dict[Key, list[Seen]] = {}
        # when each kind was not watched, in s since the epoch; a state can have come
        # and gone meanwhile
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
        """Note a whole list: what is not in it is gone.

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

    def whole(self, plural: str, begin: float, end: float) -> bool:
        """Whether nothing of that kind can have been missed between these times."""
        return not any(b < end and e > begin for b, e in self.gaps.get(plural, []))

    def of(self, plural: str) -> dict[Key, list[Seen]]:
        with self._lock:
            return {k: list(v) for k, v in self.seen.items() if k[0] == plural}

    def now(self, plural: str) -> list[Object]:
        """The objects of a kind that are there."""
        last = [seen[-1].object for seen in self.of(plural).values()]
        return [item for item in last if item is not None]


class Recorder:
    """Fills a history until it is stopped; the server may come and go.

    Args:
        kubeconfig: read anew for each connection.
    """

    def __init__(self, kubeconfig: pathlib.Path) -> None:
        self.history = History()
        self._kubeconfig = kubeconfig
        self._stopped = threading.Event()
        # when each watch was last heard of
        self._ended: dict[str, float] = {}
        self._listed = {plural: threading.Event() for plural in KINDS}
        for plural in KINDS:
            threading.Thread(target=self._run, args=[plural], daemon=True).start()

    def wait(self, limit_s: float) -> bool:
        """Until each kind was listed once; False if that takes longer."""
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
            except (OSError, ValueError, KeyError, http.client.HTTPException):
                pass  # down, or its answer is cut off; what is there is listed anew
            self._stopped.wait(AGAIN_S)

    def _watch(self, plural: str) -> None:
        server = Server(self._kubeconfig)
        group = server.json(f"/apis/{GROUP}")
        path = f"/apis/{group['preferredVersion']['groupVersion']}/{plural}"
        listing = server.json(path)
        self.history.listed(plural, listing["items"], self._ended.get(plural))
        self._listed[plural].set()
        version = listing["metadata"]["resourceVersion"]
        # It begins where the list ended, so that nothing lies between.
        stream = server.get(f"{path}?watch=1&resourceVersion={version}")
        self._ended.setdefault(plural, time.time())
        while not self._stopped.is_set() and (line := stream.readline()):
            self._ended[plural] = time.time()
            event = json.loads(line)
            if event["type"] == "ERROR":
                return
            self.history.note(plural, event["object"], event["type"] == "DELETED")
