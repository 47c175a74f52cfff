# SPDX-License-Identifier: LGPL-3.0-only
"""flux module: load, remove, reload and list broker modules."""

import argparse
import os
from typing import Any

import flux
import solocmd

STATES = "IRFX"


def canonical(name: str) -> str:
    """The broker's working directory is not ours."""
    return os.path.realpath(name) if "/" in name else name


def rpc(verb: str, name: str, request: dict[str, Any]) -> None:
    future = flux.Flux().rpc(f"module.{verb}", request)
    try:
        future.get()
    except OSError:
        solocmd.die("flux-module", f"{verb} {name}: {future.error_string()}")


def load(args: argparse.Namespace) -> None:
    request = {"path": canonical(args.module), "args": args.args, "exec": args.exec}
    if args.name:
        request["name"] = args.name
    rpc("load", args.module, request)


def remove(args: argparse.Namespace) -> None:
    future = flux.Flux().rpc(
        "module.remove", {"name": canonical(args.module), "cancel": False}
    )
    try:
        future.get()
    except OSError as exc:
        if not (args.force and isinstance(exc, FileNotFoundError)):
            solocmd.die("flux-module", f"remove {args.module}: {future.error_string()}")


def reload(args: argparse.Namespace) -> None:
    remove(args)
    load(args)


def list_modules(args: argparse.Namespace) -> None:
    mods = flux.Flux().rpc("module.list").get()["mods"]
    if args.long:
        print(
            f"{'Module':<24.24} {'Idle':>5} {'State':>5} {'Sendq':>5} "
            f"{'Recvq':>5} {'Service':<16} Path"
        )
    else:
        print(f"{'Module':<25.25} {'Idle':>4}  S {'Sendq':>5} {'Recvq':>5} Service")
    for mod in mods:
        name = mod["name"]
        state = STATES[mod["status"]] if mod["status"] < len(STATES) else "?"
        idle = str(mod["idle"]) if mod["idle"] < 100 else "idle"
        services = ",".join(s for s in mod["services"] if s != name)
        queues = mod.get("sendqueue", 0), mod.get("recvqueue", 0)
        if args.long:
            print(
                f"{name:<24.24} {idle:>5} {state:>5} {queues[0]:>5} {queues[1]:>5} "
                f"{services:<16} {mod['path']}"
            )
        else:
            print(
                f"{name:<25.25} {idle:>4}  {state} {queues[0]:>5} {queues[1]:>5} "
                f"{services}"
            )


def main() -> None:
    top = solocmd.parser("flux-module")
    sub = top.add_subparsers(metavar="COMMAND")
    for name, func in (("load", load), ("reload", reload)):
        cmd = sub.add_parser(name, help=f"{name} a module")
        cmd.add_argument("-n", "--name", help="override the module's name")
        cmd.add_argument("-x", "--exec", action="store_true", help="in its own process")
        if name == "reload":
            cmd.add_argument(
                "-f", "--force", action="store_true", help="not loaded? fine"
            )
        cmd.add_argument("module", metavar="MODULE")
        cmd.add_argument("args", nargs=argparse.REMAINDER, metavar="ARGS")
        cmd.set_defaults(func=func)
    cmd = sub.add_parser("remove", help="unload a module")
    cmd.add_argument("-f", "--force", action="store_true", help="not loaded? fine")
    cmd.add_argument("module", metavar="MODULE")
    cmd.set_defaults(func=remove)
    cmd = sub.add_parser("list", help="list modules")
    cmd.add_argument("-l", "--long", action="store_true", help="show paths too")
    cmd.set_defaults(func=list_modules)
    solocmd.dispatch(top)


if __name__ == "__main__":
    solocmd.run("flux-module", main)
