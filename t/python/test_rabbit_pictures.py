# Pictures and pages in a browser, at the width of a phone and of a screen: what can be
# measured there. Debian's Chromium; without it these are skipped by name.
# SPDX-License-Identifier: LGPL-3.0-only
"""What a browser makes of pictures and pages."""

from __future__ import annotations

import pathlib
from typing import Any
from xml.etree import ElementTree

import pytest
from browser_support import dumped, needs_chromium
from flux_rabbit import picture, term
from flux_rabbit.timeline import Mark, Span, Timeline

pytestmark = needs_chromium

WIDTHS = (400, 1200)
# Boxes of all texts of the page, relative to the picture that they are in, in units of
# that picture; and by how much the page is wider than the window.
MEASURE = """
<pre id="told"></pre><script>
const told = {texts: [], wider: 0};
for (const text of document.querySelectorAll("svg text")) {
    const svg = text.closest("svg"), all = svg.getBoundingClientRect();
    const box = text.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / all.width;
    told.texts.push({
        text: text.textContent, width: svg.viewBox.baseVal.width,
        left: (box.left - all.left) * scale, right: (box.right - all.left) * scale,
        top: (box.top - all.top) * scale, bottom: (box.bottom - all.top) * scale,
        height: svg.viewBox.baseVal.height, chars: text.getNumberOfChars(),
        first: text.getStartPositionOfChar(0).x,
        last: text.getStartPositionOfChar(text.getNumberOfChars() - 1).x});
}
told.wider = document.documentElement.scrollWidth - window.innerWidth;
document.getElementById("told").textContent = JSON.stringify(told);
</script>
"""
LONG = "dws-setup: workflow error in Setup: " + "no space is left on rabbit0, " * 8


def measured(page: str, width: int, folder: pathlib.Path) -> dict[str, Any]:
    """What the browser says of a page in a window of that width."""
    path = folder / "page.html"
    path.write_text(page, encoding="utf8")
    told: dict[str, Any] = dumped(path.as_uri(), width, folder)
    return told


def embedded(svg: str) -> str:
    return (
        '<!doctype html><meta name="viewport" content="width=device-width">'
        f"<style>svg{{max-width:100%;height:auto}}</style>{svg}{MEASURE}"
    )


def no_text_outside(told: dict[str, Any]) -> None:
    assert told["texts"]
    for text in told["texts"]:
        assert text["left"] >= -0.5, text
        assert text["right"] <= text["width"] + 0.5, text
        assert text["top"] >= -0.5 and text["bottom"] <= text["height"] + 0.5, text


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
    told = measured(page.replace("</body>", MEASURE + "</body>"), width, tmp_path)
    no_text_outside(told)
    # Headless windows have a least width: what is measured is the one that there is.
    assert told["wider"] <= 0


def test_it_is_xml_as_well() -> None:
    assert ElementTree.fromstring(picture.svg([finished()])).tag.endswith("svg")
