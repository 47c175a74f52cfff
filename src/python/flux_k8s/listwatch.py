# Lists and watches Kubernetes objects, a coroutine for each kind: what it sees is
# handed to a callback.
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

# A watch is opened anew, where it was, after a time between these two.
WATCH_TIMEOUT_S = (180, 300)
BACKOFF_FIRST_S = 0.25
BACKOFF_CAP_S = 30.0
# While no connection can be made.
PROBE_CAP_S = 10.0
HTTP_GONE = 410
SHORT_WATCH_S = 1.0
# Refusals that say nothing of where a watch begins: who asks, and how often.
OTHER_REFUSALS = (401, 403, 404, 408, HTTP_GONE, 429)
# In the text of one that does, whose status is 500.
POSITION = "resourceVersion"
# So many in a row, and the server will never take that position.
REFUSALS = 3


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
    """What a watch tells its owner, in turns of its loop."""

    async def listing(self, plural: str) -> None:
        """Every object of the kind is about to be asked for."""
        raise NotImplementedError

    def listed(self, plural: str, objects: list[Object], version: str) -> None:
        """Every object of the kind, as of a resource version: of each what the
        module reads."""
        raise NotImplementedError

    def changed(self, plural: str, event: str, obj: Object) -> None:
        """One object was ADDED, MODIFIED or DELETED: of it what the module reads."""
        raise NotImplementedError

    def health(self, plural: str, error: str | None) -> None:
        """The API server cannot be reached (why), or can again (None)."""
        raise NotImplementedError

    def went_back(self, plural: str, why: str) -> None:
        """What has been told of this kind may not be so any more, whatever its
        version. It is listed anew, unless the watch is stopped now."""
        raise NotImplementedError


class WentBack(Exception):
    """The server has lost what it has shown: a backup was restored, say."""


class Watch:
    """Lists a kind once, then follows its changes until stopped.

    A watch that has ended, however it did, resumes where it stopped; only when the
    server has forgotten that point (410) is everything listed anew. Before it resumes
    versions are compared: a server to which a backup was restored takes a position that
    it has not reached yet, and says nothing until it gets there. An object is not told
    of once more in a version that is not newer than what was told.
    """

    def __init__(self, kube: Kube, plural: str, selector: str, sink: Sink) -> None:
        self._kube = kube
        self._plural = plural
        self._selector = selector
        self._sink = sink
        self._stopped = False
        # the server is back, or all is to end: no pause is needed any more
        self._hurry = False
        self._paused: Pause | None = None
        kube.comeback.listen(self._wake)
        self._stream: WatchStream | None = None
        self._resume_from = ""
        # what was told: the version of each object, and the newest of those deleted
        self._versions: dict[Name, int] = {}
        self._deleted = 0
        # of the position, in a row
        self._refusals = 0
        self._failures = 0
        # lists and streams in a row that told nothing
        self._idle_turns = 0

    def version(self, name: Name) -> int:
        """That of an object as it was told of last; 0 if it is not known."""
        return self._versions.get(name, 0)

    def stop(self) -> None:
        """Ask it to end; nothing more is reported."""
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
        """Raises WentBack if the server is not as far as it was."""
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
        """A list is as of now: no object in it is older than what was told.

        Raises:
            WentBack: one is.
        """
        versions = {name_of(obj): version_of(obj) for obj in objects}
        for name, told in self._versions.items():
            if 0 < versions.get(name, told) < told:
                raise WentBack(f"{name[1]}: version {versions[name]} after {told}")
        self._versions, self._deleted = versions, 0

    async def _follow(self, version: str) -> str:
        """Watch until the server ends the stream; the version to go on from."""
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
        """Raises WentBack if the position is refused for good."""
        refused = 400 <= error.status < 500 and error.status not in OTHER_REFUSALS
        if not refused and POSITION not in error.message:
            return
        self._refusals += 1
        if self._refusals >= REFUSALS:
            raise WentBack(f"refused {self._refusals} times: {error.message}")

    def _see(self, events: Iterator[Event]) -> bool:
        """Whether the watch has come further with them."""
        before, count = self._resume_from, 0
        try:
            for event, obj in events:
                seen = position_of(obj)
                number = version_number(seen)
                # One that is lower, or no number after one that is, is no position.
                if seen and number >= version_number(self._resume_from):
                    self._resume_from = str(seen)
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
        """Whether that is newer than what was told; without a number it may be. An
        object that is not known and older than what has been deleted may be that."""
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
        """Once is nothing; but who is sent away again and again without having
        heard anything waits before asking again."""
        self._idle_turns += 1
        if self._idle_turns > 1:
            turns = self._idle_turns - 1
            await self._wait(backoff_s(turns, BACKOFF_FIRST_S, BACKOFF_CAP_S), False)

    async def _wait(self, seconds: float, hurry: bool = True) -> None:
        """Until we are stopped, or, if that is wanted, until the server is back."""
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
            self._kube.comeback.back()

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
            # Somebody may have got through since this request was begun.
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
        """They are silent from now on."""
        for watch in self._watches.values():
            watch.stop()

    def version(self, plural: str, name: Name) -> int:
        """Watch.version() of that kind."""
        watch = self._watches.get(plural)
        return watch.version(name) if watch is not None else 0
