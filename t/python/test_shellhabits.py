# The check of t/*.t for pipes that lose an exit code: what it finds, and what it
# has to leave alone.
# SPDX-License-Identifier: LGPL-3.0-only
"""scripts/lib/shellhabits.py."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = HERE.parents[1] / "scripts" / "lib" / "shellhabits.py"


def check(path: pathlib.Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == (1 if lines else 0), done.stderr
    return lines


@pytest.mark.parametrize(
    "text",
    [
        "flux dmesg | grep x",
        'if flux module list | grep -q "^a "; then :; fi',
        'test "$(flux job eventlog 1 | grep -c x)" = 1',
        "test_expect_success 'title' '\n\tdws_ctl state |\n\tjq .a\n'",
        "true && flux job \\\n\tinfo 1 R | jq .",
        "dws_wait 60 flux jobs | sort",
        'env -u FLUX_URI "$FLUX" jobs 2>&1 | sort',
        "x=${y:-z} flux jobs | sort",
    ],
)
def test_found(tmp_path: pathlib.Path, text: str) -> None:
    path = tmp_path / "a.sh"
    path.write_text(text + "\n")
    assert "the pipe drops the exit code of:" in check(path)[0]


@pytest.mark.parametrize(
    "text",
    [
        "flux dmesg >out && grep x out | sort",
        "flux cancel 1 || true",
        "echo {} | flux config load",
        'jq ".a | .b" flux | sort',
        "# flux dmesg | grep x",
        'flux jobs -no "{id} | {state}" >out',
    ],
)
def test_left_alone(tmp_path: pathlib.Path, text: str) -> None:
    path = tmp_path / "a.sh"
    path.write_text(text + "\n")
    assert check(path) == []


@pytest.mark.parametrize("words", ["grep . a/kept-*/pids", "test -e out.?"])
def test_pattern_that_waits(tmp_path: pathlib.Path, words: str) -> None:
    path = tmp_path / "a.sh"
    path.write_text(f"true &&\n\tdws_until {words} &&\n\tls *\n")
    assert "a.sh:2: the pattern is read once" in check(path)[0]
    path.write_text('dws_until grep "a.*" out && ls *\n')
    assert check(path) == []


def test_is_executable(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.t"
    path.write_text("true\n")
    assert "chmod +x" in check(path)[0]
    path.chmod(0o755)
    assert check(path) == []
