# The events of a watch, out of the text that comes.
# SPDX-License-Identifier: LGPL-3.0-only
"""Events of watches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Callable

from flux_k8s.errors import BROKEN, ApiError
from flux_k8s.objects import Object, parse
from flux_k8s.skim import skim_events
from flux_k8s.transport import ANSWER_BYTES, NoAnswer, Stream

# No event is longer than the object in it.
EVENT_BYTES = ANSWER_BYTES


class WatchStream:
    """The events of one watch request, as (type, object) pairs."""

    def __init__(
        self,
        stream: Stream,
        newest: bool,
        left_out: Callable[[int], None] = lambda count: None,
        broken: Callable[[], None] = lambda: None,
        decoded: Callable[[], None] = lambda: None,
    ) -> None:
        """Args:
        newest: of the events of an object that come together only the last, but
            for that of its end and what was before that.
        left_out: called with how many that were not.
        broken: called when the connection breaks.
        decoded: called for each that had to be.
        """
        self._stream = stream
        self._newest = newest
        self._left_out = left_out
        self._broken = broken
        self._decoded = decoded
        # of a line that has not come to its end
        self._pending: list[bytes] = []
        self._pending_size = 0

    async def next(self) -> Iterator[tuple[str, Object]] | None:
        """Those that come next; None when the server, or close(), has ended it.
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
        text = b"".join(self._pending)
        events, seen, rest = skim_events(text, self._newest)
        self._pending, self._pending_size = [rest], len(rest)
        if seen > len(events):
            self._left_out(seen - len(events))
        return (
            (kind, Object(found, text)) if kind else self._decode(text)
            for kind, found, text in events
        )

    def _decode(self, line: bytes) -> tuple[str, Object]:
        event = decode(line)
        self._decoded()
        return event

    def _wait_for_more(self, size: int) -> Iterator[tuple[str, Object]]:
        self._pending_size += size
        if self._pending_size > EVENT_BYTES:
            raise ApiError(0, BROKEN, "watch event: it does not end")
        return iter(())

    def close(self) -> None:
        """End the stream, also while a coroutine reads it."""
        self._stream.close()


def decode(line: bytes) -> tuple[str, Object]:
    """The event of a line that skim_events() does not know enough about.

    Raises:
        ApiError: it is that of an ERROR event, or the line is not one.
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
    return kind, Object(obj)
