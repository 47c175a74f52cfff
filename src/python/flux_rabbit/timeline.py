# SPDX-License-Identifier: LGPL-3.0-only
#
# The time of a job in Flux's phases, from its eventlog, and in the states of its
# workflow, from records in the job's KVS directory.
"""The timeline of a job."""

from __future__ import annotations

import calendar
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from flux_k8s import names

from flux_rabbit import cli, rpc, term
from flux_rabbit.units import go_duration

Object = dict[str, Any]

STATES = ("Proposal", "Setup", "DataIn", "PreRun", "PostRun", "DataOut", "Teardown")
PHASES = ("depend", "queued", "prolog", "run", "cleanup")
LANES = ("flux", "rabbit")

MEANING = {
    "Proposal": "the directives are checked, capacity worked out",
    "Setup": "file systems are made",
    "DataIn": "data is copied in",
    "PreRun": "file systems are mounted",
    "PostRun": "file systems are unmounted",
    "DataOut": "data is copied out",
    "Teardown": "file systems are destroyed",
    "depend": "before it may be queued",
    "queued": "waiting for nodes and rabbits",
    "prolog": "has its nodes, is made ready to run",
    "run": "its tasks run",
    "cleanup": "what follows the tasks",
}


@dataclass(frozen=True)
class Span:
    """A phase or state, in seconds since the epoch. `end` is None while it
    lasts."""

    lane: str
    name: str
    begin: float
    end: float | None

    def length(self, now: float) -> float:
        return max(0.0, (now if self.end is None else self.end) - self.begin)


@dataclass(frozen=True)
class Mark:
    """Something that happened at one moment."""

    when: float
    text: str
    # Raised by Flux or flux-dws, not by a user.
    ours: bool = True


@dataclass
class Timeline:
    """The spans and exceptions of a job. `end` is the end of the job, or now."""

    number: int
    begin: float
    end: float
    active: bool
    success: bool = False
    spans: list[Span] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)

    @property
    def name(self) -> str:
        return rpc.f58(self.number)

    def lane(self, lane: str) -> list[Span]:
        return [span for span in self.spans if span.lane == lane]

    def as_json(self) -> Object:
        return {
            "id": self.number,
            "f58": self.name,
            "begin": self.begin,
            "end": self.end,
            "active": self.active,
            "spans": [
                {
                    "lane": span.lane,
                    "name": span.name,
                    "begin": span.begin,
                    "end": span.end,
                    "seconds": round(span.length(self.end), 6),
                }
                for span in self.spans
            ],
            "exceptions": [{"time": m.when, "text": m.text} for m in self.marks],
        }


class Events:
    """The events of an eventlog, and their times (s since the epoch)."""

    def __init__(self, text: str) -> None:
        """Read the lines of an eventlog (RFC 18)."""
        self._events = [json.loads(line) for line in text.splitlines() if line]

    def all(self, name: str, **context: Any) -> list[Object]:
        """The events of this name whose context has these values."""
        return [
            event
            for event in self._events
            if event["name"] == name
            and all(
                (event.get("context") or {}).get(k) == v for k, v in context.items()
            )
        ]

    def when(self, name: str, **context: Any) -> float | None:
        """The time of the first such event, None without one."""
        found = self.all(name, **context)
        return float(found[0]["timestamp"]) if found else None

    def fatal(self) -> float | None:
        """The time of the first fatal exception, None without one."""
        return self.when("exception", severity=0)

    def success(self) -> bool:
        """Whether the job's tasks succeeded without an earlier fatal exception. The
        eventlog has the result at once, job-list a little later."""
        finish = self.all("finish", status=0)
        fatal = self.fatal()
        return bool(finish) and (fatal is None or fatal > finish[0]["timestamp"])

    @property
    def begin(self) -> float:
        return float(self._events[0]["timestamp"])

    @property
    def last(self) -> float:
        return max(float(event["timestamp"]) for event in self._events)


def given(eventlog: str) -> Object:
    """The environment variables that flux-dws set for a job, {} before its start."""
    found = Events(eventlog).all(names.ENVIRONMENT)
    return dict(found[-1]["context"].get("variables") or {}) if found else {}


def paths(variables: Object) -> dict[str, str]:
    """The variables with paths of file systems."""
    return {
        name: str(value)
        for name, value in sorted(variables.items())
        if name.startswith(("DW_JOB_", "DW_PERSISTENT_"))
    }


def _phases(events: Events) -> list[Span]:
    """The phases of a job in Flux, in order."""
    ends = [events.when("finish"), events.fatal()]
    over = min((t for t in ends if t is not None), default=None)
    starts = {
        "depend": events.begin,
        "queued": events.when("depend"),
        "prolog": events.when("alloc"),
        "run": events.when("start"),
        "cleanup": over,
    }
    # A job that was ended early skips phases.
    known = [
        (name, begin)
        for name, begin in starts.items()
        if begin is not None and (name == "cleanup" or over is None or begin <= over)
    ]
    known.sort(key=lambda item: item[1])
    spans = []
    for index, (name, begin) in enumerate(known):
        last = index == len(known) - 1
        end = events.when("clean") if last else known[index + 1][1]
        spans.append(Span("flux", name, begin, end))
    return spans


def _time(text: str) -> float | None:
    """A Kubernetes time in seconds since the epoch."""
    stem, _, fraction = text.rstrip("Z").partition(".")
    try:
        whole = calendar.timegm(time.strptime(stem, "%Y-%m-%dT%H:%M:%S"))
        return whole + float(f"0.{fraction or 0}")
    except ValueError:
        return None


def completed(workflow: Object | None) -> dict[str, float]:
    """The times at which states were completed, by the drivers of a workflow."""
    result: dict[str, float] = {}
    status = (workflow or {}).get("status") or {}
    for driver in status.get("drivers") or []:
        state = driver.get("watchState")
        when = _time(str(driver.get("completeTime") or ""))
        if state in STATES and when is not None:
            result[state] = max(when, result.get(state, when))
    return result


def _chain(
    names: Iterable[str],
    durations: dict[str, float],
    done: dict[str, float],
    first: float,
    last: float,
) -> list[Span]:
    """Consecutive states between two moments. A state without a known end is assumed to
    begin when the state before it ended."""
    spans = []
    cursor = first
    for name in names:
        if name not in durations:
            continue
        length = durations[name]
        end = done.get(name, cursor + length)
        end = min(max(end, first + length), last)
        begin = max(first, min(end - length, end))
        spans.append(Span("rabbit", name, begin, end))
        cursor = end
    return spans


def _states(
    events: Events,
    durations: dict[str, float],
    done: dict[str, float],
    now: float,
) -> list[Span]:
    """The states of the workflow that have ended."""
    spans = []
    begin = events.when("dependency-add", description=names.DEPENDENCY)
    if begin is not None:
        end = events.when("dependency-remove", description=names.DEPENDENCY)
        fatal = events.fatal()
        if end is None and fatal is not None:
            end = max(begin, fatal)
        spans.append(Span("rabbit", "Proposal", begin, end))
    begin = events.when("prolog-start", description=names.PROLOG)
    if begin is not None:
        end = events.when("prolog-finish", description=names.PROLOG)
        limit = now if end is None else end
        spans += _chain(("Setup", "DataIn", "PreRun"), durations, done, begin, limit)
    begin = events.when("epilog-start", description=names.EPILOG)
    if begin is not None:
        end = events.when("epilog-finish", description=names.EPILOG)
        limit = now if end is None else end
        after = _chain(("PostRun", "DataOut"), durations, done, begin, limit)
        spans += after
        if end is not None:
            # The epilog ends with Teardown.
            length = durations.get("Teardown")
            start = after[-1].end if after else None
            if length is not None:
                start = max(end - length, start or begin)
            # No timing: the nodes were released before, and Teardown is still to come.
            if length is not None or not after:
                spans.append(Span("rabbit", "Teardown", start or begin, end))
    return spans


def build(
    number: int,
    eventlog: str,
    timings: dict[str, str | None],
    workflow: Object | None = None,
    active: Object | None = None,
    now: float | None = None,
    owner: str = "",
) -> Timeline:
    """Build the timeline of a job.

    Args:
        eventlog: the eventlog of the job.
        timings: the raw rabbit_<state>_timing records, by state.
        workflow: the rabbit_workflow record, or None.
        active: the job in dws.status, None if it is not active.
        now: the end of unfinished spans (default: now, by the leader's clock if
            `active` has it).
        owner: user id of the owner of the instance.
    """
    told = (active or {}).get("workflow") or {}
    if now is None:
        now = time.time()
        if told.get("since") and "age" in told:
            now = float(told["since"]) + float(told["age"])
    events = Events(eventlog)
    # Clocks can be set back.
    now = max(now, events.last)
    over = events.when("clean")
    durations = {}
    for state, text in timings.items():
        seconds = go_duration((text or "").strip().strip('"'))
        if seconds is not None:
            durations[state] = seconds
    line = Timeline(
        number,
        events.begin,
        now if over is None else over,
        over is None,
        over is not None and events.success(),
    )
    line.spans = _phases(events)
    line.spans += _states(events, durations, completed(workflow), line.end)
    current = (active or {}).get("workflow")
    if current and over is None:
        state, since = current["desired"], float(current["since"])
        known = {span.name for span in line.lane("rabbit")}
        if state not in known and since > 0 and not _arrived(current):
            line.spans.append(Span("rabbit", state, min(since, now), None))
    for event in events.all("exception"):
        context = event["context"]
        note = context.get("note") or ""
        text = f"{context['type']}: {note}" if note else str(context["type"])
        by = raised_by(event, owner)
        if by is not None:
            text = f"raised by user {cli.user_name(by)}: {text}"
        when = float(event["timestamp"])
        line.marks.append(Mark(when, term.clean(text), by is None))
    return line


def raised_by(exception: Object, owner: str) -> int | None:
    """The user who raised an exception with a type and a text of his own choice. None
    for an exception by Flux or flux-dws, which run as the instance owner, unless only
    people raise its type."""
    userid = exception["context"].get("userid")
    if not owner or userid is None:
        return None
    # Flux itself cancels no jobs.
    if str(userid) == owner and exception["context"].get("type") != "cancel":
        return None
    return int(userid)


def _arrived(workflow: Object) -> bool:
    return bool(workflow["ready"]) and workflow["state"] == workflow["desired"]


def key(state: str) -> str:
    """The KVS key with the timing of a state."""
    return names.KEY_TIMING % state.lower()


def fetch(handle: rpc.Handle, numbers: Iterable[int]) -> list[Timeline]:
    """Timelines of jobs, in that order.

    Raises:
        RpcError: a job is unknown, or another user's.
    """
    numbers = list(numbers)
    lookup = rpc.Lookup(handle)
    for number in numbers:
        lookup.ask(number, "eventlog", names.KEY_WORKFLOW, *map(key, STATES))
    owner = handle.attribute("security.owner")
    lines = []
    for number in numbers:
        eventlog = lookup.get(number, "eventlog")
        if not eventlog:
            raise FileNotFoundError(f"there is no job {rpc.f58(number)}")
        timings = {state: lookup.get(number, key(state)) for state in STATES}
        workflow = lookup.get(number, names.KEY_WORKFLOW)
        active = None
        if Events(eventlog).when("clean") is None:
            active = rpc.active_job(handle, number)
        lines.append(
            build(
                number,
                eventlog,
                timings,
                json.loads(workflow) if workflow else None,
                active,
                owner=owner,
            )
        )
    return lines
