# SPDX-License-Identifier: LGPL-3.0-only
"""flux kvs: read and write the key value store."""

import argparse
import errno
import json
import os
import sys
from typing import Any

import flux
import solocmd
from flux import kvs
from flux.constants import FLUX_KVS_READDIR, FLUX_KVS_TREEOBJ
from flux.core.inner import ffi
from flux.future import Future

NAME = "flux-kvs"
Args = argparse.Namespace


def fail(key: str, exc: OSError) -> None:
    solocmd.die(NAME, f"{key}: {os.strerror(exc.errno)}")


# Lookups. A namespace of None stands for FLUX_KVS_NAMESPACE or primary.
def lookup(handle: flux.Flux, args: Args, key: str, flags: int = 0) -> Future:
    return Future(kvs.RAW.flux_kvs_lookup(handle, args.namespace, flags, key))


def get_bytes(future: Future) -> bytes:
    data = ffi.new("void *[1]")
    size = ffi.new("size_t [1]")
    kvs.RAW.flux_kvs_lookup_get_raw(future, ffi.cast("const void **", data), size)
    return bytes(ffi.buffer(data[0], size[0])) if data[0] != ffi.NULL else b""


def is_dir(handle: flux.Flux, args: Args, key: str) -> bool:
    future = lookup(handle, args, key, FLUX_KVS_TREEOBJ)
    text = ffi.new("char *[1]")
    kvs.RAW.flux_kvs_lookup_get_treeobj(future, ffi.cast("const char **", text))
    return json.loads(ffi.string(text[0]))["type"] in ("dir", "dirref")


def get(args: Args) -> None:
    handle = flux.Flux()
    for key in args.keys:
        try:
            value = get_bytes(lookup(handle, args, key))
        except OSError as exc:
            fail(key, exc)
        if args.raw:
            sys.stdout.buffer.write(value)
        else:
            print(value.decode(errors="surrogateescape").rstrip("\0"))


# Transactions
def put(args: Args) -> None:
    txn = kvs.RAW.flux_kvs_txn_create()
    for item in args.items:
        key, sep, text = item.partition("=")
        if not sep:
            solocmd.die(NAME, "put: want KEY=VALUE")
        if text == "-":
            value = sys.stdin.buffer.read()
        else:
            value = text.encode(errors="surrogateescape")
        kvs.RAW.flux_kvs_txn_put_raw(txn, 0, key, value, len(value))
    kvs.commit(flux.Flux(), namespace=args.namespace, _kvstxn=txn)


def sync(args: Args) -> None:
    """A commit is on disk when it is answered, and so is all before it."""
    txn = kvs.RAW.flux_kvs_txn_create()
    kvs.commit(flux.Flux(), namespace=args.namespace, _kvstxn=txn)


def unlink(args: Args) -> None:
    handle = flux.Flux()
    for key in args.keys:
        try:
            directory = is_dir(handle, args, key)
        except OSError as exc:
            if exc.errno == errno.ENOENT and args.force:
                continue
            fail(key, exc)
        if directory and not args.recursive and names(handle, args, key):
            solocmd.die(NAME, f"{key}: Directory not empty")
        kvs.put_unlink(handle, key)
    kvs.commit(handle, namespace=args.namespace)


# Directories
def names(handle: flux.Flux, args: Args, key: str) -> list[str]:
    future = lookup(handle, args, key, FLUX_KVS_READDIR)
    directory = ffi.new("flux_kvsdir_t *[1]")
    kvs.RAW.flux_kvs_lookup_get_dir(
        future, ffi.cast("const flux_kvsdir_t **", directory)
    )
    iterator = kvs.RAW.flux_kvsitr_create(directory[0])
    result = []
    while True:
        name = kvs.RAW.flux_kvsitr_next(iterator)
        if not name:
            break
        result.append(name.decode())
    kvs.RAW.flux_kvsitr_destroy(iterator)
    return sorted(result)


def ls(args: Args) -> None:
    handle = flux.Flux()
    for key in args.keys or ["."]:
        try:
            found = names(handle, args, key) if is_dir(handle, args, key) else [key]
        except OSError as exc:
            fail(key, exc)
        print(*found, sep="\n" if getattr(args, "1") else "    ")


def list_dir(args: Args) -> None:
    handle = flux.Flux()

    def show_dir(key: str) -> None:
        for name in names(handle, args, key):
            full = name if key == "." else f"{key}.{name}"
            if not is_dir(handle, args, full):
                value = get_bytes(lookup(handle, args, full))
                text = value.decode(errors="replace").replace("\n", "\\n")
                print(f"{full} = {text}")
            elif args.recursive:
                show_dir(full)
            else:
                print(f"{full}.")

    try:
        show_dir(args.key)
    except OSError as exc:
        fail(args.key, exc)


def main() -> None:
    top = solocmd.parser(NAME)
    sub = top.add_subparsers(metavar="COMMAND")

    def command(name: str, func: Any, text: str, *flags: str) -> Any:
        cmd = sub.add_parser(name, help=text)
        cmd.add_argument("-N", "--namespace", metavar="NAME")
        for flag in flags:
            cmd.add_argument(*flag.split(), action="store_true")
        cmd.set_defaults(func=func)
        return cmd

    def keys(cmd: Any, nargs: str = "+") -> None:
        cmd.add_argument("keys", nargs=nargs, metavar="KEY")

    keys(command("get", get, "print values", "-r --raw"))
    cmd = command("put", put, "store values", "-r --raw", "-S --sync")
    cmd.add_argument("items", nargs="+", metavar="KEY=VALUE")
    command("sync", sync, "see to it that all is on disk")
    keys(command("unlink", unlink, "remove keys", "-R --recursive", "-f --force"))
    keys(command("ls", ls, "list names", "-1 --1"), "*")
    cmd = command("dir", list_dir, "list keys and values", "-R --recursive")
    cmd.add_argument("key", nargs="?", default=".", metavar="KEY")
    solocmd.dispatch(top)


if __name__ == "__main__":
    solocmd.run(NAME, main)
