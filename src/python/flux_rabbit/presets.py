# SPDX-License-Identifier: LGPL-3.0-only
#
# flux rabbit presets: what users may write in place of directives.
"""Presets."""

from __future__ import annotations

import argparse
from typing import Any

from flux_rabbit import cli, rpc, term


def configure(
    parser: argparse.ArgumentParser, command: str
) -> tuple[str, tuple[str, ...]]:
    """Options."""
    parser.add_argument("names", nargs="*", metavar="PRESET", help="only these")
    return (
        "List the presets of the site: names that may be written in place of #DW "
        "directives, and the directives that they stand for.",
        ("flux rabbit presets", "flux submit -N2 --dw=scratch ./app"),
    )


def directives_of(value: Any) -> list[str]:
    """The lines of a preset, which is a text or an array of texts."""
    texts = value if isinstance(value, list) else [value]
    lines = [line.strip() for text in texts for line in str(text).splitlines()]
    return [line for line in lines if line]


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    table = rpc.Handle().call("config.get").get("rabbit", {})
    presets = {name: directives_of(v) for name, v in table.get("presets", {}).items()}
    for name in args.names:
        if name not in presets:
            there = ", ".join(sorted(presets)) or "none"
            raise cli.Failure(f"there is no preset '{name}': {there}")
    chosen = {name: presets[name] for name in sorted(args.names or presets)}
    if args.json:
        cli.print_json(chosen)
        return 0
    width = max(map(len, chosen), default=0)
    for name, lines in chosen.items():
        for label, line in zip([name] + [""] * len(lines), lines):
            print(term.clean(f"{label:<{width}}  {line}"))
    return 0
