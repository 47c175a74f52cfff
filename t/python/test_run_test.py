# SPDX-License-Identifier: LGPL-3.0-only
"""scripts/lib/run-test, which runs a file of tests for prove."""

import os
import signal
import subprocess
from pathlib import Path

RUN_TEST = Path(__file__).parents[2] / "scripts" / "lib" / "run-test"
LIMIT_S = 60


def run(
    tmp_path: Path, text: str, limit: int = LIMIT_S, **more: str
) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "x.t"
    script.write_text(text, encoding="utf-8")
    env = {k: v for k, v in os.environ.items() if not k.startswith("DWS_")}
    return subprocess.run(
        [RUN_TEST, str(limit), script],
        env=env | {"TMPDIR": str(tmp_path)} | more,
        capture_output=True,
        encoding="utf-8",
        timeout=LIMIT_S,
        check=False,
    )


def test_results_only(tmp_path: Path) -> None:
    done = run(tmp_path, "echo talk; echo ok 1; echo 1..1\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok 1\n1..1\n", "")


def test_a_failure_shows_its_text(tmp_path: Path) -> None:
    done = run(tmp_path, "echo talk; echo ok 1; echo why; echo not ok 2; exit 3\n")
    assert (done.returncode, done.stdout) == (3, "ok 1\nnot ok 2\n")
    assert "exit status 3" in done.stderr
    assert "why" in done.stderr
    assert "talk" not in done.stderr


def test_what_a_failed_test_leaves_is_not_waited_for(tmp_path: Path) -> None:
    """The process has the output of the test file open."""
    pid = tmp_path / "pid"
    done = run(tmp_path, f"sleep 600 & echo $! >{pid}; echo not ok 1; exit 1\n")
    os.kill(int(pid.read_text(encoding="utf-8")), signal.SIGKILL)
    assert done.returncode == 1
    assert done.stdout == "not ok 1\n"


def test_a_file_that_hangs_says_what_stands_still(tmp_path: Path) -> None:
    hangs = "echo ok 1; tail -f /dev/null\n"
    done = run(tmp_path, hangs, 1, DWS_HUNG="echo PreRun")
    assert (done.returncode, done.stdout) == (124, "ok 1\n")
    assert done.stderr.startswith("PreRun\n")


def test_a_file_is_skipped_by_name_when_the_time_is_over(tmp_path: Path) -> None:
    until = {"DWS_UNTIL": "1", "DWS_TAP": str(tmp_path)}
    done = run(tmp_path, "echo ok 1; echo 1..1\n", **until)
    line = "1..0 # SKIP x.t: no time left (DWS_UNTIL)\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, line, "")
    assert (tmp_path / "x.t.tap").read_text(encoding="utf-8") == line


def test_a_file_runs_while_there_is_time(tmp_path: Path) -> None:
    done = run(tmp_path, "echo ok 1; echo 1..1\n", DWS_UNTIL="99999999999")
    assert (done.returncode, done.stdout) == (0, "ok 1\n1..1\n")
