# SPDX-License-Identifier: LGPL-3.0-only
#
# What the functions of dws.py take and return, for those who check types: nothing here
# is needed to run.
"""Shapes of JSON."""

from __future__ import annotations

from typing import Any, TypedDict


class Directive(TypedDict):
    """One #DW directive, the line on which it begins, from 1, and its capacity in
    bytes (0 without one). A bare key has the value ""."""

    text: str
    command: str
    line: int
    bytes: int
    args: dict[str, str]


class Directives(TypedDict):
    """What a `dw` attribute says."""

    directives: list[Directive]
    warnings: list[str]


class StorageAllocation(TypedDict):
    """`allocationCount` allocations on rabbit `name`."""

    name: str
    allocationCount: int


class AllocationSet(TypedDict):
    """An entry of `Servers.spec.allocationSets`; size in bytes."""

    label: str
    allocationSize: int
    storage: list[StorageAllocation]


class ServersAllocation(TypedDict):
    """What to write into the Servers object that `servers` names."""

    servers: dict[str, str]
    allocationSets: list[AllocationSet]


class Size(TypedDict):
    """Bytes that are asked for, and those that are taken of rabbits for that."""

    asked: int
    taken: int


class Sizes(TypedDict):
    """Those of a job: on all nodes, and on each of them."""

    job: Size
    node: Size


class Drives(TypedDict):
    """Bytes of the drives of a rabbit that work, and what of them can be used."""

    raw: int
    usable: int


class ConfigKey(TypedDict):
    """A key of the table [rabbit]; `bounds` says what a value has to be."""

    name: str
    type: str
    default: Any
    bounds: str
    help: str


class Limit(TypedDict):
    """What the rule of that name says: bytes (None: unlimited), or whether at all."""

    rule: str
    value: int | None
