# Objects that pass the quick check of dws-sim have no faults in the thorough one.
# SPDX-License-Identifier: LGPL-3.0-only
"""Schemas of dws-sim."""

from __future__ import annotations

from typing import Any

import sim_support  # noqa: F401  (puts dws_sim on the path)
from dws_sim.schema.resources import RESOURCES
from dws_sim.schema.types import Schema
from hypothesis import given
from hypothesis import strategies as st

SCHEMAS = [r.body for r in RESOURCES.values() if r.body is not None]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 1 << 33),
    st.floats(allow_nan=False),
    st.sampled_from(["", "Setup", "Fatal", "5GiB", "2026-01-01T00:00:00Z"]),
)


def values(schema: Schema, depth: int = 0) -> st.SearchStrategy[Any]:
    """Values that fit a schema more or less."""
    fitting: st.SearchStrategy[Any] = SCALARS
    if schema.enum:
        fitting = st.sampled_from(schema.enum)
    elif schema.items is not None and depth < 6:
        fitting = st.lists(values(schema.items, depth + 1), max_size=2)
    elif schema.values is not None and depth < 6:
        inner = values(schema.values, depth + 1)
        fitting = st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    elif schema.properties and depth < 6:
        fitting = st.fixed_dictionaries(
            {k: values(schema.properties[k], depth + 1) for k in schema.required},
            optional={
                k: values(s, depth + 1)
                for k, s in schema.properties.items()
                if k not in schema.required
            },
        )
    wrong = st.one_of(SCALARS, st.just([]), st.just({}), st.just([{}]))
    # mostly right: or hardly anything would get past the first key
    return st.integers(0, 15).flatmap(lambda n: fitting if n else wrong)


@given(st.data())
def test_no_fault_without_a_doubt(data: st.DataObject) -> None:
    schema = data.draw(st.sampled_from(SCHEMAS))
    value = data.draw(values(schema))
    if not isinstance(value, dict):
        return
    doubts: list[Schema] = []
    pruned = schema.prune(value, {}, doubts)
    causes: list[Any] = []
    schema.faults(pruned, "", causes, {})
    assert bool(causes) == bool(doubts), (causes, doubts)


def test_what_was_wrong_before_may_stay() -> None:
    schema = RESOURCES["computes"].body
    assert schema is not None
    old = {"data": [{"name": 7}]}
    doubts: list[Schema] = []
    schema.prune({"data": [old["data"][0], {"name": "node1"}]}, old, doubts)
    assert doubts == []
    schema.prune({"data": [{"name": 8}]}, old, doubts)
    assert doubts != []


@given(st.data())
def test_what_is_called_unknown_is_what_is_left_out(data: st.DataObject) -> None:
    schema = data.draw(st.sampled_from(SCHEMAS))
    value = data.draw(values(schema))
    if not isinstance(value, dict):
        return
    value = {**value, "bogus": data.draw(SCALARS)}
    assert "bogus" in list(schema.unknown(value))
    assert list(schema.unknown(schema.prune(value, {}, []))) == []
