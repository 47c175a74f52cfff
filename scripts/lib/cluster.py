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
# In the order of unloading: a module before the modules that it depends on.
SCHEDULERS = (
    "sched-rabbit",
    "sched-simple",
    "sched-fluxion-qmanager",
    "sched-fluxion-feasibility",
    "sched-fluxion-resource",
)


class Failed(Exception):
    """A command or a job failed; the text names it."""


def run(*command: str) -> str:
    """Run a command and return its output. Raises Failed if it fails."""
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
        rabbit: dict[str, Any] | None = None,
        fluxion: dict[str, str] | None = None,
        kube: pathlib.Path | None = None,
    ) -> None:
        """
        Args:
            preset: of dws-sim; "" for the one in sim_options.
            rabbit: more keys for the table [rabbit].
            fluxion: options of Fluxion's queue: load Fluxion, not sched-rabbit.
            kube: folder of a running cluster (t/kube) to use, not a simulated one.
        """
        self.kube = kube
        self.kubeconfig = (kube or workdir) / "kubeconfig"
        self.mapping = (kube or workdir) / "mapping.json"
        self._workdir = workdir
        self._R = workdir / "R"  # where the configuration of the instance says
        self._prefix = prefix
        self._preset = preset
        self._sim_options = sim_options or ("--root", str(workdir / "sim"))
        self._agent_options = agent_options
        self._rabbit = rabbit or {}
        self._fluxion = fluxion
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self.engine = ""  # after start(): of the instance, with version, scheduler

    def _spawn(self, *command: str, **kwargs: Any) -> None:
        with open(self._workdir / f"{command[0]}.log", "wb") as log:
            child = subprocess.Popen(command, stdout=log, stderr=log, **kwargs)
        self._children[command[0]] = child

    def pid(self, command: str) -> int:
        """Process id of a command that this object has started."""
        return self._children[command].pid

    def _start_sim(self) -> None:
        ready, theirs = os.pipe()
        self._spawn(
            *["dws-sim", "run", "--nodes", "node[0-3]", "--nodes-per-rabbit", "2"],
            *["--kubeconfig", str(self.kubeconfig)],
            *(["--preset", self._preset] if self._preset else []),
            *["--mapping", str(self.mapping)],
            *["--ready-fd", str(theirs), *self._sim_options],
            pass_fds=[theirs],
        )
        os.close(theirs)
        with os.fdopen(ready) as stream:
            if "ready" not in stream.readline():
                raise Failed(f"dws-sim: {(self._workdir / 'dws-sim.log').read_text()}")
        # NNF's role lacks the rights for flux rabbit retry and profiles.
        profiles = ("nnfstorageprofiles:list", "nnfcontainerprofiles:list")
        self.ctl("grant", "nnfdatamovements:delete", *profiles)

    def start(self) -> None:
        if self.kube is None:
            self._start_sim()
        config = json.loads(run("flux", "config", "get") or "{}")
        config["rabbit"] = {
            "mapping": str(self.mapping),
            "kubeconfig": str(self.kubeconfig),
            "stage_out_retry": "1h",
            **self._rabbit,
        }
        path = self._workdir / "config.json"
        path.write_text(json.dumps(config))
        run("flux", "config", "load", str(path))
        if self._fluxion is None:
            self.remove_scheduler()
            run("flux", "module", "load", self._module("sched-rabbit.py"))
        else:
            self.load_machine(self._with_graph())
            self.load_fluxion()
        run("flux", "module", "load", self._module("dws.so"))
        plugins = self._prefix / "lib" / "flux" / "job-manager" / "plugins"
        run("flux", "jobtap", "load", str(plugins / "dws-jobtap.so"))
        self.engine = here()
        self.start_agent()

    def _module(self, name: str) -> str:
        return str(self._prefix / "lib" / "flux" / "modules" / name)

    def remove_scheduler(self) -> None:
        """Unload the loaded scheduler."""
        listing = run("flux", "module", "list")
        loaded = {line.split()[0] for line in listing.splitlines()}
        for name in SCHEDULERS:
            if name in loaded:
                run("flux", "module", "remove", name)

    def load_machine(self, R: bytes) -> None:
        """Replace the instance's resources by this R, with all nodes up."""
        self.remove_scheduler()
        run("flux", "module", "remove", "resource")
        self._R.write_bytes(R)
        run("flux", "module", "load", "resource", "noverify", "monitor-force-up")

    def _with_graph(self) -> bytes:
        """R with a resource graph that includes the rabbits."""
        return subprocess.run(
            ["flux", "dws2jgf", "--cluster-name=machine", str(self.mapping)],
            input=self._R.read_bytes(),
            capture_output=True,
            check=True,
        ).stdout

    def load_fluxion(self) -> None:
        """Load Fluxion, or load it again."""
        self.remove_scheduler()
        run("flux", "module", "load", "sched-fluxion-resource", "match-format=rv1")
        options = [f"{key}={value}" for key, value in (self._fluxion or {}).items()]
        run("flux", "module", "load", "sched-fluxion-qmanager", *options)

    def reload_dws(self) -> None:
        run("flux", "module", "reload", self._module("dws.so"))

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
        """Wait until the module has synchronised with Kubernetes."""
        limit = time.monotonic() + LIMIT_S
        while not handle.rpc("dws.status", {}).get()["agent"]["synced"]:
            if time.monotonic() > limit:
                raise Failed("the agent did not connect")
            time.sleep(0.02)

    def ctl(self, *words: str) -> str:
        if self.kube is not None:
            raise Failed(f"dws-sim ctl {words[0]}: {self.kube} is no simulator's")
        return run("dws-sim", "ctl", "--kubeconfig", str(self.kubeconfig), *words)

    def stop(self) -> None:
        # Newest first: the agent would log errors once the cluster is gone.
        for child in reversed(self._children.values()):
            child.terminate()
            child.wait()
