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
            reads, and of consecutive changes to an object the last (see newest_of()).
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
        events: list[Event] = []
        superseding: dict[bytes, int] = {}
        left_out = 0
        error = None
        for line in reversed(lines):
            if not line.strip():
                continue
            if superseding and _is_passed_over(line, superseding):
                left_out += 1
                continue
            try:
                event = self._decode(line)
            except ApiError as exc:
                events, superseding, left_out, error = [], {}, 0, exc
                continue
            events.append(event)
            if self._plural:
                _note(event, superseding)
        events.reverse()
        if self._plural and len(events) > 1:
            seen = len(events)
            events = newest_of(events)
            left_out += seen - len(events)
        if left_out:
            self._left_out(left_out)
        yield from events
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


def _uid_of(obj: Object) -> Any:
    return metadata_of(obj).get("uid")


def _note(event: Event, superseding: dict[bytes, int]) -> None:
    """Record the version of a MODIFIED object by uid, which supersedes earlier lines
    about the object; any other change ends that."""
    kind, obj = event
    uid = _uid_of(obj)
    if kind not in CHANGES or not isinstance(uid, str):
        return
    if kind == "MODIFIED":
        superseding[uid.encode()] = version_of(obj)
    else:
        superseding.pop(uid.encode(), None)


def _is_passed_over(line: bytes, superseding: dict[bytes, int]) -> bool:
    """Whether newest_of() would drop the event of a line, by its bytes: saves decoding
    a fifth of the events in a storm. Without certainty the line is decoded."""
    if not line.startswith(b'{"type":"MODIFIED",'):
        return False
    newer = superseding.get(_only(line, b"uid"), 0)
    version = _only(line, b"resourceVersion")
    return 0 < version_number(version.decode("latin-1")) <= newer


def _only(line: bytes, key: bytes) -> bytes:
    """The text of a key that occurs once in a line, else b"". A match cannot lie inside
    a JSON string, whose quotation marks are escaped."""
    parts = line.split(b'"%s":"' % key)
    return parts[1].split(b'"', 1)[0] if len(parts) == 2 else b""


def newest_of(events: list[Event]) -> list[Event]:
    """Drop superseded events: the next event of the same object (and uid) is MODIFIED
    and not of a lower version. The next one becomes ADDED if the dropped one was."""
    left: list[Event] = []
    nexts: dict[Any, int] = {}  # where the next event of an object is in `left`
    for kind, obj in reversed(events):
        if kind not in CHANGES:
            left.append((kind, obj))
            continue
        key = name_of(obj)
        at = nexts.get(key)
        if at is not None and _is_superseded(kind, obj, *left[at]):
            left[at] = kind, left[at][1]
        else:
            nexts[key] = len(left)
            left.append((kind, obj))
    left.reverse()
    return left


def _is_superseded(
    kind: str, obj: dict[str, Any], next_kind: str, next_obj: dict[str, Any]
) -> bool:
    return (
        next_kind == "MODIFIED"
        and kind in ("ADDED", "MODIFIED")
        and _uid_of(obj) == _uid_of(next_obj)
        and not 0 < version_of(next_obj) < version_of(obj)
    )


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
