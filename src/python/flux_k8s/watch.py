# SPDX-License-Identifier: LGPL-3.0-only
#
# Watches for programs of sites, by the names of flux-coral2, on the package kubernetes.
# The agent has others, in listwatch.py. Each watch has a thread that reads; callbacks
# run in the reactor's thread.
"""Watch objects in Kubernetes from a Flux reactor."""

from __future__ import annotations

import logging
import queue
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any, Callable

import kubernetes.watch
from flux.constants import FLUX_POLLIN
from kubernetes.client import ApiException
from urllib3.exceptions import HTTPError

from flux_k8s.crd import CRD

LOGGER = logging.getLogger(__name__)

Event = dict[str, Any]

# The time after which the server ends a request for changes.
REQUEST_S = 60
# Delay of an answer, or of the end of a request, after which the connection is dead.
SLACK_S = 10
# A request that ends sooner has failed.
SHORT_S = 1
GONE = 410


class Watch:
    """Reports the objects of a kind, and then each change.

    Each event is {"type": "ADDED", "MODIFIED" or "DELETED", "object": ...}. If the
    server has forgotten the changes since the last event (410), list all objects and
    report the differences, so that no deletion is missed.
    """

    def __init__(
        self,
        api: Any,
        crd: CRD,
        resource_version: Any,
        callback: Callable[..., Any],
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Args:
        api: a kubernetes.client.CustomObjectsApi.
        crd: the kind, a constant of flux_k8s.crd.
        resource_version: report changes after this version; 0: report all existing
            objects first.
        callback: called with the event, and with `args` and `kwargs`.
        """
        self.api = api
        self.crd = crd
        self.resource_version = str(resource_version or 0)
        self.callback = callback
        self.args = args
        self.kwargs = kwargs
        self._known: dict[tuple[str, str], dict[str, Any]] = {}

    def watch(self) -> None:
        """Report the changes since the last call, and those of the next second.

        Raises:
            kubernetes.client.ApiException, urllib3.exceptions.HTTPError
        """
        for event in self.changes(1):
            self.tell(event)

    def tell(self, event: Event) -> None:
        self.callback(event, *self.args, **self.kwargs)

    def changes(self, timeout_s: int) -> Iterator[Event]:
        """The events of the next `timeout_s` seconds. Raises as watch()."""
        try:
            if self.resource_version == "0":
                yield from self._list()
            stream = kubernetes.watch.Watch().stream(
                *self._where(),
                resource_version=self.resource_version,
                timeout_seconds=timeout_s,
                _request_timeout=timeout_s + SLACK_S,
            )
            for event in stream:
                if event["type"] in ("ADDED", "MODIFIED", "DELETED"):
                    yield self._note(event["type"], event["object"])
        except ApiException as exc:
            if exc.status != GONE:
                raise
            LOGGER.info("%s: listing all anew: %s", self.crd.plural, exc.reason)
            self.resource_version = "0"

    def _where(self) -> tuple[Any, ...]:
        if self.crd.namespace is not None:
            return self.api.list_namespaced_custom_object, *self.crd
        crd = self.crd
        return self.api.list_cluster_custom_object, crd.group, crd.version, crd.plural

    def _list(self) -> Iterator[Event]:
        call, *where = self._where()
        found = call(*where, _request_timeout=SLACK_S)
        gone = dict(self._known)
        for obj in found["items"]:
            before = gone.pop(_name(obj), None)
            if before is None:
                yield self._note("ADDED", obj)
            elif _version(before) != _version(obj):
                yield self._note("MODIFIED", obj)
        for obj in gone.values():
            yield self._note("DELETED", obj)
        self.resource_version = _version(found)

    def _note(self, kind: str, obj: dict[str, Any]) -> Event:
        """Record an event. During a list keep the version: the list's own version is
        set at its end."""
        if kind == "DELETED":
            self._known.pop(_name(obj), None)
        else:
            self._known[_name(obj)] = obj
        if self.resource_version != "0":
            self.resource_version = _version(obj)
        return {"type": kind, "object": obj}


def _name(obj: dict[str, Any]) -> tuple[str, str]:
    metadata = obj["metadata"]
    return metadata.get("namespace") or "", metadata["name"]


def _version(obj: dict[str, Any]) -> str:
    return str(obj["metadata"]["resourceVersion"])


class Watchers:
    """Watches whose callbacks run in a Flux reactor at each change, until the context
    ends:

        with Watchers(handle) as watchers:
            watchers.add_watch(Watch(api, crd.RABBIT_CRD, 0, callback))
            handle.reactor_run()
    """

    def __init__(self, handle: Any, watch_interval: float = 5) -> None:
        """Args:
        handle: a flux.Flux, in whose reactor the callbacks run.
        watch_interval: seconds until a failed watch is tried again; changes arrive
            without polling.
        """
        self.handle = handle
        self._interval_s = watch_interval
        self._events: queue.Queue[tuple[Watch, Event]] = queue.Queue()
        self._stopped = threading.Event()
        # a byte in the socket wakes the reactor for one event or more
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._watcher = handle.fd_watcher_create(
            self._reader.fileno(), lambda *_: self._tell(), FLUX_POLLIN
        )
        self._watcher.start()

    def __enter__(self) -> Watchers:
        return self

    def __exit__(self, *exc: Any) -> None:
        """Stop all callbacks. Threads that wait for Kubernetes end with its next
        answer, or with the process."""
        self._stopped.set()
        self._watcher.stop()
        self._watcher.destroy()

    def add_watch(self, watch: Watch) -> None:
        """Begin to watch."""
        name = f"watch-{watch.crd.plural}"
        thread = threading.Thread(
            target=self._read, args=(watch,), name=name, daemon=True
        )
        thread.start()

    def watch(self) -> None:
        """Run the callbacks of pending events without a reactor; wait up to a second
        for the first."""
        try:
            watch, event = self._events.get(timeout=1)
        except queue.Empty:
            return
        watch.tell(event)
        self._tell()

    def _tell(self) -> None:
        try:
            self._reader.recv(4096)
        except BlockingIOError:
            pass
        while not self._stopped.is_set():
            try:
                watch, event = self._events.get_nowait()
            except queue.Empty:
                return
            try:
                watch.tell(event)
            except BaseException:
                self._wake()  # more events may wait
                raise

    def _read(self, watch: Watch) -> None:
        """The thread of a watch: queue its events until the context ends."""
        fault = ""
        while not self._stopped.is_set():
            began = time.monotonic()
            before, fault = fault, ""
            try:
                for event in watch.changes(REQUEST_S):
                    if self._stopped.is_set():
                        return
                    self._events.put((watch, event))
                    self._wake()
            except (ApiException, HTTPError, OSError) as exc:
                fault = type(exc).__name__
                if fault != before:  # log a lasting fault once
                    LOGGER.warning("watch of %s: %s", watch.crd.plural, exc)
            if time.monotonic() - began < SHORT_S:
                self._stopped.wait(self._interval_s)

    def _wake(self) -> None:
        try:
            self._writer.send(b"\0")
        except BlockingIOError:
            pass  # the socket is full, so the reactor wakes anyway
