# Timelines from a job's records, and their screens, which are compared with text files
# in t/data/screens (REGENERATE=1 writes new ones).
# SPDX-License-Identifier: LGPL-3.0-only
"""The timeline of flux rabbit."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import xml.etree.ElementTree as tree
from typing import Any

import pytest

pytest.importorskip("_flux")

from flux_rabbit import cli, losses, picture, stats, table, term, timeline, units, watch

SCREENS = pathlib.Path(__file__).resolve().parents[1] / "data" / "screens"
T0 = 1_700_000_000.0
NUMBER = 1 << 40

# An ordinary job: seconds after the submission, event, context.
EVENTS: list[tuple[float, str, dict[str, Any]]] = [
    (0.0, "submit", {"userid": 1000, "urgency": 16}),
    (0.1, "validate", {}),
    (0.2, "dependency-add", {"description": "dws-create"}),
    (3.2, "dependency-remove", {"description": "dws-create"}),
    (3.3, "depend", {}),
    (3.4, "priority", {"priority": 16}),
    (63.4, "alloc", {}),
    (63.5, "prolog-start", {"description": "dws-setup"}),
    (110.0, "dws_environment", {"variables": {}}),
    (110.1, "prolog-finish", {"description": "dws-setup", "status": 0}),
    (110.5, "start", {}),
    (410.5, "finish", {"status": 0}),
    (410.6, "epilog-start", {"description": "dws-epilog"}),
    (470.6, "epilog-finish", {"description": "dws-epilog", "status": 0}),
    (471.0, "free", {}),
    (471.1, "clean", {}),
]
TIMINGS: dict[str, str | None] = {
    "Setup": '"22.5s"',
    "DataIn": "10s",
    "PreRun": "12.000001s",
    "PostRun": "8.25s",
    "DataOut": "40.5s",
    "Teardown": "9s",
}


def eventlog(events: list[tuple[float, str, dict[str, Any]]]) -> str:
    return "".join(
        json.dumps({"timestamp": T0 + at, "name": name, "context": context}) + "\n"
        for at, name, context in events
    )


def upto(seconds: float) -> str:
    return eventlog([event for event in EVENTS if event[0] <= seconds])


def spans(line: timeline.Timeline, lane: str) -> dict[str, tuple[float, float | None]]:
    return {
        span.name: (
            round(span.begin - T0, 3),
            None if span.end is None else round(span.end - T0, 3),
        )
        for span in line.lane(lane)
    }


def compare(name: str, lines: list[term.Line]) -> None:
    text = "".join(term.plain(line).rstrip() + "\n" for line in lines)
    text = text.replace("ƒ", "f")
    path = SCREENS / f"{name}.txt"
    if os.environ.get("REGENERATE"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"{path}\n{text}"


def finished() -> timeline.Timeline:
    return timeline.build(NUMBER, eventlog(EVENTS), TIMINGS)


def test_phases() -> None:
    line = finished()
    assert not line.active
    assert spans(line, "flux") == {
        "depend": (0.0, 3.3),
        "queued": (3.3, 63.4),
        "prolog": (63.4, 110.5),
        "run": (110.5, 410.5),
        "cleanup": (410.5, 471.1),
    }


def test_states_follow_each_other() -> None:
    found = spans(finished(), "rabbit")
    assert list(found) == list(timeline.STATES)
    assert found["Proposal"] == (0.2, 3.2)
    assert found["Setup"] == (63.5, 86.0)
    assert found["DataIn"] == (86.0, 96.0)
    assert found["PreRun"] == (96.0, 108.0)
    assert found["Teardown"] == (461.6, 470.6)
    ends = [end for _, end in found.values() if end is not None]
    assert ends == sorted(ends)


def test_drivers_say_when_states_were_done() -> None:
    def driver(state: str, second: int) -> dict[str, str]:
        # T0 is 22:13:20
        minutes, rest = divmod(13 * 60 + 20 + second, 60)
        when = f"2023-11-14T22:{minutes:02}:{rest:02}.500000Z"
        return {"watchState": state, "completeTime": when}

    workflow = {"status": {"drivers": [driver("Setup", 90), driver("PreRun", 109)]}}
    line = timeline.build(NUMBER, eventlog(EVENTS), TIMINGS, workflow)
    found = spans(line, "rabbit")
    assert found["Setup"] == (68.0, 90.5)
    assert found["DataIn"] == (90.5, 100.5)
    assert found["PreRun"] == (97.5, 109.5)


def test_what_is_known_so_far() -> None:
    active = {
        "workflow": {
            "desired": "PreRun",
            "state": "PreRun",
            "ready": False,
            "since": T0 + 96,
            "age": 4.0,
        }
    }
    done = {"Setup": "22.5s", "DataIn": "10s"}
    # "Now" comes from the clock of the node that recorded the times.
    line = timeline.build(NUMBER, upto(100), done, None, active)
    assert line.active
    assert spans(line, "flux")["prolog"] == (63.4, None)
    assert spans(line, "rabbit")["PreRun"] == (96.0, None)
    assert line.lane("rabbit")[-1].length(line.end) == 4.0


def test_a_job_that_was_ended_early() -> None:
    early = [event for event in EVENTS if event[0] <= 63.5]
    note = "no space on rabbit0"
    early += [
        (70.0, "exception", {"type": "dws-setup", "severity": 0, "note": note}),
        (70.1, "prolog-finish", {"description": "dws-setup", "status": 1}),
        (70.2, "epilog-start", {"description": "dws-epilog"}),
        (72.0, "epilog-finish", {"description": "dws-epilog", "status": 0}),
        (73.0, "clean", {}),
    ]
    line = timeline.build(NUMBER, eventlog(early), {"Teardown": "1.5s"})
    assert list(spans(line, "flux")) == ["depend", "queued", "prolog", "cleanup"]
    assert spans(line, "rabbit")["Teardown"] == (70.5, 72.0)
    assert [mark.text for mark in line.marks] == [f"dws-setup: {note}"]


def test_success_is_told_by_the_eventlog(monkeypatch: pytest.MonkeyPatch) -> None:
    """watch ends when it does; job-list may not know yet that the job is over."""

    def end_of(events: list[tuple[float, str, dict[str, Any]]]) -> int:
        line = timeline.build(NUMBER, eventlog(events), TIMINGS)
        monkeypatch.setattr(watch.timeline, "fetch", lambda *_: [line])
        parser = argparse.ArgumentParser()
        watch.configure(parser, "watch")
        args = parser.parse_args([str(NUMBER)])
        args.json, args.color = False, "never"
        return watch.run(args)

    def exception(at: float) -> tuple[float, str, dict[str, Any]]:
        return (at, "exception", {"type": "x", "severity": 0, "note": ""})

    monkeypatch.setattr(watch.rpc, "Handle", lambda: None)
    monkeypatch.setattr(watch.rpc, "job_list", lambda *_: {"state": 32})
    assert end_of(EVENTS) == 0
    assert end_of([*EVENTS[:11], (400.0, "finish", {"status": 256}), *EVENTS[12:]]) == 1
    assert end_of([*EVENTS[:11], exception(400.0), *EVENTS[11:]]) == 1
    assert end_of([*EVENTS[:13], exception(460.0), *EVENTS[13:]]) == 0
    assert end_of([*EVENTS[:5], exception(4.0), EVENTS[-1]]) == 1


EVIL = "a\033[2J\nb\x9b1m\u202e\u200b"


def test_texts_of_others_do_nothing_to_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Notes and messages are a user's or a driver's, the terminal an admin's."""
    context = {"type": "x", "severity": 0, "note": EVIL}
    line = timeline.build(
        NUMBER, eventlog([*EVENTS[:5], (4.0, "exception", context)]), {}
    )
    tree.fromstring(picture.svg([line]))
    tree.fromstring(term.svg([[(EVIL, "")]], 80, "title"))
    watch.Printer().show(line)
    term.show([[(EVIL, "")]], colour=False)
    term.show([[(EVIL, "bold")]], colour=True)
    args = argparse.Namespace(format="{note}", sort=None, no_header=True)
    table.show(
        table.Table("t", {"note": ("NOTE", None)}, {"default": ("", "{note}")}),
        args,
        [[table.Row(note=EVIL)]],
    )
    loss = {"id": NUMBER, "userid": 0, "t": T0, "text": EVIL}
    print(term.plain(losses.row(loss)))
    out = capsys.readouterr().out
    assert out.count("\033") == 2, "that of our own style"
    assert "\x9b" not in out and "\nb" not in out
    assert out.count("a\ufffd[2J b\ufffd1m\ufffd\ufffd") == 5
    for text in (out, picture.page([line]), term.svg([[(EVIL, "")]], 80, EVIL)):
        assert "\u202e" not in text and "\u200b" not in text


def test_who_has_raised_an_exception() -> None:
    """A user may raise an exception of any type and text, ours included."""

    def texts(userid: int | None) -> list[tuple[str, bool]]:
        context = {"type": "dws-setup", "severity": 0, "note": "it failed"}
        if userid is not None:
            context["userid"] = userid
        events = eventlog([*EVENTS[:5], (4.0, "exception", context)])
        line = timeline.build(NUMBER, events, {}, owner="500")
        return [(mark.text, mark.ours) for mark in line.marks]

    assert texts(500) == texts(None) == [("dws-setup: it failed", True)]
    name = cli.user_name(4711)
    assert texts(4711) == [(f"raised by user {name}: dws-setup: it failed", False)]


def test_nodes_that_were_given_back_before_teardown() -> None:
    timings = {**TIMINGS, "DataOut": None, "Teardown": None}
    line = timeline.build(NUMBER, eventlog(EVENTS), timings)
    assert [span.name for span in line.lane("rabbit")][-1] == "PostRun"


def test_long_lines_are_folded() -> None:
    def folded(line: term.Line, width: int) -> list[str]:
        lines = term.fold(line, width)
        text = "".join("".join(term.plain(part).split()) for part in lines)
        assert text == "".join(term.plain(line).split()), "nothing is lost"
        return list(map(term.plain, lines))

    line: term.Line = [("  ! ", "bad"), ("one two ", ""), ("three", "bold")]
    assert folded(line, 17) == ["  ! one two three"]
    assert folded(line, 16) == ["  ! one two", "    three"]
    assert folded(line, 9) == ["  ! one", "    two", "    three"]
    assert folded([("a label of its own", ""), ("text", "")], 20) == [
        "a label of its",
        "  owntext",
    ]
    assert folded([("  ! ", ""), ("x" * 10, "")], 8) == [
        "  ! xxxx",
        "    xxxx",
        "    xx",
    ]
    assert term.fold(line, 16)[1] == [("    ", ""), ("three", "bold")]
    for width in range(1, 20):
        assert all(len(text) <= width for text in folded(line, width))


@pytest.mark.parametrize("width", [80, 200])
def test_text(width: int) -> None:
    lines = picture.text(finished(), width)
    assert all(term.width_of(line) <= width for line in lines)
    compare(f"timeline-{width}", lines)


@pytest.mark.parametrize("width", [80, 200])
def test_watch(width: int) -> None:
    active = {
        "phase": "prolog",
        "waiting": "",
        "note": "rabbit: mounting 12/16 nodes",
        "workflow": {
            "desired": "PreRun",
            "state": "PreRun",
            "ready": False,
            "since": T0 + 96,
        },
    }
    done = {"Setup": "22.5s", "DataIn": "10s"}
    line = timeline.build(NUMBER, upto(100), done, None, active, now=T0 + 100)
    lines = watch.screen(line, active, width, tick=3)
    assert all(term.width_of(line) <= width for line in lines)
    compare(f"watch-{width}", lines)


@pytest.mark.parametrize("width", [80, 200])
def test_stats(width: int) -> None:
    found = [
        stats.Distribution("Setup", [1.0, 2.0, 4.0, 8.0, 60.0]),
        stats.Distribution("PreRun", [0.25, 0.5, 0.5, 3.0]),
        stats.Distribution("Teardown", [5.0]),
    ]
    assert found[0].quantile(0.5) == 4.0
    assert found[1].quantile(0.25) == pytest.approx(0.4375)
    lines = stats.screen(found, 5, width)
    assert all(term.width_of(line) <= width for line in lines)
    compare(f"stats-{width}", lines)
    tree.fromstring(stats.svg(found, 5))


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("mounting 12/16 nodes", 0.75),
        ("staging in 43%, 1.2 GB/s", 0.43),
        ("mounting", None),
        ("unmounting 0/4 nodes", 0.0),
    ],
)
def test_progress(text: str, part: float | None) -> None:
    assert watch.progress(text) == part


def test_svg_and_page() -> None:
    line = finished()
    line.marks.append(timeline.Mark(T0 + 200, 'a <b> & "c"'))
    root = tree.fromstring(picture.svg([line, line]))
    text = "".join(root.itertext())
    assert 'a <b> & "c"' in text and "Setup: 22.5s" in text
    page = picture.page([line])
    assert "<script" not in page and "a &lt;b&gt; &amp;" in page
    assert "prefers-color-scheme" not in picture.svg([line], dark=False)


def test_png() -> None:
    pytest.importorskip("resvg_py")
    assert picture.png(picture.svg([finished()], dark=False))[1:4] == b"PNG"


def test_ticks_are_round_and_few() -> None:
    for span in (0.004, 0.9, 3.7, 59.0, 61.0, 3700.0, 90000.0):
        found = picture.ticks(span, 8)
        assert 1 <= len(found) <= 9
        assert found[0] == 0 and found[-1] <= span * 1.0001


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1.25s", 1.25),
        ("350.1ms", 0.3501),
        ("2m3.5s", 123.5),
        ("1h0m1s", 3601.0),
        ("7µs", 7e-6),
        ("", None),
        ("soon", None),
        ("1.5x", None),
    ],
)
def test_go_duration(text: str, seconds: float | None) -> None:
    found = units.go_duration(text)
    assert found == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0004, "0ms"),
        (0.25, "250ms"),
        (1.5, "1.50s"),
        (59.97, "1m00s"),
        (59.9, "59.9s"),
        (61, "1m01s"),
        (3661, "1h01m"),
        (90000, "1d01h"),
        (-2, "-2.00s"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert units.duration(seconds) == text


def test_size() -> None:
    assert str(units.Size(0)) == "0B"
    assert str(units.Size(1536)) == "1.5KiB"
    assert f"{units.Size(1 << 40):>8}" == "  1.0TiB"
    assert f"{units.Size(1 << 40):d}" == "1099511627776"


@pytest.mark.parametrize("age", [0.0, 1e9])
def test_a_clock_that_was_set_does_not_matter(age: float) -> None:
    workflow = {"desired": "Setup", "state": "Setup", "ready": False}
    active = {"workflow": {**workflow, "since": 1.0, "age": age}}
    line = timeline.build(NUMBER, upto(100), {}, active=active)
    assert line.end >= T0 + 63.5
    for row in picture.text(line, 80):
        assert sum(len(text) for text, _ in row) <= 80
