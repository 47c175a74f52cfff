# RFC 31 constraints as sets of nodes.
# SPDX-License-Identifier: LGPL-3.0-only
"""Evaluates a constraint to the set of nodes that match it."""

from __future__ import annotations

from typing import Any, Protocol


class View(Protocol):
    """The machine as seen by constraints. Sets are bit masks."""

    all_nodes: int

    def with_property(self, name: str) -> int: ...

    def with_hosts(self, hostlist: str) -> int: ...

    def with_ranks(self, idset: str) -> int: ...


def evaluate(expression: Any, view: View) -> int:
    """The nodes that match. Raises ValueError for a malformed constraint."""
    if not isinstance(expression, dict):
        raise ValueError("a constraint must be an object")
    result = view.all_nodes
    for operator, values in expression.items():
        if not isinstance(values, list):
            raise ValueError(f"constraint {operator[:60]!r} must have a list of values")
        result &= _operate(operator, values, view)
    return result


def _all_of(values: list[Any], view: View) -> int:
    result = view.all_nodes
    for value in values:
        result &= evaluate(value, view)
    return result


def _any_of(masks: list[int]) -> int:
    result = 0
    for mask in masks:
        result |= mask
    return result


def _strings(operator: str, values: list[Any]) -> list[str]:
    for value in values:
        if not isinstance(value, str):
            raise ValueError(f"constraint {operator!r} has a value that is no string")
    return values


def _operate(operator: str, values: list[Any], view: View) -> int:
    if operator == "and":
        return _all_of(values, view)
    if operator == "or":
        # RFC 31: without values it matches anything.
        if not values:
            return view.all_nodes
        return _any_of([evaluate(value, view) for value in values])
    if operator == "not":
        return view.all_nodes & ~_all_of(values, view)
    if operator == "properties":
        result = view.all_nodes
        for name in _strings(operator, values):
            if name.startswith("^"):
                result &= ~view.with_property(name[1:])
            else:
                result &= view.with_property(name)
        return result
    if operator == "hostlist":
        return _any_of([view.with_hosts(v) for v in _strings(operator, values)])
    if operator == "ranks":
        return _any_of([view.with_ranks(v) for v in _strings(operator, values)])
    raise ValueError(f"unknown constraint operator {operator[:60]!r}")
