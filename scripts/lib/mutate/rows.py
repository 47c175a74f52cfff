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
    ".t": r"^ok [0-9]+ - {0}$",
}
SKIPPED = r"^ok [0-9]+ # skip {0}"
# and when one of a file has ended, after which the others need not run.
ENDED = {
    ".c": r"^\[ +(?:OK|FAILED) +\] {0}$",
    ".t": r"^(?:not )?ok [0-9]+ - {0}$",
}
# Tests with another real engine.
FAR = re.compile(r"t/(pbs|nnf|install)/")
# The longest silence in seconds of a test without a mutant.
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
        """The file with the mutant. Raises ValueError if it has no one such place."""
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

    def __init__(self, copy: judges.Copy, tests: set[str]) -> None:
        self.copy = copy
        self.tests = tests
        # the log of a test without a mutant, and its longest silence
        self.green: dict[str, tuple[str, float]] = {}

    def command(self, file: str, title: str) -> list[str]:
        tier = FAR.match(file)
        words = ["-x", f"{file}::{title}"] if file.endswith(".py") else [file]
        if tier:
            return [f"{tier[0]}run", *words]
        if file.endswith(".t"):
            folder, name = file.rsplit("/", 1)
            return ["sh", "-c", f"cd {folder} && exec bash {name} -v"]
        if file.endswith(".py"):
            return ["scripts/lib/run-pytest", ".venv/bin/flux", *words]
        return [f"build/{judges.unit(file)}"]

    def build(self, row: Row) -> bool:
        file = row.test.partition(": ")[0]
        if file.endswith(".c"):
            return self.copy.build([judges.unit(file)])
        targets = ["all"] if row.file.startswith("engine/") else judges.INSTALLED
        return self.copy.build([*targets]) and self.copy.install(True)

    def log(self, test: str, silent_s: float) -> str:
        """Run a test, and those of its file that come before it."""
        file, title = test.split(": ", 1)
        command = self.command(file, title)
        name = re.escape(title)
        until = ENDED.get(pathlib.PurePath(file).suffix, "").format(name)
        failed = self.copy.run(command, silent_s, until) < 0
        log = self.read()
        if file.endswith(".t") and re.search(SKIPPED.format(name), log, re.MULTILINE):
            # the embedded engine lacks something that it needs
            command = ["env", f"FLUX={self.copy.engine()}", *command]
            self.copy.run(command, silent_s, until)
            log = self.read()
        if file.endswith(".py"):  # no other test was run
            return "" if failed else test
        return log

    def read(self) -> str:
        path = self.copy.top / "tmp/log"
        return path.read_text(encoding="utf8", errors="replace")

    @staticmethod
    def passed(test: str, log: str) -> bool:
        file, title = test.split(": ", 1)
        passed = PASSED.get(pathlib.PurePath(file).suffix)
        if not passed:
            return log == test
        return bool(re.search(passed.format(re.escape(title)), log, re.MULTILINE))

    def last(self, test: str) -> str:
        """Of the tests that judge the one that is run last with this one."""
        file = test.partition(": ")[0]
        if file.endswith(".py"):
            return test
        source = (self.copy.top / file).read_text(encoding="utf8")
        beside = [other for other in self.tests if other.startswith(f"{file}: ")]
        return max(beside, key=lambda other: source.rfind(other.partition(": ")[2]))

    def without(self, row: Row, last: str) -> tuple[str, float]:
        """The log of a test without the mutant, and its longest silence."""
        if last not in self.green:
            log = self.log(last, SILENT_S) if self.build(row) else ""
            self.green[last] = log, self.copy.longest
        return self.green[last]

    def verdict(self, row: Row) -> str:
        """What is wrong with a row, or ""."""
        log, silence_s = self.without(row, self.last(row.test))
        title = re.escape(row.test.partition(": ")[2])
        if re.search(SKIPPED.format(title), log, re.MULTILINE):
            log, silence_s = self.without(row, row.test)
        if not self.passed(row.test, log):
            return f"fails without a mutant: {row.test}"
        source = self.copy.top / row.file
        whole = source.read_bytes()
        try:
            source.write_bytes(row.apply(self.copy.top))
            if not self.build(row):
                return "the mutant does not build"
            log = self.log(row.test, judges.SILENT_S + judges.SILENCES * silence_s)
        finally:
            source.write_bytes(whole)
        return f"SURVIVED {row.test}" if self.passed(row.test, log) else ""


def main(copy: judges.Copy, args: argparse.Namespace) -> int:
    """Judge args.count rows of the pages in args.file, or of all. Returns 1 if the test
    of a row does not notice its mutant."""
    drawn = []
    for page in sorted((copy.top / PAGES).glob("*.toml")):
        if not args.file or page.stem in args.file:
            drawn += [(page.stem, row) for row in load(page)]
    if args.quick:
        drawn = [one for one in drawn if not FAR.match(one[1].test)]
    if args.count:
        drawn = random.Random(args.seed).sample(drawn, min(args.count, len(drawn)))
    judge = Judge(copy, {row.test for _, row in drawn})
    bad = 0
    for page, row in drawn:
        verdict = judge.verdict(row)
        bad += bool(verdict)
        print(f"{page}: {row.asks}: {verdict or 'its test fails, as it must'}")
    print(f"rows: {len(drawn) - bad} of {len(drawn)} mutants died")
    return 1 if bad else 0
