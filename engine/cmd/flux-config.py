# SPDX-License-Identifier: LGPL-3.0-only
"""flux config: get, load and reload the configuration."""

import argparse
import json
import os
import sys
from typing import Any, Optional

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


def parse(path: Optional[str]) -> Any:
    """The configuration in a file, a directory or standard input, as the library
    reads it: a flux_conf_t."""
    error = ffi.new("flux_error_t *")
    prefix = "Error parsing config: "
    if path is not None:
        conf = lib.flux_conf_parse(os.fsencode(path), error)
    else:
        text = sys.stdin.read()
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if isinstance(value, list):
            solocmd.die("flux-config", "the configuration must be an object")
        if isinstance(value, dict):
            text = json.dumps(value)
        else:
            # Neither taken for JSON, nor, with a newline, for the name of a file.
            prefix = "TOML parse error: "
            text = f" {text}\n"
        conf = lib.flux_conf_create()
        if lib.flux_conf_update(conf, text.encode(), error) < 0:
            conf = ffi.NULL
    if not conf:
        message = ffi.string(error.text).decode(errors="replace")
        solocmd.die("flux-config", prefix + message)
    return conf


def load(args: argparse.Namespace) -> None:
    conf, table = parse(args.path), ffi.new("void **")
    lib.flux_conf_unpack(conf, ffi.NULL, b"o", table)
    handle = flux.Flux()
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
