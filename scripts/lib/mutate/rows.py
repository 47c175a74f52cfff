# Judges the mutants that the rows of doc/dev/spec name.
# SPDX-License-Identifier: LGPL-3.0-only
"""A page of the specification has its mutants beside it: doc/dev/spec/PAGE.toml."""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
import random
import re
import tomllib

from . import judges

PAGES = pathlib.Path("doc/dev/spec")
# What a test's log has for each test that passed, by the suffix of its file.
PASSED = {
    ".c": r"^\[       OK \] {0}$",
    ".py": r"{0}(?:\[.*\])? PASSED",
    ".t": r"^ok [0-9]+ - {0}$",
}
# The longest silence in seconds of a test that judges a row.
SILENT_S = 180.0


@dataclasses.dataclass(frozen=True)
class Row:
    """A mutant of a row: the beginning of the row's statement, the test of the row that
    must fail, as "FILE: TITLE", and the one place of a file that is replaced."""

    asks: str
    test: str
    file: str
    old: str
    new: str

    def apply(self, top: pathlib.Path) -> bytes:
        """The file with the mutant. Raises ValueError if the place is not there once."""
        whole = (top / self.file).read_bytes()
        found = whole.count(self.old.encode())
        if found != 1 or self.old == self.new:
            raise ValueError(f"{self.file} has {found} times: {self.old}")
        return whole.replace(self.old.encode(), self.new.encode())


def load(page: pathlib.Path) -> list[Row]:
    """The mutants of a page. Raises TypeError for a key that is none of Row's."""
    tables = tomllib.loads(page.read_text(encoding="utf8"))
    return [Row(**table) for table in tables.get("row", [])]


class Judge:
    """Runs the tests of rows in a copy of the checkout."""

    def __init__(self, copy: judges.Copy) -> None:
        self.copy = copy
        self.green: dict[str, bool] = {}

    def command(self, file: str) -> list[str]:
        tier = re.match(r"t/(pbs|nnf|install)/", file)
        if tier:
            verbose = ["-v"] if file.endswith(".py") else []
            return [f"{tier[0]}run", *verbose, file]
        if file.endswith(".t"):
            folder, name = file.rsplit("/", 1)
            return ["sh", "-c", f"cd {folder} && exec bash {name} -v"]
        if file.endswith(".py"):
            return ["scripts/lib/run-pytest", ".venv/bin/flux", "-v", file]
        return [f"build/{judges.unit(file)}"]

    def build(self, row: Row) -> bool:
        file = row.test.partition(": ")[0]
        if file.endswith(".c"):
            return self.copy.build([judges.unit(file)])
        targets = ["all"] if row.file.startswith("engine/") else judges.INSTALLED
        return self.copy.build([*targets]) and self.copy.install(True)

    def passes(self, test: str) -> bool:
        file, title = test.split(": ", 1)
        if self.copy.run(self.command(file), SILENT_S) >= 0:
            return True
        passed = PASSED[pathlib.PurePath(file).suffix].format(re.escape(title))
        log = (self.copy.top / "tmp/log").read_text(encoding="utf8", errors="replace")
        return bool(re.search(passed, log, re.MULTILINE))

    def verdict(self, row: Row) -> str:
        """What is wrong with a row, or ""."""
        source = self.copy.top / row.file
        whole = source.read_bytes()
        try:
            source.write_bytes(row.apply(self.copy.top))
            if not self.build(row):
                return "the mutant does not build"
            if self.passes(row.test):
                return f"SURVIVED {row.test}"
        finally:
            source.write_bytes(whole)
        if row.test not in self.green:
            built = self.build(row)
            self.green[row.test] = built and self.passes(row.test)
        return "" if self.green[row.test] else f"fails without a mutant: {row.test}"


def main(copy: judges.Copy, args: argparse.Namespace) -> int:
    """Judge args.count rows of the pages in args.file, or of all. Returns 1 if the test
    of a row does not notice its mutant."""
    drawn = []
    for page in sorted((copy.top / PAGES).glob("*.toml")):
        if not args.file or page.stem in args.file:
            drawn += [(page.stem, row) for row in load(page)]
    if args.quick:
        drawn = [one for one in drawn if not re.match("t/[a-z]+/", one[1].test)]
    if args.count:
        drawn = random.Random(args.seed).sample(drawn, min(args.count, len(drawn)))
    judge = Judge(copy)
    bad = 0
    for page, row in drawn:
        verdict = judge.verdict(row)
        bad += bool(verdict)
        print(f"{page}: {row.asks}: {verdict or 'its test fails, as it must'}")
    print(f"rows: {len(drawn) - bad} of {len(drawn)} mutants died")
    return 1 if bad else 0
