# dws-sim run: the simulator as a process.
# SPDX-License-Identifier: LGPL-3.0-only
"""Serve until told to stop."""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import os
import signal

from dws_sim import kubeconfig, scenario
from dws_sim.faults import Faults
from dws_sim.mounts import Mounts
from dws_sim.persist import StateFile
from dws_sim.processes import Runner
from dws_sim.sim import USERS, Simulator
from dws_sim.world import Machine, parse_size

log = logging.getLogger("dws-sim")


def faults_of(args: argparse.Namespace) -> tuple[Faults, list[scenario.Step]]:
    """The switches as preset and scenario set them, and the scenario's steps."""
    text = ""
    if args.scenario:
        with open(args.scenario, encoding="utf-8") as stream:
            text = stream.read()
    faults = Faults(seed=scenario.seed_of(text) if text else 0)
    scenario.apply_preset(args.preset, faults)
    return faults, scenario.load(text, faults) if text else []


def start_log(args: argparse.Namespace) -> None:
    logging.basicConfig(
        filename=args.log,
        level=logging.DEBUG if args.verbose else logging.INFO,
        format="%(asctime)s %(name)s: %(message)s",
    )


def machine_of(args: argparse.Namespace) -> Machine:
    """The machine that the command line describes."""
    size = parse_size(args.capacity)
    return Machine.build(args.nodes, args.rabbits, args.nodes_per_rabbit, size)


def runner_of(args: argparse.Namespace, mounts: Mounts) -> Runner | None:
    """The runner of containers, or None unless --containers=run.

    Raises:
        ValueError: there is no --root for their files.
    """
    if args.containers != "run":
        return None
    if not args.root:
        raise ValueError("--containers run needs --root")
    from dws_sim.tls import Authority

    certificate = Authority().containers()
    return Runner(mounts, os.path.join(args.root, "containers"), certificate)


async def _serve(
    args: argparse.Namespace,
    machine: Machine,
    faults: Faults,
    steps: list[scenario.Step],
) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    mounts = Mounts(args.root, args.keep_data)
    state = StateFile(args.state) if args.state else None
    status = not args.no_system_status
    runner = runner_of(args, mounts)
    sim = Simulator(machine, faults, mounts, status, state, args.tester, runner)
    sim.server.watch_timeout_s = args.min_request_timeout
    context, ca_pem = None, None
    certificates: dict[str, tuple[bytes, bytes]] = {}
    if not args.no_tls:
        from dws_sim.tls import Authority

        # clients go on that trust the one of before
        authority = Authority(state.fact("authority", "") if state else "")
        if state is not None:
            state.set_fact("authority", authority.kept())
        context, ca_pem = authority.server_context(), authority.pem
        for name, user in USERS.items():
            identity = authority.client(user)
            pair = (identity.certificate, identity.key)
            certificates[f"{name}-certificate"] = pair
    known_port = int(state.fact("port", "0")) if state else 0
    await sim.start(args.port or known_port, context, not args.no_controllers)
    if state is not None:
        state.set_fact("port", str(sim.port))
    # Present objects live until the end: exclude them from garbage collection.
    gc.collect()
    gc.freeze()
    # Later objects are trees without cycles: collect seldom.
    gc.set_threshold(50000, 20, 100)
    scheme = "http" if args.no_tls else "https"
    url = f"{scheme}://127.0.0.1:{sim.port}"
    text = kubeconfig.render(url, sim.wlm_token, sim.admin_token, ca_pem, certificates)
    if args.mapping:
        with open(args.mapping, "w", encoding="utf-8") as stream:
            json.dump(machine.mapping(), stream)
    kubeconfig.write_private(args.kubeconfig, text)
    log.info("serving %d rabbits on %s", len(machine.rabbits), url)
    if args.ready_fd is not None:
        with os.fdopen(args.ready_fd, "w") as ready:
            ready.write("ready\n")
    playing = asyncio.ensure_future(sim.control.play(steps))
    await stop.wait()
    playing.cancel()
    await sim.stop()
    if state is not None:
        state.close()


def serve(args: argparse.Namespace) -> None:
    """Run the simulator with the options of the command line.

    Raises:
        OSError, ValueError: a file, a port or a value cannot be used.
    """
    start_log(args)
    asyncio.run(_serve(args, machine_of(args), *faults_of(args)))
