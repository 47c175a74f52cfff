# The requests in doc/dev/inputs.rst, for tests.
# SPDX-License-Identifier: LGPL-3.0-only
"""Usage: inputs.py owner|any user: the methods that these may call, a line each"""

from __future__ import annotations

import pathlib
import re
import sys

TOP = pathlib.Path(__file__).parents[2]
PAGE = TOP / "doc" / "dev" / "inputs.rst"
CELL = re.compile(r"^   (?:\* |  )- ")
METHOD = re.compile(r"``([a-z][a-z-]*(?:\.[a-z_-]+)+)``")


def rows() -> list[list[str]]:
    """The cells of all rows but the headers: what, who, checks, tests."""
    found: list[list[str]] = []
    for line in PAGE.read_text(encoding="utf8").splitlines():
        if CELL.match(line):
            if line.startswith("   * "):
                found.append([])
            found[-1].append(line[7:].strip())
        elif found and line.startswith("       "):
            found[-1][-1] += " " + line.strip()
    return [row for row in found if row[1] != "who"]


def methods() -> dict[str, str]:
    """Permitted senders of each request of the page: "owner" or "any user"."""
    return {
        method: row[1]
        for row in rows()
        for method in METHOD.findall(row[0])
        if row[1] in ("owner", "any user")
    }


def main() -> int:
    who = " ".join(sys.argv[1:])
    chosen = [method for method, role in methods().items() if role == who]
    print("\n".join(chosen))
    return 0 if chosen else 1


if __name__ == "__main__":
    sys.exit(main())
