# SPDX-License-Identifier: LGPL-3.0-only
#
# Formats bytes and seconds for people, and parses durations that Go programs write.
"""Units."""

from __future__ import annotations

import re
import time

_BYTES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_GO_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6}
_GO_UNITS["ns"] = 1e-9
_GO_PART = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|h|m|s)")


class Size(int):
    """Bytes: a number that prints as "1.5TiB", and as a number with a numeric
    format, such as {capacity:d}."""

    def __str__(self) -> str:
        value = float(self)
        index = 0
        while abs(value) >= 1024 and index < len(_BYTES) - 1:
            value /= 1024
            index += 1
        digits = 0 if index == 0 or value >= 100 else 1
        return f"{value:.{digits}f}{_BYTES[index]}"

    def __format__(self, spec: str) -> str:
        if spec and spec[-1] in "bcdeEfFgGnoxX":
            return int.__format__(self, spec)
        return format(str(self), spec)


class Seconds(float):
    """A duration that prints as "1.5s" or "2h05m"."""

    def __str__(self) -> str:
        return duration(float(self))

    def __format__(self, spec: str) -> str:
        if spec and spec[-1] in "eEfFgG":
            return float.__format__(self, spec)
        return format(str(self), spec)


def date(seconds: float) -> str:
    """A time (s since the epoch) as local date and time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def duration(seconds: float) -> str:
    """Seconds in at most two units."""
    if seconds < 0:
        return "-" + duration(-seconds)
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f}ms"
    if seconds < 9.995:
        return f"{seconds:.2f}s"
    if seconds < 59.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02}m"
    return f"{whole // 86400}d{whole % 86400 // 3600:02}h"


def go_duration(text: str) -> float | None:
    """Seconds of a Go duration such as "2m3.5s"; None for any other text."""
    total = 0.0
    position = 0
    for match in _GO_PART.finditer(text):
        if match.start() != position:
            return None
        total += float(match[1]) * _GO_UNITS[match[2]]
        position = match.end()
    return total if text and position == len(text) else None


def percent(part: float, whole: float) -> str:
    """ "12%", or "" of nothing."""
    return f"{100 * part / whole:.0f}%" if whole > 0 else ""
