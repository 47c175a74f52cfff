# Which tests judge a mutant of a file, and how they run.
# SPDX-License-Identifier: LGPL-3.0-only
"""Unit tests that name the file come first, tests with an instance last."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import resource
import signal
import subprocess
import time

FOLDERS = {
    "libdws": "src/common/libdws",
    "dws": "src/modules/dws",
    "dws-jobtap": "src/modules/dws-jobtap",
    "shell": "src/shell",
    "flux_k8s": "src/python/flux_k8s",
    "atom": "src/atom",
}
# Names of unit tests. Those of dws.so lie apart, as each links some of its files only.
UNITS = {
    "src/common/libdws": "test_libdws_",
    "src/modules/dws": "test_dws_",
    "src/modules/dws-jobtap": "test_jobtap_",
}
# dws_sim's side of the ATOM notices
NOT_OURS = ("src/atom/flux_atom/standin.py",)
# The test files t/tNNNN-*.t of each folder: the first row that fits.
SHELL = {
    "src/common/libdws/directive": "2006 1086",
    "src/common/libdws/graph": "2000",
    "src/common/libdws/storage": "1101",
    "src/common/libdws/facts": "1039 1031",
    "src/common/libdws/decide": "1011 1013",
    "src/common/libdws/config": "1088 1055",
    "src/common/libdws/health": "1017",
    "src/common/libdws/tell": "1030 1082",
    "src/common/libdws/util": "1086 1088",
    "src/modules/dws/agent": "1035 3022",
    "src/modules/dws/health": "1017",
    "src/modules/dws/tell": "1030 3000 3020 3012",
    "src/modules/dws/sched": "1015 1006",
    "src/modules/dws/facts": "1055 1032",
    "src/modules/dws/act": "1011 1013 1020 1036 1014",
    "src/modules/dws": "1100 3022",
    "src/modules/dws-jobtap": "1000 1011 1054 1057 1021 1007 1012 2005",
    "src/shell": "1004 1034 1033",
    "src/python/flux_k8s": "1035 1017",
    "src/atom": "1200",
}
# What the life of a job needs is judged by this one, too.
ORDINARY = "1010"
TARGETS = (
    "src/modules/dws/dws.so",
    "src/modules/dws-jobtap/dws-jobtap.so",
    "src/shell/dws_environment.so",
)
# A test that computes longer than this has met a loop without an end.
CPU_S = 120


def is_unit(test: str) -> bool:
    return not test.endswith((".t", ".py"))


def limit_cpu() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))


class Copy:
    """The copy of the checkout that is broken and mended."""

    def __init__(self, top: pathlib.Path) -> None:
        self.top = top
        venv = top / ".venv"
        self.env = dict(os.environ, FLUX_DWS_PREFIX=str(venv), TMPDIR=str(top / "tmp"))
        self.env["PATH"] = f"{venv / 'bin'}:{os.environ['PATH']}"
        # Bytecode is known by second and size, which a mutant may share with the file.
        self.env["PYTHONDONTWRITEBYTECODE"] = "1"
        for name in ("FLUX", "FLUX_URI", "PYTHONPATH"):
            self.env.pop(name, None)
        (top / "tmp").mkdir(exist_ok=True)

    def run(self, command: list[str], limit_s: float, log: str = "log") -> bool:
        with open(self.top / "tmp" / log, "w", encoding="utf8") as out:
            process = subprocess.Popen(
                command,
                cwd=self.top / "t" if command[0] == "bash" else self.top,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                preexec_fn=limit_cpu,
            )
            try:
                return process.wait(limit_s) == 0
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGTERM)  # sharness ends what it began
                time.sleep(1)
                return False
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def build(self, targets: list[str]) -> bool:
        return self.run([".venv/bin/ninja", "-C", "build", *targets], 900)

    def install(self) -> bool:
        meson = [".venv/bin/meson", "install", "-C", "build", "--only-changed"]
        return self.run([*meson, "--no-rebuild"], 900)

    def units(self, path: str) -> list[str]:
        """Targets of ninja: first those that include the file's header."""
        source = pathlib.PurePath(path)
        header = rf'{source.parent.name}/{source.stem}\.h"|"{source.stem}\.h"'
        first: list[str] = []
        others: list[str] = []
        for folder, prefix in UNITS.items():
            if not path.startswith(folder + "/"):
                continue
            for test in sorted((self.top / folder).rglob("test/*.c")):
                target = f"{folder}/{prefix}{test.stem}"
                if not (self.top / "build" / target).exists():
                    continue  # a part of another
                if test.stem == source.stem or re.search(header, test.read_text()):
                    first.append(target)
                elif test.parent.parent == self.top / source.parent:
                    others.append(target)
        return first + others

    def pytests(self, path: str) -> list[str]:
        if path.endswith(".c"):
            return []
        name = pathlib.PurePath(path).stem
        word = "atom" if path.startswith(FOLDERS["atom"]) else rf"flux_k8s.*\b{name}\b"
        found = [
            test
            for test in sorted((self.top / "t/python").glob("test_*.py"))
            if re.search(word, test.read_text())
        ]
        found.sort(key=lambda test: name not in test.stem)
        return [str(test.relative_to(self.top)) for test in found]

    def shells(self, path: str) -> list[str]:
        row = next(row for row in SHELL if path.startswith(row))
        words = SHELL[row].split()
        if not path.startswith((FOLDERS["atom"], FOLDERS["shell"])):
            words.append(ORDINARY)
        return [
            str(next((self.top / "t").glob(f"t{word}-*.t")).relative_to(self.top))
            for word in words
        ]

    def tests(self, path: str) -> tuple[list[str], list[str]]:
        """Those that take moments, and the others."""
        return self.units(path) + self.pytests(path), self.shells(path)

    def judge(self, test: str, limit_s: float) -> bool:
        """Whether the test passes."""
        if test.endswith(".t"):
            # -i: the first test that fails ends it
            return self.run(["bash", pathlib.PurePath(test).name, "-i", "-v"], limit_s)
        if test.endswith(".py"):
            runner = ["scripts/lib/run-pytest", ".venv/bin/flux", "-x", test]
            return self.run(runner, limit_s)
        return self.run([f"build/{test}"], limit_s)
