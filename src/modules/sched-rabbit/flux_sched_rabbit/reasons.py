# Explains why a request can never be satisfied.
# SPDX-License-Identifier: LGPL-3.0-only
"""Reasons for the user, by the resources of the machine when all are free and up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import bits
from .request import Request

if TYPE_CHECKING:
    from .machine import Machine


def infeasible(machine: Machine, request: Request) -> str | None:
    """Why the request can never be satisfied, even if everything is free and up; None
    if it can. Raises ValueError for a malformed constraint."""
    if request.needs_storage_nodes:
        reason = _storage_nodes(machine, request)
        if reason:
            return reason
    if request.groups == 0:
        return _slots(machine, request)
    eligible = machine.fitting_nodes(request)
    have = bits.count(eligible)
    if have < request.nodes:
        per_node = f"{max(request.node_cores, 1)} cores"
        if request.node_gpus:
            per_node += f" and {request.node_gpus} gpus"
        return f"needs {request.nodes} nodes with {per_node}; there are {have}" + (
            " that meet its constraints" if request.constraint else ""
        )
    if request.needs_rabbits:
        return _groups(machine, request, eligible)
    return None


def _storage_nodes(machine: Machine, request: Request) -> str | None:
    storage = machine.matching(request, ever=True) & machine.storage_nodes
    wanted = max(request.storage_nodes, request.groups if request.distinct else 1)
    have = sum(
        1
        for rank in bits.members(storage)
        if machine.storage_room(request, rank, storage, ever=True)
    )
    if have >= wanted:
        return None
    each = f" with {request.storage_cores} cores" if request.storage_cores else ""
    return f"needs {wanted} storage node(s){each}; there are {have}" + (
        " that meet its constraints" if request.constraint else ""
    )


def _slots(machine: Machine, request: Request) -> str | None:
    have = machine.all_slots(request)
    if have >= request.nslots:
        return None
    return (
        f"needs {request.nslots} slots of {request.slot_cores} cores"
        + (f" and {request.slot_gpus} gpus" if request.slot_gpus else "")
        + f"; there are {have}"
        + (" that meet its constraints" if request.constraint else "")
    )


def _groups(machine: Machine, request: Request, eligible: int) -> str | None:
    what = "chassis" if request.distinct else "node"
    if request.group_nodes > 1 and not request.distinct:
        what = f"{request.group_nodes} nodes"
    most = max((r.capacity_gib for r in machine.rabbits.values()), default=None)
    if most is None:
        return "needs rabbits; there are none"
    if request.group_gib > most:
        return (
            f"needs {request.group_gib} GiB per {what}; no rabbit has more than {most}"
        )
    storage = machine.matching(request, ever=True) & machine.storage_nodes
    room = 0
    for rabbit in machine.rabbits.values():
        groups = machine.room(request, rabbit.capacity_gib, rabbit.among(eligible))
        if request.group_storage:
            most = machine.storage_room(request, rabbit.rank, storage, ever=True)
            groups = min(groups, most)
        room += groups
    if room >= request.groups:
        return None
    each = f" with {request.group_gib} GiB" if request.group_gib else ""
    each += " and a storage node" if request.group_storage else ""
    return (
        f"needs {request.groups} times {request.group_nodes} node(s) on"
        f" {'different rabbits' if request.distinct else 'a rabbit'}{each};"
        f" there is room for {room}"
    )
