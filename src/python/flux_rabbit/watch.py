# SPDX-License-Identifier: LGPL-3.0-only
#
# flux rabbit watch.
"""Follow a job until it ends."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any

from flux_rabbit import cli, rpc, term, timeline
from flux_rabbit.listing import waits_for
from flux_rabbit.term import Line
from flux_rabbit.timeline import MEANING, STATES, Timeline
from flux_rabbit.units import duration

Object = dict[str, Any]

_PARTS = re.compile(r"(\d+)/(\d+) nodes|(\d+)%")
# The states of a workflow before the job runs, and after that.
_MIDDLE = STATES.index("PreRun") + 1
BEFORE, AFTER = STATES[:_MIDDLE], STATES[_MIDDLE:]
SPIN = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


def configure(
    parser: argparse.ArgumentParser, command: str
) -> tuple[str, tuple[str, ...]]:
    """Options."""
    parser.add_argument("jobid", metavar="JOBID", help="a rabbit job")
    parser.add_argument(
        "-i",
        "--interval",
        type=cli.seconds,
        default=0.5,
        metavar="SECONDS",
        help="between two looks (default: 0.5)",
    )
    return (
        "Follow a job until it ends: each state of its workflow with a bar for how "
        "far it has got. Where the output is not a terminal, a line for each state "
        "that is done. The exit status is 0 if the job was successful, 1 if not.",
        ("flux rabbit watch ƒ2gVz", "flux rabbit watch $(flux submit -S dw=... a.out)"),
    )


def progress(text: str) -> float | None:
    """The progress of a state from 0 to 1, None if its text has no figures."""
    match = _PARTS.search(text)
    if not match:
        return None
    if match[3]:
        return min(1.0, int(match[3]) / 100)
    return int(match[1]) / max(1, int(match[2]))


def screen(
    line: Timeline, active: Object | None, width: int, tick: int = 0
) -> list[Line]:
    """A row for each state: done, under way, or to come."""
    spans = {span.name: span for span in line.spans}
    order = (*BEFORE, "run", *AFTER)
    reached = max((i for i, name in enumerate(order) if name in spans), default=-1)
    lines: list[Line] = [
        [(line.name, "bold"), (f"  {duration(line.end - line.begin)}", "dim")]
    ]
    for i, name in enumerate(order):
        span = spans.get(name)
        label = "the job runs" if name == "run" else name
        if span is None and line.active and i < reached:
            # The state has ended, but its timing is not in the KVS yet.
            lines.append([("  ✓ ", "good"), (label, "")])
            continue
        if span is None:
            lines.append([("  · ", "dim"), (label, "dim")])
            continue
        took = duration(span.length(line.end))
        if span.end is not None:
            row: Line = [("  ✓ ", "good"), (f"{label:12}", ""), (f" {took:>7}", "")]
            lines.append(term.fit(row, width))
            continue
        text = waits_for(active) if active and name != "run" else MEANING[name]
        row = [(f"  {SPIN[tick % len(SPIN)]} ", name), (f"{label:12}", "bold")]
        row.append((f" {took:>7} ", ""))
        row += [*_bar(progress(text), name, tick), (f" {text}", "")]
        lines.append(term.fit(row, width))
    for mark in line.marks:
        # Do not truncate: the end of such a text names the cause.
        lines += term.fold([("  ! ", "bad"), (mark.text, "bad")], width)
    return lines


def _bar(part: float | None, style: str, tick: int, width: int = 20) -> Line:
    if part is None:
        # Unknown progress: draw a moving bar.
        at = tick % (width - 3)
        return [(" " * at, ""), ("━━━━", style), (" " * (width - 4 - at), "")]
    full = round(part * width)
    return [("━" * full, style), ("─" * (width - full), "dim")]


class Printer:
    """Output without a terminal: a line for each ended state."""

    def __init__(self) -> None:
        self._printed: set[str] = set()

    def show(self, line: Timeline) -> None:
        """Print states that have ended, in order: while the job is active, a state
        whose timing is not in the KVS yet delays later ones."""
        spans = {span.name: span for span in line.spans}
        for name in (*BEFORE, "run", *AFTER):
            span = spans.get(name)
            if line.active and (span is None or span.end is None):
                break
            if span is None or span.end is None or name in self._printed:
                continue
            self._printed.add(name)
            label = "the job ran" if name == "run" else name
            took = duration(span.length(line.end))
            print(f"{label:12} {took:>7}  {MEANING[name]}", flush=True)
        for mark in line.marks:
            if mark.text not in self._printed:
                self._printed.add(mark.text)
                term.show([[("! ", ""), (mark.text, "")]], False)
                sys.stdout.flush()


def _json(line: Timeline, active: Object | None) -> None:
    cli.print_json(
        {"timeline": line.as_json(), "waiting": waits_for(active) if active else ""}
    )


def follow(handle: rpc.Handle, number: int, args: argparse.Namespace) -> int:
    """Show the progress of a job until it ends. Returns the exit status."""
    live = term.moves(sys.stdout) and not args.json
    colour = cli.colour(args)
    printer = Printer()
    height = tick = 0
    while True:
        line = timeline.fetch(handle, [number])[0]
        active = rpc.active_job(handle, number) if line.active else None
        if live:
            lines = screen(line, active, term.size(sys.stdout)[0] - 1, tick)
            # Overwrite the previous screen.
            up = f"\033[{height}A" if height else ""
            body = "".join(f"{term.ansi(row, colour)}\033[K\n" for row in lines)
            sys.stdout.write(f"{up}{body}")
            sys.stdout.flush()
            height = len(lines)
        elif not args.json:
            printer.show(line)
        if not line.active:
            break
        tick += 1
        cli.pause(max(0.05, args.interval))
    if args.json:
        _json(line, None)
    return 0 if line.success else cli.EXIT_ERROR


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    return follow(rpc.Handle(), cli.jobids([args.jobid])[0], args)
