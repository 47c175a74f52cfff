# Types keys into flux rabbit top: shows the only job, does not cancel it, and cancels
# it. Usage: top_keys.py
# SPDX-License-Identifier: LGPL-3.0-only
"""The keys of flux rabbit top."""

from __future__ import annotations

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

from pty_support import Terminal

terminal = Terminal(["flux", "rabbit", "top", "-i", "0.5"], 120, 30)
rows = terminal.shows("▶")
assert any("▶" in row and " run " in row for row in rows), rows
terminal.type("\r")
terminal.shows("DW_JOB_scratch=")
terminal.type("\x1b")
terminal.shows("rabbits by use")
terminal.type("m")
terminal.shows(" mine ")
terminal.type("c")
terminal.shows("in run? y/n")
terminal.type("n")
terminal.shows("not canceled")
terminal.type("c")
terminal.shows("in run? y/n")
terminal.type("y")
terminal.shows("is canceled")
terminal.type("q")
sys.exit(terminal.end())
