# flux rabbit logs: finds the new lines, and the end of the log.
# SPDX-License-Identifier: LGPL-3.0-only
"""Output of a log that is followed."""

from __future__ import annotations

import argparse
import json

import pytest
from flux_rabbit import cli, logs
from flux_rabbit.logs import LEFT_OUT, Printed, have_ended


def stamped(*lines: tuple[int, str]) -> str:
    return "".join(f"2026-01-02T03:04:05.{at:09d}Z {text}\n" for at, text in lines)


def test_each_line_once() -> None:
    printed = Printed()
    first = stamped((1, "tick"), (2, "tick"), (2, "tick"))
    assert printed.unseen(first, False) == ["tick\n"] * 3
    assert printed.unseen(first, False) == []
    more = stamped((2, "tick"), (2, "tick"), (2, "tick"), (3, "tock"))
    assert printed.unseen(more, True) == ["tick\n", "tock\n"]


def test_a_gap_is_told() -> None:
    printed = Printed()
    # At the beginning it is the end of the log that is wanted.
    assert printed.unseen(stamped((1, "a")), True) == ["a\n"]
    assert printed.unseen(stamped((5, "e")), True) == [f"{LEFT_OUT}\n", "e\n"]


def test_the_rest_is_in_the_record() -> None:
    printed = Printed()
    printed.unseen(stamped((1, "tick"), (2, "tick")), False)
    assert printed.rest("tick\ntick\ntick\n", False) == ["tick\n"]
    assert printed.rest("tick\nend\n", True) == [f"{LEFT_OUT}\n", "tick\n", "end\n"]
    printed.unseen(stamped((3, "x")), False)
    assert printed.rest("x\nend\n", True) == [f"{LEFT_OUT}\n", "x\n", "end\n"]
    assert printed.rest("tick\ntick\nx\nend\n", True) == ["end\n"]
    assert Printed().rest("all\n", True) == ["all\n"]


@pytest.mark.parametrize("end", "\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")
def test_a_line_ends_where_the_log_ends_it(end: str) -> None:
    """Not at each character at which Python's splitlines() does: programs draw their
    progress with carriage returns."""
    printed = Printed()
    text = stamped((1, f"10 %{end}20 %"), (2, "done"))
    assert printed.unseen(text, False) == [f"10 %{end}20 %\n", "done\n"]
    assert printed.unseen(text, False) == []
    assert Printed().rest(f"10 %{end}20 %\n", True) == [f"10 %{end}20 %\n"]


def test_an_older_agent_is_named() -> None:
    with pytest.raises(cli.Failure, match="older release"):
        Printed().unseen("no time\n", False)


@pytest.mark.parametrize(
    ("phases", "ended"),
    [
        ([], False),
        ([("r0", "Succeeded")], True),
        ([("r0", "Succeeded"), ("r1", "Running")], False),
        ([("r0", "Failed")], False),
        ([("r0", "Failed"), ("r0", "Succeeded")], True),
        ([("r0", "Failed"), ("r0", "Running")], False),
    ],
)
def test_the_end(phases: list[tuple[str, str]], ended: bool) -> None:
    assert have_ended([{"node": n, "phase": p} for n, p in phases]) is ended


def test_what_comes_from_a_container_does_not_reach_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    entry = {"pod": "p", "node": "r0", "container": "c", "log": "\033[2Jx\n"}
    logs.Screen().show([{**entry, "truncated": False}], True)
    out = capsys.readouterr().out
    assert "\033" not in out
    assert out.startswith("r0: ")


@pytest.mark.parametrize(("truncated", "lines"), [(True, 2), (False, 1)])
def test_earlier_lines_that_are_left_out_are_told(
    truncated: bool,
    lines: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    entry = {"pod": "p", "node": "r0", "container": "c", "truncated": truncated}
    monkeypatch.setattr(logs.rpc, "Handle", lambda: None)
    monkeypatch.setattr(logs, "kept", lambda handle, number: None)
    monkeypatch.setattr(
        logs, "_read", lambda *args: [{**entry, "log": stamped((1, "last"))}]
    )
    args = argparse.Namespace(jobid="1", follow=False, json=False)
    assert logs.run(args) == 0
    out = capsys.readouterr().out.splitlines()
    assert out == [f"r0: {logs.EARLIER}", "r0: last"][2 - lines :]
    # programs have "truncated"
    args.json = True
    assert logs.run(args) == 0
    [read] = json.loads(capsys.readouterr().out)
    assert read == {**entry, "log": "last\n"}


def test_without_an_instance(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FLUX_URI", "local:///nowhere/local-0")
    assert cli.main(["logs", "1"]) == cli.EXIT_ERROR
    err = capsys.readouterr().err
    assert err.startswith("flux-rabbit: ERROR: cannot connect to a Flux instance (")
    assert "FLUX_URI" in err
