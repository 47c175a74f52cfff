# SPDX-License-Identifier: LGPL-3.0-only
#
# flux rabbit list, df and jobs.
"""Lists of rabbits and of jobs."""

from __future__ import annotations

import argparse
import functools
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from flux_k8s import dws

from flux_rabbit import cli, rpc, table, term
from flux_rabbit.term import STYLES
from flux_rabbit.timeline import STATES
from flux_rabbit.units import Seconds, Size, percent

if TYPE_CHECKING:
    from flux_rabbit import pending

Object = dict[str, Any]


def _used(rabbit: Object) -> int:
    return int(rabbit.get("used", rabbit["capacity"] - rabbit["free"]))


def _use(rabbit: Object) -> str:
    return percent(_used(rabbit) + rabbit.get("foreign", 0), rabbit["capacity"])


def _links(rabbit: Object) -> str:
    links = rabbit.get("links")
    return "" if links is None else f"{links.get('Ready', 0)}/{sum(links.values())}"


def _broken(rabbit: Object) -> str:
    broken = rabbit.get("broken") or {}
    return ",".join(f"{host}:{state}" for host, state in broken.items())


def _drives(rabbit: Object) -> str:
    """Usable and all drives, or "" if all are usable."""
    usable, drives = rabbit.get("drives") or (0, 0)
    return f"{usable}/{drives}" if usable < drives else ""


RABBIT_COLUMNS: dict[str, tuple[str, Callable[[Object], Any] | None]] = {
    "name": ("RABBIT", itemgetter("name")),
    "state": ("STATE", itemgetter("state")),
    "capacity": ("CAPACITY", lambda r: Size(r["capacity"])),
    "used": ("USED", lambda r: Size(_used(r))),
    "foreign": ("FOREIGN", lambda r: Size(r["foreign"]) if "foreign" in r else ""),
    "free": ("FREE", lambda r: Size(r["free"])),
    "use": ("USE", _use),
    "links": ("LINKS", _links),
    "broken": ("BROKEN", _broken),
    "drives": ("DRIVES", _drives),
    "wear": ("WEAR", lambda r: f"{r['wear']}%" if "wear" in r else ""),
    "allocations": ("JOBS", table.optional("allocations")),
    "nodes": ("NODES", table.optional("nodes")),
    "reason": ("REASON", table.optional("reason")),
    "since": ("SINCE", table.optional("since")),
    "by": ("BY", table.optional("by")),
    "message": ("MESSAGE", table.optional("message")),
}
LIST = table.Table(
    "list",
    RABBIT_COLUMNS,
    {
        "default": (
            "State and space",
            "+:{name:<8} {state:<9} {capacity:>8} {free:>7} {use:>4} ?:{links:>5} "
            "?:{drives:>6} ?:{allocations:>4} +:{nodes:<8}",
        ),
        "long": (
            "With what is wrong, and how worn the drives are",
            "+:{name:<8} {state:<9} {capacity:>8} {free:>7} {use:>4} ?:{links:>5} "
            "?:{drives:>6} ?:{wear:>4} ?:{allocations:>4} +:{nodes:<8} ?:{broken} "
            "?:{reason} ?:{since} ?:{by} ?:{message}",
        ),
    },
)
DF = table.Table(
    "df",
    RABBIT_COLUMNS,
    {
        "default": (
            "Space",
            "+:{name:<8} {capacity:>9} ?:{used:>9} ?:{foreign:>9} {free:>9} {use:>4} "
            "?:{drives:>6}",
        )
    },
)
GOOD = ("Ready",)
RABBIT_STATES = (
    *("Starting", "Ready", "Disabled", "NotPresent", "Offline", "Failed"),
    *("Degraded", "Drained", "Fenced", "Unknown", "Suspect"),
)
# Results of jobs: the numbers of job-list, the words of flux jobs.
RESULTS = {1: "completed", 2: "failed", 4: "canceled", 8: "timeout"}
# The values of state_of().
JOB_STATES = (
    *("depend", "queued", "prolog", "run", "epilog", "gone", *STATES),
    *RESULTS.values(),
)


def configure(
    parser: argparse.ArgumentParser, command: str
) -> tuple[str, tuple[str, ...]]:
    """Options of list, df and jobs."""
    table.configure(parser)
    if command == "jobs":
        parser.add_argument(
            "-u", "--user", metavar="USER", help="only jobs of this user"
        )
        parser.add_argument(
            *("-s", "--states", "-f", "--filter"),
            metavar="STATE,...",
            help="only jobs in these states, or with these results",
        )
        parser.add_argument(
            "-a", "--all", action="store_true", help="those that are over, too"
        )
        parser.add_argument(
            *("-c", "--count"),
            type=cli.count,
            default=1000,
            metavar="N",
            help="look at so many jobs that are over (default: 1000)",
        )
        return (
            "List active rabbit jobs: the state of each one's workflow, the time "
            "in it, its rabbits and what it waits for.",
            (
                "flux rabbit jobs -f PreRun,Setup",
                "flux rabbit jobs -a -f failed",
                "flux rabbit jobs --sort=-time",
                "flux rabbit jobs -u $USER -o paths",
                "flux rabbit jobs -no '{id.f58} {waiting}'",
            ),
        )
    parser.add_argument(
        "rabbits", nargs="*", metavar="RABBITS", help="hostlists of rabbits"
    )
    parser.add_argument(
        "-s", "--states", metavar="STATE,...", help="only rabbits in these states"
    )
    if command == "df":
        return (
            "Show the space on rabbits: what jobs hold (USED), what persistent storage "
            "and other clients hold (FOREIGN), and the rest. The last line is the sum.",
            ("flux rabbit df", "flux rabbit df 'rabbit[0-3]' --sort=-used"),
        )
    return (
        "List rabbits: state, space, compute links that work, jobs, nodes.",
        (
            "flux rabbit list -s Offline,Degraded -o long",
            "flux rabbit list 'rabbit[0-3]' -no '{name} {free:d}'",
        ),
    )


def hosts(words: list[str]) -> list[str]:
    """The members of hostlists. Raises ValueError."""
    return [host for word in words for host in dws.expand_hosts(word)]


def _words(text: str | None) -> set[str]:
    return {word.strip().lower() for word in (text or "").split(",") if word.strip()}


def _states(text: str | None, known: set[str]) -> set[str]:
    """The requested states, in lower case. Raises Failure for an unknown one."""
    words = _words(text)
    for word in sorted(words - {state.lower() for state in known}):
        raise cli.Failure(f"there is no state '{word}': {', '.join(sorted(known))}")
    return words


def choose(rabbits: list[Object], args: argparse.Namespace) -> list[Object]:
    """The requested rabbits. Raises Failure for an unknown one."""
    if args.rabbits:
        known = {rabbit["name"]: rabbit for rabbit in rabbits}
        chosen = dict.fromkeys(hosts(args.rabbits))  # each once
        if not chosen:
            raise cli.Failure("RABBITS: an empty hostlist names no rabbit")
        try:
            rabbits = [known[name] for name in chosen]
        except KeyError as exc:
            raise cli.Failure(f"there is no rabbit {exc.args[0]}") from None
    there = {str(rabbit["state"]) for rabbit in rabbits}
    states = _states(getattr(args, "states", None), {*RABBIT_STATES, *there})
    return [r for r in rabbits if not states or r["state"].lower() in states]


def _sum_row(rows: list[table.Row]) -> table.Row:
    def total(field: str) -> Size:
        return Size(sum(getattr(row, field) or 0 for row in rows))

    used, capacity, foreign = total("used"), total("capacity"), total("foreign")
    row = table.Row(**dict.fromkeys(RABBIT_COLUMNS, ""))
    row.name = "total"
    row.capacity, row.free = capacity, total("free")
    row.used, row.foreign = used, foreign
    row.use = percent(used + foreign, capacity)
    return row


def _summary(rows: list[table.Row]) -> str:
    """The last line of a list that is longer than the screen."""
    row = _sum_row(rows)
    words = _in_words(Counter(str(row.state) for row in rows))
    return f"{len(rows)} rabbits: {words}; {row.free} free"


def _paint(style: str) -> tuple[str, str]:
    return (f"\033[{STYLES[style][0]}m", "\033[0m")


def _rabbit_style(row: table.Row) -> tuple[str, str]:
    if row.state in (*GOOD, ""):
        return ("", "") if not row.broken else _paint("warn")
    return _paint("warn" if row.state in ("Disabled", "Drained") else "bad")


def state_of(job: Object) -> str:
    """The state of a job in one word: its result, the desired state of its workflow, or
    its phase between two of these."""
    workflow = job.get("workflow")
    if "result" in job:
        return RESULTS.get(job["result"], "over")
    if job["phase"] == "pending":
        return "queued"
    if job["phase"] == "running":
        return "run"
    return str(workflow["desired"]) if workflow else str(job["phase"])


def waits_for(job: Object) -> str:
    """The condition that a job waits for, with its progress if that is known."""
    note = str(job.get("note") or "").removeprefix("rabbit: ")
    return note.removeprefix("waiting for ") or str(job["waiting"])


def age_of(job: Object) -> float | None:
    """Seconds since a job's workflow entered its state, None if unknown. The module
    reports the age, as clocks of nodes differ; an older module reports only `since`."""
    workflow = job.get("workflow") or {}
    if not workflow.get("since"):
        return None
    age = workflow.get("age", time.time() - workflow["since"])
    return max(0.0, float(age))


@functools.cache
def _handle() -> rpc.Handle:
    return rpc.Handle()


class Paths:
    """The paths of a job's file systems. Fetched only when printed, as each takes a
    request for the job's eventlog."""

    def __init__(self, job: Object) -> None:
        self._job = job

    @functools.cached_property
    def text(self) -> str:
        # Import late: most formats have no paths.
        from flux_rabbit import timeline

        number = self._job["id"]
        try:
            lookup = rpc.Lookup(_handle())
            lookup.ask(number, "eventlog")
            eventlog = lookup.get(number, "eventlog") or ""
        except OSError:
            return ""  # another user's job, or purged by now
        paths = timeline.paths(timeline.given(eventlog))
        return " ".join(f"{name}={path}" for name, path in paths.items())

    def __format__(self, spec: str) -> str:
        return format(term.clean(self.text), spec)

    def __str__(self) -> str:
        return term.clean(self.text)

    def __lt__(self, other: Paths) -> bool:
        return self.text < other.text


def _of_workflow(key: str) -> Callable[[Object], Any]:
    return lambda job: (job.get("workflow") or {}).get(key, "")


def _time(job: Object) -> Any:
    age = age_of(job)
    return "" if age is None else Seconds(age)


JOBS = table.Table(
    "jobs",
    {
        "id": ("JOBID", lambda job: table.JobId(job["id"])),
        "id.f58": ("JOBID", None),
        "id.dec": ("JOBID", None),
        "userid": ("UID", itemgetter("userid")),
        "username": ("USER", lambda job: cli.user_name(job["userid"])),
        "phase": ("PHASE", itemgetter("phase")),
        "state": ("STATE", state_of),
        "status": ("STATUS", _of_workflow("status")),
        "time": ("TIME", _time),
        "waiting": ("WAITS FOR", waits_for),
        "note": ("NOTE", table.optional("note")),
        "message": ("MESSAGE", _of_workflow("message")),
        "rabbits": ("RABBITS", table.optional("rabbits")),
        "paths": ("PATHS", Paths),
        "workflow": ("WORKFLOW", _of_workflow("name")),
        "exception": ("EXCEPTION", itemgetter("exception")),
    },
    {
        "default": (
            "State, time in it, and what the job waits for",
            "{id.f58:>12} {username:<8.8+} {state:<9} {time:>7} {rabbits:<16.16+} "
            "{waiting}",
        ),
        "paths": (
            "Where each job finds its file systems",
            "{id.f58:>12} {username:<8.8+} {state:<9} {rabbits:<16.16+} {paths}",
        ),
        "long": (
            "With workflow and message",
            "{id.f58:>12} {username:<8.8+} {phase:<7} {state:<9} {status:<18} "
            "{time:>7} {rabbits:<16.16+} {workflow:<26} {waiting} {message}",
        ),
    },
)


def job_row(job: Object) -> table.Row:
    """The fields of a job, and the mark that colours its row."""
    row = JOBS.row(job)
    row.trouble = (job.get("workflow") or {}).get("trouble", False)
    return row


def _job_style(row: table.Row) -> tuple[str, str]:
    if row.exception or row.status == "Error":
        return _paint("bad")
    return _paint("warn") if row.trouble else ("", "")


def _counted(
    pages: Iterable[list[Object]], counts: Counter[str]
) -> Iterator[list[Object]]:
    """Pass pages on, and count their jobs by state."""
    for page in pages:
        counts.update(map(state_of, page))
        yield page


def _sums_up(rows: int) -> bool:
    """Whether to print a summary: the first rows have scrolled off the terminal."""
    return sys.stdout.isatty() and rows >= term.size(sys.stdout)[1]


def _in_words(counts: Counter[str]) -> str:
    return ", ".join(f"{n} {word}" for word, n in counts.most_common())


def _ended(job: Object) -> Object:
    """A job that is over, in the form of one that dws.so knows."""
    notes = (job.get("annotations") or {}).get("user") or {}
    fatal = job.get("exception_occurred") and job.get("exception_severity") == 0
    kind = str(job.get("exception_type") or "") if fatal else ""
    note = str(job.get("exception_note") or "") if fatal else ""
    return {
        "id": job["id"],
        "userid": job["userid"],
        "phase": "inactive",
        "result": job["result"],
        "rabbits": str(notes.get("rabbits") or ""),
        "waiting": f"{kind}: {note}" if note else kind,
        "exception": kind,
    }


# Queued jobs for which a list explains why they have no nodes: two requests for each.
MOST_REASONS = 200


def reasons_for(handle: rpc.Handle, most: int) -> Callable[[list[Object]], None]:
    """A function that explains why queued jobs have no nodes yet, as flux rabbit show
    does. Its calls together explain at most `most` jobs."""
    reasons: pending.Reasons | None = None

    def note(jobs: list[Object]) -> None:
        nonlocal reasons
        queued = [job for job in jobs if state_of(job) == "queued"]
        if queued and reasons is None:
            # Import late: lists without queued jobs need no reasons.
            from flux_rabbit import pending

            reasons = pending.Reasons(handle, most)
        if queued and reasons is not None:
            reasons.note(queued)

    return note


def _all_pages(handle: rpc.Handle, args: argparse.Namespace) -> Iterator[list[Object]]:
    """The active jobs and, with --all, the ended ones, latest first."""
    known: set[int] = set()
    for page in rpc.job_pages(handle):
        known.update(job["id"] for job in page)
        yield page
    if args.all:
        over = rpc.finished_jobs(handle, args.count, cli.userid(args.user))
        yield [_ended(job) for job in over if job["id"] not in known]


def _job_pages(handle: rpc.Handle, args: argparse.Namespace) -> Iterator[list[Object]]:
    states = _states(args.states, set(JOB_STATES))
    user = cli.userid(args.user)
    note_reasons = reasons_for(handle, MOST_REASONS)
    for page in _all_pages(handle, args):
        jobs = [
            job
            for job in page
            if (not states or state_of(job).lower() in states)
            and (user is None or job["userid"] == user)
        ]
        note_reasons(jobs)
        yield jobs


def _run_jobs(args: argparse.Namespace) -> int:
    pages = _job_pages(rpc.Handle(), args)
    if args.json:
        table.stream_json("jobs", pages)
        return 0
    counts: Counter[str] = Counter()
    rows = ([job_row(job) for job in page] for page in _counted(pages, counts))
    chosen = args.states or args.user
    shown = table.show(
        JOBS,
        args,
        rows,
        _job_style if cli.colour(args) else None,
        f"no rabbit job is {'like that' if chosen or args.all else 'active'}",
        cut=args.format == "default",
    )
    if _sums_up(shown) and not args.no_header:
        term.show([[(f"{shown} jobs: {_in_words(counts)}", "")]], False)
    return 0


def run(args: argparse.Namespace) -> int:
    """Run list, df or jobs."""
    if args.command == "jobs":
        return _run_jobs(args)
    rabbits: list[Object] = []
    if args.format != "help":
        rabbits = choose(rpc.rabbits(rpc.Handle()), args)
    if args.json:
        cli.print_json({"rabbits": rabbits})
        return 0
    rows = [LIST.row(rabbit) for rabbit in rabbits]
    if args.command == "df" and len(rows) > 1 and not args.no_header:
        sums = [_sum_row(rows)]
    else:
        sums = []
    shown = DF if args.command == "df" else LIST
    style = _rabbit_style if cli.colour(args) else None
    nothing = (
        f"no rabbit{' is like that' if args.states else 's: the mapping is empty'}"
    )
    table.show(shown, args, [rows], style, nothing, last=sums)
    if args.command == "list" and _sums_up(len(rows)) and not args.no_header:
        term.show([[(_summary(rows), "")]], False)
    return 0
