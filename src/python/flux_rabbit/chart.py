# SPDX-License-Identifier: LGPL-3.0-only
#
# flux rabbit timeline.
"""Timelines as pictures."""

from __future__ import annotations

import argparse
import pathlib
import sys

from flux_rabbit import cli, picture, rpc, term, timeline
from flux_rabbit.timeline import Timeline


def configure(
    parser: argparse.ArgumentParser, command: str
) -> tuple[str, tuple[str, ...]]:
    """Options."""
    parser.add_argument("jobids", nargs="+", metavar="JOBID", help="jobs")
    for kind in ("svg", "png", "html"):
        parser.add_argument(
            f"--{kind}", metavar="FILE", help=f"write the picture as {kind.upper()}"
        )
    parser.add_argument(
        "-w", "--width", type=cli.count, help="columns (default: the terminal's)"
    )
    return (
        "Show where the time of jobs went: Flux's phases, and beside them the "
        "states of the workflow, on one axis that begins with the submission. "
        "Jobs may be active or finished. With --svg, --png or --html nothing is "
        "printed but the names of the files.",
        (
            "flux rabbit timeline ƒ2gVz",
            "flux rabbit timeline --svg timeline.svg ƒ2gVz",
            "flux rabbit timeline --html two.html ƒ2gVz ƒ2gW1",
        ),
    )


def _write(path: str, data: bytes) -> None:
    pathlib.Path(path).write_bytes(data)
    print(path)


def _draw(args: argparse.Namespace, lines: list[Timeline]) -> bool:
    """Write the files that were asked for; False if none were."""
    if args.svg:
        _write(args.svg, picture.svg(lines).encode())
    if args.html:
        _write(args.html, picture.page(lines).encode())
    if args.png:
        try:
            _write(args.png, picture.png(picture.svg(lines, dark=False)))
        except picture.CannotDraw as exc:
            raise cli.Failure(str(exc)) from None
    return bool(args.svg or args.html or args.png)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    lines = timeline.fetch(rpc.Handle(), cli.jobids(args.jobids))
    if args.json:
        cli.print_json({"timelines": [line.as_json() for line in lines]})
        return 0
    if _draw(args, lines):
        return 0
    width = args.width or min(term.size(sys.stdout)[0], 160)
    for line in lines:
        term.show(picture.text(line, width), cli.colour(args))
    return 0
