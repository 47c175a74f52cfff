# The brokers of a flux-core, each of which may be killed and started again by
# itself, with the state of the instance kept: as the units of a system instance.
# SPDX-License-Identifier: LGPL-3.0-only
"""What an instance needs for that, and the service of flux start that does it."""

from __future__ import annotations

import pathlib
import re
import signal
import subprocess

import flux
from instance import Engine, command, span

# How much flux-core may forget when its leader is killed: the KVS goes back to
# the last checkpoint.
CHECKPOINT_S = 2


def prepare(engine: Engine, workdir: pathlib.Path, nodes: int) -> None:
    """Write what the instance needs, after Engine.prepare().

    The brokers find each other by a configuration: one that is started again could
    not take part in a PMI exchange that is over. sched-rabbit is the scheduler from
    the first moment, so that no job that was left is placed by another one.
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
    """For flux start. It ends the other brokers with the leader; with any other
    broker it goes on."""
    return [
        f"--test-hosts=node[{span(nodes)}]",
        f"--test-rundir={workdir / 'run'}",
        "--test-exit-mode=leader",
        "--test-exit-timeout=0.1s",
        "-Stbon.topo=custom",
        f"-Sstatedir={workdir / 'state'}",
        # As flux.service has it: jobs that take longer are left to the next start.
        "-Sbroker.cleanup-timeout=45",
    ]


# Unlinks R of those of its arguments that are jobs without an allocation.
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
# What the job manager says before it stops all scheduling, see forget_R().
ALLOCATED = re.compile(r"sched.alloc-response: id=(\S+) already allocated")
# A job that has nothing left to do but to be "free" and "clean" when its leader is
# killed is so while the job manager starts, before that counts the jobs that run: one
# less from then on. At an orderly end "flux queue idle" waits for zero of them.
MISCOUNTED = re.compile(r"replay warning: CLEANUP->INACTIVE action failed")


def forget_R(
    engine: Engine, workdir: pathlib.Path, env: dict[str, str], jobs: list[int]
) -> None:
    """Do what an administrator has to, in an instance that is down.

    A scheduler stores R before the job manager notes the allocation. If the last
    checkpoint lies between the two, flux-core reads R at its next start, asks for an
    allocation, says that there is one already when it comes, and asks for none any
    more, for any job and after any restart. R has to go; also that of jobs to which
    the scheduler gave resources after that.

    Args:
        jobs: those that may be active.
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
        """Kill one, and wait for its end."""
        request = {"rank": rank, "signum": int(signal.SIGKILL)}
        self._handle.rpc("start.kill", request).get()
        self._handle.rpc("start.wait", {"rank": rank}).get()

    def start(self, rank: int) -> None:
        """Start one that was killed."""
        self._handle.rpc("start.run", {"rank": rank}).get()
