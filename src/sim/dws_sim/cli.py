# The dws-sim command: run the simulator, or control a running one.
# SPDX-License-Identifier: LGPL-3.0-only
"""Command line."""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import os
import signal
import sys

from dws_sim import kubeconfig, scenario
from dws_sim.ctl import add_ctl_parser, run_ctl
from dws_sim.faults import Faults
from dws_sim.mounts import Mounts
from dws_sim.sim import Simulator
from dws_sim.world import Machine, parse_size

log = logging.getLogger("dws-sim")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dws-sim",
        description="A made-up Rabbit system behind a Kubernetes API.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="serve until SIGTERM or SIGINT")
    add = run.add_argument
    add("--kubeconfig", required=True, metavar="FILE", help="write access data here")
    add("--nodes", default="node[0-3]", metavar="HOSTS", help="compute nodes")
    add("--rabbits", default="rabbit[0-1]", metavar="HOSTS", help="rabbits")
    add("--nodes-per-rabbit", type=int, default=2, metavar="N")
    add("--capacity", default="1TiB", metavar="SIZE", help="of each rabbit")
    add("--root", metavar="DIR", help="make mounts real below DIR")
    add("--keep-data", action="store_true", help="move freed data to DIR/kept")
    add("--port", type=int, default=0, help="TCP port on the loopback (0: any)")
    add("--scenario", metavar="FILE", help="YAML file with latencies and failures")
    add("--preset", default="instant", choices=list(scenario.PRESETS))
    add("--mapping", metavar="FILE", help="write the rabbit mapping here")
    add("--no-system-status", action="store_true", help="start without SystemStatus")
    add("--ready-fd", type=int, metavar="N", help='write "ready" here when serving')
    add("--log", metavar="FILE", help="log here instead of standard error")
    add("--verbose", action="store_true")
    add_ctl_parser(commands)
    return parser


def _faults(args: argparse.Namespace) -> Faults:
    text = ""
    if args.scenario:
        with open(args.scenario, encoding="utf-8") as stream:
            text = stream.read()
    faults = Faults(seed=scenario.seed_of(text) if text else 0)
    scenario.apply_preset(args.preset, faults)
    if text:
        scenario.load(text, faults)
    return faults


async def _serve(args: argparse.Namespace, machine: Machine, faults: Faults) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    mounts = Mounts(args.root, args.keep_data)
    sim = Simulator(machine, faults, mounts, not args.no_system_status)
    await sim.start(args.port)
    # What is there now stays: the collector need not look at it again.
    gc.collect()
    gc.freeze()
    url = f"http://127.0.0.1:{sim.port}"
    text = kubeconfig.render(url, sim.wlm_token, sim.admin_token)
    if args.mapping:
        with open(args.mapping, "w", encoding="utf-8") as stream:
            json.dump(machine.mapping(), stream)
    kubeconfig.write_private(args.kubeconfig, text)
    log.info("serving %d rabbits on %s", len(machine.rabbits), url)
    if args.ready_fd is not None:
        with os.fdopen(args.ready_fd, "w") as ready:
            ready.write("ready\n")
    await stop.wait()
    await sim.stop()


def _run(args: argparse.Namespace) -> int:
    logging.basicConfig(
        filename=args.log,
        level=logging.DEBUG if args.verbose else logging.INFO,
        format="%(asctime)s %(name)s: %(message)s",
    )
    try:
        machine = Machine.build(
            args.nodes, args.rabbits, args.nodes_per_rabbit, parse_size(args.capacity)
        )
        asyncio.run(_serve(args, machine, _faults(args)))
    except (OSError, ValueError) as exc:
        print(f"dws-sim: {exc}", file=sys.stderr)
        return 1
    return 0


def main(argv: list[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    args = _parser().parse_args(argv)
    return _run(args) if args.command == "run" else run_ctl(args)
