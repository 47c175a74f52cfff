# SPDX-License-Identifier: LGPL-3.0-only
"""flux queue: start, stop and drain queues."""

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
        raise ValueError("there are named queues: give some, or --all")
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
        ("status", status),
    ):
        cmd = command(name, func)
        cmd.set_defaults(message=None, nocheckpoint=False)
        cmd.add_argument("-v", "--verbose", action="store_true")
        if name != "status":
            cmd.add_argument("-a", "--all", action="store_true", help="all queues")
            cmd.add_argument("--quiet", action="store_true", help="only errors")
        if name == "stop":
            cmd.add_argument("-m", "--message", metavar="REASON")
            cmd.add_argument("--nocheckpoint", action="store_true")
        cmd.add_argument("queue", nargs="?", metavar="QUEUE")
    for name in ("drain", "idle"):
        cmd = command(name, drain_idle)
        cmd.add_argument("-t", "--timeout", type=solocmd.duration, metavar="FSD")
        cmd.add_argument("--quiet", action="store_true")
    solocmd.dispatch(top)


if __name__ == "__main__":
    solocmd.run(NAME, main)
