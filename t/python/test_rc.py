# The rc script of flux-dws, which each broker runs at its start.
# SPDX-License-Identifier: LGPL-3.0-only
"""etc/modprobe/rc1.d/dws.py."""

from __future__ import annotations

import pathlib
import sys
import types
from collections.abc import Callable
from typing import Any

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "etc/modprobe/rc1.d/dws.py"
NODE = "dws-node"


class Context:
    """Stands for flux-modprobe's context, with a configuration."""

    def __init__(self, daemons: dict[str, str] | None = None) -> None:
        self.daemons = daemons
        self.logged: list[str] = []
        self.handle = self

    def conf_get(self, key: str, default: Any = None) -> Any:
        return self.daemons if key == "rabbit.daemons" else default

    def log(self, level: int, text: str) -> None:
        self.logged.append(text)

    def print(self, *args: object) -> None:
        pass


@pytest.fixture
def undo(monkeypatch: pytest.MonkeyPatch) -> Callable[[Context], None]:
    """The task that is run on every node."""
    tasks: dict[str, Any] = {}
    modprobe = types.ModuleType("flux.modprobe")

    def task(name: str, **options: Any) -> Callable[[Any], Any]:
        def note(function: Any) -> Any:
            tasks[name] = function, options
            return function

        return note

    modprobe.task = task  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "flux.modprobe", modprobe)
    exec(compile(SCRIPT.read_text(), str(SCRIPT), "exec"), {})
    function, options = tasks[NODE]
    assert options == {"ranks": "all", "needs_config": ["rabbit.mapping"]}
    return function  # type: ignore[no-any-return]


@pytest.fixture
def systemctl(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> pathlib.Path:
    """A systemctl that records its calls, and acts by the file `does` beside it."""
    script = tmp_path / "systemctl"
    script.write_text(
        f'#!/bin/sh\necho "$@" >>{tmp_path}/calls\n. {tmp_path}/does\n',
    )
    script.chmod(0o700)
    (tmp_path / "does").write_text("")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return tmp_path


def calls(folder: pathlib.Path) -> list[str]:
    return (folder / "calls").read_text().splitlines()


START = "--no-block start nnf-clientmount"


def test_what_the_prolog_has_done_is_undone(
    undo: Callable[[Context], None], systemctl: pathlib.Path
) -> None:
    context = Context({"copy-offload": "a.service", "other": "b.service"})
    undo(context)
    stops = ["--no-block stop a.service", "--no-block stop b.service"]
    assert calls(systemctl) == [*stops, START]
    assert context.logged == []


@pytest.mark.parametrize("units", [None, {}])
def test_where_no_daemons_are_configured(
    undo: Callable[[Context], None], systemctl: pathlib.Path, units: Any
) -> None:
    undo(Context(units))
    assert calls(systemctl) == [START]


def test_what_may_not_be_started_and_does_not_run_is_logged(
    undo: Callable[[Context], None], systemctl: pathlib.Path
) -> None:
    (systemctl / "does").write_text("echo Access denied >&2; exit 4")
    context = Context()
    undo(context)
    assert context.logged == ["dws: start nnf-clientmount: Access denied"]


def test_what_systemd_has_started_need_not_be_allowed(
    undo: Callable[[Context], None], systemctl: pathlib.Path
) -> None:
    (systemctl / "does").write_text('test "$1" = --quiet || exit 4')
    context = Context()
    undo(context)
    assert context.logged == []


def test_a_node_without_the_daemon_or_without_systemd_is_no_error(
    undo: Callable[[Context], None],
    systemctl: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (systemctl / "does").write_text("echo not found >&2; exit 5")
    context = Context()
    undo(context)
    monkeypatch.setenv("PATH", "/nonexistent")
    undo(context)
    assert context.logged == []
