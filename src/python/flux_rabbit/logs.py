# SPDX-License-Identifier: LGPL-3.0-only
#
# flux rabbit logs. While the job is active the agent reads its logs (dws.logs in
# doc/protocol.md), as users have no rights in Kubernetes; at the job's end they are
# stored in its KVS directory. To follow a log, request its last seconds again: the
# timestamp of a line tells whether it has been printed.
"""Logs of the containers of a job."""

from __future__ import annotations

import argparse
import dataclasses
import errno
import io
import json
import math
import sys
import time
from collections.abc import Iterable
from typing import Any

from flux_k8s import names

from flux_rabbit import cli, rpc, term

Object = dict[str, Any]

INTERVAL_S = 1.0
# Added to the time since the last request: kubelets count whole seconds, and a line
# reaches the log with a delay.
OVERLAP_S = 3
ENDED = ("Succeeded", "Failed")
# Errors that may pass while a log is followed: no agent or workflow yet, or too many
# requests.
PASSING = (errno.EAGAIN, errno.EBUSY)
TAIL_CHARACTERS = 1024
LEFT_OUT = "... (some lines are left out)"
EARLIER = "... (earlier lines are left out)"


def configure(
    parser: argparse.ArgumentParser, command: str
) -> tuple[str, tuple[str, ...]]:
    """Options."""
    parser.add_argument("jobid", metavar="JOBID", help="a job with containers")
    parser.add_argument(
        "-f",
        "--follow",
        action="store_true",
        help="go on until the containers have ended, or the job has",
    )
    return (
        "Print what the containers of a job have printed (#DW container), each line "
        "after the rabbit of its container: the end of it, up to 64 KiB of each "
        "container while the job is active, and the last 4096 bytes, which are kept "
        "with the job, after that. A container that has failed may be started again, "
        "so it is followed until one succeeds or the job ends.",
        ("flux rabbit logs ƒ2gVz", "flux rabbit logs -f $(cat jobid)"),
    )


def lines_of(text: str) -> list[str]:
    """The lines of a log with their ends. Not splitlines(), which also ends a line at a
    carriage return, with which programs draw their progress, or a form feed."""
    return list(io.StringIO(text))


@dataclasses.dataclass
class Printed:
    """The printed part of the log of one container."""

    # the time of the last line, and how many lines have it
    last: str = ""
    same: int = 0
    # characters printed; None if earlier lines were missing from the log
    length: int | None = 0
    # the last characters printed, to find this position again in the job's record
    tail: str = ""

    def unseen(self, text: str, truncated: bool) -> list[str]:
        """The lines of a log with timestamps that have not been printed yet. Raises
        Failure for a log without timestamps."""
        result: list[str] = []
        begin, skip = self.last, self.same
        gap = truncated
        for line in lines_of(text):
            stamp, space, rest = line.partition(" ")
            if not space or not stamp[:1].isdigit() or "T" not in stamp:
                raise cli.Failure(
                    "the lines of the log have no times: flux-coral2-dws is of an "
                    "older release than the dws module"
                )
            if stamp < begin or (stamp == begin and skip > 0):
                gap = False
                skip -= stamp == begin
                continue
            self.same = self.same + 1 if stamp == self.last else 1
            self.last = stamp
            result.append(rest)
        if gap:
            self.length = None
            if begin:
                result.insert(0, f"{LEFT_OUT}\n")
        if self.length is not None:
            self.length += sum(map(len, result))
        self.tail = (self.tail + "".join(result))[-TAIL_CHARACTERS:]
        return result

    def rest(self, text: str, truncated: bool) -> list[str]:
        """The lines of the job's record, which has no timestamps, not printed yet."""
        if self.length is not None and not truncated:
            text = text[self.length :]
        elif self.last:
            at = text.rfind(self.tail)
            text = f"{LEFT_OUT}\n{text}" if at < 0 else text[at + len(self.tail) :]
        return lines_of(text)


class Screen:
    """Prints lines, with the rabbit of the container before each."""

    def __init__(self) -> None:
        self._printed: dict[tuple[str, str], Printed] = {}
        self._failed: set[tuple[str, str]] = set()

    def show(self, entries: Iterable[Object], kept: bool) -> None:
        """Print new lines of logs in an answer, or with `kept` of the job's record."""
        entries = list(entries)
        several = len({entry["container"] for entry in entries}) > 1
        for entry in entries:
            key = (str(entry["pod"]), str(entry["container"]))
            where = str(entry["node"] or entry["pod"])
            if several:
                where += f"/{entry['container']}"
            if entry.get("error"):
                if key not in self._failed:
                    print(f"{where}: {term.clean(entry['error'])}", file=sys.stderr)
                self._failed.add(key)
                continue
            known = self._printed.setdefault(key, Printed())
            take = known.rest if kept else known.unseen
            for line in take(str(entry["log"]), bool(entry["truncated"])):
                print(f"{where}: {term.clean(line.rstrip(chr(10)))}")
        sys.stdout.flush()


def have_ended(entries: list[Object]) -> bool:
    """Whether no container prints anything any more. On a rabbit where all have failed
    another one may be started."""
    by_node: dict[str, set[str]] = {}
    for entry in entries:
        by_node.setdefault(str(entry["node"]), set()).add(str(entry["phase"]))
    return bool(by_node) and all(
        "Succeeded" in phases and phases <= set(ENDED) for phases in by_node.values()
    )


def kept(handle: rpc.Handle, number: int) -> list[Object] | None:
    """The logs stored with the job; None before its end, or without any."""
    lookup = rpc.Lookup(handle)
    lookup.ask(number, names.KEY_CONTAINER_LOG)
    text = lookup.get(number, names.KEY_CONTAINER_LOG)
    return None if text is None else list(json.loads(text))


def _read(handle: rpc.Handle, number: int, since_s: int) -> list[Object]:
    """The logs in Kubernetes of the last `since_s` seconds, 0: all. Raises RpcError."""
    request = {"jobid": number, "since": since_s}
    return list(handle.call(names.TOPIC_LOGS, request).get("objects") or [])


def _look(handle: rpc.Handle, number: int) -> list[Object]:
    """The logs so far. Raises Failure."""
    found = kept(handle, number)
    if found is None:
        try:
            found = _read(handle, number, 0)
        except rpc.Absent:
            raise
        except rpc.RpcError as exc:
            raise cli.Failure(f"{rpc.f58(number)}: {_refusal(exc)}") from None
        for entry in found:
            printed = Printed()
            entry["log"] = "".join(printed.unseen(entry["log"], entry["truncated"]))
    return found


def _refusal(exc: rpc.RpcError) -> str:
    if exc.errno == errno.ENOENT:
        return "it is not active, and no log of a container is kept with it"
    return str(exc.strerror)


def follow(handle: rpc.Handle, number: int) -> int:
    """Print logs until the containers or the job have ended."""
    screen = Screen()
    asked = -math.inf
    while True:
        record = kept(handle, number)
        if record is not None:
            screen.show(record, True)
            return 0
        now = time.monotonic()
        since_s = 0 if asked == -math.inf else math.ceil(now - asked) + OVERLAP_S
        try:
            entries = _read(handle, number, since_s)
        except rpc.Absent:
            raise
        except rpc.RpcError as exc:
            if exc.errno == errno.ENOENT and kept(handle, number) is not None:
                continue
            if exc.errno not in PASSING:
                raise cli.Failure(f"{rpc.f58(number)}: {_refusal(exc)}") from None
        else:
            asked = now
            screen.show(entries, False)
            if have_ended(entries):
                return 0
        cli.pause(INTERVAL_S)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    if args.follow and args.json:
        raise cli.Failure("--follow prints lines as they come, which are no JSON")
    number = cli.jobids([args.jobid])[0]
    handle = rpc.Handle()
    if args.follow:
        return follow(handle, number)
    found = _look(handle, number)
    if args.json:
        cli.print_json(found)
        return 0
    if not found:
        raise cli.Failure(f"{rpc.f58(number)}: no container has been started yet")
    for entry in found:
        if entry["truncated"] and entry["log"]:
            entry["log"] = f"{EARLIER}\n{entry['log']}"
    Screen().show(found, True)
    return 0
