# SPDX-License-Identifier: LGPL-3.0-only
#
# flux rabbit stats.
"""How long finished jobs spent in each state."""

from __future__ import annotations

import argparse
import math
import os
import pathlib
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from flux_rabbit import cli, picture, rpc, term, timeline
from flux_rabbit.term import STYLES, Line
from flux_rabbit.timeline import STATES
from flux_rabbit.units import duration, go_duration

Object = dict[str, Any]

QUANTILES = {"min": 0.0, "median": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}


def configure(
    parser: argparse.ArgumentParser, command: str
) -> tuple[str, tuple[str, ...]]:
    """Options."""
    parser.add_argument(
        "jobids", nargs="*", metavar="JOBID", help="these jobs (default: the latest)"
    )
    parser.add_argument(
        "-c",
        "--count",
        type=cli.count,
        default=1000,
        help="look at so many finished jobs (default: 1000)",
    )
    parser.add_argument("--svg", metavar="FILE", help="write the plot as SVG")
    parser.add_argument("--png", metavar="FILE", help="write the plot as PNG")
    return (
        "Show the distribution of the time that finished rabbit jobs spent in each "
        "state of their workflow: a table, and a plot from the shortest to the "
        "longest (─) with the half in the middle (█) on a logarithmic axis. Users "
        "who do not own the instance see their own jobs.",
        ("flux rabbit stats", "flux rabbit stats -c 100 --svg states.svg"),
    )


@dataclass(frozen=True)
class Distribution:
    """Durations in seconds, sorted."""

    state: str
    values: list[float]

    def quantile(self, part: float) -> float:
        """By linear interpolation."""
        at = part * (len(self.values) - 1)
        low = math.floor(at)
        high = min(low + 1, len(self.values) - 1)
        return self.values[low] + (self.values[high] - self.values[low]) * (at - low)

    def as_json(self) -> Object:
        result: Object = {"state": self.state, "count": len(self.values)}
        result |= {name: self.quantile(part) for name, part in QUANTILES.items()}
        result["mean"] = sum(self.values) / len(self.values)
        return result


def times_of(handle: rpc.Handle, numbers: list[int]) -> dict[int, dict[str, float]]:
    """The seconds that each of these jobs spent in which state."""
    lookup = rpc.Lookup(handle)
    keys = {state: timeline.key(state) for state in STATES}
    for number in numbers:
        lookup.ask_together(number, *keys.values())
    found: dict[int, dict[str, float]] = {}
    for number in numbers:
        texts = {state: lookup.get(number, key) for state, key in keys.items()}
        seconds = {
            s: go_duration((t or "").strip().strip('"')) for s, t in texts.items()
        }
        found[number] = {s: value for s, value in seconds.items() if value is not None}
    return found


def distributions(jobs: Iterable[dict[str, float]]) -> list[Distribution]:
    """The distribution of each state over jobs."""
    values: dict[str, list[float]] = {state: [] for state in STATES}
    for job in jobs:
        for state, seconds in job.items():
            values[state].append(seconds)
    return [Distribution(state, sorted(v)) for state, v in values.items() if v]


class Axis:
    """A logarithmic axis over all values; nothing is shorter than a ms."""

    def __init__(self, found: list[Distribution]) -> None:
        self.low = max(1e-3, min(d.values[0] for d in found))
        self.high = max(self.low * 1.01, *(d.values[-1] for d in found))

    def at(self, value: float) -> float:
        """From 0 to 1."""
        part = math.log(max(value, self.low) / self.low)
        return part / math.log(self.high / self.low)

    def ticks(self) -> list[float]:
        """Powers of ten, and the ends."""
        first, last = math.log10(self.low), math.log10(self.high)
        inner = [10.0**n for n in range(math.ceil(first), math.floor(last) + 1)]
        return inner if len(inner) > 1 else [self.low, self.high]


def _jobs(count: int) -> str:
    return f"{count} job{'' if count == 1 else 's'}"


def screen(found: list[Distribution], jobs: int, width: int) -> list[Line]:
    """Table and plot."""
    head = "".join(f"{name:>9}" for name in QUANTILES)
    lines: list[Line] = [
        [(_jobs(jobs), "bold")],
        [(f"{'STATE':9} {'JOBS':>6}{head}", "dim")],
    ]
    for dist in found:
        cells = "".join(f"{duration(dist.quantile(q)):>9}" for q in QUANTILES.values())
        lines.append([(f"{dist.state:9}", dist.state), (f" {len(dist.values):>6}", "")])
        lines[-1].append((cells, ""))
    axis, plot = Axis(found), max(20, width - 12)
    lines.append([])
    for dist in found:
        row = [" "] * plot
        ends = [dist.quantile(q) for q in (0.0, 0.25, 0.75, 1.0)]
        first, low, high, last = (round(axis.at(v) * (plot - 1)) for v in ends)
        row[first : last + 1] = "─" * (last + 1 - first)
        row[low : high + 1] = "█" * (high + 1 - low)
        lines.append([(f"{dist.state:9}  ", ""), ("".join(row), dist.state)])
    row = [" "] * (plot + 10)
    for tick in axis.ticks():
        label = f"╵{duration(tick)}"
        column = round(axis.at(tick) * (plot - 1))
        if column + len(label) > plot:
            label = f"{duration(tick)}╵"
            column -= len(label) - 1
        if "".join(row[column : column + len(label)]).strip() == "":
            row[column : column + len(label)] = label
    lines.append([(" " * 11, ""), ("".join(row), "dim")])
    return [term.fit(line, width) for line in lines]


def svg(found: list[Distribution], jobs: int, dark: bool = True) -> str:
    """The plot as SVG."""
    width, left, step = 760.0, 90.0, 30.0
    axis, scale = Axis(found), 760.0 - 90.0 - 40.0
    body = [f'<text class="fg" x="12" y="22" font-weight="600">{_jobs(jobs)}</text>']
    bottom = 36 + step * len(found)
    for tick in axis.ticks():
        x = left + axis.at(tick) * scale
        body.append(
            f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="32" y2="{bottom}"/>'
            f'<text class="dim" x="{x:.1f}" y="{bottom + 16}" text-anchor="middle" '
            f'font-size="11">{duration(tick)}</text>'
        )
    for index, dist in enumerate(found):
        y = 36 + index * step
        ends = [dist.quantile(q) for q in (0.0, 0.25, 0.5, 0.75, 1.0)]
        first, low, mid, high, last = (left + axis.at(v) * scale for v in ends)
        text = ", ".join(
            f"{k} {duration(dist.quantile(q))}" for k, q in QUANTILES.items()
        )
        colour = STYLES[dist.state][1]
        body.append(
            f"<g><title>{term.markup(f'{dist.state}: {text}')}</title>"
            f'<text class="fg" x="{left - 12}" y="{y + 16}" text-anchor="end">'
            f"{dist.state}</text>"
            f'<line x1="{first:.1f}" x2="{last:.1f}" y1="{y + 11}" y2="{y + 11}" '
            f'stroke="{colour}" stroke-width="3"/>'
            f'<rect x="{low:.1f}" y="{y + 3}" width="{max(2.0, high - low):.1f}" '
            f'height="16" rx="3" fill="{colour}"/>'
            f'<rect class="in" x="{mid - 1:.1f}" y="{y + 3}" width="2" height="16"/>'
            "</g>"
        )
    title = f"Time in each state, {_jobs(jobs)}"
    return picture.frame(body, title, width, bottom + 28, dark)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    handle = rpc.Handle()
    if args.jobids:
        numbers = cli.jobids(args.jobids)
    else:
        user = None if cli.is_owner(handle) else os.getuid()
        numbers = [job["id"] for job in rpc.finished_jobs(handle, args.count, user)]
    found = distributions(times_of(handle, numbers).values())
    if args.json:
        states = [dist.as_json() for dist in found]
        cli.print_json({"jobs": len(numbers), "states": states})
        return 0
    if not found:
        print("no finished rabbit job has left its times")
        return 0
    for kind in ("svg", "png"):
        path = getattr(args, kind)
        if path:
            text = svg(found, len(numbers), dark=kind == "svg")
            try:
                data = text.encode() if kind == "svg" else picture.png(text)
            except picture.CannotDraw as exc:
                raise cli.Failure(str(exc)) from None
            pathlib.Path(path).write_bytes(data)
            print(path)
    if not (args.svg or args.png):
        width = min(term.size(sys.stdout)[0], 120)
        term.show(screen(found, len(numbers), width), cli.colour(args))
    return 0
