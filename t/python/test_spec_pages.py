# The pages on the specifications name existing tests, and mutants that those notice.
# SPDX-License-Identifier: LGPL-3.0-only
"""doc/dev/spec/*.rst."""

from __future__ import annotations

import pathlib
import re
import sys

import pytest
from page_support import TOP, is_there

sys.path.append(str(TOP / "scripts" / "lib"))
from mutate import rows as mutants

PAGES = sorted((TOP / "doc" / "dev" / "spec").glob("*.rst"))


def rows(page: pathlib.Path) -> list[list[str]]:
    """The cells of all tables of a page, without the headers."""
    text = re.sub(r"\n       +", " ", page.read_text(encoding="utf8"))
    return [
        [cell.strip() for cell in re.split(r"\n     - ?", row)]
        for row in re.findall(r"^   \* - (.*(?:\n     - ?.*)*)", text, re.MULTILINE)
        if not row.startswith("it asks\n")
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_row_is_shown_or_says_why_not(page: pathlib.Path) -> None:
    found = rows(page)
    assert found or page.stem == "index"
    for row in found:
        assert len(row) == 3 and all(row), row
        references = re.findall(r"``([^`]+)``", row[2])
        if not row[2].startswith(("not ours: ", "open: ")):
            assert references, row
            assert [r for r in references if not is_there(r)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_row_has_a_mutant_that_scripts_mutate_can_judge(
    page: pathlib.Path,
) -> None:
    wanted = [row for row in rows(page) if not row[2].startswith(("not ours", "open"))]
    path = page.with_suffix(".toml")
    named = mutants.load(path) if wanted else []
    assert len(named) == len(wanted)
    for row, mutant in zip(wanted, named):
        assert row[0].startswith(mutant.asks)
        assert f"``{mutant.test}``" in row[2], mutant
        mutant.apply(TOP)


def test_there_are_pages() -> None:
    assert len(PAGES) > 1
