# The parts of machine.py: nodes, rabbits, and the allocations of jobs.
# SPDX-License-Identifier: LGPL-3.0-only
"""Nodes, rabbits, allocations. Sets of cores and gpus are bit masks."""

from __future__ import annotations

from dataclasses import dataclass, field

from . import bits


class Node:
    """A compute node."""

    __slots__ = ("rank", "host", "cores", "gpus", "free_cores", "free_gpus")

    def __init__(self, rank: int, host: str, cores: int, gpus: int) -> None:
        self.rank = rank
        self.host = host
        self.cores = self.free_cores = cores
        self.gpus = self.free_gpus = gpus

    def copy(self) -> Node:
        new = Node(self.rank, self.host, self.cores, self.gpus)
        new.free_cores = self.free_cores
        new.free_gpus = self.free_gpus
        return new


class Rabbit:
    """A rabbit and the nodes next to it. ``rank`` is the rabbit's own rank if it is
    also a storage node."""

    __slots__ = ("name", "rank", "capacity_gib", "free_gib", "up", "_low", "nodes")

    def __init__(
        self, name: str, rank: int | None, capacity_gib: int, nodes: int
    ) -> None:
        self.name = name
        self.rank = rank
        self.capacity_gib = self.free_gib = capacity_gib
        self.up = True
        # Shifted, as most rabbits have consecutive ranks: short ints are faster.
        self._low = (nodes & -nodes).bit_length() - 1 if nodes else 0
        self.nodes = nodes >> self._low  # bit 0 is the first node

    def copy(self) -> Rabbit:
        new = Rabbit(self.name, self.rank, self.capacity_gib, self.nodes << self._low)
        new.free_gib = self.free_gib
        new.up = self.up
        return new

    def among(self, nodes: int) -> int:
        """The nodes of this rabbit in ``nodes``; bit 0 is the rabbit's first node."""
        return nodes >> self._low & self.nodes

    def place(self, mine: int) -> int:
        """A result of among() as a set of ranks."""
        return mine << self._low


@dataclass
class Allocation:
    """The resources of a job: cores and gpus by rank, GiB by rabbit. ``beside`` has
    GiB by a host next to a rabbit that is not known yet."""

    nodes: dict[int, tuple[int, int]] = field(default_factory=dict)
    gib: dict[str, int] = field(default_factory=dict)
    beside: dict[str, int] = field(default_factory=dict)
    nslots: int = 0
    t_end: float = 0.0  # s since the epoch, 0: unknown

    def copy(self) -> Allocation:
        return Allocation(
            dict(self.nodes),
            dict(self.gib),
            dict(self.beside),
            self.nslots,
            self.t_end,
        )


class Changes:
    """Changes of free cores and gpus, grouped so that Machine updates its sets once
    for each group and not for each node."""

    def __init__(self) -> None:
        self.cores: dict[tuple[int, int], list[int]] = {}
        self.gpus: dict[tuple[int, int], list[int]] = {}
        self.idle: list[int] = []
        self.busy: list[int] = []

    def set(self, node: Node, free_cores: int, free_gpus: int) -> None:
        count = bits.count_cores
        if free_cores != node.free_cores:
            change = (count(node.free_cores), count(free_cores))
            self.cores.setdefault(change, []).append(node.rank)
        if free_gpus != node.free_gpus:
            change = (count(node.free_gpus), count(free_gpus))
            self.gpus.setdefault(change, []).append(node.rank)
        node.free_cores = free_cores
        node.free_gpus = free_gpus
        idle = free_cores == node.cores and free_gpus == node.gpus
        (self.idle if idle else self.busy).append(node.rank)
