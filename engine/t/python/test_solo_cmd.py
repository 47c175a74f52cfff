# SPDX-License-Identifier: LGPL-3.0-only
"""The parsers that the commands of solo share, without an instance."""

import argparse
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

CMD = Path(__file__).parents[2] / "cmd"


def load(name: str) -> ModuleType:
    sys.path.insert(0, str(CMD))
    try:
        spec = importlib.util.spec_from_file_location(name, CMD / f"{name}.py")
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.pop(0)


@pytest.fixture(scope="module")
def solocmd() -> ModuleType:
    pytest.importorskip("flux", exc_type=ImportError)
    return load("solocmd")


@pytest.fixture(scope="module")
def jobcmd() -> ModuleType:
    pytest.importorskip("flux", exc_type=ImportError)
    return load("jobcmd")


@pytest.mark.parametrize(
    "text, seconds",
    [("1", 1.0), ("1.5s", 1.5), ("100ms", 0.1), ("2m", 120.0), ("1h", 3600.0)],
)
def test_duration(solocmd: ModuleType, text: str, seconds: float) -> None:
    assert solocmd.duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "x", "1y", "-1s"])
def test_bad_duration(solocmd: ModuleType, text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        solocmd.duration(text)


@pytest.mark.parametrize("text", ["15", "TERM", "SIGTERM", "sigterm"])
def test_signal(solocmd: ModuleType, text: str) -> None:
    assert solocmd.signum(text) == 15


@pytest.mark.parametrize("text", ["0", "1000", "NOSUCH", "-1", ""])
def test_bad_signal(solocmd: ModuleType, text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        solocmd.signum(text)


@pytest.mark.parametrize("text", ["ƒABC", "fABC", "0x10", "123"])
def test_jobid(solocmd: ModuleType, text: str) -> None:
    assert solocmd.jobid(text).orig == text


def test_bad_jobid(solocmd: ModuleType) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        solocmd.jobid("no job")


def test_deadline_passes(solocmd: ModuleType) -> None:
    class Never:
        def wait_for(self, timeout: float) -> None:
            assert timeout >= 0
            raise TimeoutError

    with pytest.raises(TimeoutError):
        solocmd.Deadline(0).wait(Never())


def test_no_deadline_waits_in_get(solocmd: ModuleType) -> None:
    class Never:
        def wait_for(self, timeout: float) -> None:
            raise AssertionError

    solocmd.Deadline(None).wait(Never())


@pytest.mark.parametrize(
    "path, full",
    [
        ("eventlog", "eventlog"),
        ("exec", "guest.exec.eventlog"),
        ("output", "guest.output"),
        ("guest.foo", "guest.foo"),
    ],
)
def test_eventlog_path(jobcmd: ModuleType, path: str, full: str) -> None:
    assert jobcmd.eventlog_path(path) == full


@pytest.mark.parametrize(
    "context, found",
    [(["a=1"], True), (["a=2"], False), (["b=x"], True), (["a=1", "b=y"], False)],
)
def test_match_context(jobcmd: ModuleType, context: list, found: bool) -> None:
    entry = {"name": "n", "timestamp": 0, "context": {"a": 1, "b": "x"}}
    assert jobcmd.matches(entry, context) is found


@pytest.mark.parametrize(
    "text, result",
    [("[0:1]", [9]), ("[:3]", [9, 8, 7]), ("[-1]", [0]), ("[1]", [8])],
)
def test_last_slice(jobcmd: ModuleType, text: str, result: list) -> None:
    jobs = list(range(9, -1, -1))
    assert jobs[jobcmd.parse_slice(text)] == result


def test_exit_code(jobcmd: ModuleType) -> None:
    assert jobcmd.exit_code(3 << 8) == 3
    assert jobcmd.exit_code(9) == 137
    assert os.WIFSIGNALED(9)
