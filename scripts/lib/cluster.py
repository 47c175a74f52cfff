# A simulated cluster with all of flux-dws connected to it, for the demo and the
# benchmarks. To be used inside a Flux instance.
# SPDX-License-Identifier: LGPL-3.0-only
"""dws-sim, sched-rabbit, the broker module, the jobtap plugin, the agent."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import time
from typing import Any

import flux
from instance import here

LIMIT_S = 120.0


class Failed(Exception):
    """Something did not go as it should; the text says what."""


def run(*command: str) -> str:
    """Run a command that must succeed; its output."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: {done.stderr.strip() or done.stdout}")
    return done.stdout


class Cluster:
    """The simulated cluster and everything of flux-dws, connected to it."""

    def __init__(
        self,
        workdir: pathlib.Path,
        prefix: pathlib.Path,
        preset: str,
        sim_options: tuple[str, ...] = (),
        agent_options: tuple[str, ...] = (),
    ) -> None:
        self.kubeconfig = workdir / "kubeconfig"
        self._workdir = workdir
        self._prefix = prefix
        self._preset = preset
        self._sim_options = sim_options or ("--root", str(workdir / "sim"))
        self._agent_options = agent_options
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self.engine = ""  # after start(): of the instance, with version, scheduler

    def _spawn(self, *command: str, **kwargs: Any) -> None:
        with open(self._workdir / f"{command[0]}.log", "wb") as log:
            child = subprocess.Popen(command, stdout=log, stderr=log, **kwargs)
        self._children[command[0]] = child

    def pid(self, command: str) -> int:
        """Of a process that was started here."""
        return self._children[command].pid

    def start(self) -> None:
        ready, theirs = os.pipe()
        self._spawn(
            *["dws-sim", "run", "--nodes", "node[0-3]", "--nodes-per-rabbit", "2"],
            *["--kubeconfig", str(self.kubeconfig), "--preset", self._preset],
            *["--mapping", str(self._workdir / "mapping.json")],
            *["--ready-fd", str(theirs), *self._sim_options],
            pass_fds=[theirs],
        )
        os.close(theirs)
        with os.fdopen(ready) as stream:
            if "ready" not in stream.readline():
                raise Failed(f"dws-sim: {(self._workdir / 'dws-sim.log').read_text()}")
        # What flux rabbit retry needs, which the role that NNF comes with has not.
        self.ctl("grant", "nnfdatamovements:delete")
        config = json.loads(run("flux", "config", "get") or "{}")
        config["rabbit"] = {
            "mapping": str(self._workdir / "mapping.json"),
            "kubeconfig": str(self.kubeconfig),
            "stage_out_retry": "1h",
        }
        path = self._workdir / "config.json"
        path.write_text(json.dumps(config))
        run("flux", "config", "load", str(path))
        lib = self._prefix / "lib" / "flux"
        loaded = run("flux", "module", "list").split()
        for scheduler in ("sched-rabbit", "sched-simple"):
            if scheduler in loaded:
                run("flux", "module", "remove", scheduler)
        run("flux", "module", "load", str(lib / "modules" / "sched-rabbit.py"))
        run("flux", "module", "load", str(lib / "modules" / "dws.so"))
        plugins = lib / "job-manager" / "plugins"
        run("flux", "jobtap", "load", str(plugins / "dws-jobtap.so"))
        self.engine = here()
        self.start_agent()

    def start_agent(self) -> None:
        self._spawn(
            *["flux-coral2-dws", "-v", "--kubeconfig", str(self.kubeconfig)],
            *self._agent_options,
        )

    def kill_agent(self) -> None:
        agent = self._children.pop("flux-coral2-dws")
        agent.kill()
        agent.wait()

    def wait_synced(self, handle: flux.Flux) -> None:
        """Until the module knows what Kubernetes has."""
        limit = time.monotonic() + LIMIT_S
        while not handle.rpc("dws.status", {}).get()["agent"]["synced"]:
            if time.monotonic() > limit:
                raise Failed("the agent did not connect")
            time.sleep(0.02)

    def ctl(self, *words: str) -> str:
        return run("dws-sim", "ctl", "--kubeconfig", str(self.kubeconfig), *words)

    def stop(self) -> None:
        for child in reversed(self._children.values()):
            child.terminate()
        for child in self._children.values():
            child.wait()
