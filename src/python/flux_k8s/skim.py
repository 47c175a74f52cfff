# SPDX-License-Identifier: LGPL-3.0-only
#
# What the API server sends, as text of which libdws picks what the agent looks at, so
# that no object has to be decoded.
"""Objects, events and lists without a JSON parser."""

from __future__ import annotations

from typing import Any, NamedTuple

from flux_k8s._dws import ffi, lib

# What is looked for in an object's text, and the text without managedFields.
Found = tuple[dict[str, Any], bytes]

PARTS = int(lib.DWS_TEXT_PARTS)
EVENTS = ("", "ADDED", "MODIFIED", "DELETED", "BOOKMARK")


def _found(text: bytes, parts: list[int]) -> Found:
    """Args:
    parts: as in text.h.
    """
    at, size, k, kind, n, name, s, space, v, version, d, deleted, m, managed = parts
    metadata: dict[str, Any] = {}
    if name:
        metadata["name"] = text[n : n + name].decode()
    if space:
        metadata["namespace"] = text[s : s + space].decode()
    if version:
        metadata["resourceVersion"] = text[v : v + version].decode()
    if deleted:
        metadata["deletionTimestamp"] = text[d : d + deleted].decode()
    found: dict[str, Any] = {"metadata": metadata}
    if kind:
        found["kind"] = text[k : k + kind].decode()
    if managed:
        return found, text[at:m] + text[m + managed : at + size]
    return found, text[at : at + size]


def skim(text: bytes) -> Found | None:
    """Of an object's text as Kubernetes has it: its kind and, of its metadata, name,
    namespace, resourceVersion and deletionTimestamp, where they are there; and the text
    without managedFields. None if it has to be decoded to be sure."""
    parts = ffi.new("size_t[]", PARTS)
    if lib.dws_text_skim(text, len(text), parts) < 0:
        return None
    return _found(text, ffi.unpack(parts, PARTS))


class Events(NamedTuple):
    """Of the text of a watch: its events, each with its type and what skim() has of its
    object, or with "" and a line that has to be decoded; how many have come, with those
    that were left out; and what is there of the next line."""

    events: list[tuple[str, dict[str, Any], bytes]]
    seen: int
    rest: bytes


def skim_events(text: bytes, newest: bool) -> Events:
    """Args:
    newest: of the events of one object only the last, but for what ends
        an object.
    """
    most = text.count(b"\n")
    step = 1 + PARTS
    parts = ffi.new("size_t[]", step * most)
    seen, used = ffi.new("size_t *"), ffi.new("size_t *")
    count = lib.dws_text_events(text, len(text), newest, parts, most, seen, used)
    if count < 0:
        raise MemoryError
    numbers = ffi.unpack(parts, step * count)
    events = [
        (EVENTS[numbers[i]], *_found(text, numbers[i + 1 : i + step]))
        for i in range(0, step * count, step)
    ]
    return Events(events, seen[0], text[used[0] :])


class Listed(NamedTuple):
    """Of the text of a list: what skim() has of each item; its resourceVersion, and
    where it goes on ("": nowhere)."""

    items: list[Found]
    version: str
    more: str


def skim_list(text: bytes, limit: int) -> Listed | None:
    """None if it has to be decoded to be sure.

    Args:
        limit: how many items there are at most, if the server does as it was told.
    """
    head = ffi.new("size_t[4]")
    parts = ffi.new("size_t[]", PARTS * limit)
    count = lib.dws_text_list(text, len(text), head, parts, limit)
    if count > limit:
        return skim_list(text, count)
    if count < 0:
        return None
    numbers = ffi.unpack(parts, PARTS * count)
    items = [
        _found(text, numbers[i : i + PARTS]) for i in range(0, PARTS * count, PARTS)
    ]
    v, version, m, more = head
    return Listed(items, text[v : v + version].decode(), text[m : m + more].decode())
