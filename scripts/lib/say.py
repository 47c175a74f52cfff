# Prints lines for the demonstrations, in the styles of flux rabbit.
# SPDX-License-Identifier: LGPL-3.0-only
"""Print styled lines."""

from __future__ import annotations

import sys
from typing import Union

from flux_rabbit.term import Line, show, use_colour

Part = Union[str, tuple[str, str]]
GOOD: Part = ("✓", "good")
BAD: Part = ("✗", "bad")


def say(*parts: Part) -> None:
    """Print a line, or several. A part is a text, or a text and its style, one of
    flux_rabbit.term.STYLES. Colours are for terminals alone."""
    lines: list[Line] = [[]]
    for part in parts:
        text, style = (part, "") if isinstance(part, str) else part
        first, *others = text.split("\n")
        lines[-1].append((first, style))
        lines += [[(other, style)] for other in others]
    show(lines, use_colour(sys.stdout))
    sys.stdout.flush()
