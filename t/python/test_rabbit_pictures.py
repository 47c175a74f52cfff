# Pictures and pages in a browser, at the width of a phone and of a screen: what can be
# measured there. Debian's Chromium; without it these are skipped by name.
# SPDX-License-Identifier: LGPL-3.0-only
"""Layout of pictures and pages in a browser."""

from __future__ import annotations

import itertools
import pathlib
import re
from typing import Any
from xml.etree import ElementTree

import pytest
from browser_support import in_frames, needs_chromium
from flux_rabbit import picture, report, stats, term
from flux_rabbit.timeline import Mark, Span, Timeline

pytestmark = needs_chromium

WIDTHS = (390, 1280)
# Boxes of all texts of the page, relative to the picture that they are in, in units of
# that picture; the edges of the texts of its tables' columns; by how much the page is
# wider than its window.
MEASURE = """
    const told = {texts: [], columns: [], wider: 0};
    for (const text of doc.querySelectorAll("svg text")) {
        const svg = text.closest("svg"), all = svg.getBoundingClientRect();
        const box = text.getBoundingClientRect();
        const scale = svg.viewBox.baseVal.width / all.width;
        told.texts.push({
            scale, picture: Array.from(doc.querySelectorAll("svg")).indexOf(svg),
            text: text.textContent, width: svg.viewBox.baseVal.width,
            left: (box.left - all.left) * scale, right: (box.right - all.left) * scale,
            top: (box.top - all.top) * scale, bottom: (box.bottom - all.top) * scale,
            height: svg.viewBox.baseVal.height, chars: text.getNumberOfChars(),
            first: text.getStartPositionOfChar(0).x,
            last: text.getStartPositionOfChar(text.getNumberOfChars() - 1).x});
    }
    for (const table of doc.querySelectorAll("table"))
        for (const row of table.rows)
            Array.from(row.cells).forEach((cell, at) => {
                const range = doc.createRange();
                range.selectNodeContents(cell);
                const text = range.getBoundingClientRect();
                const box = cell.getBoundingClientRect();
                told.columns.push({
                    table: Array.from(doc.querySelectorAll("table")).indexOf(table),
                    at, head: cell.tagName === "TH", text: cell.textContent,
                    height: text.height,
                    left: text.left, right: text.right,
                    outside: Math.max(box.left - text.left, text.right - box.right)});
            });
    for (const box of [doc.documentElement, doc.body])
        told.wider = Math.max(told.wider, box.scrollWidth - box.clientWidth);
    return told;
"""
LONG = "dws-setup: workflow error in Setup: " + "no space is left on rabbit0, " * 8


def measured(page: str, width: int, folder: pathlib.Path) -> dict[str, Any]:
    """The browser's measures of a page in a frame of that width."""
    (folder / "page.html").write_text(page, encoding="utf8")
    told: dict[str, Any] = in_frames(folder, ["page.html"], width, MEASURE, folder)
    return told["page.html"]


def embedded(svg: str) -> str:
    return (
        '<!doctype html><meta name="viewport" content="width=device-width">'
        f"<style>svg{{max-width:100%;height:auto}}</style>{svg}"
    )


def no_text_outside(told: dict[str, Any]) -> None:
    assert told["texts"]
    for text in told["texts"]:
        assert text["left"] >= -0.5, text
        assert text["right"] <= text["width"] + 0.5, text
        assert text["top"] >= -0.5 and text["bottom"] <= text["height"] + 0.5, text
    for one, other in itertools.combinations(told["texts"], 2):
        assert one["picture"] != other["picture"] or not (
            min(one["right"], other["right"]) - max(one["left"], other["left"]) > 0.5
            and min(one["bottom"], other["bottom"]) - max(one["top"], other["top"]) > 4
        ), (one, other)


def finished() -> Timeline:
    line = Timeline(4711, 0.0, 10.0, False)
    line.spans = [
        Span("flux", "depend", 0.0, 1.0),
        Span("flux", "prolog", 1.0, 9.0),
        Span("rabbit", "Proposal", 0.0, 1.0),
        Span("rabbit", "Setup", 1.0, 9.0),
    ]
    line.marks = [Mark(9.9, LONG), Mark(0.1, "cancel: by the user")]
    return line


@pytest.mark.parametrize("width", WIDTHS)
def test_columns_of_a_screen_are_aligned(width: int, tmp_path: pathlib.Path) -> None:
    """A character is where it is on a terminal, whatever blanks come before it."""
    rows: list[term.Line] = [
        [("RABBIT     STATE      FREE", "head")],
        [("rabbit0", "bold"), ("    Ready    910GiB", "")],
        [("  rabbit1  Offline      0B  ", "dim"), ("!", "bad")],
    ]
    told = measured(embedded(term.svg(rows, 40, "title")), width, tmp_path)
    no_text_outside(told)
    columns = [column for line in rows for column in starts(line)]
    texts = [text for text in told["texts"] if text["text"] != "title"]
    assert len(texts) == len(columns)
    for (column, count), text in zip(columns, texts, strict=True):
        left = term.PAD + column * term.CELL_W
        assert text["chars"] == count, text
        assert text["first"] == pytest.approx(left, abs=1), text
        assert text["last"] == pytest.approx(left + (count - 1) * term.CELL_W, abs=1)


def starts(line: term.Line) -> list[tuple[int, int]]:
    """The column of each part of a line, and how many characters it has."""
    result, column = [], 0
    for text, _ in line:
        result.append((column, len(text)))
        column += len(text)
    return result


@pytest.mark.parametrize("width", WIDTHS)
def test_no_text_of_a_timeline_is_outside(width: int, tmp_path: pathlib.Path) -> None:
    told = measured(embedded(picture.svg([finished()])), width, tmp_path)
    no_text_outside(told)
    shown = " ".join(text["text"] for text in told["texts"])
    assert " ".join(LONG.split()) in shown


@pytest.mark.parametrize("width", WIDTHS)
def test_a_page_is_as_wide_as_the_window(width: int, tmp_path: pathlib.Path) -> None:
    page = picture.page([finished()])
    assert 'name="viewport"' in page
    told = measured(page, width, tmp_path)
    no_text_outside(told)
    can_be_read(told)
    assert told["wider"] <= 0


def test_it_is_xml_as_well() -> None:
    assert ElementTree.fromstring(picture.svg([finished()])).tag.endswith("svg")


def can_be_read(told: dict[str, Any]) -> None:
    """The smallest letters, of 11 units, are of 7 pixels or more."""
    assert max(text["scale"] for text in told["texts"]) <= 11 / 7


def columns_are_aligned(told: dict[str, Any]) -> None:
    """Figures end where those above them end; other texts begin where theirs begin."""
    columns: dict[tuple[int, int], list[Any]] = {}
    for cell in told["columns"]:
        if not cell["text"]:
            continue
        assert cell["outside"] <= 0.5, cell
        if " " not in cell["text"].strip() and len(cell["text"]) < 20:
            assert cell["height"] < 30, cell  # one line
        columns.setdefault((cell["table"], cell["at"]), []).append(cell)
    assert columns
    for cells in columns.values():
        figures = all(FIGURE.fullmatch(c["text"]) for c in cells if not c["head"])
        edge = "right" if figures else "left"
        assert len({round(cell[edge]) for cell in cells}) == 1, cells


FIGURE = re.compile(r"[0-9.]+(ms|s|m|h|d|m[0-9]+s|h[0-9]+m)?")
T0 = 1_700_000_000.0


def week() -> report.Report:
    """Many jobs of a week that ended in every way, and a cause that is long."""
    jobs, times = [], {}
    for n in range(3000):
        begin = T0 + n * 200
        result = list(report.RESULTS.values())[n % 4]
        cause = LONG if result == "failed" and n % 3 else ""
        jobs.append(
            report.Ended(
                *(n, 4000 + n % 12, 2, begin, begin + 60, begin + 3060, begin + 3660),
                *(result, cause or ("x" * 300 if result == "failed" else "")),
            )
        )
        times[n] = {"Setup": 0.02 + n, "PreRun": 1.5, "Teardown": 4000.0 + n}
    return report.Report(T0, T0 + 7 * report.DAY, jobs, times)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_report_fits_its_window(width: int, tmp_path: pathlib.Path) -> None:
    page = report.page(week())
    assert 'name="viewport"' in page
    told = measured(page, width, tmp_path)
    no_text_outside(told)
    can_be_read(told)
    columns_are_aligned(told)
    assert told["wider"] <= 0


@pytest.mark.parametrize("width", WIDTHS)
def test_the_table_of_a_timeline_is_aligned(width: int, tmp_path: pathlib.Path) -> None:
    columns_are_aligned(measured(picture.page([finished()]), width, tmp_path))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("seconds", [(0.0, 0.2), (3.0, 3.5), (0.001, 200_000.0)])
def test_no_text_of_statistics_is_outside(
    seconds: tuple[float, float], width: int, tmp_path: pathlib.Path
) -> None:
    found = stats.distributions([{"Setup": seconds[0]}, {"Teardown": seconds[1]}])
    no_text_outside(measured(embedded(stats.svg(found, 2)), width, tmp_path))
