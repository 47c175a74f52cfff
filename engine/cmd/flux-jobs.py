# SPDX-License-Identifier: LGPL-3.0-only
"""flux jobs: list jobs."""

import argparse
import json
import sys
import time
from typing import Any

import flux
import flux.constants
import solocmd
from flux.job import JobInfoFormat, JobList, job_fields_to_attrs
from flux.util import (
    ColorAction,
    FilterAction,
    FilterActionSetUpdate,
    FilterActionUser,
    FilterTrueAction,
    UtilConfig,
)

NAME = "flux-jobs"

# Columns that many formats begin with.
HEAD = "{id.f58:>12} ?:{queue:<8.8} +:{username:<8} {name:<10.10+} "
TAIL = "{ntasks:>6} {nnodes:>6h} "
END = "{contextual_time!F:>8h} {contextual_info}"
FORMATS = {
    "default": ("Default", HEAD + "{status_abbrev:>2.2} " + TAIL + END),
    "cute": ("Emoji status", HEAD + "{status_emoji:>5.5} " + TAIL + END),
    "long": (
        "Extended",
        HEAD
        + "{status:>9.9} "
        + TAIL
        + "{t_submit!d:%b%d %R::>12} {t_remaining!F:>12h} "
        + END,
    ),
    "deps": (
        "Urgency, priority and dependencies",
        "{id.f58:>12} ?:{queue:<8.8} {name:<10.10+} {urgency:<3} "
        "{priority:<12} {state:<8.8} {dependencies}",
    ),
    "endreason": (
        "Why jobs ended",
        HEAD + "{status_abbrev:>2.2} {t_inactive!d:%b%d %R::>12h} {inactive_reason}",
    ),
}

COLORS = {
    "COMPLETED": "\033[01;32m",
    "FAILED": "\033[01;31m",
    "TIMEOUT": "\033[01;31m",
    "CANCELED": "\033[37m",
}


class Config(UtilConfig):
    """The user's own formats, next to the ones above."""

    def __init__(self) -> None:
        formats = {
            name: {"description": text, "format": fmt}
            for name, (text, fmt) in FORMATS.items()
        }
        super().__init__(name=NAME, initial_dict={"formats": formats})

    def validate(self, path: str, conf: Any) -> None:
        for key, value in conf.items():
            if key != "formats":
                raise ValueError(f"{path}: invalid key {key}")
            self.validate_formats(path, value)


def since_time(args: argparse.Namespace) -> float:
    """The time of --since, a date or seconds since the epoch; 0.0 without."""
    when = 0.0
    if args.since:
        try:
            when = flux.util.parse_datetime(args.since).timestamp()
        except ValueError:
            when = float(args.since)
    if when > time.time():
        raise ValueError(f"--since={args.since} is still to come")
    return when


def fetch(args: argparse.Namespace, fields: list[str]) -> tuple[list[Any], bool]:
    """The jobs, and whether there are more than --count."""
    attrs = job_fields_to_attrs(fields)
    if args.json:
        attrs.add("all")
    if args.color.enabled:
        attrs.update(job_fields_to_attrs(["result"]))
    user = args.user
    if args.A:
        user = str(flux.constants.FLUX_USERID_UNKNOWN)
    states = set(args.filter)
    if not states:
        states = {"pending", "running"}
        if args.a or args.since:
            states.add("inactive")
    joblist = JobList(
        flux.Flux(),
        ids=args.jobids,
        attrs=attrs,
        filters=states,
        user=user,
        max_entries=args.count + 1 if args.count > 0 else args.count,
        since=since_time(args),
        name=args.name,
        queue=args.queue,
    )
    jobs = list(joblist.jobs())
    for error in getattr(joblist, "errors", []):
        print(error, file=sys.stderr)
    more = 0 < args.count < len(jobs)
    return jobs[: args.count] if more else jobs, more


def print_json(args: argparse.Namespace, jobs: list[Any]) -> None:
    result = [job.to_dict() for job in jobs]
    if len(args.jobids) == 1:
        print(json.dumps(result[0]))
    else:
        print(json.dumps({"jobs": result}))


def parse_args() -> argparse.Namespace:
    top = solocmd.parser(NAME)
    top.add_argument("-a", action=FilterTrueAction, help="jobs in all states")
    top.add_argument("-A", action=FilterTrueAction, help="jobs of all users")
    top.add_argument("-c", "--count", action=FilterAction, type=int, default=1000)
    top.add_argument(
        "-f",
        "--filter",
        action=FilterActionSetUpdate,
        default=set(),
        metavar="STATE|RESULT",
        help="jobs in these states, or with these results",
    )
    top.add_argument("--since", action=FilterAction, default="", metavar="WHEN")
    top.add_argument("-n", "--no-header", action="store_true")
    top.add_argument(
        "--suppress-header",
        action="store_true",
        dest="no_header",
        help=argparse.SUPPRESS,
    )
    import os

    top.add_argument("-u", "--user", action=FilterActionUser, default=str(os.getuid()))
    top.add_argument("--name", action=FilterAction, metavar="JOB-NAME")
    top.add_argument("-q", "--queue", action=FilterActionSetUpdate, default=set())
    top.add_argument("-o", "--format", default="default", metavar="FORMAT")
    top.add_argument("--sort", default="", metavar="KEY,...")
    top.add_argument("-w", "--width", type=int, default=-1, metavar="N")
    top.add_argument("--json", action="store_true")
    top.add_argument("--color", action=ColorAction)
    top.add_argument("jobids", nargs="*", type=solocmd.jobid, metavar="JOBID")
    top.set_defaults(filtered=False, filtereduser=False)
    return top.parse_args()


def main() -> None:
    args = parse_args()
    if args.jobids and args.filtered:
        print(
            f"{NAME}: options that select jobs do nothing beside job IDs",
            file=sys.stderr,
        )
    text = Config().load().get_format_string(args.format)
    try:
        formatter = JobInfoFormat(text)
    except ValueError as exc:
        raise ValueError(f"Error in user format: {exc}") from exc
    if args.sort:
        formatter.set_sort_keys(args.sort)
    jobs, more = fetch(args, formatter.fields)
    if args.jobids and not jobs:
        sys.exit(1)
    if args.json:
        print_json(args, jobs)
        return
    # Leave out optional columns that would be empty.
    formatter = JobInfoFormat(formatter.filter(jobs, no_header=args.no_header))
    if not args.no_header:
        print(formatter.header(width=args.width))

    def color(job: Any) -> str:
        return COLORS.get(job.result, "") if args.color.enabled else ""

    def before(job: Any) -> None:
        sys.stdout.write(color(job))

    def after(job: Any) -> None:
        sys.stdout.write("\033[0;0m" if color(job) else "")

    formatter.print_items(
        jobs, no_header=True, width=args.width, pre=before, post=after
    )
    if more and not args.no_header:
        sys.stdout.flush()
        text = f"{NAME}: there are more than these {args.count} jobs: see --count"
        print(text, file=sys.stderr)


if __name__ == "__main__":
    solocmd.run(NAME, main)
