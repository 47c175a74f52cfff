# Splits the answer to a watch request into lines and decodes their events. When several
# events of an object arrive together, listwatch.py receives only the last.
# SPDX-License-Identifier: LGPL-3.0-only
"""Events of watches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Callable

from flux_k8s.errors import BROKEN, ApiError
from flux_k8s.fields import FieldError, Reader, project
from flux_k8s.objects import (
    Name,
    Object,
    is_object,
    metadata_of,
    name_of,
    parse,
    version_number,
    version_of,
)
from flux_k8s.transport import ANSWER_BYTES, NoAnswer, Stream

# No event is longer than the object in it.
EVENT_BYTES = ANSWER_BYTES

CHANGES = ("ADDED", "MODIFIED", "DELETED")

Event = tuple[str, dict[str, Any]]


class WatchStream:
    """The events of one watch request, as (type, object) pairs."""

    def __init__(
        self,
        stream: Stream,
        plural: str = "",
        left_out: Callable[[int], None] = lambda count: None,
        broken: Callable[[], None] = lambda: None,
        refused: Callable[[FieldError], None] = lambda error: None,
    ) -> None:
        """Args:
        plural: the kind, to reduce events to the module's needs: the fields that it
            reads, and of consecutive changes to an object the last (see Newest).
            "": all events, unchanged.
        left_out: called with the number of superseded events.
        broken: called when the connection breaks.
        refused: called for an object that the module cannot read; its event has the
            type REFUSED.
        """
        self._stream = stream
        self._plural = plural
        self._reader = Reader(plural) if plural else None
        self._refused = refused
        self._left_out = left_out
        self._broken = broken
        # the parts of an incomplete line
        self._pending: list[bytes] = []
        self._pending_size = 0

    async def next(self) -> Iterator[Event] | None:
        """The next events; None when the server, or close(), has ended the stream.
        Iterating raises ApiError at an ERROR event.

        Raises:
            ApiError: the stream broke.
        """
        try:
            chunk = await self._stream.chunk()
        except NoAnswer as exc:
            self._broken()
            raise ApiError(0, BROKEN, f"watch ended: {exc}") from exc
        if not chunk:
            return None
        self._pending.append(chunk)
        if b"\n" not in chunk:
            return self._wait_for_more(len(chunk))
        *lines, rest = b"".join(self._pending).split(b"\n")
        self._pending, self._pending_size = [rest], len(rest)
        return self._events(lines)

    def _events(self, lines: list[bytes]) -> Iterator[Event]:
        """Yield the events before a malformed line, then raise ApiError for it."""
        newest = Newest()
        error = None
        for line in reversed(lines):
            if not line.strip() or newest.has_superseded(line):
                continue
            try:
                event = self._decode(line)
            except ApiError as exc:
                newest, error = Newest(), exc
                continue
            if self._plural and event[0] in CHANGES:
                newest.add(*event)
            else:
                newest.events.append(event)
        if newest.left_out:
            self._left_out(newest.left_out)
        yield from reversed(newest.events)
        if error is not None:
            raise error

    def _decode(self, line: bytes) -> Event:
        if self._reader is not None:
            try:
                return self._reader.event(line)
            except ValueError:
                pass  # a BOOKMARK or ERROR event, or one whose fault project() names
        kind, obj = decode(line)
        if not self._plural or kind not in CHANGES:
            return kind, obj
        try:
            if not is_object(obj):
                raise FieldError(f"{self._plural}: an object without a name")
            return kind, project(self._plural, obj)
        except FieldError as exc:
            self._refused(exc)
            return "REFUSED", obj

    def _wait_for_more(self, size: int) -> Iterator[Event]:
        self._pending_size += size
        if self._pending_size > EVENT_BYTES:
            raise ApiError(0, BROKEN, "watch event: it does not end")
        return iter(())

    def close(self) -> None:
        """End the stream, also while a coroutine reads it."""
        self._stream.close()


class Newest:
    """The events of a chunk, added from the last to the first, without superseded ones:
    the next event of the same object (and uid) is MODIFIED and not of a lower version.
    The next one becomes ADDED if the dropped one was.

    Attributes:
        events: from the last to the first.
        left_out: the number of superseded events.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.left_out = 0
        # the next event of an object: its place, uid and version
        self._nexts: dict[Name, tuple[int, Any, int]] = {}
        # by uid: the version of the next event, if that is MODIFIED
        self._superseding: dict[bytes, int] = {}

    def add(self, kind: str, obj: Object) -> None:
        name, version = name_of(obj), version_of(obj)
        uid = metadata_of(obj).get("uid")
        at, next_uid, next_version = self._nexts.get(name, (-1, None, 0))
        if (
            at >= 0
            and self.events[at][0] == "MODIFIED"
            and kind != "DELETED"
            and uid == next_uid
            and not 0 < next_version < version
        ):
            self.events[at] = kind, self.events[at][1]
            self.left_out += 1
        else:
            self._nexts[name] = len(self.events), uid, version
            self.events.append((kind, obj))
        if not isinstance(uid, str):
            return
        if kind == "MODIFIED":
            self._superseding[uid.encode()] = version
        else:
            self._superseding.pop(uid.encode(), None)

    def has_superseded(self, line: bytes) -> bool:
        """Whether add() would drop the event of a line, by its bytes: saves decoding a
        fifth of the events in a storm. Without certainty the line is decoded."""
        if not self._superseding or not line.startswith(b'{"type":"MODIFIED",'):
            return False
        newer = self._superseding.get(_only(line, b'"uid":"'))
        if newer is None:
            return False
        version = _only(line, b'"resourceVersion":"').decode("latin-1")
        superseded = 0 < version_number(version) <= newer
        self.left_out += superseded
        return superseded


def _only(line: bytes, key: bytes) -> bytes:
    """The text of a key that occurs once in a line, else b"". A match cannot lie inside
    a JSON string, whose quotation marks are escaped."""
    at = line.find(key)
    if at < 0 or line.find(key, at + 1) >= 0:
        return b""
    at += len(key)
    return line[at : line.find(b'"', at)]


def decode(line: bytes) -> Event:
    """The event of a line.

    Raises:
        ApiError: for an ERROR event, or a line that is not an event.
    """
    try:
        event = parse(line)
        kind, obj = event["type"], event["object"]
    except (ValueError, KeyError, TypeError) as exc:
        raise ApiError(0, BROKEN, f"watch event: {exc}") from exc
    if not isinstance(obj, dict):
        raise ApiError(0, BROKEN, "watch event: no object")
    if kind == "ERROR":
        code = obj.get("code")
        raise ApiError(
            code if isinstance(code, int) else 0,
            str(obj.get("reason") or ""),
            str(obj.get("message") or "watch error"),
        )
    return kind, obj
