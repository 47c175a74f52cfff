# SPDX-License-Identifier: LGPL-3.0-only
#
# flux rabbit presets: what users may write in place of directives.
"""Presets."""

from __future__ import annotations

import argparse
import re
from typing import Any

from flux_k8s import dws

from flux_rabbit import cli, rpc, term
from flux_rabbit.term import Line

VARIABLES = {
    "UID": "the number of the job's user",
    "USER": "the name of the job's user",
    "JOBID": "the number of the job",
    "QUEUE": "the job's queue",
    "BANK": "the job's bank",
}
_VARIABLE = re.compile(r"\$(?:\$|\{?(\w+))")


def configure(
    parser: argparse.ArgumentParser, command: str
) -> tuple[str, tuple[str, ...]]:
    """Options."""
    parser.add_argument("names", nargs="*", metavar="PRESET", help="only these")
    parser.add_argument(
        "--expand",
        action="store_true",
        help="show them as they would be for you; what only a job has is its name",
    )
    return (
        "List the presets of the site: names that may be written in place of #DW "
        "directives, and the directives that they stand for. Below them is what the "
        "variables in them are.",
        ("flux rabbit presets", "flux submit -N2 --dw=scratch ./app"),
    )


def expanded(presets: dict[str, Any]) -> dict[str, Any]:
    """The presets with the variables of the calling user."""
    values = {name: name for name in VARIABLES}
    values.update(dws.own_variables())
    bound = dws.bind_presets(presets, values)
    for name, value in bound.items():
        if isinstance(value, dict):
            raise cli.Failure(f"preset '{name}': {value['error']}")
    return bound


def variables_of(lines: list[str]) -> set[str]:
    """The variables in directives, but for those of the storage system."""
    names = {name for line in lines for name in _VARIABLE.findall(line) if name}
    return {name for name in names if not name.startswith("DW_")}


def directives_of(value: Any) -> list[str]:
    """The lines of a preset, which is a text or an array of texts."""
    texts = value if isinstance(value, list) else [value]
    lines = [line.strip() for text in texts for line in str(text).splitlines()]
    return [line for line in lines if line]


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    found = rpc.Handle().call("config.get").get("rabbit", {}).get("presets", {})
    if args.expand and found:
        found = expanded(found)
    presets = {name: directives_of(value) for name, value in found.items()}
    for name in args.names:
        if name not in presets:
            there = f": {', '.join(sorted(presets))}" if presets else ", nor any other"
            raise cli.Failure(f"there is no preset '{name}'{there}")
    chosen = {name: presets[name] for name in sorted(args.names or presets)}
    if args.json:
        cli.print_json(chosen)
        return 0
    if not chosen:
        print("no presets: there are none in [rabbit.presets]")
    width = max(map(len, chosen), default=0)
    shown: list[Line] = []
    for name, lines in chosen.items():
        for label, line in zip([name] + [""] * len(lines), lines):
            shown.append([(f"{label:<{width}}  ", ""), (line, "")])
    used = [] if args.expand else variables_of(sum(chosen.values(), []))
    for name in sorted(used):
        shown.append([(f"  ${name}: ", ""), (VARIABLES.get(name, "no variable"), "")])
    term.show(shown, False)
    return 0
