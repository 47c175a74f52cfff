# The pages that guide through the source name existing files and functions.
# SPDX-License-Identifier: LGPL-3.0-only
"""doc/dev/where.rst and doc/dev/tour.rst."""

from __future__ import annotations

import pathlib
import re

TOP = pathlib.Path(__file__).parents[2]


def test_named_files_are_there() -> None:
    text = (TOP / "doc/dev/where.rst").read_text()
    named = re.findall(r"``((?:src|t|doc)/[^`]+)``", text)
    assert len(named) > 20
    assert [path for path in named if not (TOP / path).exists()] == []


def missing_in_tour(text: str) -> list[str]:
    """The functions that the tour names and none of the files that it links has. Sphinx
    finds a link to a file that is not there."""
    links = re.findall(r":download:`[^<`]+<\.\./\.\./([^>]+)>`", text)
    assert len(links) > 20
    sources = "".join((TOP / path).read_text(encoding="utf8") for path in links)
    named = re.findall(r"``(\w+)\(\)``", text)
    return [name for name in named if not re.search(rf"\b{name} ?\(", sources)]


def test_the_tour_names_functions_of_the_files_that_it_links() -> None:
    text = (TOP / "doc/dev/tour.rst").read_text(encoding="utf8")
    assert missing_in_tour(text) == []
    assert missing_in_tour(text.replace("row_end()", "row_bend()")) == ["row_bend"]
    assert len(text.splitlines()) <= 150
