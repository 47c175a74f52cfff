# SPDX-License-Identifier: LGPL-3.0-only
"""flux config: get, load and reload the configuration."""

import argparse
import json
import os
import sys
from typing import Any

import flux
import solocmd
from _flux._core import ffi, lib
from flux.future import Future


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


def parse(path: str, prefix: str = "Error parsing config: ") -> Any:
    """The configuration in a file or a directory, as the library reads it."""
    error = ffi.new("flux_error_t *")
    conf = lib.flux_conf_parse(os.fsencode(path), error)
    if not conf:
        text = ffi.string(error.text).decode(errors="replace")
        if path.startswith("/proc/"):  # standard input
            text = text.removeprefix(f"{path}:").removeprefix(" ")
            text = f"line {text}" if text[:1].isdigit() else text
        solocmd.die("flux-config", prefix + text)
    return conf


def parse_text(text: str) -> Any:
    """Standard input, which is JSON if a JSON parser takes it."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if isinstance(value, list):
        solocmd.die("flux-config", "the configuration must be an object")
    if isinstance(value, dict):
        return value
    with os.fdopen(os.memfd_create("toml"), "w") as memory:
        memory.write(text)
        memory.flush()
        return parse(f"/proc/self/fd/{memory.fileno()}", "TOML parse error: ")


def load(args: argparse.Namespace) -> None:
    conf = parse(args.path) if args.path is not None else parse_text(sys.stdin.read())
    handle = flux.Flux()
    if isinstance(conf, dict):
        handle.rpc("config.load", conf).get()
        return
    table = ffi.new("void **")
    lib.flux_conf_unpack(conf, ffi.NULL, b"o", table)
    rpc = lib.flux_rpc_pack(handle.handle, b"config.load", 0, 0, b"O", table[0])
    Future(rpc).get()
    lib.flux_conf_decref(conf)


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
