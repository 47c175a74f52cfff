# The keys in doc/dev/kvs.rst, for tests.
# SPDX-License-Identifier: LGPL-3.0-only
"""Usage: kvskeys.py records|flux|instance: a line for each key, with its type and, of
records, the state after which it is written"""

from __future__ import annotations

import pathlib
import re
import sys

PAGE = pathlib.Path(__file__).parents[2] / "doc" / "dev" / "kvs.rst"
SECTIONS = {
    "records": "Records of a job",
    "flux": "What Flux has there",
    "instance": "Keys of the instance",
}


def rows(section: str) -> list[list[str]]:
    """The cells of the table of a section, without its header."""
    parts = re.split(r"^(.+)\n-+\n", PAGE.read_text(encoding="utf8"), flags=re.M)
    table = parts[parts.index(SECTIONS[section]) + 1]
    table = re.sub(r"\n       +", " ", table).partition("\n\n   * - ")[2]
    table = table.partition("\n\n")[0]
    cells = [re.split(r"\n     - ", row) for row in table.split("\n   * - ")]
    return [[cell.strip() for cell in row] for row in cells[1:]]


def main() -> int:
    section = sys.argv[1]
    for key, kind, _, when, *_ in rows(section):
        state = when.partition(" ")[0].rstrip(",;") if section == "records" else ""
        print(key.strip("`"), kind.partition(" ")[0].rstrip(",:"), state)
    return 0


if __name__ == "__main__":
    sys.exit(main())
