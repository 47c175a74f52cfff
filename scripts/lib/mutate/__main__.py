# Draws mutants, has them judged, and counts.
# SPDX-License-Identifier: LGPL-3.0-only
"""scripts/mutate says what it is for."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable

from . import judges, rules

HARMLESS = pathlib.Path(__file__).with_name("harmless.txt")


def copy_tree(top: pathlib.Path, to: pathlib.Path) -> None:
    """What git knows and is not ignored, with what is not committed yet."""
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
    # The compiler's cache has the files of this checkout as those of the copy.
    env = {"CCACHE_BASEDIR": str(to), "CCACHE_NOHASHDIR": "1", **os.environ}
    subprocess.run(command, check=True, env=env)


def sources(top: pathlib.Path, folder: str) -> Iterable[str]:
    for path in sorted((top / judges.FOLDERS[folder]).rglob("*")):
        name = str(path.relative_to(top))
        wanted = path.suffix in (".c", ".py", ".PY") and "/test/" not in name
        if wanted and name not in judges.NOT_OURS:
            yield name


def draw(top: pathlib.Path, args: argparse.Namespace) -> list[tuple[str, rules.Mutant]]:
    drawn = []
    for folder in args.folder or judges.FOLDERS:
        names = [n for n in sources(top, folder) if not args.file or n in args.file]
        every = [m for n in names for m in rules.mutants(n, (top / n).read_bytes())]
        print(f"{folder}: {len(every)} mutants in {len(names)} files")
        random.Random(f"{args.seed}{folder}").shuffle(every)
        drawn += [(folder, mutant) for mutant in every]
    return drawn


class Run:
    """Judges mutants, and keeps what became of each."""

    def __init__(self, work: pathlib.Path) -> None:
        self.copy = judges.Copy(work / "tree")
        self.path = work / "results.json"
        self.results: dict[str, str] = {}
        self.seconds: dict[str, float] = {}
        if self.path.exists():
            self.results, self.seconds = json.loads(self.path.read_text())

    def save(self) -> None:
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps([self.results, self.seconds], indent=1))
        new.replace(self.path)

    def prepare(self, tests: list[str]) -> list[str]:
        """Those that pass without a mutant. How long one takes then is its limit."""
        new = [test for test in tests if test not in self.seconds]
        if new and not self.put_in_place(new):
            sys.exit(f"the copy does not build: {self.copy.top}/tmp/log")
        for test in new:
            began = time.monotonic()
            passes = self.copy.judge(test, 900)
            self.seconds[test] = time.monotonic() - began if passes else -1
            if not passes:
                print(f"left out, as it fails without a mutant: {test}")
            self.save()
        return [test for test in tests if self.seconds[test] >= 0]

    def put_in_place(self, tests: list[str]) -> bool:
        """Build what the tests need. Another file, mutated before, is whole again and
        newer than what was built of it."""
        units = [test for test in tests if judges.is_unit(test)]
        if len(units) == len(tests):
            return not units or self.copy.build(units)
        return self.copy.build([*units, *judges.TARGETS]) and self.copy.install()

    def killer(self, mutant: rules.Mutant, quick: bool) -> str:
        """The test that fails; "" for none, "build" if the mutant does not compile."""
        source = self.copy.top / mutant.path
        whole = source.read_bytes()
        broken = mutant.apply(whole)
        if not mutant.path.endswith(".c") and not self.compiles(broken):
            return "build"
        for tests in self.copy.tests(mutant.path)[: 1 if quick else 2]:
            tests = self.prepare(tests)
            source.write_bytes(broken)
            try:
                if not self.put_in_place(tests):
                    return "build"
                for test in tests:
                    if not self.copy.judge(test, 30 + 4 * self.seconds[test]):
                        return test
            finally:
                source.write_bytes(whole)
        return ""

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
        dead = sum(1 for _, killer in found if killer)
        excused = 0
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
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--folder", action="append", choices=judges.FOLDERS)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    parser.add_argument("--until")
    parser.add_argument("--dir", type=pathlib.Path)
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("file", nargs="*")
    args = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    print(f"seed {args.seed}")
    drawn = draw(args.top, args)
    work = args.dir or pathlib.Path(f"/tmp/flux-dws-mutate-{os.getuid()}")
    judged: dict[str, list[tuple[rules.Mutant, str]]] = {}
    (work / "tree").mkdir(mode=0o700, parents=True, exist_ok=True)
    copy_tree(args.top, work / "tree")
    run = Run(work)
    for folder, mutant in drawn:
        found = judged.setdefault(folder, [])
        if len(found) == args.count:
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
        if killer != "build":
            found.append((mutant, killer))
    print()
    return report(judged)


if __name__ == "__main__":
    sys.exit(main())
