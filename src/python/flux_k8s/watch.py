# Threads that list and watch Kubernetes objects, one per kind. They own a
# connection and nothing else: what they see is handed to a callback.
# SPDX-License-Identifier: LGPL-3.0-only
"""List+watch with resource versions, bookmarks and 410 recovery."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Iterable
from typing import Any, Callable

from flux_k8s.kube import UNREACHABLE, ApiError, Kube, Object, WatchStream

LOGGER = logging.getLogger(__name__)

# A watch is opened anew, where it was, after a time between these two.
WATCH_TIMEOUT_S = (180, 300)
BACKOFF_FIRST_S = 0.25
BACKOFF_CAP_S = 30.0
# While no connection can be made.
PROBE_CAP_S = 10.0
HTTP_GONE = 410
SHORT_WATCH_S = 1.0


def backoff_s(attempt: int, first_s: float, cap_s: float) -> float:
    """Seconds to wait before repeating something that has failed `attempt`
    times (counted from 1): doubled each time up to a cap, with jitter so that
    many who failed together do not come back together."""
    grown = first_s * 2.0 ** min(attempt - 1, 30)
    return min(cap_s, grown) * random.uniform(0.5, 1.5)


def pause_s(error: ApiError, attempt: int, first_s: float, cap_s: float) -> float:
    """The same after an error in which the server may have said how long."""
    delay = backoff_s(attempt, first_s, cap_s)
    if error.retry_after_s is None:
        return delay
    return max(delay, error.retry_after_s * random.uniform(1.0, 1.25))


class Sink:
    """What a watch tells its owner. Called in the watch's thread."""

    def listing(self, plural: str) -> None:
        """Every object of the kind is about to be asked for."""
        raise NotImplementedError

    def listed(self, plural: str, objects: list[Object], version: str) -> None:
        """Every object of the kind, as of a resource version."""
        raise NotImplementedError

    def changed(self, plural: str, event: str, obj: Object) -> None:
        """One object was ADDED, MODIFIED or DELETED."""
        raise NotImplementedError

    def health(self, plural: str, error: str | None) -> None:
        """The API server cannot be reached (why), or can again (None)."""
        raise NotImplementedError


class WatchThread(threading.Thread):
    """Lists a kind once, then follows its changes until stopped.

    A broken connection resumes where it stopped; only when the server has
    forgotten that point (410) is everything listed anew.
    """

    def __init__(self, kube: Kube, plural: str, selector: str, sink: Sink) -> None:
        super().__init__(name=f"watch-{plural}", daemon=True)
        self._kube = kube
        self._plural = plural
        self._selector = selector
        self._sink = sink
        self._stopped = threading.Event()
        # set to end a pause: the server is back, or the thread is to end
        self._wake = threading.Event()
        kube.comeback.listen(self._wake.set)
        self._stream: WatchStream | None = None
        self._resume_from = ""
        self._failures = 0
        # lists and streams in a row that told nothing
        self._idle_turns = 0

    def stop(self) -> None:
        """Ask the thread to end; nothing more is reported. Any thread."""
        self._stopped.set()
        self._wake.set()
        stream = self._stream
        if stream is not None:
            stream.close()

    def run(self) -> None:
        version = ""
        while not self._stopped.is_set():
            self._wake.clear()
            try:
                if not version:
                    version = self._list()
                version = self._follow(version)
            except ApiError as exc:
                if self._stopped.is_set():
                    return
                if exc.status == HTTP_GONE:
                    version = ""
                    self._slow_down()
                    continue
                version = self._resume_from or version
                self._pause(exc)
            except Exception:
                LOGGER.exception("watch of %s failed, listing anew", self._plural)
                version = ""
                self._pause(ApiError(0, "Internal", "internal error"))

    def _list(self) -> str:
        self._sink.listing(self._plural)
        objects, version = self._kube.list_all(self._plural, self._selector)
        if not self._stopped.is_set():
            self._recovered()
            self._kube.stats.listed(self._plural)
            for obj in objects:
                trim(obj)
            self._sink.listed(self._plural, objects, version)
        return version

    def _follow(self, version: str) -> str:
        """Watch until the server ends the stream; the version to go on from."""
        self._resume_from = version
        self._stream = self._kube.watch(
            self._plural, version, self._selector, random.randint(*WATCH_TIMEOUT_S)
        )
        told = False
        began = time.monotonic()
        try:
            if self._stopped.is_set():
                return version
            self._recovered()
            for event, obj in self._stream:
                if self._stopped.is_set():
                    break
                told = True
                self._idle_turns = 0
                seen = (obj.get("metadata") or {}).get("resourceVersion")
                if seen:
                    self._resume_from = str(seen)
                if event in ("ADDED", "MODIFIED", "DELETED"):
                    trim(obj)
                    self._kube.stats.event(self._plural)
                    self._sink.changed(self._plural, event, obj)
        finally:
            self._stream.close()
            self._stream = None
        if not told and time.monotonic() - began < SHORT_WATCH_S:
            self._slow_down()
        return self._resume_from

    def _slow_down(self) -> None:
        """Once is nothing; but who is sent away again and again without having
        heard anything waits before asking again."""
        self._idle_turns += 1
        if self._idle_turns > 1:
            turns = self._idle_turns - 1
            self._stopped.wait(backoff_s(turns, BACKOFF_FIRST_S, BACKOFF_CAP_S))

    def _recovered(self) -> None:
        if self._failures:
            LOGGER.warning(
                "watch of %s works again after %d failed tries",
                self._plural,
                self._failures,
            )
            self._sink.health(self._plural, None)
            self._failures = 0
            self._kube.comeback.back()

    def _pause(self, error: ApiError) -> None:
        self._failures += 1
        if self._failures == 1:
            LOGGER.warning("watch of %s: %s", self._plural, error.message)
            self._sink.health(self._plural, error.message)
        unreachable = error.status == 0 and error.reason == UNREACHABLE
        cap_s = PROBE_CAP_S if unreachable else BACKOFF_CAP_S
        delay = pause_s(error, self._failures, BACKOFF_FIRST_S, cap_s)
        if error.retry_after_s is not None:
            self._stopped.wait(delay)
        # Somebody may have got through since this request was begun.
        elif self._wake.wait(delay):
            self._stopped.wait(backoff_s(1, BACKOFF_FIRST_S, cap_s))


def trim(obj: dict[str, Any]) -> None:
    """Take off what nobody here reads and what makes objects big."""
    metadata = obj.get("metadata")
    if isinstance(metadata, dict):
        had = metadata.pop("managedFields", None) is not None
        if had and isinstance(obj, Object):
            obj.text = None


class Watchers:
    """The watch threads of one attachment to the broker module."""

    def __init__(
        self,
        kube: Kube,
        selectors: dict[str, str],
        sink: Sink,
        thread: Callable[[Kube, str, str, Sink], WatchThread] = WatchThread,
    ) -> None:
        """Args:
        selectors: plural name of a kind -> label selector ("" for all).
        """
        self._threads = [
            thread(kube, plural, selector, sink)
            for plural, selector in selectors.items()
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End all threads without waiting: they are daemons, and silent."""
        for thread in self._threads:
            thread.stop()

    def join(self, timeout_s: float) -> Iterable[str]:
        """Wait for the threads; the names of those that are still there."""
        for thread in self._threads:
            thread.join(timeout_s)
        return [t.name for t in self._threads if t.is_alive()]
