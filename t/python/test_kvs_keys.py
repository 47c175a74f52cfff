# The page about the KVS has a row for each key that is written, and tests that exist.
# SPDX-License-Identifier: LGPL-3.0-only
"""doc/dev/kvs.rst."""

from __future__ import annotations

import re

import pytest
from flux_k8s import names
from page_support import TOP, is_there, load

STATES = ("proposal", "setup", "datain", "prerun", "postrun", "dataout", "teardown")


kvskeys = load("kvskeys")


def keys_in_source() -> set[str]:
    """Keys of flux-dws, from the only file with their names."""
    found = {value for name, value in vars(names).items() if name.startswith("KEY_")}
    found.remove(names.KEY_TIMING)
    return found | {names.KEY_TIMING.replace("%s", state) for state in STATES}


def test_every_key_has_a_row() -> None:
    listed = [
        row[0].strip("`")
        for section in ("records", "instance")
        for row in kvskeys.rows(section)
    ]
    assert sorted(listed) == sorted(keys_in_source())


def test_no_key_is_named_anywhere_else() -> None:
    """A key that is a literal in C would be missing in the table."""
    literal = re.compile(r'flux_(?:job_)?kvs_\w+ \([^;]*"(?:data|rabbit|dws)[._]')
    put = re.compile(r'"data\.dws\.(?!%s")')
    for path in (TOP / "src").rglob("*.c"):
        if "test" not in path.parts:
            text = path.read_text(encoding="utf8")
            assert not literal.search(text) and not put.search(text), path


@pytest.mark.parametrize("section", kvskeys.SECTIONS)
def test_rows_are_whole(section: str) -> None:
    rows = kvskeys.rows(section)
    assert rows
    assert [row for row in rows if len(row) != 6 or not all(row)] == []


def references() -> list[str]:
    return re.findall(r"``(\S+/t\d+-\S+\.t: [^`]+)``", kvskeys.PAGE.read_text())


def test_tests_are_there() -> None:
    tests = [row[5] for section in kvskeys.SECTIONS for row in kvskeys.rows(section)]
    assert {test.strip("`") for test in tests} <= set(references())
    assert [reference for reference in references() if not is_there(reference)] == []
