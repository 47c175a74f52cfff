# SPDX-License-Identifier: LGPL-3.0-only
#
# flux dws2jgf: put the resource graph of a machine with rabbits into its R.
# libdws writes the graph; here is only where R, mapping and names come from.
"""Generate the Fluxion resource graph (JGF) of a machine with rabbits."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from flux_k8s import brokerconfig, dws, program, rabbitmap

# Start-up is a good part of the time that a large machine takes: whatever not
# every call needs is imported where it is used.


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="flux dws2jgf",
        description="Read R (RFC 20) from standard input, or a configuration "
        "with --from-config, and write R with the resource graph of the "
        "machine and its rabbits under the key 'scheduling'.",
    )
    parser.add_argument(
        "mapping",
        metavar="FILE",
        nargs="?",
        help="rabbitmapping file (default: the config key rabbit.mapping)",
    )
    parser.add_argument(
        "--no-validate",
        action="store_true",
        help="accept compute nodes in the mapping that are not in R",
    )
    parser.add_argument(
        "-c",
        "--chunks-per-nnf",
        type=int,
        metavar="N",
        default=36,
        help="number of parts that each rabbit is split into (default: 36)",
    )
    parser.add_argument(
        "--cluster-name",
        metavar="NAME",
        help="name of the cluster (default: the host name without digits)",
    )
    parser.add_argument(
        "--only-sched",
        action="store_true",
        help="write only the value of the key 'scheduling'",
    )
    parser.add_argument(
        "--from-config",
        metavar="PATH",
        help="take R from the table resource.config in this TOML file, or "
        "directory of files, instead of standard input",
    )
    return parser.parse_args()


def default_cluster_name() -> str:
    host = os.uname().nodename.partition(".")[0]
    return "".join(c for c in host if not c.isdigit()).rstrip("-") or "cluster"


def configured_exclude() -> str:
    """resource.exclude of the running instance, "" where there is none."""
    try:
        return str(brokerconfig.get("resource.exclude", ""))
    except (ImportError, OSError) as exc:
        print(
            "flux-dws2jgf: no Flux instance, resource.exclude not applied:",
            program.error_text(exc),
            file=sys.stderr,
        )
        return ""


def read_R(args: argparse.Namespace) -> tuple[dws.Raw | dict[str, Any], str]:
    """R, and what to leave out of the graph."""
    if args.from_config is None:
        return dws.Raw(sys.stdin.buffer.read()), configured_exclude()
    from flux_k8s import resourceconfig

    try:
        table = resourceconfig.load(args.from_config)
        return resourceconfig.build_R(table), resourceconfig.exclude(table)
    except resourceconfig.ConfigError as exc:
        raise ValueError(str(exc)) from exc


def main() -> None:
    args = parse_args()
    R, exclude = read_R(args)
    path = args.mapping or rabbitmap.configured_path()
    try:
        with open(path, "rb") as stream:
            mapping = dws.Raw(stream.read())
    except OSError as exc:
        raise rabbitmap.MappingError(f"{path}: {exc.strerror}") from exc
    try:
        dws.write_jgf(
            R,
            mapping,
            sys.stdout.fileno(),
            cluster=args.cluster_name or default_cluster_name(),
            chunks=args.chunks_per_nnf,
            exclude=exclude,
            validate=not args.no_validate,
            whole=not args.only_sched,
        )
    except ValueError as exc:
        # libdws knows the key at fault, but not the name of the file
        text = str(exc)
        if text.startswith("rabbitmapping: "):
            text = f"{path}: {text[len('rabbitmapping: ') :]}"
        elif text.startswith("R: ") and args.from_config is None:
            text = f"standard input is not R: {text[len('R: ') :]}"
        raise ValueError(text) from exc


if __name__ == "__main__":
    sys.exit(program.run("flux-dws2jgf", main, (rabbitmap.MappingError,)))
