# One watch: replay, the events as one client sees them, bookmarks, the end.
# SPDX-License-Identifier: LGPL-3.0-only
"""Watch streams."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable
from typing import Callable

from dws_sim.convert import as_sent
from dws_sim.errors import ApiError
from dws_sim.jsontree import Object, encode
from dws_sim.past import Past
from dws_sim.schema.resources import Resource
from dws_sim.selectors import FieldSelector, LabelSelector
from dws_sim.store import Event, Store

Writer = Callable[[bytes], Awaitable[None]]
# Events after which a client that does not read is disconnected; it must list again.
MAX_BACKLOG = 100000


def parse_version(text: str) -> int:
    """A resource version. The API server takes what is none for a fault of its own."""
    why = "invalid syntax"
    if text.isascii() and text.isdigit():
        if int(text) < 1 << 64:
            return int(text)
        why = "value out of range"
    fault = f'Invalid value: "{text}": strconv.ParseUint: parsing "{text}": {why}'
    raise ApiError(500, "", f"resourceVersion: {fault}")


class Watch:
    """The events of one kind, filtered and converted for one client."""

    def __init__(
        self,
        store: Store,
        res: Resource,
        version: str,
        namespace: str | None,
        labels: LabelSelector,
        fields: FieldSelector,
        shown: Callable[[Object], Object] | None = None,
    ) -> None:
        """shown: what the client gets in place of each object."""
        self._store = store
        self._res = res
        self._version = version
        self._namespace = namespace
        self._labels = labels
        self._fields = fields
        self._shown = shown
        self._after = 0  # nothing is shown up to this version
        self._pending: deque[bytes] = deque()
        self._wake = asyncio.Event()
        self._ended = False

    def start(self, resource_version: str, past: Past) -> None:
        """Queue past events and subscribe to future ones.

        With a version in the future, nothing is sent until the store has reached it.

        Raises:
            ApiError: 410 too old, 500 no number.
        """
        if resource_version in ("", "0"):
            for obj in past.find(self._namespace, self._labels, self._fields):
                self._push("ADDED", obj)
            for event in self._store.since(self._res, past.version):
                self._event(event)
        else:
            self._after = parse_version(resource_version)
            for event in self._store.since(self._res, self._after):
                self._event(event)
        self._store.tables[self._res.plural].subscribers.append(self._event)

    def stop(self) -> None:
        """End the stream after what is pending. May be called again."""
        if not self._ended:
            self._ended = True
            subscribers = self._store.tables[self._res.plural].subscribers
            if self._event in subscribers:
                subscribers.remove(self._event)
            self._wake.set()

    def fail(self, error: ApiError) -> None:
        """End the stream with an ERROR event."""
        self._line("ERROR", encode(error.status()))
        self.stop()

    def _matches(self, obj: Object | None) -> bool:
        return (
            obj is not None and self._labels.matches(obj) and self._fields.matches(obj)
        )

    def _event(self, event: Event) -> None:
        if event.version <= self._after:
            return
        if self._namespace is not None and event.key[0] != self._namespace:
            return
        type_ = event.type
        if type_ == "MODIFIED" and (self._labels or self._fields):
            # An object can come into view, or go out of it.
            before, after = self._matches(event.old), self._matches(event.object)
            if not before and not after:
                return
            if before and not after:
                self._push("DELETED", event.before())
                return
            if not before:
                type_ = "ADDED"
        elif not self._matches(event.object):
            return
        if self._shown is None and self._version == self._res.storage_version:
            self._line(type_, event.text())
        else:
            self._push(type_, event.object)

    def _push(self, type_: str, obj: Object) -> None:
        sent = as_sent(self._res, obj, self._version)
        self._line(type_, encode(sent if self._shown is None else self._shown(sent)))

    def _line(self, type_: str, text: bytes) -> None:
        self._pending.append(b'{"type":"%s","object":%s}\n' % (type_.encode(), text))
        if len(self._pending) > MAX_BACKLOG:
            self.stop()
        self._wake.set()

    def _bookmark(self) -> None:
        if self._store.version <= self._after:
            return
        self._line(
            "BOOKMARK",
            encode(
                {
                    "kind": self._res.kind,
                    "apiVersion": self._res.at(self._version),
                    "metadata": {"resourceVersion": str(self._store.version)},
                }
            ),
        )

    async def run(
        self, write: Writer, timeout_s: float | None, bookmark_s: float | None
    ) -> None:
        """Write events until the timeout or stop().

        Args:
            bookmark_s: seconds between bookmarks; None: the client wants none.
        """
        loop = asyncio.get_running_loop()
        end = None if timeout_s is None else loop.time() + timeout_s
        mark = None if bookmark_s is None else loop.time() + bookmark_s
        try:
            while True:
                if self._pending:
                    text = b"".join(self._pending)
                    self._pending.clear()
                    await write(text)
                    continue
                if self._ended:
                    return
                now = loop.time()
                if end is not None and now >= end:
                    if mark is not None:
                        self._bookmark()
                    self.stop()
                    continue
                if mark is not None and bookmark_s is not None and now >= mark:
                    self._bookmark()
                    mark = now + bookmark_s
                    continue
                self._wake.clear()
                times = [t for t in (end, mark) if t is not None]
                try:
                    await asyncio.wait_for(
                        self._wake.wait(), min(times) - now if times else None
                    )
                except asyncio.TimeoutError:
                    pass
        finally:
            self.stop()
