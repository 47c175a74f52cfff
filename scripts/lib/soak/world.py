# Owns the processes of a soak run, each of which may be killed and restarted: a
# simulated cluster, whose state survives its server, a Flux instance, whose state
# survives its brokers, and the agent.
# SPDX-License-Identifier: LGPL-3.0-only
"""Start, kill and query the components."""

from __future__ import annotations

import base64
import contextlib
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import flux
import flux.constants
import flux.job
import flux.kvs
import yaml
from flux_k8s.kube import Kube
from instance import Engine, scheduler_among

from soak import brokers

TOP = pathlib.Path(__file__).resolve().parents[3]
LIMIT_S = 120.0
CORES = 4  # of each node
CAPACITY = 1 << 40  # of each rabbit, in bytes
# A site's jobtap plugin: a prolog and an epilog of every job that end at once, and that
# begin before or after those of dws-jobtap, in the order of loading.
SITE = TOP / "t" / "scripts" / "site.c"
SET_CLOCK = TOP / "t" / "scripts" / "set_clock.py"
# A user who is not the instance owner.
GUEST = 4242
SITE_OPTIONS = {"prolog": "run", "epilog": "finish", "brief": 1}
# Longer than any run, so that an epilog that times out is an error.
EPILOG_TIMEOUT_S = 86400.0


class Lost(Exception):
    """A component did not start or did not answer; the text names it."""


class Process:
    """A child process. Its log file continues over restarts."""

    def __init__(self, log: pathlib.Path) -> None:
        self._log = log
        self._child: subprocess.Popen[bytes] | None = None

    def spawn(self, command: list[str], **kwargs: Any) -> None:
        with open(self._log, "ab") as log:
            self._child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **kwargs
            )

    @property
    def alive(self) -> bool:
        return self._child is not None and self._child.poll() is None

    def send(self, number: signal.Signals) -> None:
        if self._child is not None and self.alive:
            self._child.send_signal(number)

    def end(self, number: signal.Signals) -> None:
        """Send a signal that ends it, and wait for that."""
        self.send(number)
        self.wait()

    def wait(self) -> int:
        """Returns the exit status, negative after a signal."""
        if self._child is None:
            return 0
        try:
            return self._child.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            raise Lost(f"{self._log.stem}: still there after {LIMIT_S:.0f} s") from None

    def tail(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-20:])


class World:
    """The components of a run. Their files lie below one private directory."""

    def __init__(
        self,
        workdir: pathlib.Path,
        prefix: pathlib.Path,
        nodes: int,
        flux_command: pathlib.Path,
    ) -> None:
        """
        Args:
            prefix: where flux-dws is installed.
            flux_command: of the engine to use.
        """
        self.engine = Engine(flux_command, prefix)
        self.workdir = workdir
        self.nodes = [f"node{i}" for i in range(nodes)]
        self.rabbits = [f"rabbit{i}" for i in range((nodes + 1) // 2)]
        self.kubeconfig = workdir / "kubeconfig"
        self._mapping = workdir / "mapping.json"
        for path in (self.kubeconfig, self._mapping):
            (workdir / f"{path.stem}-2{path.suffix}").symlink_to(path)
        self.sim = Process(workdir / "sim.log")
        self.instance = Process(workdir / "instance.log")
        self.agent = Process(workdir / "agent.log")
        self._lib = prefix / "lib" / "flux"
        self._plugin = self._lib / "job-manager" / "plugins" / "dws-jobtap.so"
        self._site = workdir / "site.so"
        self._rabbit = ""  # more lines of the configuration
        self.changed: dict[str, str] = {}
        # begin and end of each change of the wall clock
        self.jumps: list[tuple[float, float]] = []
        # begin and end of each former configuration, with its changed keys
        self._was: list[tuple[float, float, dict[str, str]]] = []
        self._since = 0.0
        self._uri = ""
        self._broker_pid = 0
        self._brokers: brokers.Brokers | None = None
        self._hold_fd = -1
        self._log_read = 0  # offset in the instance's log
        self._log_start = 0  # offset of its latest start
        self._handle: flux.Flux | None = None
        self._guest: flux.Flux | None = None
        self._jumped = 0

    # -- the cluster ------------------------------------------------------

    def start_sim(self) -> None:
        reader, writer = os.pipe()
        self.sim.spawn(
            [
                *["dws-sim", "run", "--kubeconfig", str(self.kubeconfig)],
                *["--nodes", f"node[0-{len(self.nodes) - 1}]"],
                *["--rabbits", f"rabbit[0-{len(self.rabbits) - 1}]"],
                *["--nodes-per-rabbit", "2", "--root", str(self.workdir / "sim")],
                *["--capacity", f"{CAPACITY >> 30}GiB"],
                *["--mapping", str(self._mapping)],
                *["--state", str(self.workdir / "cluster.sqlite")],
                *["--ready-fd", str(writer)],
            ],
            pass_fds=[writer],
            env=self._env(),
        )
        os.close(writer)
        with os.fdopen(reader) as ready:
            if "ready" not in ready.read():
                raise Lost(f"dws-sim did not start:\n{self.sim.tail()}")
        # Admins grant this right (install.rst), so that Computes can be created again.
        # The simulator forgets the grant when it ends.
        self.ctl("grant", "computes:create")

    def ctl(self, *words: str) -> str:
        """Run dws-sim ctl. Raises Lost if that fails."""
        return self.run("dws-sim", "ctl", "--kubeconfig", str(self.kubeconfig), *words)

    def admin(self) -> Kube:
        """A connection with all rights: actions of admins need more than the agent's
        role allows."""
        config = yaml.safe_load(self.kubeconfig.read_text())
        path = self.workdir / "admin.kubeconfig"
        path.write_text(yaml.safe_dump({**config, "current-context": "admin"}))
        return Kube(str(path), connections=1)

    # -- the instance -----------------------------------------------------

    def write_config(self, rabbit: str, keys: dict[str, str]) -> None:
        """Write the instance's configuration, with these lines and keys of [rabbit]; @
        is the directory of the run."""
        self.engine.prepare(self.workdir, len(self.nodes), CORES)
        if not self.engine.is_solo:
            brokers.prepare(self.engine, self.workdir, len(self.nodes))
        self._build_site()
        self._rabbit = rabbit
        self._set_keys(keys)
        self._write_rabbit()

    def _set_keys(self, keys: dict[str, str]) -> None:
        here = str(self.workdir)
        self.changed |= {k: value.replace("@", here) for k, value in keys.items()}

    def _write_rabbit(self) -> None:
        conf = self.workdir / "conf.d"
        site = ", ".join(f"{k} = {json.dumps(v)}" for k, v in SITE_OPTIONS.items())
        keys = {"kubeconfig": f'"{self.kubeconfig}"', "mapping": f'"{self._mapping}"'}
        keys |= self.changed
        lines = "\n".join(f"{key} = {value}" for key, value in keys.items())
        (conf / "soak.toml").write_text(
            f"[rabbit]\n{lines}\n{self._rabbit}\n"
            f'[[job-manager.plugins]]\nload = "{self._site}"\n'
            f"conf = {{ {site} }}\n"
            f'[[job-manager.plugins]]\nload = "{self._plugin}"\n'
            f"conf = {{ epilog-timeout = {EPILOG_TIMEOUT_S} }}\n"
        )

    def change_config(self, changed: dict[str, str]) -> None:
        """Set these keys of [rabbit]."""
        began, before = time.time(), dict(self.changed)
        self._set_keys(changed)
        self._write_rabbit()
        self.flux("config", "reload")
        # While the reload runs, either configuration may be in force.
        self._was.append((self._since, time.time(), before))
        self._since = began

    def change_lines(self, rabbit: str) -> None:
        """Replace the lines of the configuration that write_config() was given."""
        self._rabbit = rabbit
        self._write_rabbit()
        self.flux("config", "reload")

    def unmount(self) -> list[tuple[float, float]]:
        """Begin and end of each time in which release_nodes was "unmount"."""
        times = [*self._was, (self._since, math.inf, self.changed)]
        return [
            (begin, end)
            for begin, end, keys in times
            if keys.get("release_nodes") == '"unmount"'
        ]

    def _build_site(self) -> None:
        include = f"-I{self.engine.prefix / 'lib' / 'flux-solo' / 'include'}"
        compiler = os.environ.get("CC", "cc")
        self.run(
            compiler, "-shared", "-fPIC", include, "-o", str(self._site), str(SITE)
        )

    def start_instance(self) -> None:
        """Start the instance, or restart it from its state on disk."""
        ready, hold = self.workdir / "ready", self.workdir / "hold"
        for fifo in (ready, hold):
            fifo.unlink(missing_ok=True)
            os.mkfifo(fifo, 0o600)
        # The initial program, and with it the instance, runs until this process
        # closes the FIFO.
        script = (
            'echo "$FLUX_URI $(flux getattr broker.pid) ${FLUX_START_URI:--}"'
            f" >{ready}; exec cat {hold}"
        )
        options = self.engine.options(self.workdir, len(self.nodes))
        if self.engine.is_solo:
            options.append(f"--statedir={self.workdir / 'state'}")
        else:
            options += brokers.options(self.workdir, len(self.nodes))
        log = self.workdir / "instance.log"
        self._log_start = log.stat().st_size if log.exists() else 0
        self.instance.spawn(
            [str(self.engine.flux), "start", *options, "sh", "-c", script],
            env=self._env(),
        )
        with self._alarm("the instance did not start"):
            words = ready.read_text().split()
            self._hold_fd = os.open(hold, os.O_WRONLY)
        if len(words) != 3:
            raise Lost(f"the instance did not start:\n{self.instance.tail()}")
        self._uri, self._broker_pid = words[0], int(words[1])
        # flux-core loads its modules by etc/modprobe.
        if self.engine.is_solo:
            self.reload_scheduler()
            self.flux("module", "load", str(self._lib / "modules" / "dws.so"))
        else:
            self._brokers = brokers.Brokers(words[2])

    def _env(self) -> dict[str, str]:
        """Environment of processes that use the instance."""
        env = self.engine.environment(self.workdir)
        modprobe = self._lib.parents[1] / "etc" / "flux" / "modprobe"
        env["FLUX_MODPROBE_PATH_APPEND"] = str(modprobe)
        if self._uri:
            env["FLUX_URI"] = self._uri
        return env

    @contextlib.contextmanager
    def _alarm(self, text: str) -> Iterator[None]:
        def expired(*args: object) -> None:
            raise Lost(f"{text}:\n{self.instance.tail()}")

        before = signal.signal(signal.SIGALRM, expired)
        signal.alarm(int(LIMIT_S))
        try:
            yield
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)

    def kill_instance(self) -> None:
        """Kill the instance, as a crash of its node does."""
        self._handle = self._guest = self._brokers = None
        os.kill(self._broker_pid, signal.SIGKILL)
        self._release()
        self.instance.wait()

    def miscounts(self) -> bool:
        """Whether a shutdown of flux-core would hang on its count of running jobs: see
        brokers.MISCOUNTED."""
        with open(self.workdir / "instance.log", errors="replace") as log:
            log.seek(self._log_start)
            return brokers.MISCOUNTED.search(log.read()) is not None

    def stop_instance(self) -> None:
        """Shut the instance down in order, as an administrator does."""
        self._handle = self._guest = self._brokers = None
        self._release()
        self.instance.wait()

    def _release(self) -> None:
        if self._hold_fd >= 0:
            os.close(self._hold_fd)
        self._hold_fd = -1

    def blocked(self) -> str:
        """The job because of which flux-core has stopped all scheduling, or ""."""
        with open(self.workdir / "instance.log", errors="replace") as log:
            log.seek(self._log_read)
            found = brokers.ALLOCATED.search(log.read())
            self._log_read = log.tell()
        return found.group(1) if found else ""

    def unblock(self, jobs: list[int]) -> None:
        """Repair an instance that is down, so that it schedules after its next start.

        Args:
            jobs: jobs that may be active.
        """
        env = {k: v for k, v in self._env().items() if k != "FLUX_URI"}
        brokers.forget_R(self.engine, self.workdir, env, jobs)

    def kill_broker(self, rank: int) -> None:
        """Kill a broker other than the leader. No-op under solo, which has none."""
        if self._brokers is not None:
            self._brokers.kill(rank)

    def start_broker(self, rank: int) -> None:
        """Start the broker that was killed."""
        if self._brokers is not None:
            self._brokers.start(rank)

    def reload_module(self) -> None:
        self.flux("module", "reload", "dws")

    def reload_scheduler(self) -> None:
        self.flux("module", "reload", str(self._lib / "modules" / "sched-rabbit.py"))

    def reload_plugin(self) -> None:
        """Reload dws-jobtap as in operate.rst. Its callbacks run last from then on."""
        self.flux("jobtap", "load", "--remove=dws-jobtap.so", str(self._plugin))

    def remove_plugin(self) -> None:
        self.flux("jobtap", "remove", "dws-jobtap.so")

    def load_plugin(self) -> None:
        self.flux("jobtap", "load", str(self._plugin))

    def reload_site(self, brief: bool = True) -> None:
        """Reload the site's plugin in the same way.

        Args:
            brief: its prologs and epilogs end at once.
        """
        given = {**SITE_OPTIONS, "brief": int(brief)}
        options = [f"{key}={value}" for key, value in given.items()]
        self.flux("jobtap", "load", "--remove=site.so", str(self._site), *options)

    def held_by_site(self, jobid: int) -> list[str]:
        """The site's actions, "prolog" or "epilog", that hold a job."""
        code, log, _ = self.attempt("flux", "job", "eventlog", str(jobid))
        count = Counter(x.split()[1] for x in log.splitlines() if "site-" in x)
        return [
            what
            for what in ("prolog", "epilog")
            if code == 0 and count[f"{what}-start"] > count[f"{what}-finish"]
        ]

    def purge(self, job: flux.job.JobID) -> None:
        """Purge a job, as flux-core does after its end. Solo never purges jobs."""
        if self.engine.is_solo:
            self.flux("kvs", "unlink", "-R", str(job.kvs))
        else:
            self.flux("job", "purge", "--force", job.f58)

    def is_there(self, job: flux.job.JobID) -> bool:
        """Whether the KVS contains the job's directory."""
        return self.attempt("flux", "kvs", "ls", str(job.kvs))[0] == 0

    def jump(self, seconds: int) -> None:
        """Set the wall clock forward, for all processes including this one."""
        began, clock = time.time(), os.environ["JUMP_CLOCK"]
        self._jumped += seconds
        self.run(sys.executable, str(SET_CLOCK), clock, "jump", str(self._jumped))
        self.jumps.append((began, time.time()))

    def guest(self) -> flux.Flux:
        """A connection whose messages carry the credentials of GUEST."""
        if self._guest is None:
            os.environ["FLUX_HANDLE_USERID"] = str(GUEST)
            self._guest = flux.Flux(self._uri)
            del os.environ["FLUX_HANDLE_USERID"]
        return self._guest

    def submit(
        self, spec: flux.job.JobspecV1, guest: bool, copies: int = 1
    ) -> list[int]:
        """Submit a job. Returns the jobs' ids; raises OSError if Flux rejects them.

        Args:
            copies: number of jobs, by flux submit --cc.
        """
        if copies > 1:
            return self._submit_copies(spec, copies)
        if guest:
            return [self._submit_signed(spec.dumps())]
        return [int(flux.job.submit(self.handle, spec))]

    def _submit_copies(self, spec: flux.job.JobspecV1, copies: int) -> list[int]:
        """Submit by command, with options equivalent to the jobspec."""
        (outer,) = spec.jobspec["resources"]
        spread = outer["type"] == "chassis"
        node = outer["with"][0] if spread else outer
        count = node["count"] * (outer["count"] if spread else 1)
        options = [f"-N{count}", f"-n{count}", f"--cc=0-{copies - 1}", "--env=-*"]
        options += [f"--env={k}={v}" for k, v in spec.environment.items()]
        options += ["--exclusive"] if node.get("exclusive") else []
        options += [f"--coral2-chassis={outer['count']}"] if spread else []
        options += [f"-t{spec.duration}s"] if spec.duration else []
        system = spec.attributes["system"]
        for name, value in system.items():
            if name.startswith("dw"):
                text = value if isinstance(value, str) else json.dumps(value)
                options.append(f"--setattr=system.{name}={text}")
        for wanted in system.get("dependencies", []):
            options.append(f"--dependency={wanted['scheme']}:{wanted['value']}")
        code, out, text = self.attempt(
            "flux", "submit", *options, *spec.tasks[0]["command"]
        )
        if code != 0:
            raise OSError(text)
        return [int(flux.job.JobID(word)) for word in out.split()]

    def _submit_signed(self, spec: str) -> int:
        # signed with the mechanism that needs no key
        header = f"version\0i1\0userid\0i{GUEST}\0mechanism\0snone\0"
        signed = ".".join(
            base64.b64encode(text.encode()).decode() for text in (header, spec)
        )
        request = {"J": f"{signed}.none", "urgency": 16, "flags": 0}
        return int(self.guest().rpc("job-ingest.submit", request).get()["id"])

    def options_lost(self) -> str:
        """The plugin's epilog-timeout if it differs from the configuration, or ""."""
        answer = json.loads(self.flux("jobtap", "query", "dws-jobtap.so"))
        timeout = answer["epilog-timeout"]
        return "" if timeout == EPILOG_TIMEOUT_S else f"epilog-timeout {timeout}"

    @property
    def handle(self) -> flux.Flux:
        """A connection to the current instance."""
        if self._handle is None:
            self._handle = flux.Flux(self._uri)
        return self._handle

    # -- the agent --------------------------------------------------------

    def start_agent(self) -> None:
        self.agent.spawn(
            ["flux-coral2-dws", "-v", "--kubeconfig", str(self.kubeconfig)],
            env=self._env(),
        )

    def start_second_agent(self) -> Process:
        """Start a second agent, which replaces self.agent. Returns the older one."""
        older, self.agent = self.agent, Process(self.workdir / "agent.log")
        self.start_agent()
        return older

    # -- load -------------------------------------------------------------

    def ask_much(self, count: int) -> Callable[[], None]:
        """Send 'count' requests at once. Call the result to wait for the answers."""
        futures = [self.handle.rpc("dws.status", {}) for _ in range(count)]

        def wait() -> None:
            for future in futures:
                future.get()

        return wait

    def fill_kvs(self, count: int, size: int) -> float:
        """Write 'count' values of 'size' bytes. Returns the duration in seconds."""
        began = time.monotonic()
        futures = []
        for n in range(count):
            flux.kvs.put(self.handle, "soak", f"{n:08}" * (size // 8))
            alone = flux.constants.FLUX_KVS_NO_MERGE
            futures.append(flux.kvs.commit_async(self.handle, alone))
        for future in futures:
            future.get()
        return time.monotonic() - began

    # -- asking -----------------------------------------------------------

    def run(self, *command: str) -> str:
        """Run a command in the instance. Raises Lost if it fails."""
        code, out, err = self.attempt(*command)
        if code != 0:
            raise Lost(f"{' '.join(command)}: {err.strip() or out}")
        return out

    def attempt(self, *command: str) -> tuple[int, str, str]:
        """Run a command in the instance. Returns exit status, output, errors."""
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                check=False,
                timeout=LIMIT_S,
                env=self._env(),
            )
        except subprocess.TimeoutExpired:
            raise Lost(f"{' '.join(command)}: no end in {LIMIT_S:.0f} s") from None
        return done.returncode, done.stdout, done.stderr

    def describe(self) -> str:
        """The engine and the scheduler, for people."""
        modules = self.flux("module", "list")
        return f"{self.engine.describe()}, scheduler {scheduler_among(modules)}"

    def flux(self, *words: str) -> str:
        return self.run("flux", *words)

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.handle.rpc("dws.status", {}).get()
        return found

    def cluster(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.ctl("state"))
        return found

    def until(self, what: str, left: Callable[[], Any], limit_s: float) -> None:
        """Poll left() until it returns nothing. Raises Lost after limit_s."""
        end = time.monotonic() + limit_s
        while answer := left():
            if time.monotonic() > end:
                raise Lost(f"{what} after {limit_s:.0f} s: {answer}")
            time.sleep(0.05)

    def stop(self) -> None:
        """End all processes, whatever their state."""
        for process in (self.agent, self.sim, self.instance):
            process.send(signal.SIGCONT)
        self.agent.end(signal.SIGTERM)
        if self.instance.alive and self.miscounts():
            self.kill_instance()
        elif self.instance.alive:
            self.stop_instance()
        self.sim.end(signal.SIGTERM)
