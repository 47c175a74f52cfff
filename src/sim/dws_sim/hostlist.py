# RFC 29 hostlists, as far as names with one bracketed range list need them.
# SPDX-License-Identifier: LGPL-3.0-only
"""Expand and compress lists of host names."""

from __future__ import annotations

import re
from collections.abc import Iterable

_ITEM = re.compile(r"([^,\[\]]*)(?:\[([^\[\]]*)\])?([^,\[\]]*)(?:,|$)")
_TAIL = re.compile(r"^(.*?)(\d*)$")


def expand(text: str) -> list[str]:
    """The names of a hostlist such as "node[0-3,7],login1".

    Raises:
        ValueError: it is malformed.
    """
    names: list[str] = []
    at = 0
    while at < len(text):
        match = _ITEM.match(text, at)
        if not match or match.end() == at:
            raise ValueError(f"malformed hostlist {text!r}")
        at = match.end()
        prefix, ranges, suffix = match.groups()
        if ranges is None:
            if prefix.strip():
                names.append(prefix.strip())
            continue
        for part in ranges.split(","):
            low, dash, high = part.partition("-")
            high = high if dash else low
            if not (low.isdigit() and high.isdigit()) or int(high) < int(low):
                raise ValueError(f"malformed range {part!r} in hostlist {text!r}")
            names.extend(
                f"{prefix}{n:0{len(low)}d}{suffix}"
                for n in range(int(low), int(high) + 1)
            )
    return names


def compress(names: Iterable[str]) -> str:
    """A hostlist of the names, sorted by number within a prefix."""
    groups: dict[tuple[str, int], list[int]] = {}
    single: list[str] = []
    for name in names:
        match = _TAIL.match(name)
        prefix, digits = match.groups() if match else (name, "")
        if not digits:
            single.append(name)
            continue
        # numbers with leading zeros only join those of the same width
        width = len(digits) if digits[0] == "0" and len(digits) > 1 else 0
        groups.setdefault((prefix, width), []).append(int(digits))
    parts = []
    for (prefix, width), numbers in groups.items():
        spans: list[list[int]] = []
        for n in sorted(set(numbers)):
            if spans and n == spans[-1][1] + 1:
                spans[-1][1] = n
            else:
                spans.append([n, n])
        texts = [
            f"{a:0{width}d}" if a == b else f"{a:0{width}d}-{b:0{width}d}"
            for a, b in spans
        ]
        if len(texts) == 1 and "-" not in texts[0]:
            parts.append(prefix + texts[0])
        else:
            parts.append(f"{prefix}[{','.join(texts)}]")
    return ",".join(parts + single)
