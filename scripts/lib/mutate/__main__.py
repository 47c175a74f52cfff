# Draws mutants, has them judged, and counts.
# SPDX-License-Identifier: LGPL-3.0-only
"""scripts/mutate says what it is for."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable

from . import judges, rows, rules

# How many mutants of a folder are judged where --count does not say it.
COUNT = 10
# The longest silence of a test that has not passed yet.
UNKNOWN_S = 60.0
HARMLESS = pathlib.Path(__file__).with_name("harmless.txt")


def copy_tree(top: pathlib.Path, to: pathlib.Path) -> None:
    """Copy all files of the work tree that git does not ignore, and set it up."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=top,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        old, new = top / name, to / name
        if not old.is_file() or (
            new.is_file()
            and new.stat().st_mode == old.stat().st_mode
            and new.read_bytes() == old.read_bytes()
        ):
            continue
        new.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(old, new)
    command = [str(to / "scripts/setup"), "-q", "--tests"]
    # Let ccache share its results between this checkout and the copy.
    env = {"CCACHE_BASEDIR": str(to), "CCACHE_NOHASHDIR": "1", **os.environ}
    subprocess.run(command, check=True, env=env)


def sources(top: pathlib.Path, folder: str) -> Iterable[str]:
    for path in sorted((top / judges.FOLDERS[folder]).rglob("*")):
        name = str(path.relative_to(top))
        wanted = path.suffix in (".c", ".py", ".PY") and "/test/" not in name
        if wanted and name not in judges.NOT_OURS:
            yield name


def draw(top: pathlib.Path, args: argparse.Namespace) -> list[tuple[str, rules.Mutant]]:
    """The folders take turns, so that a run that is cut short has some of each."""
    drawn = []
    for folder in args.folder or judges.FOLDERS:
        names = [n for n in sources(top, folder) if not args.file or n in args.file]
        every = [m for n in names for m in rules.mutants(n, (top / n).read_bytes())]
        print(f"{folder}: {len(every)} mutants in {len(names)} files")
        random.Random(f"{args.seed}{folder}").shuffle(every)
        drawn.append([(folder, mutant) for mutant in every])
    rounds = itertools.zip_longest(*drawn)
    return [pair for pairs in rounds for pair in pairs if pair]


class Run:
    """Judges mutants, and records the outcome of each."""

    def __init__(self, work: pathlib.Path) -> None:
        self.copy = judges.Copy(work / "tree")
        self.path = work / "results.json"
        self.results: dict[str, str] = {}
        self.silences: dict[str, float] = {}
        self.why = ""
        if self.path.exists():
            self.results, self.silences = json.loads(self.path.read_text())

    def save(self) -> None:
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps([self.results, self.silences], indent=1))
        new.replace(self.path)

    def passes(self, test: str, is_python: bool) -> bool:
        """Whether the test passes without a mutant. Records its longest silence."""
        if test not in self.silences:
            if not self.put_in_place([test], is_python):
                sys.exit(f"the copy does not build: {self.copy.top}/tmp/log")
            self.silences[test] = self.copy.judge(test, UNKNOWN_S)
            if self.silences[test] < 0:
                print(f"left out, as it fails without a mutant: {test}")
            self.save()
        return self.silences[test] >= 0

    def put_in_place(self, tests: list[str], is_python: bool) -> bool:
        """Build the targets of the tests; False if that fails. The build also restores
        the objects of a file that was mutated before."""
        units = [test for test in tests if judges.is_unit(test)]
        if len(units) == len(tests):
            return not units or self.copy.build(units)
        return self.copy.build([*units, *judges.TARGETS]) and self.copy.install(
            is_python
        )

    def killer(self, mutant: rules.Mutant, quick: bool) -> str:
        """The test that fails; "" for none, "build" if the mutant does not compile,
        "same" if it compiles to the same program."""
        source = self.copy.top / mutant.path
        whole = source.read_bytes()
        try:
            return self.judged(mutant, mutant.apply(whole), whole, quick)
        finally:
            source.write_bytes(whole)

    def judged(
        self, mutant: rules.Mutant, broken: bytes, whole: bytes, quick: bool
    ) -> str:
        source = self.copy.top / mutant.path
        self.why = ""
        is_python = not mutant.path.endswith(".c")
        if not is_python:
            same = self.copy.is_same(mutant.path, broken)
            if same is not False:
                return "build" if same is None else "same"
        elif not self.compiles(broken):
            return "build"
        fast, slow = self.copy.tests(mutant.path)
        # Unit tests are linked one by one, as the first often fails.
        groups = [[test] for test in fast if judges.is_unit(test)]
        groups.append([test for test in fast if not judges.is_unit(test)])
        for tests in groups if quick else [*groups, slow]:
            tests = [test for test in tests if self.silences.get(test, 0) >= 0]
            while tests:
                if source.read_bytes() != broken:
                    source.write_bytes(broken)
                if not self.put_in_place(tests, is_python):
                    return "build"
                failed = self.first_that_fails(tests)
                if failed is None:
                    break
                self.why = self.copy.why()
                if self.copy.was_silent:
                    # The machine may be slower now than when the test passed.
                    self.silences.pop(failed, None)
                if failed not in self.silences:
                    source.write_bytes(whole)
                if self.passes(failed, is_python):
                    return failed
                tests = tests[tests.index(failed) + 1 :]
        return ""

    def first_that_fails(self, tests: list[str]) -> str | None:
        """The first test that fails, or None. A pass with a mutant also counts as one
        without, so a longer silence replaces the recorded one."""
        for test in tests:
            silence = self.copy.judge(test, self.silences.get(test, UNKNOWN_S))
            if silence < 0:
                return test
            self.silences[test] = max(silence, self.silences.get(test, 0))
        return None

    @staticmethod
    def compiles(source: bytes) -> bool:
        try:
            compile(source, "mutant", "exec")
        except SyntaxError:
            return False
        return True


def harmless() -> dict[str, str]:
    """The reason of each mutant whose survival is no gap: two lines each."""
    lines = [
        line
        for line in HARMLESS.read_text(encoding="utf8").splitlines()
        if line and not line.startswith("#")
    ]
    return dict(zip(lines[::2], (line.strip() for line in lines[1::2])))


def report(judged: dict[str, list[tuple[rules.Mutant, str]]]) -> int:
    reasons = harmless()
    gaps = 0
    for folder, found in judged.items():
        dead = sum(1 for _, killer in found if killer not in ("", "same"))
        excused = sum(1 for _, killer in found if killer == "same")
        for mutant, killer in found:
            if not killer:
                reason = reasons.get(mutant.key())
                excused += bool(reason)
                print(
                    f"{mutant.path}:{mutant.number}: {mutant.key().split(' | ', 1)[1]}"
                )
                print(f"    {reason or 'SURVIVED'}")
        gaps += len(found) - dead - excused
        print(f"{folder}: {dead} of {len(found)} died, {excused} harmless")
    return 1 if gaps else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/mutate")
    parser.add_argument("--top", type=pathlib.Path, required=True)
    parser.add_argument("--count", type=int)
    parser.add_argument("--folder", action="append", choices=judges.FOLDERS)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    parser.add_argument("--until")
    parser.add_argument("--dir", type=pathlib.Path)
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rows", action="store_true")
    parser.add_argument("file", nargs="*")
    args = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    print(f"seed {args.seed}")
    drawn = [] if args.rows else draw(args.top, args)
    work = args.dir or pathlib.Path(f"/tmp/flux-dws-mutate-{os.getuid()}")
    judged: dict[str, list[tuple[rules.Mutant, str]]] = {}
    (work / "tree").mkdir(mode=0o700, parents=True, exist_ok=True)
    copy_tree(args.top, work / "tree")
    run = Run(work)
    if args.rows:
        return rows.main(run.copy, args)
    for folder, mutant in drawn:
        found = judged.setdefault(folder, [])
        if len(found) == (args.count or COUNT):
            continue
        if args.until and time.strftime("%H:%M") >= args.until:
            print(f"it is {args.until}")
            break
        key = f"{mutant.key()} | {mutant.start}"
        killer = run.results.get(key)
        if killer is None or (killer == "" and args.fresh):
            killer = run.killer(mutant, args.quick)
            if killer or not args.quick:
                run.results[key] = killer
                run.save()
            print(
                f"{killer or 'SURVIVED'}: {mutant.path}:{mutant.number}: {mutant.new}"
            )
            if run.why:
                print(f"    {run.why}")
        if killer != "build":
            found.append((mutant, killer))
    print()
    return report(judged)


if __name__ == "__main__":
    sys.exit(main())
