# Kills and restarts single brokers of a flux-core, as systemd does in a system
# instance: the instance keeps its state on disk.
# SPDX-License-Identifier: LGPL-3.0-only
"""Configuration for independent brokers, and requests to flux start."""

from __future__ import annotations

import pathlib
import re
import signal
import subprocess

import flux
from instance import Engine, command, span

# Seconds between checkpoints of the KVS. After a kill of the leader, the instance
# restarts from the last one.
CHECKPOINT_S = 2


def prepare(engine: Engine, workdir: pathlib.Path, nodes: int) -> None:
    """Write more configuration, after Engine.prepare().

    Brokers bootstrap from a configuration, since a restarted broker cannot join a PMI
    exchange that is over. sched-rabbit is loaded from the start, so that no other
    scheduler allocates nodes to jobs of the life before.
    """
    cert, conf = workdir / "cert", workdir / "conf.d"
    command(str(engine.flux), "keygen", "--name", "soak", str(cert))
    where = f"ipc://{workdir / 'run'}/tbon-%h"
    (conf / "bootstrap.toml").write_text(
        "[bootstrap]\n"
        f'curve_cert = "{cert}"\n'
        f'default_bind = "{where}"\n'
        f'default_connect = "{where}"\n'
        f'hosts = [ {{ host = "node[{span(nodes)}]" }} ]\n'
        f'[kvs]\ncheckpoint-period = "{CHECKPOINT_S}s"\n'
    )
    text = (conf / "engine.toml").read_text()
    (conf / "engine.toml").write_text(text.replace("sched-simple", "sched-rabbit"))
    (workdir / "run").mkdir()
    (workdir / "state").mkdir()


def options(workdir: pathlib.Path, nodes: int) -> list[str]:
    """Options of flux start. The other brokers end with the leader, but survive the
    end of any other broker."""
    return [
        f"--test-hosts=node[{span(nodes)}]",
        f"--test-rundir={workdir / 'run'}",
        "--test-exit-mode=leader",
        "--test-exit-timeout=0.1s",
        "-Stbon.topo=custom",
        f"-Sstatedir={workdir / 'state'}",
        # As in flux.service: jobs that take longer continue after the next start.
        "-Sbroker.cleanup-timeout=45",
    ]


# Shell script: unlink R of each job among its arguments that has no alloc event.
FORGET = """
for job in $(flux job id --to=kvs "$@"); do
    log=$(flux kvs get --raw $job.eventlog) || continue
    case "$log" in
    *'"name":"alloc"'*) ;;
    *) flux kvs get $job.R && flux kvs unlink $job.R ;;
    esac
done 2>&1
true
"""
# The job manager logs this before it stops all scheduling, see forget_R().
ALLOCATED = re.compile(r"sched.alloc-response: id=(\S+) already allocated")
# If the leader is killed when a job lacks only "free" and "clean", the next job manager
# posts these during replay, before it counts running jobs: the count stays one too low.
# At an orderly shutdown "flux queue idle" waits for a count of zero.
MISCOUNTED = re.compile(r"replay warning: CLEANUP->INACTIVE action failed")


def forget_R(
    engine: Engine, workdir: pathlib.Path, env: dict[str, str], jobs: list[int]
) -> None:
    """Repair the KVS of an instance that is down, as an administrator has to.

    A scheduler stores R before the job manager posts the alloc event. If the last
    checkpoint lies between the two, the next job manager finds R and nevertheless
    requests an allocation. On the response it reports "already allocated" and stops
    requesting allocations, for any job and after any restart. Unlink this R, and R of
    jobs that were allocated later.

    Args:
        jobs: jobs that may be active.
    """
    modules = ["content", "content-sqlite", "kvs"]
    for name, verb, order in ("1", "load", modules), ("3", "remove", modules[::-1]):
        lines = [f"flux module {verb} {module}" for module in order]
        path = workdir / f"rc{name}"
        path.write_text("\n".join(["#!/bin/sh -e", *lines, ""]))
        path.chmod(0o700)
    words = [
        *[str(engine.flux), "start", "--test-size=1"],
        *[f"-Sbroker.rc{name}_path={workdir / f'rc{name}'}" for name in "13"],
        *[f"-Sstatedir={workdir / 'state'}", "sh", "-c", FORGET, "sh"],
        *map(str, jobs),
    ]
    subprocess.run(words, env=env, check=True, stdout=subprocess.DEVNULL)


class Brokers:
    """The brokers of a running instance.

    Args:
        uri: FLUX_START_URI of its initial program.
    """

    def __init__(self, uri: str) -> None:
        self._handle = flux.Flux(uri)

    def kill(self, rank: int) -> None:
        """Kill a broker, and wait for its end."""
        request = {"rank": rank, "signum": int(signal.SIGKILL)}
        self._handle.rpc("start.kill", request).get()
        self._handle.rpc("start.wait", {"rank": rank}).get()

    def start(self, rank: int) -> None:
        """Start a broker that was killed."""
        self._handle.rpc("start.run", {"rank": rank}).get()
