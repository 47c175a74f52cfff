# Sets of small integers as the bits of an int: fast for thousands of nodes.
# SPDX-License-Identifier: LGPL-3.0-only
"""Helpers for integers used as sets."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator

_IDS = re.compile(r"(0|[1-9][0-9]*)(?:-(0|[1-9][0-9]*))?", re.ASCII)
_IN_BYTE = [tuple(bit for bit in range(8) if byte >> bit & 1) for byte in range(256)]


def of(numbers: Iterable[int]) -> int:
    """The set of these numbers."""
    # Bytes first: setting bits of a long int one by one is quadratic.
    numbers = list(numbers)
    if not numbers:
        return 0
    data = bytearray(max(numbers) // 8 + 1)
    for number in numbers:
        data[number >> 3] |= 1 << (number & 7)
    return int.from_bytes(data, "little")


def of_ids(idset: str, below: int) -> int:
    """The ids of an RFC 22 idset that are less than ``below``. Others are ignored, as a
    few characters can name billions. Raises ValueError."""
    text = idset[1:-1] if idset.startswith("[") and idset.endswith("]") else idset
    result = after = 0
    for part in filter(None, text.split(",")):
        match = _IDS.fullmatch(part)
        if not match:
            raise ValueError(f"{part[:60]!r} is not a range of ids")
        low = int(match[1][:18])
        high = low if match[2] is None else int(match[2][:18])
        if low < after or (match[2] is not None and high <= low):
            raise ValueError(f"{part[:60]!r} is out of order")
        after = high + 1
        if low < below:
            result |= (1 << min(after, below)) - (1 << low)
    return result


def members(mask: int) -> Iterator[int]:
    """The numbers in the set, ascending."""
    for index, byte in enumerate(mask.to_bytes((mask.bit_length() + 7) // 8, "little")):
        if byte:
            base = index << 3
            for bit in _IN_BYTE[byte]:
                yield base + bit


def count(mask: int) -> int:
    """The number of members."""
    return bin(mask).count("1")


# Cached for sets of cores, which are few and recur, unlike sets of nodes.
count_cores = functools.lru_cache(maxsize=4096)(count)


def lowest(mask: int, n: int) -> int:
    """The subset of the ``n`` lowest numbers (all, if there are fewer)."""
    result: list[int] = []
    for number in members(mask):
        if len(result) == n:
            break
        result.append(number)
    return of(result)


lowest_cores = functools.lru_cache(maxsize=4096)(lowest)


class Levels:
    """Sets of members by their amount of one resource: value -> set of members."""

    def __init__(self) -> None:
        self._masks: dict[int, int] = {}

    def copy(self) -> Levels:
        new = Levels()
        new._masks = dict(self._masks)
        return new

    def move(self, members: int, old: int | None, new: int | None) -> None:
        """Move members from one value to another. None stands for no set."""
        if old == new:
            return
        if old is not None:
            left = self._masks[old] & ~members
            if left:
                self._masks[old] = left
            else:
                del self._masks[old]
        if new is not None:
            self._masks[new] = self._masks.get(new, 0) | members

    def at_least(self, value: int) -> int:
        """The members that have this value or more."""
        result = 0
        for key, mask in self._masks.items():
            if key >= value:
                result |= mask
        return result

    def ascending(self, value: int) -> Iterator[tuple[int, int]]:
        """(value, members) for values of at least ``value``, ascending."""
        for key in sorted(self._masks):
            if key >= value:
                yield key, self._masks[key]
