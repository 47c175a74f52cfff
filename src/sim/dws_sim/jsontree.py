# Copies, encodes and reads JSON trees. Objects in the store are shared between readers
# and never changed in place: a writer changes a copy.
# SPDX-License-Identifier: LGPL-3.0-only
"""Helpers for trees of JSON values."""

from __future__ import annotations

import functools
import time
from datetime import datetime
from typing import Any

import orjson

Object = dict[str, Any]
# Deeper trees than any sane object; orjson writes up to 254 levels.
MAX_DEPTH = 200


def clone(value: Any) -> Any:
    """A deep copy of a JSON value (much faster than copy.deepcopy)."""
    if isinstance(value, dict):
        return {k: clone(v) for k, v in value.items()}
    if isinstance(value, list):
        return [clone(v) for v in value]
    return value


def edit(obj: Object, *parts: str) -> Object:
    """A copy of a stored object whose named parts may be changed. The other
    parts stay shared with it, by which the store knows that they are as before.
    """
    out = dict(obj)
    for part in parts:
        if part in out:
            out[part] = clone(out[part])
    return out


def encode(value: Any) -> bytes:
    """Compact JSON text."""
    return orjson.dumps(value)


def decode(text: bytes) -> Any:
    """A JSON value from outside.

    Raises:
        ValueError: it is not JSON, or nested too deeply.
    """
    value = orjson.loads(text)
    if text.count(b"[") + text.count(b"{") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise ValueError(f"nested more than {MAX_DEPTH} levels deep")
    return value


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level:
        depth += 1
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
        level = below
    return depth


def number(text: str) -> int | None:
    """A decimal number of a size that a client can mean, or None."""
    # isdigit() alone is true of superscripts
    if text.isascii() and text.isdigit() and len(text) < 19:
        return int(text)
    return None


def dig(value: Any, *path: str) -> Any:
    """The value below a path of keys, or None when a step is missing."""
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


@functools.lru_cache(maxsize=4)
def _second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


def now_seconds() -> str:
    """The time as Kubernetes writes metadata times."""
    return _second(int(time.time())) + "Z"


def now_micro() -> str:
    """The time as DWS writes status times."""
    seconds, micro = divmod(time.time_ns() // 1000, 1000000)
    return f"{_second(seconds)}.{micro:06}Z"


def parse_time(text: str) -> float:
    """Seconds since the epoch of either kind of time.

    Raises:
        ValueError: it is no such time.
    """
    if not text.endswith("Z"):
        raise ValueError(f"no UTC time: {text!r}")
    return datetime.fromisoformat(text[:-1] + "+00:00").timestamp()
