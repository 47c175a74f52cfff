# SPDX-License-Identifier: LGPL-3.0-only
#
# flux rabbit losses: data that failed to stage out after its job had ended, so that no
# exception could report it (rabbit.release_nodes = "unmount", or the jobtap plugin was
# not loaded).
"""Failed stage-outs."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Iterator
from typing import Any

from flux_k8s import names

from flux_rabbit import cli, rpc, term
from flux_rabbit.term import Line
from flux_rabbit.units import date

Object = dict[str, Any]


def configure(
    parser: argparse.ArgumentParser, command: str
) -> tuple[str, tuple[str, ...]]:
    """Options."""
    parser.add_argument(
        "--ack",
        nargs="+",
        metavar="JOBID",
        help="take these jobs off the list",
    )
    parser.add_argument(
        "--mine", action="store_true", help="only your own jobs, also as owner"
    )
    return (
        "List the jobs whose data was not staged out after they had given their "
        'nodes back, which they do with rabbit.release_nodes = "unmount" and when '
        "they end while dws-jobtap.so is not loaded, or when a failed stage-out can "
        "be tried again with flux rabbit retry. A job stays listed until its owner, "
        "or the owner of the instance, acknowledges it.",
        ("flux rabbit losses --mine", "flux rabbit losses --ack ƒ2gVz"),
    )


def row(loss: Object) -> Line:
    """A job in one line."""
    user = cli.user_name(loss["userid"])
    until = date(loss["until"]) if loss.get("until") else "-"
    when = f"{rpc.f58(loss['id']):>13} {user:<8} {date(loss['t'])}  {until:<19}  "
    return [(when, ""), (str(loss["text"]), "")]


def lines(losses: list[Object]) -> Iterator[Line]:
    """The table of losses; a reason that does not fit gets a line of its own."""
    head = f"{'JOBID':>13} {'USER':<8} {'WHEN':<19}  {'RETRY UNTIL':<19}  WHY"
    yield [(head, "")]
    columns = term.size(sys.stdout)[0] if sys.stdout.isatty() else 0
    for loss in losses:
        line = row(loss)
        if 0 < columns < term.width_of(line):
            yield [(line[0][0].rstrip(), "")]
            yield [(" " * 14, ""), line[1]]
        else:
            yield line


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    handle = rpc.Handle()
    for number in cli.jobids(args.ack or []):
        try:
            handle.call(names.TOPIC_LOSSES, {"ack": number})
        except rpc.Absent:
            raise
        except rpc.RpcError as exc:
            if exc.errno != errno.ENOENT:
                raise
            raise cli.Failure(f"{rpc.f58(number)} is not listed") from None
    losses = handle.call(names.TOPIC_LOSSES)["losses"]
    if args.mine:
        losses = [loss for loss in losses if loss["userid"] == os.getuid()]
    if args.json:
        cli.print_json(losses)
    elif losses and not args.ack:
        term.show(list(lines(losses)), False)
    elif not args.ack:
        whose = "of yours " if args.mine else ""
        print(f"no job {whose}has lost data")
    return 0
