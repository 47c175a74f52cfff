# The state of the machine: free and allocated nodes, cores, gpus and GiB of rabbits.
# pool.py commits and releases allocations, plan.py works on copies.
# SPDX-License-Identifier: LGPL-3.0-only
"""The allocator. Sets of nodes are bit masks over ranks, sets of cores and gpus bit
masks over their numbers. GiB are exact: allocations of a rabbit never exceed its
whole GiB.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Callable

from flux_k8s import names

from . import bits, constraint, reasons
from .parts import Allocation, Changes, Node, Rabbit
from .request import Request

__all__ = ["NOBODY", "Allocation", "Machine", "Node"]

# In hold(): the holder of persistent storage and of other clients' storage.
NOBODY = 1 << 64  # the id of no job

# Constraints whose nodes are cached: more than in most queues, as a pass over the queue
# needs all of them.
MATCHING_MAX = 20000


class _Lasting:
    """A view of the machine without properties set by set_property()."""

    def __init__(self, machine: Machine) -> None:
        self.all_nodes = machine.all_nodes
        self.with_property = machine.with_lasting_property
        self.with_hosts = machine.with_hosts
        self.with_ranks = machine.with_ranks


class Machine:
    """The nodes and rabbits with their allocations. Not thread safe."""

    def __init__(
        self,
        nodes: Iterable[Node],
        properties: Mapping[str, Iterable[int]] | None = None,
        rabbits: Mapping[str, tuple[int, Iterable[str]]] | None = None,
        expand_hosts: Callable[[str], Iterable[str]] = lambda s: s.split(","),
    ) -> None:
        """``rabbits`` maps a name to its GiB and hosts. Hosts that are not nodes are
        ignored. A node with the name of a rabbit is a storage node. Raises ValueError
        if two rabbits claim a host.
        """
        self.nodes = {node.rank: node for node in nodes}
        self.all_nodes = bits.of(self.nodes)
        self.up = self.all_nodes
        self.idle = self.all_nodes
        self.allocations: dict[int, Allocation] = {}
        self.held: dict[int, dict[str, int]] = {}  # see hold()
        self._ranks_of: dict[str, list[int]] = {}  # by host, which may have several
        for node in self.nodes.values():
            self._ranks_of.setdefault(node.host, []).append(node.rank)
        self._properties = {k: bits.of(v) for k, v in (properties or {}).items()}
        self._lasting = dict(self._properties)  # without set_property()
        self._expand_hosts = expand_hosts
        self._matching: dict[tuple[str, bool], int] = {}  # constraint -> nodes
        self._cores = bits.Levels()
        self._gpus = bits.Levels()
        self._fill(self._cores, {n.rank: n.cores for n in self.nodes.values()})
        self._fill(self._gpus, {n.rank: n.gpus for n in self.nodes.values()})
        self._free_cores = self._cores.copy()
        self._free_gpus = self._gpus.copy()
        self.rabbits: dict[str, Rabbit] = {}
        self.rabbit_of: dict[int, Rabbit] = {}  # by rank
        self.storage_nodes = 0
        self._told: dict[str, tuple[bool | None, int | None]] = {}  # set_rabbit()
        self.set_rabbits(rabbits or {})

    @staticmethod
    def _fill(levels: bits.Levels, have: dict[int, int]) -> None:
        by_count: dict[int, list[int]] = {}
        for rank, mask in have.items():
            by_count.setdefault(bits.count_cores(mask), []).append(rank)
        for count, ranks in by_count.items():
            levels.move(bits.of(ranks), None, count)

    def set_rabbits(self, rabbits: Mapping[str, tuple[int, Iterable[str]]]) -> None:
        """Replace all rabbits. Health from set_rabbit(), allocations of jobs and held
        GiB stay in force. Raises ValueError, and changes nothing, if two rabbits claim
        a host."""
        made: dict[str, Rabbit] = {}
        rabbit_of: dict[int, Rabbit] = {}
        storage_nodes = 0
        for name, (capacity_gib, hosts) in rabbits.items():
            ranks = self._ranks(hosts)
            own = self._ranks([name])
            made[name] = Rabbit(
                name, own[0] if own else None, capacity_gib, bits.of(ranks)
            )
            storage_nodes |= bits.of(own)
            for rank in ranks:
                other = rabbit_of.setdefault(rank, made[name])
                if other is not made[name]:
                    host = self.nodes[rank].host
                    raise ValueError(f"{host} belongs to {other.name} and to {name}")
        self.rabbits = made
        self.rabbit_of = rabbit_of
        self.storage_nodes = storage_nodes
        for name, (up, gib) in self._told.items():
            self._apply_health(name, up, gib)
        for alloc in self.allocations.values():
            self._find_rabbits(alloc)
        for jobid in self.allocations.keys() | self.held.keys():
            self._give(self._takes(jobid), -1)

    def _find_rabbits(self, alloc: Allocation) -> None:
        for host, gib in list(alloc.beside.items()):
            rabbit = next(map(self.rabbit_of.get, self._ranks([host])), None)
            if rabbit is not None:
                alloc.gib[rabbit.name] = alloc.gib.get(rabbit.name, 0) + gib
                del alloc.beside[host]

    def copy(self) -> Machine:
        """An independent copy, to plan on."""
        new = object.__new__(Machine)
        new.__dict__.update(self.__dict__)
        new.nodes = {rank: node.copy() for rank, node in self.nodes.items()}
        new.allocations = {
            jobid: alloc.copy() for jobid, alloc in self.allocations.items()
        }
        new.held = dict(self.held)
        new._told = dict(self._told)
        new._free_cores = self._free_cores.copy()
        new._free_gpus = self._free_gpus.copy()
        new.rabbits = {name: rabbit.copy() for name, rabbit in self.rabbits.items()}
        new.rabbit_of = {
            rank: new.rabbits[rabbit.name] for rank, rabbit in self.rabbit_of.items()
        }
        return new

    def idle_copy(self, held: bool = False, outside: bool = True) -> Machine:
        """A copy without allocations, in which down nodes and rabbits stay down. Held
        GiB stay for jobs with ``held``, and for others with ``outside``."""
        new = object.__new__(Machine)
        new.__dict__.update(self.__dict__)
        new.nodes = {
            rank: Node(rank, node.host, node.cores, node.gpus)
            for rank, node in self.nodes.items()
        }
        new.allocations = {}
        new.held = {}
        new.idle = self.all_nodes
        new._free_cores = self._cores.copy()
        new._free_gpus = self._gpus.copy()
        new.rabbits = {name: rabbit.copy() for name, rabbit in self.rabbits.items()}
        for rabbit in new.rabbits.values():
            rabbit.free_gib = rabbit.capacity_gib
        for jobid, gib in self.held.items():
            if outside if jobid == NOBODY else held:
                new.hold(jobid, gib)
        new.rabbit_of = {
            rank: new.rabbits[rabbit.name] for rank, rabbit in self.rabbit_of.items()
        }
        return new

    # Constraints (constraint.View)

    def with_property(self, name: str) -> int:
        return self._properties.get(name, 0)

    def with_hosts(self, hostlist: str) -> int:
        hosts = self._expand_hosts(hostlist)
        return bits.of(self._ranks(hosts))

    def _ranks(self, hosts: Iterable[str]) -> list[int]:
        return [rank for host in hosts for rank in self._ranks_of.get(host, ())]

    def with_ranks(self, idset: str) -> int:
        return bits.of_ids(idset, self.all_nodes.bit_length()) & self.all_nodes

    def matching(self, request: Request, ever: bool = False) -> int:
        """The nodes that the request's constraint admits, without those that lack a
        working rabbit if it needs one; with ``ever``, ignoring properties from
        set_property(), such as those of broken nodes. Raises ValueError if the
        constraint is malformed."""
        mask = self.all_nodes
        if request.constraint:
            mask = self._admitted(request.constraint, ever)
        if request.linked and not ever:
            mask &= ~self.with_property(names.BAD_PROPERTY)
        return mask

    def _admitted(self, text: str, ever: bool) -> int:
        key = (text, ever)
        mask = self._matching.get(key)
        if mask is None:
            view = _Lasting(self) if ever else self
            mask = constraint.evaluate(json.loads(text), view)
            if len(self._matching) >= MATCHING_MAX:
                self._matching.clear()
            self._matching[key] = mask
        return mask

    def part(self, request: Request) -> int:
        """The nodes that the request can use, and all nodes that share a rabbit with
        one of these."""
        mask = self.matching(request)
        if mask != self.all_nodes:
            for rabbit in self.rabbits.values():
                own = 0 if rabbit.rank is None else 1 << rabbit.rank
                if rabbit.among(mask) or mask & own:
                    mask |= rabbit.place(rabbit.nodes) | own
        return mask

    def with_lasting_property(self, name: str) -> int:
        return self._lasting.get(name, 0)

    # Availability

    def set_up(self, nodes: int, up: bool) -> None:
        """Mark nodes as up or not. Nodes that are not up (down, drained) are never
        allocated."""
        self.up = (self.up | nodes) if up else (self.up & ~nodes)
        self.up &= self.all_nodes

    def set_property(self, name: str, nodes: int) -> None:
        """Set the property on exactly these nodes."""
        self._properties[name] = nodes & self.all_nodes
        # Keep cached constraints on hosts or ranks, which may be long.
        self._matching = {
            key: mask
            for key, mask in self._matching.items()
            if '"properties"' not in key[0]
        }

    def set_rabbit(self, name: str, up: bool | None, capacity_gib: int | None) -> None:
        """Set the health of a rabbit; None leaves a value unchanged. A rabbit that is
        not up, or smaller than its allocations, provides no storage to new jobs. Values
        of an unknown rabbit apply when set_rabbits() adds it."""
        was_up, was_gib = self._told.get(name, (None, None))
        self._told[name] = (
            was_up if up is None else up,
            was_gib if capacity_gib is None else capacity_gib,
        )
        self._apply_health(name, up, capacity_gib)

    def _apply_health(self, name: str, up: bool | None, gib: int | None) -> None:
        rabbit = self.rabbits.get(name)
        if rabbit is None:
            return
        if up is not None:
            rabbit.up = up
        if gib is not None:
            rabbit.free_gib += gib - rabbit.capacity_gib
            rabbit.capacity_gib = gib

    def remove(self, ranks: Iterable[int]) -> None:
        """Remove nodes for good. Jobs on them keep their other nodes."""
        for rank in ranks:
            node = self.nodes.pop(rank, None)
            if node is None:
                continue
            bit = 1 << rank
            self._cores.move(bit, bits.count(node.cores), None)
            self._gpus.move(bit, bits.count(node.gpus), None)
            self._free_cores.move(bit, bits.count(node.free_cores), None)
            self._free_gpus.move(bit, bits.count(node.free_gpus), None)
            self._ranks_of[node.host].remove(rank)
            self.rabbit_of.pop(rank, None)
            self.storage_nodes &= ~bit
            self.all_nodes &= ~bit
            self.up &= ~bit
            self.idle &= ~bit
        self._matching.clear()

    # Allocation

    def find(
        self,
        request: Request,
        reserved: int = 0,
        limits: Mapping[str, int] | None = None,
    ) -> Allocation | None:
        """The allocation that the request would get now, or None. Excludes the
        ``reserved`` nodes, and GiB above ``limits`` by rabbit. Changes nothing."""
        eligible = self.up & self.matching(request) & ~reserved
        storage = eligible & self.storage_nodes
        eligible ^= storage
        alloc = self._find_computes(request, eligible, storage, limits or {})
        if alloc is None or request.storage_nodes == 0:
            return alloc
        return self._add_storage_nodes(request, storage, alloc)

    def _find_computes(
        self, request: Request, eligible: int, storage: int, limits: Mapping[str, int]
    ) -> Allocation | None:
        if request.groups == 0:
            return self._find_slots(request, eligible)
        if request.exclusive:
            eligible &= self.idle
            eligible &= self._cores.at_least(request.node_cores)
            eligible &= self._gpus.at_least(request.node_gpus)
        else:
            eligible &= self._free_cores.at_least(request.node_cores)
            if request.node_gpus:
                eligible &= self._free_gpus.at_least(request.node_gpus)
        if bits.count(eligible) < request.nodes:
            return None
        if request.needs_rabbits:
            return self._find_groups(request, eligible, storage, limits)
        return self._find_nodes(request, eligible)

    def _find_nodes(self, request: Request, eligible: int) -> Allocation:
        wanted = bits.count(eligible)
        if request.groups_max is not None:
            wanted = min(wanted, request.groups_max * request.group_nodes)
        wanted -= wanted % request.group_nodes
        if request.exclusive:
            return self._take(request, bits.lowest(eligible, wanted), {})
        # Fill the fullest nodes first, to keep idle ones whole.
        chosen = 0
        for _, nodes in self._free_cores.ascending(request.node_cores):
            part = bits.lowest(nodes & eligible, wanted)
            chosen |= part
            wanted -= bits.count(part)
            if wanted == 0:
                break
        return self._take(request, chosen, {})

    @staticmethod
    def room(request: Request, gib: int, mine: int) -> int:
        """The number of groups that fit on a rabbit with these GiB and nodes."""
        groups = bits.count(mine) // request.group_nodes
        if request.group_gib:
            groups = min(groups, gib // request.group_gib)
        return min(groups, 1) if request.distinct else groups

    def storage_room(
        self, request: Request, rank: int | None, storage: int, ever: bool = False
    ) -> int:
        """How many times the storage node satisfies the request; with ``ever``, when
        it is idle."""
        if rank is None or not storage >> rank & 1:
            return 0
        node = self.nodes[rank]
        if request.storage_cores == 0:
            return int(ever or bool(self.idle >> rank & 1))
        cores = node.cores if ever else node.free_cores
        return bits.count_cores(cores) // request.storage_cores

    def _take_storage_node(
        self, request: Request, rank: int, times: int
    ) -> tuple[int, int]:
        node = self.nodes[rank]
        if request.storage_cores == 0:
            return node.cores, node.gpus
        return bits.lowest_cores(node.free_cores, times * request.storage_cores), 0

    def _add_storage_nodes(
        self, request: Request, storage: int, alloc: Allocation
    ) -> Allocation | None:
        missing = request.storage_nodes
        for rank in bits.members(storage):
            if self.storage_room(request, rank, storage):
                alloc.nodes[rank] = self._take_storage_node(request, rank, 1)
                missing -= 1
                if missing == 0:
                    return alloc
        return None

    def _find_groups(
        self, request: Request, eligible: int, storage: int, limits: Mapping[str, int]
    ) -> Allocation | None:
        most = request.groups_max
        missing = len(self.nodes) if most is None else most
        found = 0
        chosen = 0
        gib: dict[str, int] = {}
        rabbits: dict[int, tuple[int, int]] = {}
        for rabbit in self.rabbits.values():
            if request.group_gib and not rabbit.up:
                continue
            free_gib = rabbit.free_gib
            if rabbit.name in limits:
                free_gib = min(free_gib, limits[rabbit.name])
            mine = rabbit.among(eligible)
            groups = min(self.room(request, free_gib, mine), missing)
            if request.group_storage:
                groups = min(groups, self.storage_room(request, rabbit.rank, storage))
            if groups <= 0:
                continue
            if request.group_storage and rabbit.rank is not None:
                rabbits[rabbit.rank] = self._take_storage_node(
                    request, rabbit.rank, groups
                )
            mine = bits.lowest(mine, groups * request.group_nodes)
            chosen |= rabbit.place(mine)
            if request.group_gib:
                gib[rabbit.name] = groups * request.group_gib
            found += groups
            missing -= groups
            if missing == 0:
                break
        if found < request.groups:
            return None
        alloc = self._take(request, chosen, gib)
        alloc.nodes.update(rabbits)
        return alloc

    def _take(self, request: Request, chosen: int, gib: dict[str, int]) -> Allocation:
        alloc = Allocation(gib=gib)
        for rank in bits.members(chosen):
            node = self.nodes[rank]
            if request.exclusive:
                alloc.nodes[rank] = (node.cores, node.gpus)
            else:
                alloc.nodes[rank] = (
                    bits.lowest_cores(node.free_cores, request.node_cores),
                    bits.lowest_cores(node.free_gpus, request.node_gpus),
                )
        alloc.nslots = request.node_slots * len(alloc.nodes)
        return alloc

    def _find_slots(self, request: Request, eligible: int) -> Allocation | None:
        alloc = Allocation()
        most = request.nslots_max
        for cores, nodes in self._free_cores.ascending(request.slot_cores):
            for rank in bits.members(nodes & eligible):
                node = self.nodes[rank]
                slots = cores // request.slot_cores
                if request.slot_gpus:
                    gpus = bits.count(node.free_gpus)
                    slots = min(slots, gpus // request.slot_gpus)
                if most is not None:
                    slots = min(slots, most - alloc.nslots)
                if slots == 0:
                    continue
                alloc.nodes[rank] = (
                    bits.lowest_cores(node.free_cores, slots * request.slot_cores),
                    bits.lowest_cores(node.free_gpus, slots * request.slot_gpus),
                )
                alloc.nslots += slots
                if alloc.nslots == most:
                    return alloc
        return alloc if alloc.nslots >= request.nslots else None

    def commit(self, jobid: int, alloc: Allocation) -> None:
        """Allocate resources to a job. Raises ValueError, and changes nothing, if the
        job has an allocation, or a node is unknown or in use. GiB are not checked, as
        the job may have its storage already: rabbits may be unknown or have shrunk."""
        if jobid in self.allocations:
            raise ValueError(f"job {jobid} has an allocation already")
        for rank, (cores, gpus) in alloc.nodes.items():
            node = self.nodes.get(rank)
            if node is None:
                raise ValueError(f"rank {rank} is not there")
            if cores & ~node.free_cores or gpus & ~node.free_gpus:
                raise ValueError(f"rank {rank} ({node.host}) is taken")
        self._find_rabbits(alloc)
        changes = Changes()
        for rank, (cores, gpus) in alloc.nodes.items():
            node = self.nodes[rank]
            changes.set(node, node.free_cores & ~cores, node.free_gpus & ~gpus)
        self._apply(changes)
        self._give(self._takes(jobid), 1)
        self.allocations[jobid] = alloc
        self._give(self._takes(jobid), -1)

    def hold(self, jobid: int, gib: Mapping[str, int]) -> None:
        """Set the GiB that a job's storage holds until the next call for the job, also
        after release(); none ends the hold. The GiB may exceed the job's allocation
        on a rabbit."""
        self._give(self._takes(jobid), 1)
        if gib:
            self.held[jobid] = dict(gib)
        else:
            self.held.pop(jobid, None)
        self._give(self._takes(jobid), -1)

    def _takes(self, jobid: int) -> dict[str, int]:
        """The GiB of a job by rabbit: the larger of allocated and held ones."""
        takes = dict(self.held.get(jobid, {}))
        alloc = self.allocations.get(jobid)
        for name, amount in alloc.gib.items() if alloc else ():
            takes[name] = max(amount, takes.get(name, 0))
        return takes

    def held_by_nobody(self) -> Iterable[Mapping[str, int]]:
        """The held GiB of each job without an allocation of GiB."""
        for jobid, gib in self.held.items():
            alloc = self.allocations.get(jobid)
            if jobid != NOBODY and (alloc is None or not alloc.gib):
                yield gib

    def _give(self, gib: Mapping[str, int], sign: int) -> None:
        for name, amount in gib.items():
            if name in self.rabbits:
                self.rabbits[name].free_gib += sign * amount

    def release(self, jobid: int, ranks: Iterable[int] | None = None) -> None:
        """Release a job's resources on these ranks (None: all). Nodes may be released
        one by one: the first call frees all GiB of the job but held ones."""
        alloc = self.allocations.get(jobid)
        if alloc is None:
            return
        changes = Changes()
        for rank in list(alloc.nodes) if ranks is None else ranks:
            if rank not in alloc.nodes:
                continue
            cores, gpus = alloc.nodes.pop(rank)
            node = self.nodes.get(rank)
            if node is not None:
                changes.set(node, node.free_cores | cores, node.free_gpus | gpus)
        self._apply(changes)
        self._give(self._takes(jobid), 1)
        alloc.gib = {}
        alloc.beside = {}
        if not alloc.nodes:
            del self.allocations[jobid]
        self._give(self._takes(jobid), -1)

    def _apply(self, changes: Changes) -> None:
        """Update the sets of free cores, free gpus and idle nodes."""
        for (old, new), ranks in changes.cores.items():
            self._free_cores.move(bits.of(ranks), old, new)
        for (old, new), ranks in changes.gpus.items():
            self._free_gpus.move(bits.of(ranks), old, new)
        self.idle |= bits.of(changes.idle)
        self.idle &= ~bits.of(changes.busy)

    # Feasibility

    def fitting_nodes(self, request: Request) -> int:
        """The nodes that satisfy the request if everything is free and up."""
        eligible = self.matching(request, ever=True) & ~self.storage_nodes
        eligible &= self._cores.at_least(request.node_cores)
        return eligible & self._gpus.at_least(request.node_gpus)

    def all_slots(self, request: Request) -> int:
        """The number of slots for the request if everything is free and up."""
        eligible = self.matching(request, ever=True) & ~self.storage_nodes
        slots = 0
        for cores, nodes in self._cores.ascending(request.slot_cores):
            for gpus, those in self._gpus.ascending(request.slot_gpus):
                each = cores // request.slot_cores
                if request.slot_gpus:
                    each = min(each, gpus // request.slot_gpus)
                slots += each * bits.count(nodes & those & eligible)
        return slots

    def infeasible(self, request: Request) -> str | None:
        """Why the request can never be satisfied, even if everything is free and up;
        None if it can. Raises ValueError for a malformed constraint."""
        return reasons.infeasible(self, request)
