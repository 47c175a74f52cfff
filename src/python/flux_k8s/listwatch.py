# Lists and watches Kubernetes objects, with a coroutine for each kind that reports to a
# Sink, which is a Session (session.py).
# SPDX-License-Identifier: LGPL-3.0-only
"""List+watch with resource versions, bookmarks and 410 recovery."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Iterator
from typing import Any, Callable

from flux_k8s.errors import UNREACHABLE, ApiError
from flux_k8s.events import CHANGES, Event, WatchStream
from flux_k8s.kube import Kube
from flux_k8s.loop import Loop, Pause
from flux_k8s.objects import (
    Name,
    Object,
    name_of,
    position_of,
    version_number,
    version_of,
)

LOGGER = logging.getLogger(__name__)

# Bounds of the random time after which a watch is reopened at its position.
WATCH_TIMEOUT_S = (180, 300)
BACKOFF_FIRST_S = 0.25
BACKOFF_CAP_S = 30.0
# Cap on the pause while no connection can be opened.
PROBE_CAP_S = 10.0
HTTP_GONE = 410
SHORT_WATCH_S = 1.0
# Refusals for other causes than the position of a watch.
OTHER_REFUSALS = (401, 403, 404, 408, HTTP_GONE, 429)
# Marks the text of a refused position that has status 500.
POSITION = "resourceVersion"
# Consecutive refusals after which the position counts as lost.
REFUSALS = 3


def backoff_s(attempt: int, first_s: float, cap_s: float) -> float:
    """Seconds to wait after `attempt` failures (from 1): doubled each time up to a cap,
    with jitter so that clients that failed together do not return together."""
    grown = first_s * 2.0 ** min(attempt - 1, 30)
    return min(cap_s, grown) * random.uniform(0.5, 1.5)


def pause_s(error: ApiError, attempt: int, first_s: float, cap_s: float) -> float:
    """Seconds to wait after an error, but not less than the server requested."""
    delay = backoff_s(attempt, first_s, cap_s)
    if error.retry_after_s is None:
        return delay
    return max(delay, error.retry_after_s * random.uniform(1.0, 1.25))


class Sink:
    """Receives the reports of watches, in turns of their loop."""

    async def listing(self, plural: str) -> None:
        """The watch is about to request a list of the kind."""
        raise NotImplementedError

    def listed(self, plural: str, objects: list[Object], version: str) -> None:
        """All objects of the kind at a resource version, reduced to the fields that the
        module reads."""
        raise NotImplementedError

    def changed(self, plural: str, event: str, obj: Object) -> None:
        """An object was ADDED, MODIFIED or DELETED, reduced as in listed()."""
        raise NotImplementedError

    def health(self, plural: str, error: str | None) -> None:
        """The API server cannot be reached (why), or can again (None)."""
        raise NotImplementedError

    def went_back(self, plural: str, why: str) -> None:
        """Earlier reports of this kind may be wrong, whatever their versions. The watch
        lists the kind anew unless it is stopped now."""
        raise NotImplementedError


class WentBack(Exception):
    """The server has lost data that it has shown, as after the restore of a backup."""


class Watch:
    """Lists a kind once, then follows its changes until stopped.

    After the end of a request the watch resumes at its position; it lists the kind anew
    only if the server has forgotten that position (410). It compares versions first: a
    server restored from a backup accepts a position that it has not reached yet, and
    stays silent until then. Objects are reported again only in a newer version.
    """

    def __init__(self, kube: Kube, plural: str, selector: str, sink: Sink) -> None:
        self._kube = kube
        self._plural = plural
        self._selector = selector
        self._sink = sink
        self._stopped = False
        # the server is back: end the pause early
        self._hurry = False
        self._paused: Pause | None = None
        kube.outage.listen(self._wake)
        self._stream: WatchStream | None = None
        self._resume_from = ""
        # the reported version of each object, and the newest one of deleted objects
        self._versions: dict[Name, int] = {}
        self._deleted = 0
        # consecutive refusals of the position
        self._refusals = 0
        self._failures = 0
        # consecutive lists and streams without an event
        self._idle_turns = 0

    def version(self, name: Name) -> int:
        """The version of an object that was reported last; 0 for an unknown object."""
        return self._versions.get(name, 0)

    def stop(self) -> None:
        """End the watch soon, and report nothing more."""
        self._stopped = True
        if self._paused is not None:
            self._paused.end()
        if self._stream is not None:
            self._stream.close()

    def _wake(self) -> None:
        self._hurry = True
        if self._paused is not None:
            self._paused.end()

    async def run(self) -> None:
        version = ""
        while not self._stopped:
            self._hurry = False
            try:
                if not version:
                    version = await self._list()
                else:
                    await self._compare(version)
                version = await self._follow(version)
            except WentBack as exc:
                version = self._begin_anew()
                if not self._stopped:
                    self._sink.went_back(self._plural, str(exc))
                    await self._slow_down()
            except ApiError as exc:
                if self._stopped:
                    return
                if exc.status == HTTP_GONE:
                    version = self._resume_from = ""
                    await self._slow_down()
                    continue
                version = self._resume_from
                await self._pause(exc)
            except Exception:
                LOGGER.exception("watch of %s failed, listing anew", self._plural)
                version = self._resume_from = ""
                await self._pause(ApiError(0, "Internal", "internal error"))

    def _begin_anew(self) -> str:
        self._resume_from = ""
        self._versions.clear()
        self._deleted = self._refusals = 0
        return ""

    async def _compare(self, version: str) -> None:
        """Raises WentBack if the server's version is older than our position."""
        now = await self._kube.anow(self._plural)
        if 0 < version_number(now) < version_number(version):
            raise WentBack(f"resource version {now} after {version}")

    async def _list(self) -> str:
        await self._sink.listing(self._plural)
        objects, version = await self._kube.apick_all(self._plural, self._selector)
        if not self._stopped:
            self._recovered()
            self._kube.stats.listed(self._plural)
            self._learn(objects)
            self._sink.listed(self._plural, objects, version)
        return version

    def _learn(self, objects: list[Object]) -> None:
        """Replace the reported versions by those of a list.

        Raises:
            WentBack: an object in the list is older than the one reported.
        """
        versions = {name_of(obj): version_of(obj) for obj in objects}
        for name, told in self._versions.items():
            if 0 < versions.get(name, told) < told:
                raise WentBack(f"{name[1]}: version {versions[name]} after {told}")
        self._versions, self._deleted = versions, 0

    async def _follow(self, version: str) -> str:
        """Watch until the server ends the stream; returns the position to resume at."""
        self._resume_from = version
        told = False
        began = time.monotonic()
        try:
            stream = self._stream = await self._kube.awatch(
                self._plural,
                version,
                self._selector,
                random.randint(*WATCH_TIMEOUT_S),
                picked=True,
            )
            if self._stopped:
                return version
            self._recovered()
            while (events := await stream.next()) is not None:
                told = self._see(events) or told
        except ApiError as exc:
            self._count_refusal(exc)
            raise
        finally:
            if self._stream is not None:
                self._stream.close()
            self._stream = None
        if not told and time.monotonic() - began < SHORT_WATCH_S:
            await self._slow_down()
        return self._resume_from

    def _count_refusal(self, error: ApiError) -> None:
        """Raises WentBack if the server keeps refusing the position."""
        refused = 400 <= error.status < 500 and error.status not in OTHER_REFUSALS
        if not refused and POSITION not in error.message:
            return
        self._refusals += 1
        if self._refusals >= REFUSALS:
            raise WentBack(f"refused {self._refusals} times: {error.message}")

    def _see(self, events: Iterator[Event]) -> bool:
        """Report events; returns whether they have advanced the position."""
        before, count = self._resume_from, 0
        position = version_number(before)
        try:
            for event, obj in events:
                seen = position_of(obj)
                number = version_number(seen)
                # Ignore a lower version, and a malformed one after a number.
                if seen and number >= position:
                    self._resume_from, position = str(seen), number
                if event not in CHANGES or self._stopped:
                    continue
                count += 1
                if self._is_news(event, obj, number):
                    self._sink.changed(self._plural, event, obj)
        finally:
            self._kube.stats.event(self._plural, count)
            told = self._resume_from != before
            if told:
                self._idle_turns = self._refusals = 0
        return told

    def _is_news(self, event: str, obj: dict[str, Any], version: int) -> bool:
        """Whether an event is newer than the last report of its object; assumed for a
        version without a number. An unknown object older than the last deletion may be
        the deleted one, so it is not news."""
        if not version:
            return True
        name = name_of(obj)
        if version <= self._versions.get(name, self._deleted):
            return False
        if event == "DELETED":
            self._versions.pop(name, None)
            self._deleted = max(self._deleted, version)
        else:
            self._versions[name] = version
        return True

    async def _slow_down(self) -> None:
        """Pause if consecutive requests end without an event, but not after the
        first."""
        self._idle_turns += 1
        if self._idle_turns > 1:
            turns = self._idle_turns - 1
            await self._wait(backoff_s(turns, BACKOFF_FIRST_S, BACKOFF_CAP_S), False)

    async def _wait(self, seconds: float, hurry: bool = True) -> None:
        """Wait for a time, or until stop(), or with `hurry` until the server is
        back."""
        end = time.monotonic() + seconds
        while not self._stopped and not (hurry and self._hurry):
            left_s = end - time.monotonic()
            if left_s <= 0:
                break
            self._paused = Pause(left_s)
            await self._paused
            self._paused = None

    def _recovered(self) -> None:
        if self._failures:
            LOGGER.warning(
                "watch of %s works again after %d failed tries",
                self._plural,
                self._failures,
            )
            self._sink.health(self._plural, None)
            self._failures = 0
            self._kube.outage.ended()

    async def _pause(self, error: ApiError) -> None:
        self._failures += 1
        if self._failures == 1:
            LOGGER.warning("watch of %s: %s", self._plural, error.message)
            self._sink.health(self._plural, error.message)
        unreachable = error.status == 0 and error.reason == UNREACHABLE
        cap_s = PROBE_CAP_S if unreachable else BACKOFF_CAP_S
        delay = pause_s(error, self._failures, BACKOFF_FIRST_S, cap_s)
        if error.retry_after_s is not None:
            await self._wait(delay, False)
            return
        await self._wait(delay)
        if self._hurry:
            # The end of the outage may precede the failed request: pause a little.
            await self._wait(backoff_s(1, BACKOFF_FIRST_S, cap_s), False)


class Watchers:
    """The watches of one attachment to the broker module."""

    def __init__(
        self,
        kube: Kube,
        selectors: dict[str, str],
        sink: Sink,
        watch: Callable[[Kube, str, str, Sink], Watch] = Watch,
    ) -> None:
        """Args:
        selectors: plural name of a kind -> label selector ("" for all).
        """
        self._watches = {
            plural: watch(kube, plural, selector, sink)
            for plural, selector in selectors.items()
        }

    def start(self, loop: Loop) -> None:
        for watch in self._watches.values():
            loop.spawn(watch.run())

    def stop(self) -> None:
        """Stop all watches."""
        for watch in self._watches.values():
            watch.stop()

    def version(self, plural: str, name: Name) -> int:
        """Watch.version() of that kind."""
        watch = self._watches.get(plural)
        return watch.version(name) if watch is not None else 0
