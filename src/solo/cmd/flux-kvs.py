# SPDX-License-Identifier: LGPL-3.0-only
"""flux kvs: read and write the key value store."""

import argparse
import errno
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from typing import Any, Optional

import flux
import solocmd
from flux import kvs
from flux.constants import (
    FLUX_KVS_APPEND,
    FLUX_KVS_READDIR,
    FLUX_KVS_TREEOBJ,
    FLUX_KVS_WAITCREATE,
    FLUX_KVS_WATCH,
    FLUX_KVS_WATCH_APPEND,
    FLUX_KVS_WATCH_FULL,
    FLUX_KVS_WATCH_UNIQ,
)
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


def get_treeobj(future: Future) -> dict[str, Any]:
    text = ffi.new("char *[1]")
    kvs.RAW.flux_kvs_lookup_get_treeobj(future, ffi.cast("const char **", text))
    return json.loads(ffi.string(text[0]))


def changes(
    handle: flux.Flux,
    args: Args,
    key: str,
    flags: int,
    timeout: Optional[float] = None,
) -> Iterator[bytes]:
    """The value of a key now, and whenever it changes."""
    deadline = solocmd.Deadline(timeout)
    future = lookup(handle, args, key, flags | FLUX_KVS_WATCH)
    while True:
        try:
            deadline.wait(future)
            value = get_bytes(future)
        except TimeoutError:
            raise
        except OSError as exc:
            if exc.errno == errno.ENODATA:
                return
            fail(key, exc)
        yield value
        future.reset()


def show(value: bytes, args: Args, key: str) -> None:
    if args.raw:
        sys.stdout.buffer.write(value)
        sys.stdout.buffer.flush()
        return
    label = f"{key}=" if args.label else ""
    print(label + value.decode(errors="surrogateescape").rstrip("\0"), flush=True)


def get(args: Args) -> None:
    handle = flux.Flux()
    flags = FLUX_KVS_WAITCREATE if args.waitcreate else 0
    for key in args.keys:
        if args.watch:
            for option, flag in (
                (args.uniq, FLUX_KVS_WATCH_UNIQ),
                (args.full, FLUX_KVS_WATCH_FULL),
                (args.append, FLUX_KVS_WATCH_APPEND),
            ):
                flags |= flag if option else 0
            for count, value in enumerate(changes(handle, args, key, flags), 1):
                show(value, args, key)
                if count == args.count:
                    break
            continue
        try:
            if args.treeobj:
                future = lookup(handle, args, key, flags | FLUX_KVS_TREEOBJ)
                print(json.dumps(get_treeobj(future), separators=(",", ":")))
            else:
                show(get_bytes(lookup(handle, args, key, flags)), args, key)
        except OSError as exc:
            fail(key, exc)


# Transactions
class Transaction:
    """A transaction of which the values may be raw, appended or tree objects."""

    def __init__(self, handle: flux.Flux, args: Args) -> None:
        self.handle = handle
        self.namespace = args.namespace
        self.txn = kvs.RAW.flux_kvs_txn_create()

    def put(self, key: str, value: bytes, flags: int = 0) -> None:
        kvs.RAW.flux_kvs_txn_put_raw(self.txn, flags, key, value, len(value))

    def commit(self) -> None:
        kvs.commit(self.handle, namespace=self.namespace, _kvstxn=self.txn)


def put(args: Args) -> None:
    txn = Transaction(flux.Flux(), args)
    flags = FLUX_KVS_APPEND if args.append else 0
    for item in args.items:
        key, sep, text = item.partition("=")
        if not sep:
            solocmd.die(NAME, "put: you must specify a value as key=value")
        if text == "-":
            value = sys.stdin.buffer.read()
        else:
            value = text.encode(errors="surrogateescape")
        if args.treeobj:
            kvs.RAW.flux_kvs_txn_put_treeobj(txn.txn, 0, key, value.decode())
        else:
            txn.put(key, value, flags)
    txn.commit()


def sync(args: Args) -> None:
    """A commit is on disk when it is answered, and so is all before it."""
    Transaction(flux.Flux(), args).commit()


def unlink(args: Args) -> None:
    handle = flux.Flux()
    for key in args.keys:
        try:
            obj = get_treeobj(lookup(handle, args, key, FLUX_KVS_TREEOBJ))
        except OSError as exc:
            if exc.errno == errno.ENOENT and args.force:
                continue
            fail(key, exc)
        if is_dir(obj) and not args.recursive and names(handle, args, key):
            solocmd.die(NAME, f"{key}: Directory not empty")
        kvs.put_unlink(handle, key)
    kvs.commit(handle, namespace=args.namespace)


def mkdir(args: Args) -> None:
    handle = flux.Flux()
    for key in args.keys:
        kvs.put_mkdir(handle, key)
    kvs.commit(handle, namespace=args.namespace)


def link(args: Args) -> None:
    handle = flux.Flux()
    txn = Transaction(handle, args)
    kvs.RAW.flux_kvs_txn_symlink(
        txn.txn, 0, args.linkname, args.target_namespace, args.target
    )
    txn.commit()


def symlink_text(obj: dict[str, Any]) -> str:
    data = obj["data"]
    space = data.get("namespace")
    return f"{space}::{data['target']}" if space else data["target"]


def readlink(args: Args) -> None:
    handle = flux.Flux()
    for key in args.keys:
        try:
            obj = get_treeobj(lookup(handle, args, key, FLUX_KVS_TREEOBJ))
        except OSError as exc:
            fail(key, exc)
        if obj["type"] != "symlink":
            solocmd.die(NAME, f"{key}: Invalid argument")
        print(symlink_text(obj))


def copy(args: Args) -> None:
    handle = flux.Flux()
    function = kvs.RAW.flux_kvs_move if args.verb == "move" else kvs.RAW.flux_kvs_copy
    future = function(handle, args.namespace, args.src, args.dst_namespace, args.dst, 0)
    try:
        Future(future).get()
    except OSError as exc:
        fail(args.verb, exc)


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


def join(directory: str, name: str) -> str:
    return name if directory == "." else f"{directory}.{name}"


def is_dir(obj: dict[str, Any]) -> bool:
    return obj["type"] in ("dir", "dirref")


def width(args: Args) -> int:
    """Columns of the output; 0 for no limit."""
    if args.width is not None:
        return int(args.width)
    return shutil.get_terminal_size().columns


def columns(words: list[str], limit: int) -> None:
    """Print words row by row in columns of equal width."""
    size = max((len(word) for word in words), default=0) + 4
    per_row = max(limit // size, 1) if limit else max(len(words), 1)
    for pos in range(0, len(words), per_row):
        row = words[pos : pos + per_row]
        print("".join(f"{word:<{size}}" for word in row[:-1]) + row[-1])


def ls(args: Args) -> None:
    handle = flux.Flux()
    limit = 1 if getattr(args, "1") else width(args)

    def treeobj(key: str) -> dict[str, Any]:
        return get_treeobj(lookup(handle, args, key, FLUX_KVS_TREEOBJ))

    def mark(obj: dict[str, Any]) -> str:
        if not args.classify:
            return ""
        return "." if is_dir(obj) else "@" if obj["type"] == "symlink" else ""

    def show_dir(key: str, titled: bool) -> None:
        if titled:
            print(f"{key}:")
        subdirs = []
        words = []
        for name in names(handle, args, key):
            obj = treeobj(join(key, name))
            words.append(name + mark(obj))
            if is_dir(obj):
                subdirs.append(join(key, name))
        columns(words, limit)
        for subdir in subdirs if args.recursive else []:
            print()
            show_dir(subdir, True)

    keys = args.keys or ["."]
    for key in keys:
        try:
            obj = treeobj(key)
            if is_dir(obj) and not args.directory:
                show_dir(key, len(keys) > 1 or args.recursive)
            else:
                print(key + mark(obj))
        except OSError as exc:
            fail(key, exc)


def list_dir(args: Args) -> None:
    handle = flux.Flux()

    limit = width(args)

    def clip(key: str, text: str) -> str:
        room = limit - len(key) - 3
        if limit and len(text) > room:
            text = text[: max(room - 3, 0)] + "..."
        return text

    def show_dir(key: str) -> None:
        for name in names(handle, args, key):
            full = join(key, name)
            obj = get_treeobj(lookup(handle, args, full, FLUX_KVS_TREEOBJ))
            if obj["type"] == "symlink":
                print(f"{full} -> {symlink_text(obj)}")
            elif is_dir(obj):
                if args.recursive:
                    show_dir(full)
                else:
                    print(f"{full}.")
            elif args.directory:
                print(full)
            else:
                value = get_bytes(lookup(handle, args, full))
                text = value.decode(errors="replace").replace("\n", "\\n")
                print(f"{full} = {clip(full, text)}")

    try:
        show_dir(args.key)
    except OSError as exc:
        fail(args.key, exc)


# Versions and namespaces
def getroot(args: Args) -> None:
    handle = flux.Flux()
    future = Future(kvs.RAW.flux_kvs_getroot(handle, args.namespace, 0))
    if args.sequence or args.verb == "version":
        value = ffi.new("int [1]")
        kvs.RAW.flux_kvs_getroot_get_sequence(future, value)
        print(value[0])
        return
    text = ffi.new("char *[1]")
    pointer = ffi.cast("const char **", text)
    if args.blobref:
        kvs.RAW.flux_kvs_getroot_get_blobref(future, pointer)
    else:
        kvs.RAW.flux_kvs_getroot_get_treeobj(future, pointer)
    print(ffi.string(text[0]).decode())


def namespace_list(args: Args) -> None:
    print(f"{'NAMESPACE':<36} {'OWNER':>10} {'FLAGS':>10}")
    for entry in flux.Flux().rpc("kvs.namespace-list").get()["namespaces"]:
        print(f"{entry['namespace']:<36} {entry['owner']:>10} 0x{entry['flags']:08X}")


def namespace_create(args: Args) -> None:
    for name in args.names:
        kvs.namespace_create(flux.Flux(), name)


def namespace_remove(args: Args) -> None:
    for name in args.names:
        kvs.namespace_remove(flux.Flux(), name)


# Eventlogs
def event_lines(args: Args, follow: bool, timeout: Any = None) -> Iterator[str]:
    handle = flux.Flux()
    flags = FLUX_KVS_WAITCREATE if args.waitcreate else 0
    if follow:
        flags |= FLUX_KVS_WATCH_APPEND
        for chunk in changes(handle, args, args.key, flags, timeout):
            yield from chunk.decode().splitlines()
        return
    try:
        text = get_bytes(lookup(handle, args, args.key, flags))
    except OSError as exc:
        fail(args.key, exc)
    yield from text.decode().splitlines()


def formatter(args: Args) -> Any:
    from flux.eventlog import EventLogFormatter

    return EventLogFormatter(
        format="json" if args.unformatted else "text",
        timestamp_format="human" if args.human else "raw",
        color=args.color,
    )


def eventlog_get(args: Args) -> None:
    output = formatter(args)
    lines = event_lines(args, args.watch)
    for count, line in enumerate(lines, 1):
        print(output.format(line), flush=True)
        if count == args.count:
            break


def eventlog_wait(args: Args) -> None:
    output = formatter(args)
    try:
        for line in event_lines(args, True, args.timeout):
            found = json.loads(line)["name"] == args.event
            if args.verbose or (found and not args.quiet):
                print(output.format(line), flush=True)
            if found:
                return
    except TimeoutError:
        solocmd.die(NAME, f"wait-event timeout on event '{args.event}'")
    solocmd.die(NAME, f"event '{args.event}' never received")


def eventlog_append(args: Args) -> None:
    entry: dict[str, Any] = {"timestamp": args.timestamp, "name": args.name}
    if args.timestamp is None:
        entry["timestamp"] = time.time()
    if args.context:
        entry["context"] = json.loads(" ".join(args.context))
    txn = Transaction(flux.Flux(), args)
    txn.put(args.key, json.dumps(entry).encode() + b"\n", FLUX_KVS_APPEND)
    txn.commit()


def flags(cmd: argparse.ArgumentParser, *options: str) -> None:
    """Add on/off options, each given as "-x --long"."""
    for option in options:
        cmd.add_argument(*option.split(), action="store_true")


def main() -> None:
    top = solocmd.parser(NAME)
    sub = top.add_subparsers(metavar="COMMAND")

    def command(parent: Any, name: str, func: Any, text: Optional[str] = None) -> Any:
        cmd = parent.add_parser(name, help=text)
        cmd.add_argument("-N", "--namespace", metavar="NAME")
        cmd.set_defaults(func=func, verb=name)
        return cmd

    cmd = command(sub, "get", get, "print values")
    flags(cmd, "-r --raw", "-t --treeobj", "-l --label", "-W --waitcreate")
    flags(cmd, "-w --watch", "-u --uniq", "-A --append", "-f --full")
    cmd.add_argument("-c", "--count", type=int, default=0)
    cmd.add_argument("keys", nargs="+", metavar="KEY")
    cmd = command(sub, "put", put, "store values")
    flags(cmd, "-r --raw", "-t --treeobj", "-A --append", "-S --sync")
    cmd.add_argument("items", nargs="+", metavar="KEY=VALUE")
    command(sub, "sync", sync, "see to it that all is on disk")
    cmd = command(sub, "unlink", unlink, "remove keys")
    flags(cmd, "-R --recursive", "-f --force")
    cmd.add_argument("keys", nargs="+", metavar="KEY")
    cmd = command(sub, "mkdir", mkdir, "make directories")
    cmd.add_argument("keys", nargs="+", metavar="KEY")
    cmd = command(sub, "link", link, "make a symbolic link")
    cmd.add_argument("-T", "--target-namespace", metavar="NAME")
    cmd.add_argument("target", metavar="TARGET")
    cmd.add_argument("linkname", metavar="LINKNAME")
    cmd = command(sub, "readlink", readlink, "print where links point to")
    cmd.add_argument("keys", nargs="+", metavar="KEY")
    for name in ("copy", "move"):
        cmd = command(sub, name, copy, f"{name} a key")
        cmd.add_argument("-D", "--dst-namespace", metavar="NAME")
        cmd.add_argument("src", metavar="SRC")
        cmd.add_argument("dst", metavar="DST")
    cmd = command(sub, "ls", ls, "list names")
    flags(cmd, "-R --recursive", "-d --directory", "-F --classify", "-1 --1")
    cmd.add_argument("-w", "--width", type=int)
    cmd.add_argument("keys", nargs="*", metavar="KEY")
    cmd = command(sub, "dir", list_dir, "list keys and values")
    flags(cmd, "-R --recursive", "-d --directory")
    cmd.add_argument("-w", "--width", type=int)
    cmd.add_argument("key", nargs="?", default=".", metavar="KEY")
    for name in ("getroot", "version"):
        cmd = command(sub, name, getroot, "print the state of a namespace")
        flags(cmd, "-s --sequence", "-b --blobref")

    group = sub.add_parser("namespace", help="list, create, remove namespaces")
    spaces = group.add_subparsers(metavar="COMMAND", required=True)
    command(spaces, "list", namespace_list)
    for name, func in (("create", namespace_create), ("remove", namespace_remove)):
        cmd = command(spaces, name, func)
        cmd.add_argument("names", nargs="+", metavar="NAME")

    group = sub.add_parser("eventlog", help="read, await and append events")
    logs = group.add_subparsers(metavar="COMMAND", required=True)
    cmd = command(logs, "get", eventlog_get)
    flags(cmd, "-u --unformatted", "-W --waitcreate", "-w --watch", "-H --human")
    cmd.add_argument("-c", "--count", type=int, default=0)
    solocmd.color_option(cmd)
    cmd.add_argument("key", metavar="KEY")
    cmd = command(logs, "wait-event", eventlog_wait)
    flags(cmd, "-u --unformatted", "-W --waitcreate", "-H --human")
    flags(cmd, "-q --quiet", "-v --verbose")
    cmd.add_argument("-t", "--timeout", type=solocmd.duration, metavar="DURATION")
    solocmd.color_option(cmd)
    cmd.add_argument("key", metavar="KEY")
    cmd.add_argument("event", metavar="EVENT")
    cmd = command(logs, "append", eventlog_append)
    cmd.add_argument("-t", "--timestamp", type=float)
    cmd.add_argument("key", metavar="KEY")
    cmd.add_argument("name", metavar="NAME")
    cmd.add_argument("context", nargs="*", metavar="CONTEXT")
    solocmd.dispatch(top)


if __name__ == "__main__":
    solocmd.run(NAME, main)
