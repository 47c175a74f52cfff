# Chooses the tests that judge a mutant of a file, and runs them.
# SPDX-License-Identifier: LGPL-3.0-only
"""Unit tests that name the file come first, tests with an instance last."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import resource
import shutil
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
# Beginnings of the names of unit tests. The tests of dws.so are targets of their own,
# as each links only some files of the module.
UNITS = {
    "src/common/libdws": "test_libdws_",
    "src/modules/dws": "test_dws_",
    "src/modules/dws-jobtap": "test_jobtap_",
}
# A unit test in a table of meson.build, and the files of the module that it links.
LINKED = re.compile(r"'(\w+)': \[\[([^]]*)\]")
# dws_sim's side of the ATOM notices
NOT_OURS = ("src/atom/flux_atom/standin.py",)
# Numbers of the test files t/tNNNN-*.t by path: the row with the longest matching
# prefix counts. Short tests come first, as they find a mutant soonest. A test with an
# "@" runs under flux-core, for code that the embedded engine does not reach.
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
    "src/modules/dws/act/abort": "1021",
    "src/modules/dws/act/admit": "1012 1060",
    "src/modules/dws/act/adopt": "1044",
    "src/modules/dws/act/contention": "1015 1057",
    "src/modules/dws/act/writeback": "1030",
    "src/modules/dws/act/expire": "3012",
    "src/modules/dws/act/failures": "1020 1022",
    "src/modules/dws/act/data_first": "1057",
    "src/modules/dws/act/groups": "1074 1012",
    "src/modules/dws/act/kvs": "3011 1013",
    "src/modules/dws/act/late": "1075",
    "src/modules/dws/act/limits": "3009 1081 1055",
    "src/modules/dws/act/look": "1041 1044",
    "src/modules/dws/act/repair": "1069 1039",
    "src/modules/dws/act/constraint": "3015",
    "src/modules/dws/act/objects": "1074 1101",
    "src/modules/dws/act/records": "3011 1031",
    "src/modules/dws/act/release": "1010 1012",
    "src/modules/dws/act/reservations": "1015 1057",
    "src/modules/dws/act/retry": "3013",
    "src/modules/dws/act/servers": "1101 1015 1038",
    "src/modules/dws/act/storage": "1101 1015 1056",
    "src/modules/dws/act/touch": "1046",
    "src/modules/dws/act/errorlog": "1035",
    "src/modules/dws/act/users": "1060",
    "src/modules/dws/act/workflow": "1010 1033 1074 3012",
    "src/modules/dws/act": "1010 1011",
    "src/modules/dws/agent/overdue": "1044",
    "src/modules/dws/agent/usage": "3000 1015",
    "src/modules/dws/agent": "1100 1101 1035",
    "src/modules/dws/base/commits": "1013 3011",
    "src/modules/dws/base/process": "3020",
    "src/modules/dws/base/timeline": "1066",
    "src/modules/dws/base": "1100 1035",
    "src/modules/dws/facts/config": "1088 1100",
    "src/modules/dws/facts/leases": "3012",
    "src/modules/dws/facts/persistent": "3006 1032",
    "src/modules/dws/facts/sweeps": "3012 3020",
    "src/modules/dws/facts/sync": "1013",
    "src/modules/dws/facts": "1101 3000 1015",
    "src/modules/dws/health/systemstatus": "1018",
    "src/modules/dws/health/waived": "1043",
    "src/modules/dws/health": "1017 1043",
    "src/modules/dws/sched/fluxion": "1016@",
    "src/modules/dws/sched/scheduler": "1015 1071 1016@",
    "src/modules/dws/sched": "1015 1071",
    "src/modules/dws/tell/annotate": "1030",
    "src/modules/dws/tell/expiry": "3012",
    "src/modules/dws/tell/explain": "1031",
    "src/modules/dws/tell/list": "3002 3000",
    "src/modules/dws/tell/logs": "1033",
    "src/modules/dws/tell/losses": "3000 1031",
    "src/modules/dws/tell/notices": "3020",
    "src/modules/dws/tell/profiles": "3008",
    "src/modules/dws/tell/queued": "1030 3010",
    "src/modules/dws/tell/quota": "3009",
    "src/modules/dws/tell/status": "1100 3000",
    "src/modules/dws/tell/token": "1034",
    "src/modules/dws/tell": "3000 3001 3004",
    "src/modules/dws": "1100 3000 3004",
    "src/modules/dws-jobtap/abandon": "1000 1021",
    "src/modules/dws-jobtap/dependency": "1054",
    "src/modules/dws-jobtap/job": "1000 1010 1057",
    "src/modules/dws-jobtap/limits": "1055",
    "src/modules/dws-jobtap/queue": "1057 1000",
    "src/modules/dws-jobtap/rebuild": "1007 1013",
    "src/modules/dws-jobtap/timelimit": "1059",
    "src/modules/dws-jobtap/user": "1060",
    "src/modules/dws-jobtap/validate": "1000 1012 1086 1057",
    "src/modules/dws-jobtap/waits": "1054 1075",
    "src/modules/dws-jobtap": "1000 1010",
    "src/shell": "1004 1034 1033",
    "src/python/flux_k8s/fields": "1010 1017",
    "src/python/flux_k8s": "1010",
    "src/atom": "1200",
}
TARGETS = (
    "src/modules/dws/dws.so",
    "src/modules/dws-jobtap/dws-jobtap.so",
    "src/shell/dws_environment.so",
)
# and what else is made of libdws
INSTALLED = (*TARGETS, "src/python/_dws/_dws.abi3.so")
# CPU seconds after which a test counts as caught in an endless loop.
CPU_S = 120
# A test hangs if it prints nothing for SILENT_S plus SILENCES times its longest silence
# without a mutant.
SILENT_S = 20
SILENCES = 3


def is_unit(test: str) -> bool:
    return not test.endswith((".t", "@", ".py"))


def unit(file: str) -> str:
    """The target of ninja of a unit test."""
    folder = max((f for f in UNITS if file.startswith(f + "/")), key=len)
    return f"{folder}/{UNITS[folder]}{pathlib.PurePath(file).stem}"


def limit_cpu() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))


class Copy:
    """The copy of the checkout that holds the mutants."""

    def __init__(self, top: pathlib.Path) -> None:
        self.top = top
        venv = top / ".venv"
        self.env = dict(os.environ, FLUX_DWS_PREFIX=str(venv), TMPDIR=str(top / "tmp"))
        self.env["PATH"] = f"{venv / 'bin'}:{os.environ['PATH']}"
        # Python matches bytecode by mtime (s) and size, which a mutant may share.
        self.env["PYTHONDONTWRITEBYTECODE"] = "1"
        for name in ("FLUX", "FLUX_URI", "PYTHONPATH"):
            self.env.pop(name, None)
        (top / "tmp").mkdir(exist_ok=True)
        self.objects: dict[str, bytes] = {}
        self.was_silent = False  # whether the last command was ended for its silence
        self.longest = 0.0  # silence of the last command in seconds
        self.is_python = True  # whether Python files may be installed with a mutant

    def run(self, command: list[str], silent_s: float, until: str = "") -> float:
        """The longest silence in seconds; less than 0 if the command fails, or is ended
        because its log has what it was to run for."""
        path = self.top / "tmp/log"
        with open(path, "w", encoding="utf8") as out:
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
        self.was_silent = False
        self.longest = 0.0
        size, since = 0, time.monotonic()
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.1)
                now = time.monotonic()
                self.longest = max(self.longest, now - since)
                if process.returncode is not None:
                    return self.longest if process.returncode == 0 else -1
                if path.stat().st_size != size:
                    size, since = path.stat().st_size, now
                    self.was_silent = False
                    log = path.read_text(encoding="utf8", errors="replace")
                    done = bool(until and re.search(until, log, re.MULTILINE))
                else:
                    self.was_silent = now - since > silent_s
                    done = self.was_silent
                if done:
                    os.killpg(process.pid, signal.SIGTERM)  # sharness ends its own
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(10)
                    return -1
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def build(self, targets: list[str]) -> bool:
        return self.run([".venv/bin/ninja", "-C", "build", *targets], 900) >= 0

    def install(self, is_python: bool) -> bool:
        """Install what is built; is_python says whether the mutant is in Python. For C
        the files of TARGETS will do, in a tenth of meson's time."""
        if is_python or self.is_python:
            self.is_python = is_python
            meson = [".venv/bin/meson", "install", "-C", "build", "--only-changed"]
            return self.run([*meson, "--no-rebuild"], 900) >= 0
        path = self.top / "build/meson-info/intro-installed.json"
        installed = json.loads(path.read_text())
        for target in TARGETS:
            new = self.top / "build" / target
            old = pathlib.Path(installed[str(new)])
            shutil.copy(new, old.with_suffix(".new"))
            old.with_suffix(".new").replace(old)
        return True

    def code(self, path: str) -> bytes | None:
        """Compile a C file. Returns its object without debug information, so that only
        the program counts; None if it does not compile."""
        commands = json.loads((self.top / "build/compile_commands.json").read_text())
        target = next(
            entry["output"]
            for entry in commands
            if os.path.normpath(f"build/{entry['file']}") == path
        )
        if not self.build([target]):
            return None
        code = self.top / "tmp/code.o"
        subprocess.run(
            ["objcopy", "--strip-debug", self.top / "build" / target, code], check=True
        )
        return code.read_bytes()

    def is_same(self, path: str, broken: bytes) -> bool | None:
        """Whether a mutant of a C file is the same program; None if it does not
        compile. The mutant is left in place, so that it is compiled once."""
        if path not in self.objects:
            self.objects[path] = self.code(path) or b""
        (self.top / path).write_bytes(broken)
        new = self.code(path)
        return None if new is None else new == self.objects[path]

    def units(self, path: str) -> list[str]:
        """Targets of ninja: first those that include the header of the file, or are
        linked with it."""
        source = pathlib.PurePath(path)
        header = rf'{source.parent.name}/{source.stem}\.h"|"{source.stem}\.h"'
        first: list[str] = []
        others: list[str] = []
        for folder in UNITS:
            if not path.startswith(folder + "/"):
                continue
            relative = path[len(folder) + 1 :]
            meson = (self.top / folder / "meson.build").read_text()
            linked = [t for t, files in LINKED.findall(meson) if relative in files]
            for test in sorted((self.top / folder).rglob("test/*.c")):
                target = unit(str(test.relative_to(self.top)))
                if not (self.top / "build" / target).exists():
                    continue  # a part of another
                if test.stem in (source.stem, *linked) or re.search(
                    header, test.read_text()
                ):
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
            if test.stem.endswith(f"_{name}") or re.search(word, test.read_text())
        ]
        found.sort(key=lambda test: name not in test.stem)
        return [str(test.relative_to(self.top)) for test in found]

    def shells(self, path: str) -> list[str]:
        row = max((row for row in SHELL if path.startswith(row)), key=len)
        found = []
        for word in SHELL[row].split():
            test = next((self.top / "t").glob(f"t{word.rstrip('@')}-*.t"))
            found.append(f"t/{test.name}{word[4:]}")
        return found

    def engine(self) -> str:
        """The flux command of a flux-core; "" if there is none."""
        find = ". scripts/lib/engines.sh && find_flux_core"
        found = subprocess.run(
            ["bash", "-c", find],
            cwd=self.top,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        return found.stdout.strip()

    def tests(self, path: str) -> tuple[list[str], list[str]]:
        """Quick tests of a file, and the shell tests, which take longer."""
        return self.units(path) + self.pytests(path), self.shells(path)

    def why(self) -> str:
        """The line of the last test's log that says what failed, if there is one."""
        text = (self.top / "tmp/log").read_text(encoding="utf8", errors="replace")
        lines = re.findall(r"^(?:not ok|FAILED|\[  FAILED  \]) .*", text, re.MULTILINE)
        return lines[0] if lines else ""

    def judge(self, test: str, silence_s: float) -> float:
        """Run a test whose longest silence without a mutant is silence_s. Returns its
        longest silence in seconds; less than 0 if it fails."""
        limit_s = SILENT_S + SILENCES * silence_s
        name = pathlib.PurePath(test).name
        if test.endswith("@"):
            engine = self.engine()
            command = ["bash", "-c", f"FLUX={engine} exec bash {name[:-1]} -i -v"]
            if not engine:
                return -1
        elif test.endswith(".t"):
            # -i: the first test that fails ends it
            command = ["bash", name, "-i", "-v"]
        elif test.endswith(".py"):
            command = ["scripts/lib/run-pytest", ".venv/bin/flux", "-x", "-v", test]
        else:
            command = [f"build/{test}"]
        return self.run(command, limit_s)
