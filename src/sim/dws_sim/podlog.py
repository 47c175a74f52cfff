# Stores the output of containers by line with its time, as a container runtime does,
# and serves it as an API server does.
# SPDX-License-Identifier: LGPL-3.0-only
"""Logs of containers."""

from __future__ import annotations

import datetime
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dws_sim import errors

LOG_BYTES = 1 << 20


@dataclass(frozen=True)
class Line:
    """A line with its newline, and when it came (ns since the epoch)."""

    at_ns: int
    text: bytes

    @property
    def stamp(self) -> bytes:
        seconds, rest = divmod(self.at_ns, 1_000_000_000)
        when = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
        return f"{when:%Y-%m-%dT%H:%M:%S}.{rest:09d}Z ".encode()


class Output:
    """The last lines that a container has printed. No two have the same time."""

    def __init__(self) -> None:
        self._lines: deque[Line] = deque()
        self._part = b""
        self._size = 0
        self._last_ns = 0

    def add(self, data: bytes) -> None:
        """Take in what has been printed. A line is kept when it is complete."""
        *whole, part = (self._part + data).split(b"\n")
        self._part = part[-LOG_BYTES:]
        for text in whole:
            self._keep(text + b"\n")

    def close(self) -> None:
        """End the log: store a last line without newline."""
        if self._part:
            self._keep(self._part)
        self._part = b""

    def _keep(self, text: bytes) -> None:
        self._last_ns = max(self._last_ns + 1, time.time_ns())
        self._lines.append(Line(self._last_ns, text))
        self._size += len(text)
        while self._size > LOG_BYTES and len(self._lines) > 1:
            self._size -= len(self._lines.popleft().text)

    def lines(self) -> list[Line]:
        return list(self._lines)


def _number(query: Mapping[str, str], key: str, least: int) -> int | None:
    if key not in query:
        return None
    text = query[key]
    if not (text.isascii() and text.isdigit()) or int(text) < least:
        raise errors.bad_request(f"{key} must be a number, {least} or more")
    return int(text)


def served(lines: Iterable[Line], query: Mapping[str, str]) -> bytes:
    """The part of a log that a request asks for. Raises ApiError."""
    since_s = _number(query, "sinceSeconds", 1)
    tail = _number(query, "tailLines", 0)
    limit = _number(query, "limitBytes", 1)
    found = list(lines)
    if since_s is not None:
        begin_ns = time.time_ns() - since_s * 1_000_000_000
        found = [line for line in found if line.at_ns >= begin_ns]
    if tail is not None:
        found = found[len(found) - min(tail, len(found)) :]
    stamps = query.get("timestamps") == "true"
    data = b"".join((line.stamp if stamps else b"") + line.text for line in found)
    return data if limit is None else data[:limit]
