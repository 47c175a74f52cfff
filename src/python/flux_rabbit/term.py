# SPDX-License-Identifier: LGPL-3.0-only
#
# Pictures made of characters: lines of styled text that can be shown on a
# terminal, written as plain text, or drawn as SVG.
"""Styled text."""

from __future__ import annotations

import html
import os
import sys
from typing import IO

from flux_k8s.texts import clean as clean

# A line is a list of (text, style).
Line = list[tuple[str, str]]

# style: (SGR parameters, colour in a picture)
STYLES = {
    "": ("", "#c9d1d9"),
    "bold": ("1", "#ffffff"),
    "dim": ("2", "#8b949e"),
    "good": ("32", "#3fb950"),
    "warn": ("33", "#d29922"),
    "bad": ("1;31", "#f85149"),
    "head": ("7", "#0d1117"),
    "Proposal": ("38;5;244", "#8b949e"),
    "Setup": ("38;5;33", "#3b82f6"),
    "DataIn": ("38;5;37", "#14b8a6"),
    "PreRun": ("38;5;99", "#8b5cf6"),
    "PostRun": ("38;5;208", "#f59e0b"),
    "DataOut": ("38;5;44", "#06b6d4"),
    "Teardown": ("38;5;167", "#e5534b"),
    "depend": ("38;5;246", "#94a3b8"),
    "queued": ("38;5;250", "#b6c2d1"),
    "prolog": ("38;5;141", "#a78bfa"),
    "run": ("38;5;35", "#22c55e"),
    "cleanup": ("38;5;215", "#fb923c"),
    # A rabbit by how full it is.
    "heat0": ("38;5;240", "#30363d"),
    "heat1": ("38;5;28", "#238636"),
    "heat2": ("38;5;70", "#4c9a2a"),
    "heat3": ("38;5;178", "#d29922"),
    "heat4": ("38;5;202", "#e36209"),
    "heat5": ("38;5;196", "#f85149"),
}


def use_colour(stream: IO[str], when: str = "auto") -> bool:
    """Whether to colour the output: by default only on a terminal, and without
    NO_COLOR (no-color.org)."""
    if when != "auto":
        return when == "always"
    return (
        stream.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )


def moves(stream: IO[str]) -> bool:
    """Whether the stream is a terminal that can move its cursor."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def markup(text: str) -> str:
    """A text in HTML or SVG."""
    return html.escape(clean(text))


def plain(line: Line) -> str:
    """A line without styles."""
    return clean("".join(text for text, _ in line))


def width_of(line: Line) -> int:
    return sum(len(text) for text, _ in line)


def fit(line: Line, width: int) -> Line:
    """A line cut to a width."""
    result: Line = []
    left = width
    for text, style in line:
        if left <= 0:
            break
        result.append((text[:left], style))
        left -= len(text)
    return result


def _part(line: Line, begin: int, end: int) -> Line:
    """The columns from begin up to end."""
    result: Line = []
    at = 0
    for text, style in line:
        part = text[max(0, begin - at) : max(0, end - at)]
        if part:
            result.append((part, style))
        at += len(text)
    return result


def fold(line: Line, width: int) -> list[Line]:
    """Wrap a line, between words if possible. Continuation lines are indented by the
    first part of the line, its label."""
    text = "".join(text for text, _ in line)
    label = len(line[0][0]) if len(line) > 1 else 2
    if label > width // 2:
        label = min(2, width // 2)
    result: list[Line] = []
    begin, room = 0, width
    while len(text) - begin > room:
        first = begin + (0 if result else label)
        end = text.rfind(" ", first + 1, begin + room + 1)
        if end < 0:
            end = begin + room
        result.append(_part(line, begin, end))
        begin = end + (text[end] == " ")
        room = width - label
    result.append(_part(line, begin, len(text)))
    below = [[(" " * label, ""), *part] for part in result[1:]]
    return [result[0], *below]


def ansi(line: Line, colour: bool = True) -> str:
    """A line as a terminal wants it."""
    if not colour:
        return plain(line)
    parts = []
    for text, style in line:
        code = STYLES[style][0]
        text = clean(text)
        parts.append(f"\033[{code}m{text}\033[0m" if code else text)
    return "".join(parts)


def show(lines: list[Line], colour: bool, stream: IO[str] | None = None) -> None:
    """Print lines. Fold long ones on a terminal only: elsewhere a program may search
    for their text."""
    stream = stream or sys.stdout
    if stream.isatty():
        columns = size(stream)[0]
        lines = [part for line in lines for part in fold(line, columns)]
    for line in lines:
        stream.write(ansi(line, colour).rstrip(" ") + "\n")


def size(stream: IO[str]) -> tuple[int, int]:
    """Columns and rows of the terminal, 80x24 where there is none."""
    try:
        columns, rows = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return 80, 24
    return columns or 80, rows or 24


CELL_W, CELL_H, PAD = 8.4, 18.0, 14.0


def svg(lines: list[Line], width: int, title: str) -> str:
    """The lines as they would look in a terminal window."""
    full_w = width * CELL_W + 2 * PAD
    full_h = len(lines) * CELL_H + 2 * PAD + 24
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {full_w:.0f} '
        f'{full_h:.0f}" width="{full_w:.0f}" height="{full_h:.0f}" role="img">',
        f"<title>{markup(title)}</title>",
        f'<rect width="{full_w:.0f}" height="{full_h:.0f}" rx="8" fill="#0d1117"/>',
        f'<text x="{full_w / 2:.0f}" y="20" fill="#8b949e" font-size="12" '
        f'text-anchor="middle" font-family="sans-serif">{markup(title)}</text>',
        '<g font-family="DejaVu Sans Mono,Menlo,Consolas,monospace" font-size="14">',
    ]
    for row, line in enumerate(lines):
        column = 0
        top = PAD + 24 + row * CELL_H
        for text, style in fit(line, width):
            x = PAD + column * CELL_W
            column += len(text)
            if style == "head":
                out.append(
                    f'<rect x="{x:.1f}" y="{top:.1f}" width="{len(text) * CELL_W:.1f}"'
                    f' height="{CELL_H}" fill="#c9d1d9"/>'
                )
            if text.strip():
                out.append(
                    # Browsers look for xml:space in <text> itself, and not above.
                    f'<text x="{x:.1f}" y="{top + 13.5:.1f}" xml:space="preserve" '
                    f'textLength="{len(text) * CELL_W:.1f}" '
                    f'fill="{STYLES[style][1]}">{markup(text)}</text>'
                )
    out.append("</g></svg>")
    return "\n".join(out) + "\n"
