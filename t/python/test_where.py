# The page that leads from a change to its file names files that are there.
# SPDX-License-Identifier: LGPL-3.0-only
"""doc/dev/where.rst."""

from __future__ import annotations

import pathlib
import re

TOP = pathlib.Path(__file__).parents[2]


def test_named_files_are_there() -> None:
    text = (TOP / "doc/dev/where.rst").read_text()
    named = re.findall(r"``((?:src|t|doc)/[^`]+)``", text)
    assert len(named) > 20
    assert [path for path in named if not (TOP / path).exists()] == []
