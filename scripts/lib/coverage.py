# Reports which C code of a folder has run, from the gcov files of a build.
# SPDX-License-Identifier: LGPL-3.0-only
"""usage: coverage.py BUILD FOLDER    (run by scripts/engine-coverage)"""

from __future__ import annotations

import collections
import json
import pathlib
import subprocess
import sys
from typing import Any


def gcov(gcno: pathlib.Path) -> list[Any]:
    """gcov's report on an object file: an entry for each source file."""
    gcda = gcno.with_suffix(".gcda")
    done = subprocess.run(
        ["gcov", "-j", "-t", str(gcda if gcda.exists() else gcno)],
        cwd=gcno.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    return [f for line in done.stdout.splitlines() for f in json.loads(line)["files"]]


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1]).resolve()
    folder = pathlib.Path(sys.argv[2]).resolve()
    lines: dict[str, dict[int, int]] = collections.defaultdict(dict)
    functions: dict[str, dict[str, tuple[int, int]]] = collections.defaultdict(dict)
    for gcno in sorted(build.rglob("*.gcno")):
        for found in gcov(gcno):
            path = (build / found["file"]).resolve()
            if not path.is_relative_to(folder):
                continue
            name = str(path.relative_to(folder))
            for line in found["lines"]:
                number = line["line_number"]
                lines[name][number] = lines[name].get(number, 0) + line["count"]
            for function in found["functions"]:
                size = function["end_line"] - function["start_line"] + 1
                _, runs = functions[name].get(function["name"], (0, 0))
                runs += function["execution_count"]
                functions[name][function["name"]] = size, runs
    print(f"{'file':45} {'lines':>6} {'run':>6} {'not':>6}")
    all_lines = all_run = 0
    for name, counts in sorted(lines.items()):
        run = sum(1 for count in counts.values() if count)
        all_lines += len(counts)
        all_run += run
        print(f"{name:45} {len(counts):6} {run:6} {len(counts) - run:6}")
    print(f"{'all':45} {all_lines:6} {all_run:6} {all_lines - all_run:6}")
    print("\nNever run (lines):")
    for name, here in sorted(functions.items()):
        never = [f"{f} ({size})" for f, (size, runs) in here.items() if not runs]
        if never:
            print(f"{name}: {', '.join(never)}")


if __name__ == "__main__":
    main()
