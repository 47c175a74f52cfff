# The drives of rabbits, and their allocations: an allocation is spread evenly over
# the freest drives, and limited by these, whatever is free on others.
# SPDX-License-Identifier: LGPL-3.0-only
"""Drives."""

from __future__ import annotations

from collections.abc import Iterable

# Slots of a rabbit's drives, in the order in which its fabric finds them.
SLOTS = (8, 7, 15, 16, 17, 18, 14, 13, 12, 4, 5, 6, 2, 1, 9, 10, 11, 3)
DRIVES = len(SLOTS)
# Number of drives of each allocation; a rabbit with fewer drives has none.
WANTED = 16
LEAST = 14
BLOCK = 4096


class NoRoomError(Exception):
    """An allocation that does not fit; the message is that of the drives."""


def drive_sizes(capacity: int) -> dict[int, int]:
    """Bytes that each drive of a rabbit holds, by slot; the sum is capacity."""
    least, rest = divmod(capacity, DRIVES)
    return {slot: least + (i < rest) for i, slot in enumerate(SLOTS)}


def usable(capacity: int) -> int:
    """Bytes that allocations can have in all of a rabbit of that capacity."""
    least = sorted(drive_sizes(capacity).values())[-WANTED]
    return least // BLOCK * BLOCK * WANTED


class Drives:
    """The drives of one rabbit."""

    def __init__(self, capacity: int) -> None:
        self._free = drive_sizes(capacity)

    @property
    def free(self) -> int:
        """Bytes that no allocation has."""
        return sum(self._free.values())

    def take(self, size: int, failed: Iterable[int] = ()) -> dict[int, int]:
        """Make an allocation of a size or a little more: bytes by slot.

        Raises:
            NoRoomError: it does not fit.
        """
        slots = sorted(
            (s for s, left in self._free.items() if left > 0 and s not in failed),
            key=lambda s: -self._free[s],
        )[:WANTED]
        count = len(slots)
        if count < LEAST:
            raise NoRoomError(
                f"Insufficient drive count. Required: {LEAST} Available: {count}"
            )
        each = -(-size // count)
        each = -(-each // BLOCK) * BLOCK
        for slot in slots:
            if each > self._free[slot]:
                raise NoRoomError(
                    f"Insufficient drive capacity available. Requested: {each} "
                    f"Available: {self._free[slot]}"
                )
        for slot in slots:
            self._free[slot] -= each
        return dict.fromkeys(slots, each)

    def give(self, parts: dict[int, int]) -> None:
        """Free an allocation."""
        for slot, size in parts.items():
            self._free[slot] += size


class Ledger:
    """Allocations on all rabbits. Each has an owner, and a name that is unique for the
    owner.

    Attributes:
        recovered: whether allocations from before a restart are entered.
    """

    def __init__(self, capacity: int, rabbits: Iterable[str]) -> None:
        self.recovered = False
        self._drives = {rabbit: Drives(capacity) for rabbit in rabbits}
        self._parts: dict[str, dict[tuple[str, str], dict[int, int]]] = {}

    def __contains__(self, rabbit: str) -> bool:
        return rabbit in self._drives

    def free(self, rabbit: str) -> int:
        return self._drives[rabbit].free

    def total(self) -> dict[str, int]:
        """Allocated bytes by rabbit, without the empty ones."""
        out: dict[str, int] = {}
        for owned in self._parts.values():
            for (rabbit, _), parts in owned.items():
                out[rabbit] = out.get(rabbit, 0) + sum(parts.values())
        return dict(sorted(out.items()))

    def taken(self, owner: str, rabbit: str, name: str) -> int:
        """Bytes of an allocation, or 0."""
        return sum(self._parts.get(owner, {}).get((rabbit, name), {}).values())

    def take(
        self, owner: str, rabbit: str, name: str, size: int, failed: Iterable[int] = ()
    ) -> int:
        """Make an allocation; once is enough. Returns its bytes.

        Raises:
            NoRoomError: it does not fit.
        """
        owned = self._parts.setdefault(owner, {})
        if (rabbit, name) not in owned:
            owned[(rabbit, name)] = self._drives[rabbit].take(size, failed)
        return self.taken(owner, rabbit, name)

    def give(self, owner: str) -> None:
        """Free all that an owner has."""
        for (rabbit, _), parts in self._parts.pop(owner, {}).items():
            self._drives[rabbit].give(parts)
