# SPDX-License-Identifier: LGPL-3.0-only
#
# Types of the arguments and results of dws.py, for type checkers only: nothing imports
# this file at run time.
"""Types of JSON values."""

from __future__ import annotations

from typing import Any, TypedDict


class Directive(TypedDict):
    """A directive, its first line (from 1), and its capacity in bytes (0 without one).
    A bare key has the value ""."""

    text: str
    command: str
    line: int
    bytes: int
    args: dict[str, str]


class Directives(TypedDict):
    """The content of a `dw` attribute."""

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
    """The allocation sets for the Servers object that `servers` names."""

    servers: dict[str, str]
    allocationSets: list[AllocationSet]


class Size(TypedDict):
    """Bytes that are asked, and the bytes of rabbits that are taken for them."""

    asked: int
    taken: int


class Sizes(TypedDict):
    """The sizes of a job: on all nodes, and on each node."""

    job: Size
    node: Size


class Drives(TypedDict):
    """Bytes of a rabbit's working drives, and the part that file systems can use."""

    raw: int
    usable: int


class ConfigKey(TypedDict):
    """A key of the table [rabbit]; `bounds` describes its valid values."""

    name: str
    type: str
    default: Any
    bounds: str
    help: str


class Limit(TypedDict):
    """The rule of that name: bytes (None: unlimited), or whether storage is allowed."""

    rule: str
    value: int | None
