# SPDX-License-Identifier: LGPL-3.0-only
"""flux resource: list resources, and take nodes out of service and back."""

import argparse
import errno
import json
import sys
from collections.abc import Iterator
from typing import Any, Optional

import flux
import flux.util
import solocmd
from flux.idset import IDset
from flux.resource import ResourceSet, resource_list, resource_status

NAME = "flux-resource"
Args = argparse.Namespace

LIST_FORMATS = {
    "default": (
        "{state:>10} ?+:{queue:<5} ?:{propertiesx:<10.10+} {nnodes:>6} "
        "+:{ncores:>6} ?+:{ngpus:>5} {nodelist}"
    ),
    "rlist": (
        "{state:>10} ?+:{queue:<5} ?:{propertiesx:<10.10+} {nnodes:>6} "
        "+:{ncores:>6} ?:+{ngpus:>5} {rlist}"
    ),
}
STATUS_FORMATS = {
    "default": "{state:>12}{up:>2} {nnodes:>6} {nodelist}",
    "long": "{state:>12}{up:>2} {nnodes:>6} +:{reason:<30.30} {nodelist}",
}
DRAIN_FORMATS = {
    "default": "{timestamp!d:%b%d %R::<12} {state:<8.8} {reason:<30.30+} {nodelist}",
    "long": (
        "{timestamp!d:%b%d %R::<12} {state:<8.8} {ranks:<8.8+} "
        "+:{reason:<30.30} {nodelist}"
    ),
}
SAME = "ncores ngpus nnodes nodelist properties queue ranks reason state status up"
HEADINGS = {
    **{name: name.upper() for name in SAME.split()},
    "propertiesx": "PROPERTIES",
    "rlist": "LIST",
    "timestamp": "TIME",
    "up.ascii": "UP",
}


def output(args: Args, formats: dict[str, str]) -> Any:
    fmt = formats.get(args.format, args.format)
    return flux.util.OutputFormat(fmt, headings=HEADINGS)


# Queues
def required(queues: dict[str, Any], name: str) -> set[str]:
    """The properties of a queue's nodes, or its parent's."""
    entry = queues[name]
    entry = queues.get(entry.get("parent"), entry)
    return set(entry.get("requires", []))


def queue_ranks(rset: ResourceSet, config: dict[str, Any], names: set[str]) -> IDset:
    queues = config.get("queues", {})
    properties = json.loads(rset.get_properties())
    result = IDset()
    for name in names:
        if name not in queues:
            raise ValueError(f"--queue: {name}: no such queue")
        ranks = IDset(rset.ranks)
        for prop in required(queues, name):
            ranks = ranks.intersect(IDset(properties.get(prop, "")))
        result.add(ranks)
    return result


def narrow(found: Any, rset: ResourceSet, config: dict[str, Any], args: Args) -> None:
    """Leave in 'found' what --queue and --include ask for."""
    if args.queue:
        names = set(args.queue.split(","))
        found.filter(include=queue_ranks(rset, config, names))
    try:
        if args.include:
            found.filter(include=args.include)
    except (TypeError, ValueError) as exc:
        raise ValueError(f"--include: {exc}") from None


class ListLine:
    """Nodes alike in what the format shows, as one line of output."""

    def __init__(self, rset: ResourceSet, state: str, queue: str, props: str) -> None:
        self.rset = rset
        self.state, self.queue, self.propertiesx = state, queue, props

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rset, name)

    @property
    def properties(self) -> str:
        return ",".join(json.loads(self.rset.get_properties()))


def groups(
    rset: ResourceSet, config: dict[str, Any], fields: list[str], only: set[str]
) -> Iterator[tuple[IDset, str, str]]:
    """Sets of ranks that agree in queue and properties, if these are shown."""
    queues = config.get("queues", {})
    ranks_of = {
        name: IDset(ids) for name, ids in json.loads(rset.get_properties()).items()
    }
    shown = [q for q in queues if q in only or not only and "parent" not in queues[q]]
    found: dict[tuple[str, str], IDset] = {}
    for rank in rset.ranks:
        props = {name for name, ranks in ranks_of.items() if rank in ranks}
        queue = text = ""
        if "queue" in fields:
            queue = ",".join(q for q in shown if required(queues, q) <= props)
        if "propertiesx" in fields or "properties" in fields:
            text = ",".join(p for p in ranks_of if p in props and p not in queues)
        found.setdefault((queue, text), IDset()).set(rank)
    if not found:
        yield IDset(), "", ""
    for (queue, text), ranks in found.items():
        yield ranks, queue, text


def fetch_list(args: Args) -> tuple[Any, dict[str, Any]]:
    handle = flux.Flux()
    future = resource_list(handle)
    config = handle.rpc("config.get").get()
    resources = future.get()
    narrow(resources, resources.all, config, args)
    return resources, config


def states_of(args: Args) -> list[str]:
    states = args.states.split(",")
    unknown = set(states) - {"all", "allocated", "down", "free", "up"}
    if unknown:
        raise ValueError(f"--states: no such state: {', '.join(sorted(unknown))}")
    return states


def list_resources(args: Args) -> None:
    states = states_of(args)
    resources, config = fetch_list(args)
    formatter = output(args, LIST_FORMATS)
    only = set(args.queue.split(",")) if args.queue else set()
    skip_empty = args.skip_empty or (args.include and not args.no_skip_empty)
    lines = []
    for state in states:
        rset = resources[state]
        for ranks, queue, props in groups(rset, config, formatter.fields, only):
            if len(ranks) == 0 and skip_empty:
                continue
            part = rset.copy_ranks(ranks) if len(ranks) else ResourceSet()
            lines.append(ListLine(part, state, queue, props))
    formatter.print_items(lines, no_header=args.no_header)


# Status
class StatusLine:
    def __init__(
        self,
        status: Any,
        state: str,
        ranks: IDset,
        online: bool,
        drain: Optional[Any] = None,
    ) -> None:
        self.state, self.online = state + ("" if online else "*"), online
        self.ranks = ranks.encode()
        self.nnodes = len(ranks)
        self.nodelist = status.nodelist[ranks] if len(ranks) else ""
        self.status = "online" if online else "offline"
        self.up = flux.util.AltField("✔" if online else "✗", "y" if online else "n")
        self.reason = drain.reason if drain else ""
        self.timestamp = drain.timestamp if drain else ""


# In the order of output; allocated nodes are in others, too.
SHOWN_STATES = (
    "avail", "exclude", "allocated", "torpid", "housekeeping", "draining", "drained",
)  # fmt: skip
DEFAULT_STATES = ",".join(state for state in SHOWN_STATES if state != "allocated")
ALL_STATES = ("all", "online", "offline", "drain", *SHOWN_STATES)


def status_lines(
    status: Any, states: list[str], with_reason: bool, online: bool, offline: bool
) -> Iterator[StatusLine]:
    for state in SHOWN_STATES:
        if state not in states and "all" not in states:
            continue
        parts: list[tuple[IDset, Optional[Any]]] = [(status[state], None)]
        if state in ("draining", "drained") and with_reason:
            parts = [
                (entry.ranks & status[state], entry) for entry in status.drain_info
            ]
        for ranks, drain in parts:
            if online:
                yield StatusLine(status, state, ranks & status.online, True, drain)
            if offline and (state not in ("draining", "drained") or len(ranks)):
                yield StatusLine(status, state, ranks & status.offline, False, drain)


def show_status(args: Args, formats: dict[str, str], states_arg: Optional[str]) -> None:
    states = (states_arg or DEFAULT_STATES).split(",")
    unknown = set(states) - set(ALL_STATES)
    if unknown:
        known = ", ".join(sorted(ALL_STATES))
        solocmd.die(NAME, f"--states: no such state as {unknown.pop()}: {known}")
    online = "online" in states or "offline" not in states
    offline = "offline" in states or "online" not in states
    ask_offline = "offline" in states
    if set(states) <= {"online", "offline"}:
        states += DEFAULT_STATES.split(",")
    if "drain" in states:
        pos = states.index("drain")
        states[pos : pos + 1] = ["draining", "drained"]
    handle = flux.Flux()
    status = resource_status(handle).get()
    config = handle.rpc("config.get").get() if args.queue else {}
    narrow(status, status.rset, config, args)
    formatter = output(args, formats)
    with_reason = bool({"reason", "timestamp"} & set(formatter.fields))
    skip_empty = getattr(args, "skip_empty", True) or not states_arg
    lines = [
        line
        for line in status_lines(status, states, with_reason, online, offline)
        if line.nnodes or not (skip_empty or (not line.online and not ask_offline))
    ]
    formatter.print_items(lines, no_header=args.no_header)


def status(args: Args) -> None:
    show_status(args, STATUS_FORMATS, args.states)


# Drain
def request(args: Args) -> dict[str, Any]:
    if args.update and args.force:
        solocmd.die(NAME, "ERROR: --force and --update exclude each other")
    result: dict[str, Any] = {"targets": args.targets}
    if args.update:
        result["mode"] = "update"
    elif args.force:
        result["mode"] = "overwrite" if args.force == 1 else "force-overwrite"
    if args.reason:
        result["reason"] = " ".join(args.reason)
    return result


def drain(args: Args) -> None:
    if args.targets is None:
        show_status(args, DRAIN_FORMATS, "drain")
        return
    future = flux.Flux().rpc("resource.drain", request(args))
    try:
        future.get()
    except OSError as exc:
        print(f"{NAME}: ERROR: {future.error_string()}", file=sys.stderr)
        if exc.errno == errno.EEXIST:
            print(f"{NAME}: --force gives it a new reason", file=sys.stderr)
        sys.exit(1)


def undrain(args: Args) -> None:
    future = flux.Flux().rpc("resource.undrain", request(args))
    try:
        future.get()
    except OSError:
        solocmd.die(NAME, f"ERROR: {future.error_string()}")


def main() -> None:
    top = solocmd.parser(NAME)
    sub = top.add_subparsers(metavar="COMMAND")

    def command(name: str, func: Any, text: str, shows: bool) -> Any:
        cmd = sub.add_parser(name, help=text)
        cmd.set_defaults(func=func)
        if shows:
            cmd.add_argument("-i", "--include", metavar="TARGETS")
            cmd.add_argument("-q", "--queue", metavar="QUEUE,...")
            cmd.add_argument("-o", "--format", default="default")
            cmd.add_argument("-n", "--no-header", action="store_true")
            solocmd.color_option(cmd)
        return cmd

    cmd = command("list", list_resources, "show resources by scheduler state", True)
    cmd.add_argument(
        "-s", "--states", default="free,allocated,down", metavar="STATE,..."
    )
    cmd.add_argument("--skip-empty", action="store_true")
    cmd.add_argument("--no-skip-empty", action="store_true")
    cmd = command("status", status, "show nodes by state", True)
    cmd.add_argument("-s", "--states", metavar="STATE,...")
    cmd.add_argument("--skip-empty", action="store_true")
    for name, func in (("drain", drain), ("undrain", undrain)):
        cmd = command(name, func, f"{name} nodes", name == "drain")
        cmd.add_argument(
            "-u",
            "--update",
            action="store_true",
            help="no error if some are so already",
        )
        cmd.add_argument("-f", "--force", action="count", default=0)
        nargs = "?" if name == "drain" else None
        cmd.add_argument("targets", nargs=nargs, metavar="TARGETS")
        cmd.add_argument("reason", nargs=argparse.REMAINDER, metavar="REASON")
    solocmd.dispatch(top)


if __name__ == "__main__":
    solocmd.run(NAME, main)
