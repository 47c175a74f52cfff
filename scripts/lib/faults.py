# Generates doc/faults.md from comments in t/*.t, with which dws_fault
# (t/sharness.d/workflow.sh) compares the outcome of its jobs. Prints the page; with
# --write writes it into the tree; with --expect NAME FILE prints the expected outcome
# of each job of that test.
# SPDX-License-Identifier: LGPL-3.0-only
"""Write doc/faults.md."""

from __future__ import annotations

import argparse
import pathlib
import re
from dataclasses import dataclass, field

TOP = pathlib.Path(__file__).parents[2]
PAGE = TOP / "doc" / "faults.md"
PHASES = ["depend", "pending", "setup", "datain", "prerun", "running"]
PHASES += ["postrun", "dataout", "teardown"]
FAULT = re.compile(r"# FAULT ([\w-]+): (.*)")
CELLS = re.compile(r"#   ([a-z ]+): ((?:completed|failed)[a-z -]*): (.*)")
MORE = re.compile(r"#     (\S.*)")
HEAD = """\
# What a fault does to a job

Each row is a fault, each column the point at which the fault strikes: the phase of
the job, or the state of its workflow. The test that a row names proves its cells: the
test brings a job into every phase, makes the fault, compares how each job ends, and
finds nothing left of any of them. `scripts/lib/faults.py --write` generates this page
from the comments of the tests, and `t/python/test_faults.py` fails when the page is
out of date.
"""


@dataclass
class Fault:
    """A row: the outcome of the job in each phase, and its text."""

    name: str
    text: str
    test: str
    results: dict[str, str] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)


def read(path: pathlib.Path) -> list[Fault]:
    """The faults of one test file.

    Raises:
        ValueError: a phase is missing, unknown or there twice.
    """
    faults: list[Fault] = []
    phases: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if match := FAULT.fullmatch(line):
            faults.append(Fault(match[1], match[2], path.name))
            phases = []
        elif faults and (match := CELLS.fullmatch(line)):
            phases = match[1].split()
            for phase in phases:
                if phase not in PHASES or phase in faults[-1].results:
                    raise ValueError(f"{path}: {faults[-1].name}: phase {phase}")
                faults[-1].results[phase] = match[2]
                faults[-1].words[phase] = match[3]
        elif phases and (match := MORE.fullmatch(line)):
            for phase in phases:
                faults[-1].words[phase] += f" {match[1]}"
    for fault in faults:
        if missing := [p for p in PHASES if p not in fault.results]:
            raise ValueError(f"{path}: {fault.name}: nothing about {missing}")
    return faults


def read_all() -> list[Fault]:
    """The faults of all test files, by file name."""
    return [f for path in sorted((TOP / "t").glob("*.t")) for f in read(path)]


def page(faults: list[Fault]) -> str:
    """The page: a table of numbers, and what they stand for."""
    numbers: dict[str, int] = {}
    rows = []
    for fault in faults:
        cells = []
        for phase in PHASES:
            words = fault.words[phase]
            sign = "✓" if fault.results[phase] == "completed" else "✗"
            cells.append(f"{sign} {numbers.setdefault(words, len(numbers) + 1)}")
        rows.append(
            f"| {fault.text} | {' | '.join(cells)} "
            f"| [{fault.test}](../t/{fault.test}) |"
        )
    lines = [
        HEAD,
        f"| fault | {' | '.join(PHASES)} | test |",
        f"|{'---|' * (len(PHASES) + 2)}",
        *rows,
        "",
        "✓: the job completes. ✗: the job fails, and its exception names the cause.",
        "",
        *(f"{number}. {words}" for words, number in numbers.items()),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="change the page")
    parser.add_argument("--expect", nargs=2, metavar=("NAME", "FILE"))
    args = parser.parse_args()
    if args.expect:
        name, path = args.expect
        [fault] = [f for f in read(pathlib.Path(path)) if f.name == name]
        for phase in PHASES:
            print(phase, fault.results[phase])
    elif args.write:
        PAGE.write_text(page(read_all()), encoding="utf-8")
    else:
        print(page(read_all()), end="")


if __name__ == "__main__":
    main()
