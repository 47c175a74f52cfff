# The dws-sim command: run the simulator, or control a running one.
# SPDX-License-Identifier: LGPL-3.0-only
"""Command line."""

from __future__ import annotations

import argparse
import sys

from dws_sim.ctl import add_ctl_parser, add_top_parser, run_ctl
from dws_sim.states import PRESETS
from dws_sim.top import run_top


def _add_common(parser: argparse.ArgumentParser) -> None:
    """Options for every kind of simulated system."""
    add = parser.add_argument
    add("--nodes", default="node[0-3]", metavar="HOSTS", help="compute nodes")
    add("--rabbits", default="rabbit[0-1]", metavar="HOSTS", help="rabbits")
    add("--nodes-per-rabbit", type=int, default=2, metavar="N")
    add("--capacity", default="1TiB", metavar="SIZE", help="of each rabbit")
    add("--root", metavar="DIR", help="make mounts real below DIR")
    add("--keep-data", action="store_true", help="move freed data to DIR/kept")
    add("--scenario", metavar="FILE", help="YAML file with latencies and failures")
    add("--preset", default="instant", choices=PRESETS)
    add("--mapping", metavar="FILE", help="write the rabbit mapping here")
    add("--no-system-status", action="store_true", help="start without SystemStatus")
    add(
        "--containers",
        default="play",
        choices=("play", "run"),
        help="run: the command of a profile is a process of yours on this machine",
    )
    add("--tester", action="store_true", help="also have DWS's driver for tests")
    add("--ready-fd", type=int, metavar="N", help='write "ready" here when serving')
    add("--log", metavar="FILE", help="log here instead of standard error")
    add("--verbose", action="store_true")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dws-sim",
        description="A made-up Rabbit system behind a Kubernetes API.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="serve until SIGTERM or SIGINT")
    add = run.add_argument
    add("--kubeconfig", required=True, metavar="FILE", help="write access data here")
    add("--state", metavar="FILE", help="keep the cluster here: it outlives a kill")
    add("--port", type=int, default=0, help="TCP port on the loopback (0: any)")
    add("--no-tls", action="store_true", help="serve http: kubectl cannot log in")
    add("--min-request-timeout", type=float, default=1800.0, metavar="SECONDS")
    add("--no-controllers", action="store_true", help="be the API server alone")
    _add_common(run)
    controllers = commands.add_parser(
        "controllers", help="run DWS and NNF on another API server until SIGTERM"
    )
    add = controllers.add_argument
    add("--kubeconfig", required=True, metavar="FILE", help="how to reach the server")
    add("--context", metavar="NAME", help="context of FILE (default: its current one)")
    add("--install", action="store_true", help="first define the kinds and the system")
    add("--no-dws", action="store_true", help="be NNF alone: another DWS is there")
    _add_common(controllers)
    add_ctl_parser(commands)
    add_top_parser(commands)
    return parser


def _run(args: argparse.Namespace) -> int:
    # each is imported when it is needed: ctl starts faster without the
    # server's modules, and the server without a client's
    from dws_sim.errors import ApiError

    try:
        if args.command == "run":
            from dws_sim.serve import serve

            serve(args)
        else:
            from dws_sim.attach import attach

            attach(args)
    except (OSError, ValueError, ApiError) as exc:
        print(f"dws-sim: {exc}", file=sys.stderr)
        return 1
    return 0


def main(argv: list[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    args = _parser().parse_args(argv)
    if args.command == "top":
        return run_top(args)
    return run_ctl(args) if args.command == "ctl" else _run(args)
