# SPDX-License-Identifier: LGPL-3.0-only
"""flux queue: start, stop, enable, disable, drain and list queues."""

import argparse
from typing import Any, Optional

import flux
import solocmd

NAME = "flux-queue"
Args = argparse.Namespace


def rpc(handle: flux.Flux, verb: str, topic: str, request: dict[str, Any]) -> Any:
    future = handle.rpc(f"job-manager.{topic}", request)
    try:
        return future.get()
    except OSError:
        solocmd.die(NAME, f"ERROR: {verb}: {future.error_string()}")


def statuses(
    handle: flux.Flux, queue: Optional[str], verbose: bool
) -> list[tuple[Optional[str], dict[str, Any]]]:
    names: list[Optional[str]] = [queue]
    if not queue or verbose:
        names = rpc(handle, "list", "queue-list", {})["queues"] or [queue]
    return [
        (name, rpc(handle, "status", "queue-status", {"name": name} if name else {}))
        for name in names
    ]


def describe(subject: str, good: bool, words: tuple[str, str], reason: str) -> None:
    text = f"{subject} is {words[0] if good else words[1]}"
    print(text + (f": {reason}" if reason and not good else ""))


def show(args: Args, handle: flux.Flux, submission: bool, scheduling: bool) -> None:
    for name, status in statuses(handle, args.queue, args.verbose):
        prefix = f"{name}: " if name else ""
        if submission:
            describe(
                f"{prefix}Job submission",
                status["enable"],
                ("enabled", "disabled"),
                status.get("disable_reason", ""),
            )
        if scheduling:
            describe(
                f"{prefix}Scheduling",
                status["start"],
                ("started", "stopped"),
                status.get("stop_reason", ""),
            )
    if args.verbose and scheduling:
        query = rpc(handle, "alloc-query", "alloc-query", {})
        print(f"{query['queue_length']} alloc requests queued")
        print(f"{query['alloc_pending']} alloc requests pending to scheduler")
        print(f"{query['running']} running jobs")


def status(args: Args) -> None:
    show(args, flux.Flux(), True, True)


def start_stop(args: Args) -> None:
    handle = flux.Flux()
    names = rpc(handle, "list", "queue-list", {})["queues"]
    if names and not args.queue and not args.all:
        raise ValueError("Named queues are defined. Specify queues or use --all.")
    request = {
        "start": args.verb == "start",
        "all": args.all,
        "nocheckpoint": args.nocheckpoint,
    }
    if args.queue:
        request["name"] = args.queue
    if args.message:
        request["reason"] = args.message
    rpc(handle, args.verb, "queue-start", request)
    if not args.quiet:
        show(args, handle, False, True)


def enable_disable(args: Args) -> None:
    handle = flux.Flux()
    request = {"enable": args.verb == "enable", "all": args.all}
    if args.queue:
        request["name"] = args.queue
    if args.verb == "disable":
        request["reason"] = args.message or "disabled by administrator"
    rpc(handle, args.verb, "queue-enable", request)
    if not args.quiet:
        show(args, handle, True, False)


def drain_idle(args: Args) -> None:
    future = flux.Flux().rpc(f"job-manager.{args.verb}")
    try:
        solocmd.Deadline(args.timeout).wait(future)
        reply = future.get()
    except TimeoutError:
        solocmd.die(NAME, f"ERROR: {args.verb}: timeout")
    except OSError:
        solocmd.die(NAME, f"ERROR: {args.verb}: {future.error_string()}")
    if args.verb == "idle" and (not args.quiet or reply["pending"] > 0):
        print(f"{reply['pending']} jobs")


HEADINGS = {
    "queue": "QUEUE",
    "queuem": "QUEUE",
    "parent": "PARENT",
    "submission": "SUBMIT",
    "scheduling": "SCHED",
    "enabled": "EN",
    "enabled.ascii": "EN",
    "started": "ST",
    "started.ascii": "ST",
    "color_enabled": "",
    "color_started": "",
    "color_off": "",
    "defaults.timelimit": "TDEFAULT",
    "limits.timelimit": "TLIMIT",
}
for _kind in ("nnodes", "ncores", "ngpus"):
    HEADINGS[f"limits.range.{_kind}"] = _kind.upper()
    HEADINGS[f"limits.range.effective.{_kind}"] = _kind.upper()
    HEADINGS[f"limits.min.{_kind}"] = "MIN" + _kind[1:].upper()
    HEADINGS[f"limits.max.{_kind}"] = "MAX" + _kind[1:].upper()

DEFAULT_FORMAT = (
    "?:{queuem:<8.8} ?:{parent:<8.8} {enabled:>2} {started:>2} "
    "{defaults.timelimit!F:>8} {limits.timelimit!F:>8} "
    "{limits.range.effective.nnodes:>10} {limits.range.effective.ncores:>10} "
    "{limits.range.effective.ngpus:>10}"
)


class Range:
    """The limits of a queue as MIN-MAX, the latter not above what there is."""

    effective: "Range"

    def __init__(self, limits: Any, present: Any = None) -> None:
        for kind in ("nnodes", "ncores", "ngpus"):
            low, high = getattr(limits.min, kind), getattr(limits.max, kind)
            if present:
                high = min(high, getattr(present, kind))
            setattr(self, kind, f"{low}-{high}")


class Limits:
    def __init__(self, limits: Any, present: Any) -> None:
        self.timelimit = limits.timelimit
        self.min, self.max = limits.min, limits.max
        self.range = Range(limits)
        self.range.effective = Range(limits, present)


class Line:
    """A queue as one line of output."""

    color_enabled = color_started = color_off = ""

    def __init__(self, info: Any) -> None:
        self.queue = info.name or ""
        default = getattr(info, "is_default", False)
        self.queuem = self.queue + ("*" if default and self.queue else "")
        self.parent = getattr(info, "parent", None) or ""
        self.defaults, self.limits = (
            info.defaults,
            Limits(info.limits, info.resources.all),
        )
        self.submission = "enabled" if info.enabled else "disabled"
        self.scheduling = "started" if info.started else "stopped"
        self.enabled = flux.util.AltField(
            "✔" if info.enabled else "✗", "y" if info.enabled else "n"
        )
        self.started = flux.util.AltField(
            "✔" if info.started else "✗", "y" if info.started else "n"
        )


def list_queues(args: Args) -> None:
    from flux.queue import QueueList

    names = args.queue.split(",") if args.queue else None
    fmt = DEFAULT_FORMAT if args.format == "default" else args.format
    formatter = flux.util.OutputFormat(fmt, headings=HEADINGS)
    handle = flux.Flux()  # the list refers to it weakly
    lines = [Line(info) for info in QueueList(handle, queues=names)]
    formatter.print_items(lines, no_header=args.no_header)


def main() -> None:
    top = solocmd.parser(NAME)
    sub = top.add_subparsers(metavar="COMMAND")

    def command(name: str, func: Any) -> Any:
        cmd = sub.add_parser(name, help=f"{name} queues")
        cmd.set_defaults(func=func, verb=name)
        return cmd

    for name, func in (
        ("start", start_stop),
        ("stop", start_stop),
        ("enable", enable_disable),
        ("disable", enable_disable),
        ("status", status),
    ):
        cmd = command(name, func)
        cmd.set_defaults(message=None, nocheckpoint=False)
        cmd.add_argument("-v", "--verbose", action="store_true")
        if name != "status":
            cmd.add_argument("-a", "--all", action="store_true", help="all queues")
            cmd.add_argument("--quiet", action="store_true", help="only errors")
        if name in ("stop", "disable"):
            cmd.add_argument("-m", "--message", metavar="REASON")
            cmd.add_argument("--nocheckpoint", action="store_true")
        cmd.add_argument("queue", nargs="?", metavar="QUEUE")
    for name in ("drain", "idle"):
        cmd = command(name, drain_idle)
        cmd.add_argument("-t", "--timeout", type=solocmd.duration, metavar="FSD")
        cmd.add_argument("--quiet", action="store_true")
    cmd = command("list", list_queues)
    cmd.add_argument("-q", "--queue", metavar="QUEUE,...")
    cmd.add_argument("-o", "--format", default="default")
    cmd.add_argument("-n", "--no-header", action="store_true")
    solocmd.dispatch(top)


if __name__ == "__main__":
    solocmd.run(NAME, main)
