# Compares the screens of flux rabbit on a terminal with text files in t/data/screens
# (REGENERATE=1 writes new ones).
# SPDX-License-Identifier: LGPL-3.0-only
"""The terminal views of flux rabbit."""

from __future__ import annotations

import os
import pathlib
import re
from collections.abc import Iterator

import instance_support
import pytest

pytest.importorskip("pyte")

# isort: split
from machine_support import Machine

HERE = pathlib.Path(__file__).resolve().parent
SCREENS = HERE.parent / "data" / "screens"
SIZES = [(80, 24), (200, 50)]
MACHINES = {"small": ("4", "9"), "large": ("696", "3000")}

pytestmark = pytest.mark.skipif(not instance_support.available(), reason="no flux")


@pytest.fixture(scope="module", params=list(MACHINES))
def machine(request: pytest.FixtureRequest) -> Iterator[tuple[str, Machine]]:
    made = Machine(*MACHINES[request.param])
    yield request.param, made
    made.close()


def steady(rows: list[str]) -> list[str]:
    """A screen without what is different each time."""
    text = "\n".join(rows)
    text = re.sub(r"\d\d:\d\d:\d\d", "HH:MM:SS", text)
    text = re.sub(r"\b(\d+d)?(\d+h)?\d\dm\b|\b\d+m\d\ds\b|\b\d+d\d\dh\b", "AGE", text)
    text = re.sub(r" +AGE", " AGE", text)
    text = re.sub(r"\d+\.\d changes/s", "N changes/s", text)
    return [re.sub(r"ƒ|\bf(?=[1-9A-Za-z]{5})", "f", row) for row in text.split("\n")]


def compare(name: str, rows: list[str]) -> None:
    """With the screen of that name."""
    text = "\n".join(steady(rows)).rstrip() + "\n"
    path = SCREENS / f"{name}.txt"
    if os.environ.get("REGENERATE"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"{path}\n{text}"


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("words", [("status",), ("list",), ("df",)], ids=lambda w: w[0])
def test_plain(
    machine: tuple[str, Machine], words: tuple[str, ...], size: tuple[int, int]
) -> None:
    name, made = machine
    terminal = made.terminal(size, *words)
    assert terminal.end() == 0
    assert b"\033[" in terminal.written, "a terminal is coloured"
    compare(f"{words[0]}-{name}-{size[0]}x{size[1]}", terminal.screen())


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_top(machine: tuple[str, Machine], size: tuple[int, int]) -> None:
    name, made = machine
    terminal = made.terminal(size, "top", "-i", "60")
    rows = terminal.shows("q:quit")
    assert len(rows) == size[1]
    compare(f"top-{name}-{size[0]}x{size[1]}", rows)
    terminal.type("h")
    terminal.shows("rabbits by health")
    terminal.type("s")
    terminal.shows("by state")
    terminal.type("r")
    terminal.shows("by state reversed")
    terminal.type("ff")
    terminal.shows("only queued")
    rows = terminal.screen()
    assert not any(" PreRun  " in row for row in rows if "rabbit" in row)
    terminal.type("/mounting\r")
    terminal.shows("/mounting")
    terminal.type("p")
    terminal.shows("paused")
    terminal.resize(100, 30)
    terminal.until(lambda rows: "q:quit" in rows[29])
    terminal.type("q")
    assert terminal.end() == 0
    assert b"\033[?1049l" in terminal.written, "the screen is given back"
    assert b"\033[?25h" in terminal.written, "the cursor as well"


def test_top_scrolls(machine: tuple[str, Machine]) -> None:
    name, made = machine
    if name != "large":
        pytest.skip("nothing to scroll")
    terminal = made.terminal((80, 24), "top", "-i", "60", "--sort", "id")
    first = terminal.shows("q:quit")
    terminal.type("jjj")
    terminal.until(lambda rows: rows != first and rows[-1] == first[-1])
    terminal.type("kkk")
    terminal.until(lambda rows: rows == first)
    terminal.type("\x03")
    terminal.end()


def test_no_colour() -> None:
    made = Machine("4", "1")
    try:
        terminal = made.terminal((80, 24), "list", NO_COLOR="1")
        assert terminal.end() == 0
        assert b"\033[" not in terminal.written
    finally:
        made.close()


def test_top_tells_changes() -> None:
    made = Machine("4", "9")
    try:
        terminal = made.terminal((100, 40), "top", "-i", "0.25")
        terminal.shows("q:quit")
        made.change()
        rows = terminal.shows("Setup → DataIn")
        text = "\n".join(rows)
        assert "rabbit0: Ready → Offline" in text
        assert re.search(r"f\w+ gone|ƒ\w+ gone", text)
        assert "new in" in text
        terminal.type("q")
        assert terminal.end() == 0
    finally:
        made.close()
