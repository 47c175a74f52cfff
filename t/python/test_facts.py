# The page about facts names every field that dws_reconcile() reads, and existing
# tests.
# SPDX-License-Identifier: LGPL-3.0-only
"""doc/dev/facts.rst."""

from __future__ import annotations

import re

import pytest
from page_support import TOP, is_there

LIBDWS = TOP / "src/common/libdws"
STRUCTS = {
    "dws_job": "facts/job.h",
    "dws_workflow": "facts/workflow.h",
    "dws_policy": "decide/reconcile.h",
}


def fields(struct: str) -> set[str]:
    """The members of a struct, by its header."""
    text = (LIBDWS / STRUCTS[struct]).read_text()
    found = re.search(rf"^struct {struct} \{{\n(.*?)^\}};", text, re.S | re.M)
    assert found
    body = re.sub(r"/\*.*?\*/|//[^\n]*", "", found[1], flags=re.S)
    members = [word.strip() for word in body.split(";") if word.strip()]
    return {re.split(r"[\s*]+", member)[-1] for member in members}


def rows(struct: str) -> list[list[str]]:
    """The cells of its table, without the header."""
    text = (TOP / "doc/dev/facts.rst").read_text()
    section = re.split(r"^.*: struct (\w+)\n-+\n", text, flags=re.M)
    table = section[section.index(struct) + 1]
    cells = [re.split(r"\n     - ", row) for row in table.split("\n   * - ")[1:]]
    return [[cell.strip() for cell in row] for row in cells[1:]]


@pytest.mark.parametrize("struct", STRUCTS)
def test_every_field_has_a_row(struct: str) -> None:
    named = [name for row in rows(struct) for name in re.findall(r"``(\w+)``", row[0])]
    assert sorted(named) == sorted(fields(struct))


@pytest.mark.parametrize("struct", STRUCTS)
def test_every_cell_is_filled(struct: str) -> None:
    assert [row for row in rows(struct) if len(row) != 9 or not all(row)] == []


@pytest.mark.parametrize("struct", STRUCTS)
def test_named_tests_are_there(struct: str) -> None:
    named = [row[8] for row in rows(struct)]
    assert named
    assert [reference for reference in named if not is_there(reference)] == []


def test_what_is_missing_is_found() -> None:
    assert not is_there("t/t1013-restarts.t: dws_fault sunspots")
    assert not is_there("src/common/libdws/decide/test/explore.c: test_every")
    assert "stranded" in fields("dws_job") and "advancing" in fields("dws_workflow")
