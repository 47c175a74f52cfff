# SPDX-License-Identifier: LGPL-3.0-only
#
# flux rabbit show.
"""Everything about one job, in plain words, errors first."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from typing import Any

from flux_k8s import names

from flux_rabbit import cli, pending, picture, rpc, term, timeline
from flux_rabbit.listing import age_of, state_of, waits_for
from flux_rabbit.term import Line
from flux_rabbit.timeline import MEANING, Timeline
from flux_rabbit.units import Size, duration

Object = dict[str, Any]

# Texts for the dependencies on the data of other jobs (flux-jobtap-dws(1)).
DATA_WAITS = {
    "dws-in": "the data of {} to be staged in",
    "dws-out": "the data of {} to be staged out",
}

# Rabbits that --why lists on the screen.
MOST_PLACES = 20
RECORDS = ("jobspec", names.KEY_WORKFLOW, names.KEY_MOVEMENTS)
RESULTS = {1: "completed", 2: "failed", 4: "canceled", 8: "timed out"}


def configure(
    parser: argparse.ArgumentParser, command: str
) -> tuple[str, tuple[str, ...]]:
    """Options."""
    parser.add_argument("jobid", metavar="JOBID", help="an active or finished job")
    parser.add_argument(
        "--why",
        action="store_true",
        help="of a job that has no nodes yet: what each rabbit has for it, and what "
        "it lacks",
    )
    return (
        "Tell everything about one rabbit job: what went wrong, what it waits for, "
        "its directives, rabbits and file systems, and where its time went.",
        ("flux rabbit show --why ƒ2gVz", "flux rabbit show --json ƒ2gVz | jq .errors"),
    )


def _directives(jobspec: Object) -> list[str]:
    """The #DW lines that were submitted."""
    system = (jobspec.get("attributes") or {}).get("system") or {}
    text = system.get("dw") or ""
    lines = text if isinstance(text, list) else str(text).splitlines()
    return [line for line in (str(line).strip() for line in lines) if line]


def _ended_by(status: int | None) -> str:
    """The end of a job's tasks by their wait(2) status; "" for success."""
    if not status:
        return ""
    if os.WIFSIGNALED(status):
        return f" by signal {os.WTERMSIG(status)}"
    code = os.waitstatus_to_exitcode(status)
    if code > 128:
        return f" with exit code {code} (signal {code - 128})"
    return f" with exit code {code}"


def _failed_copies(movements: list[Object]) -> list[str]:
    result = []
    for movement in movements:
        status = movement.get("status") or {}
        if status.get("status") in ("Failed", "Invalid"):
            spec = movement.get("spec") or {}
            ends = [
                (spec.get(k) or {}).get("path", "?") for k in ("source", "destination")
            ]
            message = status.get("message") or status["status"]
            result.append(f"copy of {ends[0]} to {ends[1]}: {message}")
    return result


class Report:
    """The facts about a job, from the module, job-list and the KVS."""

    def __init__(self, handle: rpc.Handle, number: int) -> None:
        """Request all facts. Raises RpcError, or FileNotFoundError for no such job."""
        lookup = rpc.Lookup(handle)
        lookup.ask(number, "eventlog", *RECORDS)
        self.line: Timeline = timeline.fetch(handle, [number])[0]
        records = {key: lookup.get(number, key) for key in RECORDS}
        read = {key: json.loads(text) for key, text in records.items() if text}
        self.given = timeline.given(lookup.get(number, "eventlog") or "")
        self.job = rpc.job_list(handle, number)
        # Ask for an ended job, too: its data may still be staged out.
        self.active = rpc.active_job(handle, number)
        queued = self.active and state_of(self.active) == "queued"
        self.pending = pending.explain(handle, self.job) if queued else None
        self.workflow: Object = read.get(names.KEY_WORKFLOW) or {}
        movements = read.get(names.KEY_MOVEMENTS) or []
        given = (self.active or {}).get("directives")
        self.directives: list[str] = given or _directives(read.get("jobspec") or {})
        self.errors = [mark.text for mark in self.line.marks]
        status = self.workflow.get("status") or {}
        # The exception for it tells more than the workflow's own message.
        ours = [mark.text for mark in self.line.marks if mark.ours]
        told = any("workflow error in" in text for text in ours)
        if not told and status.get("status") == "Error" and status.get("message"):
            self.errors.append(str(status["message"]))
        current = (self.active or {}).get("workflow") or {}
        if current.get("trouble") and current["message"]:
            self.errors.append(str(current["message"]))
        self.errors += _failed_copies(movements)
        # Drop duplicates of a fault, but never for the text of a user's exception.
        theirs = {mark.text for mark in self.line.marks if not mark.ours}
        self.errors = [
            text
            for index, text in enumerate(self.errors)
            if not any(text in o for o in self.errors[:index] if o not in theirs)
        ]

    @property
    def rabbits(self) -> str:
        user = (self.job.get("annotations") or {}).get("user") or {}
        return str((self.active or {}).get("rabbits") or user.get("rabbits") or "")

    def where(self) -> str:
        """A clause with the state or the result of the job."""
        if not self.line.active:
            took = duration(self.line.end - self.line.begin)
            how = RESULTS.get(self.job.get("result", 0), "ended")
            text = f"{how}{_ended_by(self.job.get('waitstatus'))} after {took}"
            if self.active and self.active.get("workflow"):
                text += f"; its storage is in {state_of(self.active)}"
            return text
        if self.active is None:
            return "active, but the dws module does not know it"
        state = state_of(self.active)
        what = MEANING.get(state, "before its workflow is made")
        return f"in {state}: {what}"

    def as_json(self) -> Object:
        return {
            "id": self.line.number,
            "f58": self.line.name,
            "name": self.job.get("name", ""),
            "userid": self.job.get("userid"),
            "nodelist": self.job.get("nodelist", ""),
            "active": self.line.active,
            "where": self.where(),
            "errors": self.errors,
            "waiting": self.waiting(),
            "why": self.pending.lines if self.pending else [],
            "directives": self.directives,
            "rabbits": self.rabbits,
            "space": (self.active or {}).get("space") or {},
            "workflow": (self.active or {}).get("workflow"),
            "variables": self.variables(),
            "timeline": self.line.as_json(),
        }

    def waiting(self) -> str:
        """The condition that an active job waits for: first the data of other jobs."""
        waits = []
        for dependency in self.job.get("dependencies") or []:
            scheme, _, job = str(dependency).partition(":")
            if scheme in DATA_WAITS:
                waits.append(DATA_WAITS[scheme].format(job))
        if waits:
            return ", ".join(waits)
        if self.pending:
            return self.pending.text
        return waits_for(self.active) if self.active else ""

    def variables(self) -> dict[str, str]:
        """The job's environment variables with the paths of its file systems."""
        # The workflow record of an active job can be older than its variables.
        env = {**((self.workflow.get("status") or {}).get("env") or {}), **self.given}
        return timeline.paths(env)

    def screen(self, width: int, why: bool) -> list[Line]:
        """The report as lines of `width`; `why` adds the reasons for waiting."""
        user = cli.user_name(self.job["userid"])
        lines: list[Line] = [
            [
                (self.line.name, "bold"),
                (f" ({self.job.get('name', '')}, {user}) ", "dim"),
                (self.where(), ""),
            ]
        ]
        lines += [[("  ! ", "bad"), (text, "bad")] for text in self.errors]
        if self.active:
            age_s = age_of(self.active)
            age = "" if age_s is None else f" (for {duration(age_s)})"
            lines.append(_row("waits for", self.waiting() + age))
            if why and self.pending:
                for index, text in enumerate(shortened(self.pending.lines)):
                    lines.append(_row("why" if index == 0 else "", text))
            for key in ("lagging", "failed"):
                if self.active.get(key):
                    lines.append(_row(f"{key} nodes", self.active[key]))
        lines.append(_row("nodes", self.job.get("nodelist") or self._none()))
        lines.append(_row("rabbits", self._space()))
        for index, text in enumerate(self.directives):
            lines.append(_row("directives" if index == 0 else "", text))
        for index, (name, value) in enumerate(self.variables().items()):
            lines.append(_row("paths" if index == 0 else "", f"{name}={value}"))
        lines.append(_row("workflow", self._workflow()))
        lines.append([])
        # The exceptions are above.
        return lines + picture.text(dataclasses.replace(self.line, marks=[]), width)

    def _none(self) -> str:
        return "none yet" if self.line.active else "none"

    def _space(self) -> str:
        space = (self.active or {}).get("space") or {}
        if 0 < len(space) <= 8:
            return ", ".join(f"{name} ({Size(n)})" for name, n in sorted(space.items()))
        total = f" ({Size(sum(space.values()))})" if space else ""
        return (self.rabbits or self._none()) + total

    def _workflow(self) -> str:
        current = (self.active or {}).get("workflow")
        if not current:
            name = (self.workflow.get("metadata") or {}).get("name")
            return f"{name}, gone" if name else "none"
        ready = "ready" if current["ready"] else current["status"] or "not taken up"
        text = f"{current['name']}, to {current['desired']}, {ready}"
        return f"{text}: {current['message']}" if current["message"] else text


def shortened(places: list[str]) -> list[str]:
    """The first places, which fit the job best, and the number of the rest."""
    more = len(places) - MOST_PLACES
    if more <= 0:
        return places
    return [*places[:MOST_PLACES], f"and {more} more (--json)"]


def _row(label: str, text: str) -> Line:
    return [(f"  {label:14}", "dim"), (text, "")]


def _purged(number: int, active: Object) -> list[Line]:
    """The storage of a job that Flux has purged, by the module dws. Its data may still
    be staged out (rabbit.stage_out_retry)."""
    state = state_of(active)
    user = cli.user_name(active["userid"])
    text = f"is over, and Flux has purged it; its storage is in {state}"
    age_s = age_of(active)
    age = "" if age_s is None else f" (for {duration(age_s)})"
    workflow = active.get("workflow") or {}
    return [
        [(rpc.f58(number), "bold"), (f" ({user}) ", "dim"), (text, "")],
        _row("waits for", waits_for(active) + age),
        _row("rabbits", str(active.get("rabbits") or "none")),
        _row("workflow", str(workflow.get("name") or "none")),
    ]


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    number = cli.jobids([args.jobid])[0]
    handle = rpc.Handle()
    try:
        report = Report(handle, number)
    except FileNotFoundError:
        active = rpc.active_job(handle, number)
        if active is None:
            raise
        if args.json:
            cli.print_json({"id": number, "f58": rpc.f58(number), **active})
        else:
            term.show(_purged(number, active), cli.colour(args))
        return 0
    if not report.directives and not report.workflow and report.active is None:
        raise cli.Failure(f"{rpc.f58(number)} is not a rabbit job: it has no #DW")
    if args.json:
        cli.print_json(report.as_json())
        return 0
    width = min(term.size(sys.stdout)[0], 160)
    term.show(report.screen(width, args.why), cli.colour(args))
    return 0
