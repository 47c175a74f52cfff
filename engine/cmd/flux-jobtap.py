# SPDX-License-Identifier: LGPL-3.0-only
"""flux jobtap: load, remove, list and query job-manager plugins."""

import argparse
import json
from typing import Any

import flux
import solocmd


def jobtap(request: dict[str, Any]) -> Any:
    try:
        return flux.Flux().rpc("job-manager.jobtap", request).get()
    except FileNotFoundError:
        solocmd.die(
            "flux-jobtap",
            f"ERROR: {request.get('load', request.get('remove'))} not found",
        )


def load(args: argparse.Namespace) -> None:
    request: dict[str, Any] = {"load": args.plugin}
    if args.remove:
        request["remove"] = args.remove
    conf: dict[str, Any] = {}
    for item in args.conf:
        key, sep, value = item.partition("=")
        if not sep:
            raise ValueError(f"{item}: expected KEY=VAL")
        try:
            value = json.loads(value)
        except json.JSONDecodeError:
            pass
        flux.util.set_treedict(conf, key, value)
    if conf:
        request["conf"] = conf
    jobtap(request)


def remove(args: argparse.Namespace) -> None:
    jobtap({"remove": args.plugin})


def list_plugins(args: argparse.Namespace) -> None:
    for name in jobtap({"query_only": True})["plugins"]:
        if args.all or not name.startswith("."):
            print(name)


def query(args: argparse.Namespace) -> None:
    rpc = flux.Flux().rpc("job-manager.jobtap-query", {"name": args.plugin})
    print(rpc.get_str())


def main() -> None:
    top = solocmd.parser("flux-jobtap")
    sub = top.add_subparsers(metavar="COMMAND")
    cmd = sub.add_parser("load", help="load a plugin")
    cmd.add_argument("-r", "--remove", metavar="NAME", help="remove NAME first")
    cmd.add_argument("plugin", metavar="PLUGIN")
    cmd.add_argument("conf", nargs="*", metavar="KEY=VAL")
    cmd.set_defaults(func=load)
    cmd = sub.add_parser("remove", help="remove a plugin, or those that match")
    cmd.add_argument("plugin", metavar="PLUGIN")
    cmd.set_defaults(func=remove)
    cmd = sub.add_parser("list", help="list plugins")
    cmd.add_argument("-a", "--all", action="store_true", help="list builtins too")
    cmd.set_defaults(func=list_plugins)
    cmd = sub.add_parser("query", help="print what a plugin says of itself")
    cmd.add_argument("plugin", metavar="PLUGIN")
    cmd.set_defaults(func=query)
    solocmd.dispatch(top)


if __name__ == "__main__":
    solocmd.run("flux-jobtap", main)
