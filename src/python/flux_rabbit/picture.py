# SPDX-License-Identifier: LGPL-3.0-only
#
# Timelines and statistics as lines for a terminal, as SVG, as a self-contained page,
# and as PNG if a package that renders SVG is installed.
"""Pictures."""

from __future__ import annotations

import importlib
import math
import textwrap
from collections.abc import Collection
from typing import Any

from flux_rabbit.term import STYLES, Line, fit, markup
from flux_rabbit.timeline import LANES, MEANING, PHASES, STATES, Timeline
from flux_rabbit.units import duration

LANE_LABEL = {"flux": "Flux", "rabbit": "rabbit"}


class CannotDraw(Exception):
    """A package for pictures is not installed; the text names it."""


# On a terminal


def _cells(begin: float, end: float, line: Timeline, width: int) -> tuple[int, int]:
    """First and last column of a bar; nothing is too short to be seen."""
    scale = width / max(line.end - line.begin, 1e-9)
    first = max(0, min(int((begin - line.begin) * scale), width - 1))
    last = min(max(first + 1, round((end - line.begin) * scale)), width)
    return first, last


def text(line: Timeline, width: int) -> list[Line]:
    """A row for each phase and state, with bars on one axis."""
    bar_width = max(10, width - 22)
    total = duration(line.end - line.begin)
    head: Line = [(line.name, "bold"), (f"  {total}", "")]
    if line.active:
        head.append((" and going on", "dim"))
    lines = [fit(head, width)]
    for lane in LANES:
        for span in line.lane(lane):
            end = line.end if span.end is None else span.end
            first, last = _cells(span.begin, end, line, bar_width)
            glyph = "▒" if span.end is None else "█"
            lines.append(
                fit(
                    [
                        (f"  {span.name:9}", span.name),
                        (f"{duration(span.length(line.end)):>8}  ", ""),
                        (" " * first, ""),
                        (glyph * (last - first), span.name),
                    ],
                    width,
                )
            )
        if lane == "flux":
            lines.append(fit([(" " * 21 + "┄" * bar_width, "dim")], width))
    lines.append(fit(_axis(line, bar_width), width))
    for mark in line.marks:
        at = duration(mark.when - line.begin)
        lines.append([(f"  ! at {at}: ", "bad"), (mark.text, "")])
    return lines


def _axis(line: Timeline, width: int) -> Line:
    span = line.end - line.begin
    row = [" "] * width
    for at in ticks(span, max(2, width // 12)):
        label = f"╵{duration(at) if at else '0'}"
        column = int(at / max(span, 1e-9) * width)
        if column + len(label) <= width:
            row[column : column + len(label)] = label
    return [(" " * 21, ""), ("".join(row), "dim")]


def ticks(span: float, most: int) -> list[float]:
    """Round moments between 0 and span, at most so many."""
    if span <= 0:
        return [0.0]
    rough = span / most
    scale = 10.0 ** math.floor(math.log10(rough))
    steps = [scale * f for f in (1, 2, 5, 10)]
    steps += [60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 21600.0, 86400.0]
    whole = sorted(s for s in steps if s >= rough)
    # From a minute on, minutes and hours.
    step = next((s for s in whole if s < 10 or s >= 60 or s in (10, 20)), whole[-1])
    return [step * n for n in range(int(span / step + 1e-9) + 1)]


# As SVG

LEFT, RIGHT, BAR, GAP = 74.0, 24.0, 24.0, 5.0
# A character of 12 px is as wide at most, on average.
CHARACTER = 7.0
STYLE = """
 .bg{fill:#ffffff}.fg{fill:#1f2328}.dim{fill:#656d76}.grid{stroke:#d0d7de}
 .bad{fill:#cf222e}.in{fill:#ffffff}
 text{font-family:system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif}
"""
DARK = """ @media (prefers-color-scheme:dark){.bg{fill:#0d1117}.fg{fill:#e6edf3}
 .dim{fill:#8b949e}.grid{stroke:#30363d}.bad{fill:#f85149}}
"""


def frame(body: list[str], title: str, width: float, height: float, dark: bool) -> str:
    """A whole SVG document. `dark` lets it follow the reader's colour scheme."""
    style = STYLE + (DARK if dark else "")
    size = f'width="{width:.0f}" height="{height:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} '
        f'{height:.0f}" {size} role="img" font-size="13">'
        f"<title>{markup(title)}</title><style>{style}</style>"
        f'<rect class="bg" {size} rx="6"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def svg(lines: list[Timeline], width: int = 960, dark: bool = True) -> str:
    """A picture of several timelines, whose axes have the same scale and begin with the
    submission of each job."""
    span = max((line.end - line.begin for line in lines), default=0.0) or 1e-9
    scale = (width - LEFT - RIGHT) / span
    body: list[str] = []
    y = 16.0
    for line in lines:
        y = _svg_job(body, line, y, scale, width)
    y = _svg_axis(body, span, y, scale)
    y = _svg_legend(body, lines, y + 22, width)
    title = "Timeline of " + ", ".join(line.name for line in lines)
    return frame(body, title, width, y + 14, dark)


def _svg_job(
    body: list[str], line: Timeline, y: float, scale: float, width: int
) -> float:
    total = duration(line.end - line.begin)
    tail = " and going on" if line.active else ""
    body.append(
        f'<text class="fg" x="12" y="{y + 10:.1f}" font-weight="600">'
        f'{markup(line.name)}<tspan class="dim" font-weight="400" dx="8">'
        f"{total}{tail}</tspan></text>"
    )
    y += 22
    for lane in LANES:
        body.append(
            f'<text class="dim" x="{LEFT - 10}" y="{y + BAR / 2 + 4:.1f}" '
            f'text-anchor="end">{LANE_LABEL[lane]}</text>'
        )
        for part in line.lane(lane):
            length = part.length(line.end)
            x = LEFT + (part.begin - line.begin) * scale
            bar = max(2.0, length * scale)
            tip = f"{part.name}: {duration(length)} ({MEANING[part.name]})"
            opacity = ' fill-opacity="0.6"' if part.end is None else ""
            body.append(
                f'<g><title>{markup(tip)}</title><rect x="{x:.1f}" y="{y:.1f}" '
                f'width="{bar:.1f}" height="{BAR}" rx="3" '
                f'fill="{STYLES[part.name][1]}"{opacity}/>'
                + _bar_label(part.name, duration(length), x, y, bar)
                + "</g>"
            )
        y += BAR + GAP
    for mark in line.marks:
        x = LEFT + (mark.when - line.begin) * scale
        y += 12
        body.append(f'<path class="bad" d="M{x:.1f} {y - 12:.1f}l5 6-5 6-5-6z"/>')
        for text in textwrap.wrap(mark.text, int((width - 24) / CHARACTER)):
            y += 14
            body.append(
                f'<text class="bad" x="12" y="{y:.1f}" font-size="12">'
                f"{markup(text)}</text>"
            )
    return y + 10


def _bar_label(name: str, length: str, x: float, y: float, bar: float) -> str:
    """The longest label that fits into a bar, or none."""
    for label in (f"{name} {length}", name):
        if len(label) * 7.0 + 8 < bar:
            return (
                f'<text class="in" x="{x + bar / 2:.1f}" y="{y + BAR / 2 + 4:.1f}" '
                f'text-anchor="middle" font-size="12">{label}</text>'
            )
    return ""


def _svg_axis(body: list[str], span: float, y: float, scale: float) -> float:
    for at in ticks(span, 8):
        x = LEFT + at * scale
        body.insert(
            0,
            f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="30" y2="{y + 4:.1f}"/>',
        )
        label = duration(at) if at else "0"
        body.append(
            f'<text class="dim" x="{x:.1f}" y="{y + 18:.1f}" text-anchor="middle" '
            f'font-size="11">{label}</text>'
        )
    return y + 20


def _svg_legend(body: list[str], lines: list[Timeline], y: float, width: int) -> float:
    """The names and durations of all spans, as some bars are too short for a label."""
    x = 12.0
    alone = lines[0] if len(lines) == 1 else None
    for name in (*PHASES, *STATES):
        spans = [s for line in lines for s in line.spans if s.name == name]
        if not spans:
            continue
        if name == STATES[0]:
            x, y = 12.0, y + 20
        label = name
        if alone is not None:
            label += " " + duration(spans[0].length(alone.end))
        step = 24 + len(label) * 7.4
        if x + step > width:
            x, y = 12.0, y + 20
        body.append(
            f'<rect x="{x:.1f}" y="{y - 10:.1f}" width="11" height="11" rx="2" '
            f'fill="{STYLES[name][1]}"/><text class="fg" x="{x + 15:.1f}" y="{y:.1f}" '
            f'font-size="12">{label}</text>'
        )
        x += step
    return y


# As a page, as PNG

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>
 :root{{color-scheme:light dark}}
 body{{font-family:system-ui,sans-serif;margin:1rem;max-width:64rem;
  overflow-wrap:anywhere}}
 div{{overflow-x:auto}}
 table{{border-collapse:collapse;margin:1rem 0}}
 td,th{{padding:.2rem .8rem;text-align:left;border-bottom:1px solid #8884}}
 td:not(:last-child),th{{white-space:nowrap}} td:last-child{{min-width:8rem}}
 .n{{text-align:right;font-variant-numeric:tabular-nums}}
 i{{display:inline-block;width:.8em;height:.8em;border-radius:2px}}
 .bad{{color:#cf222e}} svg{{max-width:100%;min-width:40rem;height:auto}}
</style></head><body>
<h1>{title}</h1>
<div>{picture}</div>
{tables}
</body></html>
"""


def table(head: list[str], rows: list[list[str]], figures: Collection[int] = ()) -> str:
    """A table as HTML, which scrolls in a narrow window; only the last column wraps.
    Cells are markup. The columns `figures` are right-aligned."""
    body = []
    for tag, cells in [("th", head)] * bool(head) + [("td", row) for row in rows]:
        kinds = [' class="n"' if n in figures else "" for n in range(len(cells))]
        parts = zip(kinds, cells)
        body.append("".join(f"<{tag}{kind}>{cell}</{tag}>" for kind, cell in parts))
    text = "\n".join(f"<tr>{row}</tr>" for row in body)
    return f"<div><table>{text}</table></div>"


def page(lines: list[Timeline]) -> str:
    """A self-contained HTML file with pictures and tables."""
    title = "Timeline of " + ", ".join(line.name for line in lines)
    tables = []
    for line in lines:
        rows = [
            [
                f'<i style="background:{STYLES[span.name][1]}"></i> {span.name}',
                LANE_LABEL[span.lane],
                duration(span.begin - line.begin),
                duration(span.length(line.end)),
                MEANING[span.name],
            ]
            for span in line.spans
        ]
        notes = "".join(
            f'<p class="bad">after {duration(mark.when - line.begin)}: '
            f"{markup(mark.text)}</p>"
            for mark in line.marks
        )
        tables.append(
            f"<h2>{markup(line.name)}</h2>{notes}"
            + table(["", "of", "began after", "took", ""], rows, (2, 3))
        )
    return PAGE.format(
        title=markup(title), picture=svg(lines), tables="\n".join(tables)
    )


def png(picture: str) -> bytes:
    """An SVG picture as PNG, twice as large.

    Raises:
        CannotDraw: no package that renders SVG is installed.
    """
    try:
        resvg: Any = importlib.import_module("resvg_py")
        return bytes(resvg.svg_to_bytes(svg_string=picture, zoom=2))
    except ImportError:
        pass
    try:
        cairosvg: Any = importlib.import_module("cairosvg")
    except (ImportError, OSError):
        raise CannotDraw(
            "PNG needs the Python package resvg-py or cairosvg "
            "(pip install resvg-py); --svg needs nothing"
        ) from None
    return bytes(cairosvg.svg2png(bytestring=picture.encode(), scale=2))
