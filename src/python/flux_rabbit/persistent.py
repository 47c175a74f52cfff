# SPDX-License-Identifier: LGPL-3.0-only
#
# flux rabbit persistent: file systems that outlive the job that created them. To create
# or destroy one, submit a job with a directive, so that Flux and DWS check the rights.
# The lease is recorded by the module dws alone.
"""Persistent file systems."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any

from flux_k8s import names

from flux_rabbit import cli, rpc, table, term, watch
from flux_rabbit.submit import TYPES, submit
from flux_rabbit.term import Line
from flux_rabbit.units import Seconds, Size, date

Object = dict[str, Any]

ACTIONS = ("list", "show", "create", "extend", "destroy")
# Options of `create`.
MAKING = ("type", "capacity", "profile")
NEVER = "never"
# More rabbits than this are not shown one by one.
MANY = 16


def configure(
    parser: argparse.ArgumentParser, command: str
) -> tuple[str, tuple[str, ...]]:
    """Options."""
    parser.add_argument(
        "action",
        nargs="?",
        default="list",
        choices=ACTIONS,
        metavar="ACTION",
        help=f"one of {', '.join(ACTIONS)} (default: list)",
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="a file system")
    table.configure(parser)
    making = parser.add_argument_group("what create makes")
    making.add_argument("-t", "--type", choices=TYPES, help="of file system")
    making.add_argument("-c", "--capacity", metavar="SIZE", help="such as 10TiB")
    making.add_argument("--profile", metavar="PROFILE", help="of NNF")
    parser.add_argument(
        "--expires",
        metavar="TIME",
        help="when it is destroyed: so long after it is made (create) or from now "
        "(extend), such as 30d, or a date, or 'never'",
    )
    job = parser.add_argument_group("the job that creates or destroys")
    job.add_argument(
        "-N", "--nodes", type=int, default=1, metavar="N", help="its nodes (default: 1)"
    )
    job.add_argument("-q", "--queue", metavar="QUEUE", help="its queue")
    job.add_argument("-B", "--bank", metavar="BANK", help="its bank")
    job.add_argument("--requires", metavar="CONSTRAINT", help="its nodes are like this")
    parser.add_argument(
        "-y", "--yes", action="store_true", help="destroy without asking"
    )
    parser.set_defaults(interval=0.5, late="name")
    return (
        "List file systems that stay when the job that made them is over, show one, "
        "make one, change when it expires, or destroy it with all that is in it. "
        "create and destroy submit a job and follow it to its end; the exit status is "
        "that of the job. A file system of type xfs, gfs2 or raw is made next to the "
        "nodes of that job, and can be mounted on as many nodes at each rabbit as it "
        "has. One that has expired is destroyed when no job uses or names it any more; "
        "'!' marks what is going to expire soon. Users who do not own the instance see "
        "their own.",
        (
            "flux rabbit persistent",
            "flux rabbit persistent create results -t lustre -c 50GiB --expires 30d",
            "flux rabbit persistent extend results --expires 60d",
            "flux rabbit persistent show results",
            "flux rabbit persistent destroy results",
            "flux rabbit persistent destroy --yes results     without asking",
        ),
    )


def _user(user: Object) -> str:
    return rpc.f58(user["jobid"]) if "jobid" in user else str(user["workflow"])


def _left(system: Object) -> str:
    """The time until a file system's lease ends; '' without one."""
    now, expires = system["now"], float(system.get("expires") or 0)
    if not expires:
        return ""
    if system.get("destroying"):
        return "going!"
    left = str(Seconds(expires - now)) if expires > now else "over"
    return left + ("!" if system.get("expiring") else "")


def _age(system: Object) -> Any:
    created = float(system.get("created") or 0)
    return Seconds(max(0.0, system["now"] - created)) if created else ""


def _date(key: str) -> Callable[[Object], str]:
    return lambda system: date(float(system[key])) if system.get(key) else ""


def _on(system: Object) -> str:
    space = system.get("space") or {}
    return str(next(iter(space))) if len(space) == 1 else f"{len(space)} rabbits"


def _hostlist(names: Object) -> str:
    from flux.hostlist import Hostlist

    return str(Hostlist(sorted(names)).sort())


LIST = table.Table(
    "persistent",
    {
        "name": ("NAME", itemgetter("name")),
        "type": ("TYPE", itemgetter("type")),
        "size": ("SIZE", lambda s: Size(sum((s.get("space") or {}).values()))),
        "state": ("STATE", itemgetter("state")),
        "username": ("USER", itemgetter("user")),
        "userid": ("UID", itemgetter("userid")),
        "age": ("AGE", _age),
        "created": ("CREATED", _date("created")),
        "left": ("EXPIRES", _left),
        "expires": ("EXPIRES", _date("expires")),
        "jobs": ("JOBS", lambda s: len(s["users"])),
        "users": ("USED BY", lambda s: ",".join(map(_user, s["users"]))),
        "on": ("ON", _on),
        "rabbits": ("RABBITS", lambda s: _hostlist(s.get("space") or {})),
    },
    {
        "default": (
            "Size, owner, age, when it expires, how many use it",
            "+:{name:<8} {type:<6} {size:>7} +:{state:<6} +:{username:<8} {age:>7} "
            "?+:{left:>7} {jobs:>4} {on}",
        ),
        "long": (
            "With who uses it, and since when it is there",
            "+:{name:<8} {type:<6} {size:>8} {state:<8} +:{username:<8} "
            "{created:<19} ?+:{expires:<19} +:{rabbits:<8} ?:{users}",
        ),
    },
)


def row_of(system: Object, now: float) -> table.Row:
    """The fields of a file system."""
    return LIST.row({**system, "now": now})


def screen(system: Object, rabbits: list[Object], now: float) -> list[Line]:
    """Everything about a file system."""
    row = row_of(system, now)
    nodes = {rabbit["name"]: rabbit.get("nodes", "") for rabbit in rabbits}
    lines: list[Line] = [
        [(row.name, "bold"), (f"  {row.type}, {row.size}, ", ""), _state(row.state)],
        [("Owner    ", "dim"), (str(row.username), "")],
    ]
    if row.created:
        lines.append([("Since    ", "dim"), (f"{row.created} ({row.age})", "")])
    if row.expires:
        soon = "warn" if system.get("expiring") else ""
        lines.append(
            [("Expires  ", "dim"), (row.expires, ""), (f" ({row.left})", soon)]
        )
    lines.append([("Used by  ", "dim"), (row.users or "nobody", "")])
    label = "On       "
    for text in _places(system.get("space") or {}, nodes):
        lines.append([(label, "dim"), (text, "")])
        label = " " * len(label)
    return lines


def _places(space: dict[str, int], nodes: dict[str, str]) -> Iterator[str]:
    """The rabbits of a file system; many of them are grouped by equal allocations."""
    if len(space) <= MANY:
        for name, size in sorted(space.items()):
            near = f", next to {nodes[name]}" if nodes.get(name) else ""
            yield f"{name}: {Size(size)}{near}"
        return
    for size in sorted(set(space.values()), reverse=True):
        names = {name: n for name, n in space.items() if n == size}
        yield f"{len(names)} x {Size(size)}: {_hostlist(names)}"


def _state(state: str) -> tuple[str, str]:
    return (state or "state unknown", "good" if state == "Active" else "warn")


def _find(systems: list[Object], name: str) -> Object:
    for system in systems:
        if system["name"] == name:
            return system
    names = ", ".join(sorted(s["name"] for s in systems))
    there = f": {names}" if names else ", nor any other"
    raise cli.Failure(f"there is no file system '{name}' that you may see{there}")


def _submit(directive: str, args: argparse.Namespace) -> int:
    """Submit a job for the sake of its directive. Raises Failure."""
    try:
        return submit(
            ["true"],
            directive,
            f"{args.action}-{args.name}",
            args.nodes,
            requires=args.requires,
            queue=args.queue,
            bank=args.bank,
        )
    except (OSError, ValueError) as exc:
        text = exc.strerror if isinstance(exc, OSError) else None
        raise cli.Failure(text or str(exc)) from None


def _when(text: str, now: float) -> float:
    """A time, s since the epoch; 0 for never. Raises Failure."""
    from flux.util import parse_datetime, parse_fsd

    if text == NEVER:
        return 0.0
    try:
        when = now + float(parse_fsd(text))
    except (ValueError, OverflowError):
        try:
            when = float(parse_datetime(text).timestamp())
        except (ValueError, OverflowError):
            raise cli.Failure(
                f"--expires: '{text}' is no time: say 30d, 2026-12-24, or never"
            ) from None
    if not when > now:
        raise cli.Failure(f"--expires: '{text}' is over")
    return when if math.isfinite(when) else 0.0


def _lifetime(text: str) -> str:
    """The value of expires= in a directive. Raises Failure."""
    from flux.util import parse_fsd

    now = time.time()
    when = _when(text, now)
    try:
        parse_fsd(text)
    except (ValueError, OverflowError):
        return f"{when - now:.0f}s" if when else "inf"
    return text


def _extend(handle: rpc.Handle, args: argparse.Namespace) -> int:
    if not args.expires:
        raise cli.Failure(f"extend needs --expires: for how long is {args.name} kept?")
    request = {"name": args.name, "expires": _when(args.expires, time.time())}
    try:
        handle.call(names.TOPIC_EXPIRY, request)
    except rpc.Absent:
        raise
    except rpc.RpcError as exc:
        raise cli.Failure(exc.strerror) from None
    return 0


def _directive(command: str, args: argparse.Namespace) -> str:
    words = {"name": args.name}
    words.update({key: getattr(args, key) for key in MAKING if getattr(args, key)})
    if args.expires:
        words["expires"] = _lifetime(args.expires)
    for key, value in words.items():
        if not value or not set(value).isdisjoint(" \t\r\n"):
            raise cli.Failure(f"{key}: '{value}' is not one word")
    return " ".join([f"#DW {command}", *(f"{k}={v}" for k, v in words.items())])


def _create(handle: rpc.Handle, args: argparse.Namespace) -> int:
    missing = [f"--{key}" for key in ("type", "capacity") if not getattr(args, key)]
    if missing:
        raise cli.Failure(f"create needs {' and '.join(missing)}")
    number = _submit(_directive("create_persistent", args), args)
    return watch.follow(handle, number, args)


def _destroy(
    handle: rpc.Handle, systems: list[Object], args: argparse.Namespace
) -> int:
    row = row_of(_find(systems, args.name), time.time())
    if row.users:
        raise cli.Failure(f"'{row.name}' is used by {row.users}: wait for their end")
    if not args.yes:
        text = f"{row.name} ({row.type}, {row.size}) is lost with all that is in it."
        print(term.clean(text))
        cli.confirm()
    number = _submit(_directive("destroy_persistent", args), args)
    return watch.follow(handle, number, args)


def _check(args: argparse.Namespace) -> None:
    """Raises Failure for arguments that exclude each other."""
    if args.action == "list" and args.name:
        raise cli.Failure(f"list takes no name: show {args.name}?")
    if args.action != "list" and not args.name:
        raise cli.Failure(f"{args.action} needs the name of a file system")
    # Not as if the option were not there: it may be a variable that is not set.
    for key in (*MAKING, "expires", "queue", "bank", "requires"):
        if getattr(args, key) == "":
            raise cli.Failure(f"--{key}: is empty")
    for key in MAKING:
        if args.action != "create" and getattr(args, key):
            raise cli.Failure(f"--{key}: only create takes it")
    if args.expires and args.action not in ("create", "extend"):
        raise cli.Failure("--expires: only create and extend take it")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    _check(args)
    handle = rpc.Handle()
    if args.action == "create":
        return _create(handle, args)
    if args.action == "extend":
        return _extend(handle, args)
    systems: list[Object] = rpc.status(handle)["persistent"]
    if args.action == "destroy":
        return _destroy(handle, systems, args)
    now = time.time()
    if args.action == "show":
        system = _find(systems, args.name)
        if args.json:
            cli.print_json(system)
        else:
            term.show(screen(system, rpc.rabbits(handle), now), cli.colour(args))
    elif args.json:
        cli.print_json({"persistent": systems})
    else:
        systems.sort(key=lambda system: str(system["name"]))
        rows = [row_of(system, now) for system in systems]
        whose = "" if cli.is_owner(handle) else " of yours"
        table.show(LIST, args, [rows], nothing=f"no persistent file system{whose}")
    return 0
