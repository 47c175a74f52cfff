# SPDX-License-Identifier: LGPL-3.0-only
#
# flux rabbit retry: repeat the failed stage-out of jobs while their data is still on
# the rabbits (rabbit.stage_out_retry).
"""Retries of failed stage-outs."""

from __future__ import annotations

import argparse

from flux_k8s import names

from flux_rabbit import cli, rpc


def configure(
    parser: argparse.ArgumentParser, command: str
) -> tuple[str, tuple[str, ...]]:
    """Options."""
    parser.add_argument(
        "jobids",
        nargs="+",
        metavar="JOBID",
        help="jobs that flux rabbit losses lists with RETRY UNTIL",
    )
    return (
        "Have the data of jobs copied out once more whose stage-out has failed. That "
        "is possible for as long as rabbit.stage_out_retry says; only data movements "
        "that have failed are repeated. Mend what they failed for first: a full "
        "quota, a directory that is missing.",
        ("flux rabbit losses --mine", "flux rabbit retry ƒ2gVz"),
    )


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    handle = rpc.Handle()
    asked = []
    for number in cli.jobids(args.jobids):
        try:
            handle.call(names.TOPIC_RETRY, {"jobid": number})
        except rpc.Absent:
            raise
        except rpc.RpcError as exc:
            raise cli.Failure(f"{rpc.f58(number)}: {exc}") from None
        asked.append(number)
        if not args.json:
            print(f"{rpc.f58(number)}: its stage-out is tried again")
    if args.json:
        cli.print_json(asked)
    return 0
