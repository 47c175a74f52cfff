# Finds links in Markdown files whose target is missing from the tree. Sphinx checks
# doc/; remote links are not followed.
# SPDX-License-Identifier: LGPL-3.0-only
"""Usage: links.py TREE"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def broken(path: pathlib.Path) -> list[str]:
    """Targets of links in a file that do not exist."""
    targets = LINK.findall(path.read_text(encoding="utf-8"))
    return [
        target
        for target in targets
        if "://" not in target
        and not target.startswith("#")
        and not (path.parent / target.partition("#")[0]).exists()
    ]


def main() -> int:
    tree = pathlib.Path(sys.argv[1])
    listing = subprocess.run(
        ["git", "-C", str(tree), "ls-files", "*.md"],
        capture_output=True,
        text=True,
        check=True,
    )
    bad = 0
    for name in listing.stdout.split():
        for target in broken(tree / name):
            print(f"{name}: {target}: no such file")
            bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
