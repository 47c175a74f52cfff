# SPDX-License-Identifier: LGPL-3.0-only
#
# flux rabbit report.
"""Statistics of the rabbit jobs that ended in a period."""

from __future__ import annotations

import argparse
import collections
import os
import pathlib
import re
import time
from dataclasses import dataclass
from typing import Any

from flux_rabbit import cli, picture, rpc, stats, term, timeline
from flux_rabbit.stats import QUANTILES, Distribution
from flux_rabbit.term import Line
from flux_rabbit.units import date, duration

Object = dict[str, Any]

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
DAY = UNITS["d"]
# The parts of a fault's text that differ between jobs: ids and numbers.
_PARTICULAR = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\d+")
# The states in which a job holds its nodes before and after its tasks run.
BEFORE = ("Setup", "DataIn", "PreRun")
AFTER = ("PostRun", "DataOut", "Teardown")
MOST_CAUSES = 20
MOST_USERS = 8


def configure(
    parser: argparse.ArgumentParser, command: str
) -> tuple[str, tuple[str, ...]]:
    """Options."""
    parser.add_argument(
        "--since",
        metavar="TIME",
        type=_seconds,
        default=7 * DAY,
        help="jobs that ended in this time: a number with s, m, h or d (default: 7d)",
    )
    parser.add_argument("--html", metavar="FILE", help="write it as a page, with plots")
    return (
        "Report on the rabbit jobs that ended lately: how many and whose, how long "
        "they waited, what part of their nodes' time went to storage, the time in "
        "each state, and failures by cause. Users who do not own the instance see "
        "their own jobs.",
        ("flux rabbit report", "flux rabbit report --since 1d --html yesterday.html"),
    )


def _seconds(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"'{text}' is not a time, such as 12h or 7d")
    return float(match[1]) * UNITS[match[2]]


@dataclass(frozen=True)
class Ended:
    """An ended job. Times are in seconds since the epoch; `began` is None for a job
    that was never allocated nodes."""

    number: int
    user: int
    nodes: int
    submitted: float
    began: float | None
    cleanup: float
    over: float
    result: str
    cause: str

    @property
    def held(self) -> float:
        """Node-seconds for which the job held its nodes."""
        return 0.0 if self.began is None else (self.over - self.began) * self.nodes

    def before(self, times: dict[str, float]) -> float:
        """Node-seconds of `held` spent on storage before the tasks. `times` are the
        seconds in each state, which exclude other prolog actions."""
        if self.began is None:
            return 0.0
        return _spent(times, BEFORE, self.cleanup - self.began) * self.nodes

    def after(self, times: dict[str, float]) -> float:
        """Node-seconds of `held` spent on storage after the tasks, without the states
        after the job has released its nodes."""
        if self.began is None:
            return 0.0
        return _spent(times, AFTER, self.over - self.cleanup) * self.nodes


def _spent(times: dict[str, float], states: tuple[str, ...], most: float) -> float:
    return min(sum(times.get(state, 0.0) for state in states), most)


RESULTS = {1: "completed", 2: "failed", 4: "canceled", 8: "timed out"}


def _cause(job: Object, raiser: int | None) -> str:
    """Why a job failed: its fatal exception without ids and numbers, after the user
    who raised the exception unless Flux or flux-dws did."""
    if job["result"] != 2:
        return ""
    if not job.get("exception_occurred") or job.get("exception_severity") != 0:
        return "its own tasks"
    note = str(job.get("exception_note") or "").strip()
    text = f"{job['exception_type']}: {note}" if note else str(job["exception_type"])
    text = _PARTICULAR.sub("#", term.clean(text))
    return text if raiser is None else f"raised by user {cli.user_name(raiser)}: {text}"


def ended(job: Object, raiser: int | None = None) -> Ended:
    """An ended job of job-list; `raiser` is the user who ended it by an exception."""
    over = float(job["t_inactive"])
    return Ended(
        job["id"],
        job["userid"],
        int(job.get("nnodes") or 0),
        float(job["t_submit"]),
        float(job["t_run"]) if job.get("t_run") else None,
        float(job.get("t_cleanup") or over),
        over,
        RESULTS.get(job["result"], "ended"),
        _cause(job, raiser),
    )


class Report:
    """Statistics of the jobs that ended between two moments."""

    def __init__(
        self,
        begin: float,
        end: float,
        jobs: list[Ended],
        times: dict[int, dict[str, float]],
    ) -> None:
        """`times` has the seconds in each state, by job."""
        self.begin, self.end, self.jobs = begin, end, jobs
        self.results = collections.Counter(job.result for job in jobs)
        self.users = collections.Counter(job.user for job in jobs)
        waits = sorted(j.began - j.submitted for j in jobs if j.began is not None)
        self.waits = Distribution("wait", waits)
        self.held = sum(job.held for job in jobs)
        self.before = sum(job.before(times[job.number]) for job in jobs)
        self.after = sum(job.after(times[job.number]) for job in jobs)
        self.states = stats.distributions(times.values())
        self.slowest = {
            state: max(times, key=lambda number: times[number].get(state, 0.0))
            for state in (dist.state for dist in self.states)
        }
        self.causes: dict[str, list[int]] = collections.defaultdict(list)
        for job in jobs:
            if job.cause:
                self.causes[job.cause].append(job.number)

    def days(self) -> list[tuple[str, collections.Counter[str]]]:
        """The number of jobs by result, for every day of the period."""
        found: dict[str, collections.Counter[str]] = {}
        when = self.begin
        while when < self.end:
            found.setdefault(date(when)[:10], collections.Counter())
            when += DAY / 2  # a day has 23 hours when clocks are put forward
        found.setdefault(date(self.end)[:10], collections.Counter())
        for job in self.jobs:
            # A job may have ended after `end`, by the clock of the leader.
            day = found.setdefault(date(job.over)[:10], collections.Counter())
            day[job.result] += 1
        return sorted(found.items())

    def worst(self) -> list[tuple[str, list[int]]]:
        """Causes of failures, most frequent first, with their jobs."""
        return sorted(self.causes.items(), key=lambda item: (-len(item[1]), item[0]))

    def facts(self) -> list[tuple[str, str]]:
        """The figures, each with its name."""
        counts = ", ".join(f"{n} {result}" for result, n in self.results.most_common())
        users = [
            f"{cli.user_name(u)} {n}" for u, n in self.users.most_common(MOST_USERS)
        ]
        rest = len(self.users) - len(users)
        rows = [
            ("jobs", f"{len(self.jobs)} ended: {counts}"),
            ("users", ", ".join(users) + (f", {rest} more" if rest else "")),
        ]
        if self.waits.values:
            median, high, most = (self.waits.quantile(q) for q in (0.5, 0.9, 1.0))
            rows.append(
                (
                    "wait",
                    f"from submission to nodes: median {duration(median)}, "
                    f"p90 {duration(high)}, longest {duration(most)}",
                )
            )
        if self.held > 0:
            before, after = (100 * n / self.held for n in (self.before, self.after))
            text = f"{self.held / 3600:.1f} node-hours: storage took "
            text += f"{before:.1f} % before the tasks, {after:.1f} % after"
            rows.append(("nodes", text))
        return rows

    def as_json(self) -> Object:
        return {
            "begin": self.begin,
            "end": self.end,
            "jobs": len(self.jobs),
            "results": dict(self.results),
            "users": {cli.user_name(user): n for user, n in self.users.most_common()},
            "wait": self.waits.as_json() if self.waits.values else None,
            "node_seconds": {
                "held": self.held,
                "before": self.before,
                "after": self.after,
            },
            "days": {day: dict(counts) for day, counts in self.days()},
            "states": [
                dist.as_json() | {"slowest": rpc.f58(self.slowest[dist.state])}
                for dist in self.states
            ],
            "failures": [
                {"cause": cause, "jobs": [rpc.f58(number) for number in numbers]}
                for cause, numbers in self.worst()
            ],
        }


def screen(report: Report) -> list[Line]:
    """The report as lines for a terminal."""
    lines: list[Line] = [
        [("rabbit jobs ", "bold"), (_span(report), "bold")],
        *([(f"  {label:8}", "dim"), (text, "")] for label, text in report.facts()),
    ]
    if report.states:
        head = "".join(f"{name:>9}" for name in QUANTILES)
        lines += [[], [(f"{'STATE':9} {'JOBS':>6}{head}  SLOWEST", "dim")]]
    for dist in report.states:
        cells = "".join(f"{duration(dist.quantile(q)):>9}" for q in QUANTILES.values())
        slowest = rpc.f58(report.slowest[dist.state])
        lines.append([(f"{dist.state:9}", dist.state)])
        lines[-1].append((f" {len(dist.values):>6}{cells}  {slowest}", ""))
    causes = report.worst()
    if causes:
        lines += [[], [(f"{'FAILED':>6} {'LAST':>13}  CAUSE", "dim")]]
    for cause, numbers in causes[:MOST_CAUSES]:
        text = f"{len(numbers):>6} {rpc.f58(max(numbers)):>13}  "
        lines.append([(text, ""), (cause, "")])
    if len(causes) > MOST_CAUSES:
        lines.append([(f"and {len(causes) - MOST_CAUSES} more causes (--json)", "dim")])
    return lines


def _span(report: Report) -> str:
    return f"{date(report.begin)} to {date(report.end)}"


COLOURS = {
    "completed": "#22c55e",
    "failed": "#e5534b",
    "canceled": "#94a3b8",
    "timed out": "#f59e0b",
    "ended": "#94a3b8",
}


def plot(report: Report) -> str:
    """The number of jobs by result and day, as SVG."""
    days = report.days()
    width, height, left, top = 760.0, 200.0, 46.0, 40.0
    most = max([sum(counts.values()) for _, counts in days] + [1])
    step, scale = (width - left - 20) / len(days), (height - top - 30) / most
    body = [
        '<text class="fg" x="12" y="22" font-weight="600">Jobs that ended</text>',
        f'<text class="dim" x="{left - 8}" y="{top + 5}" text-anchor="end" '
        f'font-size="11">{most}</text>',
        f'<line class="grid" x1="{left}" x2="{width - 20}" y1="{top}" y2="{top}"/>',
    ]
    x = 160.0
    for result in COLOURS:
        if report.results[result]:
            label = f"{result} {report.results[result]}"
            body.append(
                f'<rect x="{x:.0f}" y="12" width="11" height="11" rx="2" '
                f'fill="{COLOURS[result]}"/><text class="fg" x="{x + 15:.0f}" y="22" '
                f'font-size="12">{label}</text>'
            )
            x += 34 + len(label) * 7.4
    for index, (day, counts) in enumerate(days):
        x, y = left + index * step, height - 30
        tip = ", ".join(f"{n} {result}" for result, n in counts.most_common()) or "none"
        body.append(f"<g><title>{term.markup(f'{day}: {tip}')}</title>")
        for result, colour in COLOURS.items():
            tall = counts[result] * scale
            y -= tall
            body.append(
                f'<rect x="{x + step * 0.1:.1f}" y="{y:.1f}" width="{step * 0.8:.1f}" '
                f'height="{tall:.1f}" fill="{colour}"/>'
            )
        body.append("</g>")
        if index % -(-len(days) // 8) == 0:
            body.append(
                f'<text class="dim" x="{x + step / 2:.1f}" y="{height - 12}" '
                f'text-anchor="middle" font-size="11">{day[5:]}</text>'
            )
    return picture.frame(body, "Jobs that ended, by day", width, height, True)


def page(report: Report) -> str:
    """The report as a self-contained HTML file."""
    facts = [[name, term.markup(text)] for name, text in report.facts()]
    parts = [picture.table([], facts)]
    if report.states:
        rows = [
            [dist.state, str(len(dist.values))]
            + [duration(dist.quantile(q)) for q in QUANTILES.values()]
            + [rpc.f58(report.slowest[dist.state])]
            for dist in report.states
        ]
        parts.append(f"<div>{stats.svg(report.states, len(report.jobs))}</div>")
        head = ["state", "jobs", *QUANTILES, "slowest"]
        parts.append(picture.table(head, rows, range(1, len(head) - 1)))
    if report.causes:
        rows = [
            [str(len(numbers)), rpc.f58(max(numbers)), term.markup(cause)]
            for cause, numbers in report.worst()
        ]
        parts.append("<h2>Failures</h2>")
        parts.append(picture.table(["jobs", "last", "cause"], rows, (0,)))
    title = f"Rabbit jobs, {_span(report)}"
    return picture.PAGE.format(
        title=term.markup(title), picture=plot(report), tables="\n".join(parts)
    )


def _raisers(handle: rpc.Handle, jobs: list[Object]) -> dict[int, int]:
    """The users who ended failed jobs by an exception of their own, by job id. Only the
    eventlogs name them, job-list does not."""
    failed = [
        job["id"]
        for job in jobs
        if job["result"] == 2 and job.get("exception_severity") == 0
    ]
    owner = handle.attribute("security.owner")
    lookup = rpc.Lookup(handle)
    for number in failed:
        lookup.ask(number, "eventlog")
    found = {}
    for number in failed:
        events = timeline.Events(lookup.get(number, "eventlog") or "")
        fatal = events.all("exception", severity=0)
        by = timeline.raised_by(fatal[0], owner) if fatal else None
        if by is not None:
            found[number] = by
    return found


def collect(handle: rpc.Handle, begin: float, end: float) -> Report:
    """Ask for the jobs. Raises RpcError."""
    user = None if cli.is_owner(handle) else os.getuid()
    found = rpc.finished_jobs(handle, 0, user, begin)
    raisers = _raisers(handle, found)
    jobs = [ended(job, raisers.get(job["id"])) for job in found]
    return Report(begin, end, jobs, stats.times_of(handle, [j.number for j in jobs]))


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    now = time.time()
    # No job is older than the epoch, and no time before that has a date everywhere.
    report = collect(rpc.Handle(), max(0.0, now - args.since), now)
    if args.html:
        pathlib.Path(args.html).write_text(page(report), encoding="utf-8")
        print(args.html)
    elif args.json:
        cli.print_json(report.as_json())
    elif not report.jobs:
        print(f"no rabbit job ended from {_span(report)}")
    else:
        term.show(screen(report), cli.colour(args))
    return 0
