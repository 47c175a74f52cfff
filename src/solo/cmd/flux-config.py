# SPDX-License-Identifier: LGPL-3.0-only
"""flux config: get, load and reload the configuration."""

import argparse
import json
import sys
from typing import Any

import flux
import solocmd


def get(args: argparse.Namespace) -> None:
    conf = flux.Flux().rpc("config.get").get()
    value: Any = conf
    for part in args.name.split(".") if args.name else []:
        if not isinstance(value, dict) or part not in value:
            if args.default is not None:
                print(args.default)
                return
            solocmd.die("flux-config", f"{args.name} is not set")
        value = value[part]
    if args.type in ("fsd", "fsd-integer", "fsd-real"):
        seconds = flux.util.parse_fsd(str(value))
        text = {"fsd": value, "fsd-integer": int(seconds), "fsd-real": seconds}
        print(text[args.type])
    elif isinstance(value, str) and args.type != "object":
        print(value)
    else:
        print(json.dumps(value, ensure_ascii=False))


def read_conf(path: str) -> Any:
    """Parse TOML, or JSON if it looks like it, from a file or '-'."""
    from pathlib import Path

    text = sys.stdin.read() if path == "-" else Path(path).read_text("utf-8")
    if text.lstrip().startswith("{"):
        return json.loads(text)
    try:
        import tomllib
    except ImportError:
        from flux.utils import tomli as tomllib  # type: ignore
    return tomllib.loads(text)


def load(args: argparse.Namespace) -> None:
    import glob
    import os

    path = args.path or "-"
    paths = sorted(glob.glob(f"{path}/*.toml")) if os.path.isdir(path) else [path]
    conf: Any = {}
    for name in paths:
        flux.util.dict_merge(conf, read_conf(name))
    flux.Flux().rpc("config.load", conf).get()


def reload(args: argparse.Namespace) -> None:
    flux.Flux().rpc("config.reload").get()


def main() -> None:
    top = solocmd.parser("flux-config")
    sub = top.add_subparsers(metavar="COMMAND")
    cmd = sub.add_parser("get", help="print a configuration value")
    cmd.add_argument("-d", "--default", help="value to print if it is not set")
    cmd.add_argument("-t", "--type", help="how to print the value")
    cmd.add_argument("name", nargs="?", metavar="NAME")
    cmd.set_defaults(func=get)
    cmd = sub.add_parser("load", help="replace the configuration")
    cmd.add_argument("path", nargs="?", metavar="PATH")
    cmd.set_defaults(func=load)
    cmd = sub.add_parser("reload", help="read the configuration files again")
    cmd.set_defaults(func=reload)
    solocmd.dispatch(top)


if __name__ == "__main__":
    solocmd.run("flux-config", main)
