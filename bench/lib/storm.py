# Many rabbit jobs at once; run by bench/storm.
# SPDX-License-Identifier: LGPL-3.0-only
"""What a thousand jobs cost, and ten thousand."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import cputime
import flux
import flux.job
from cluster import Cluster, Failed, run
from flux.job import JobspecV1
from flux_k8s.agent import STATS_INTERVAL_S
from flux_k8s.kube import Kube

DIRECTIVE = "#DW jobdw type=xfs capacity=10GiB name=scratch"
LIMIT_S = 1800.0
IN_FLIGHT = 200
POLL_S = 0.02
ASKED = "dws.status"
IDLE = "resource.ping"  # of a module that has nothing to do while jobs run
AGENT = "flux-coral2-dws"
SIM = "dws-sim"


def jobspec(dw: str | None, shell: bool) -> str:
    spec = JobspecV1.from_command(["true"], num_nodes=1, num_tasks=1)
    spec.setattr("system.duration", 0)
    if dw:
        spec.setattr("system.dw", dw)
    if not shell:
        spec.setattr("system.exec.test.run_duration", "0.001s")
    return str(spec.dumps())


class StatusWatch:
    """Asks for dws.status again and again, from a process of its own, and notes
    how long the answers took; in turn with it pings a module that has nothing to
    do, which takes what the machine and the broker take."""

    def __init__(self, result: dict[str, Any], key: str) -> None:
        self._result = result
        self._key = key

    def __enter__(self) -> None:
        self._child = subprocess.Popen(
            [sys.executable, __file__, "--ask-status"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __exit__(self, *_: object) -> None:
        out, _err = self._child.communicate("")
        for name, key in ((ASKED, self._key), (IDLE, f"{self._key}_idle")):
            took = sorted(json.loads(out)[name])
            self._result[key] = {
                "asked": len(took),
                "median_ms": 1000 * quantile(took, 0.5),
                "p99_ms": 1000 * quantile(took, 0.99),
                "max_ms": 1000 * took[-1],
            }


def ask_status() -> None:
    """The other end: until standard input is closed."""
    os.set_blocking(0, False)
    handle = flux.Flux()
    took: dict[str, list[float]] = {ASKED: [], IDLE: []}
    while True:
        for topic in took:
            began = time.monotonic()
            handle.rpc(topic, {}).get_str()
            took[topic].append(time.monotonic() - began)
        time.sleep(POLL_S)
        try:
            if os.read(0, 1) == b"":
                break
        except BlockingIOError:
            pass
    print(json.dumps(took))


def quantile(ordered: list[float], q: float) -> float:
    return ordered[min(len(ordered) - 1, math.ceil(q * len(ordered)) - 1)]


def kube_folder() -> pathlib.Path | None:
    """Folder of the cluster that t/kube/run has started for this run, if any."""
    folder = os.environ.get("DWS_KUBE")
    return pathlib.Path(folder) if folder else None


class Storm:
    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.handle = flux.Flux()
        self.cluster = Cluster(
            args.workdir,
            args.prefix,
            "instant",
            sim_options=("--no-tls", "--capacity", "64TiB", *self.machine()),
            agent_options=("--workers", str(args.workers)) if args.latency else (),
            fluxion={"queue-policy": args.fluxion} if args.fluxion else None,
            kube=kube_folder(),
        )
        self.broker = int(self.handle.attr_get("broker.pid"))

    def machine(self) -> tuple[str, ...]:
        """Options of dws-sim. Only the first two rabbits have nodes of the instance."""
        rabbits = self.args.rabbits
        more = 2 * rabbits - 4
        hosts = "node[0-3]" + (f",far[0-{more - 1}]" if more > 0 else "")
        return ("--nodes", hosts, "--rabbits", f"rabbit[0-{rabbits - 1}]")

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Run the cluster and the agent within this context."""
        try:
            self.cluster.start()
            self.wait_synced()
            yield
        finally:
            self.cluster.stop()

    # -- looking on

    def cpu(self) -> Counter[str]:
        """CPU seconds so far by component."""
        cpu = cputime.of_threads(self.broker)
        cpu["agent"] = cputime.of_process(self.cluster.pid(AGENT))
        cpu["simulator"] = self.sim_cpu()
        for pid, line in cputime.children(self.broker).items():
            if "sched-rabbit" in line:
                cpu["sched-rabbit"] = cputime.of_process(pid)
            elif "python-module.py" in line:  # solo's Python modules are its forks
                cpu.update(cputime.of_children(pid))
        cpu["submitter"] = time.process_time()
        return cpu

    def sim_cpu(self) -> float:
        """CPU seconds of dws-sim; 0 with a real API server, which is not measured."""
        return 0.0 if self.cluster.kube else cputime.of_process(self.cluster.pid(SIM))

    def counts(self) -> Counter[str]:
        """Load on the stores so far: requests of the agent, versions of the API
        server's store (all writes, the controllers' included), and bytes of the KVS,
        which only a flux-core has."""
        kube = Kube(str(self.cluster.kubeconfig))
        _, version = kube.list_all("workflows", "")
        counts = Counter(api_writes=int(version))
        time.sleep(STATS_INTERVAL_S + 1.0)
        counts["api_requests"] = self.status()["agent"]["api"]["requests"]
        try:
            self.handle.rpc("content.flush", {}).get()
            stored = self.handle.rpc("content-sqlite.stats-get", {}).get()
            counts["kvs_bytes"] = stored["dbfile_size"]
        except OSError:
            pass
        return counts

    def status(self) -> dict[str, Any]:
        answer: dict[str, Any] = self.handle.rpc("dws.status", {}).get()
        return answer

    def wait_synced(self) -> None:
        while True:
            try:
                self.wait_status("the agent", lambda s: s["agent"]["synced"])
                return
            except OSError:
                time.sleep(POLL_S)  # the module has just been started

    def wait_status(self, what: str, done: Any) -> dict[str, Any]:
        limit = time.monotonic() + LIMIT_S
        while True:
            status = self.status()
            if done(status):
                return status
            if time.monotonic() > limit:
                raise Failed(f"waiting for {what}: {status}")
            time.sleep(0.05)

    def drain(self) -> None:
        """Wait until no job is active and no workflow is left."""
        self.handle.rpc("job-manager.drain", {}).get()
        self.wait_status(
            "no job", lambda s: s["workflows"] == 0 and sum(s["phases"].values()) == 0
        )
        self.cluster.ctl("wait-idle")

    def stats(self) -> dict[str, int]:
        answer = self.handle.rpc("job-list.job-stats", {}).get()
        return {k: answer[k] for k in ("successful", "failed", "canceled", "timeout")}

    # -- doing

    def submit(self, count: int, dw: str | None) -> None:
        spec = jobspec(dw, self.args.shell)
        waiting: list[Any] = []
        for _ in range(count):
            waiting.append(flux.job.submit_async(self.handle, spec))
            if len(waiting) > IN_FLIGHT:
                waiting.pop(0).get_id()
        for future in waiting:
            future.get_id()

    def batch(self, count: int, dw: str | None = DIRECTIVE) -> dict[str, Any]:
        """Submit this many jobs together and wait until all have ended."""
        counts = self.counts()
        before, outcome = self.cpu(), self.stats()
        began = time.monotonic()
        self.submit(count, dw)
        submitted = time.monotonic() - began
        self.handle.rpc("job-manager.drain", {}).get()
        clean = time.monotonic() - began
        if dw:
            self.drain()
        after = self.cpu()
        good = self.stats()["successful"] - outcome["successful"]
        if good != count:
            raise Failed(f"{good} of {count} jobs succeeded: {self.stats()}")
        return {
            "jobs": count,
            "submitted_s": submitted,
            "clean_s": clean,
            "cpu_s": {k: v for k, v in (after - before).items() if v >= 0.01},
            "per_job": {k: v / count for k, v in (self.counts() - counts).items()},
        }

    def slow_api(self, count: int) -> dict[str, Any]:
        """Run the same jobs without and with a delay of each API server answer."""
        result: dict[str, Any] = {"answers_after_s": self.args.latency}
        for key, slow in (("at_once", "0"), ("slow", str(self.args.latency))):
            self.cluster.ctl("api", "--slow", slow)
            result[f"jobs_per_s_{key}"] = count / self.batch(count)["clean_s"]
        self.cluster.ctl("api", "--slow", "0")
        return result

    def live(self, count: int) -> dict[str, Any]:
        """Hold this many workflows before their jobs run. The module runs in a process
        of its own, whose memory grows by what the module stores."""
        result: dict[str, Any] = {"jobs": count}
        run("flux", "queue", "stop", "--all")
        run("flux", "module", "remove", "dws")
        dws = self.args.prefix / "lib" / "flux" / "modules" / "dws.so"
        host = [sys.executable, str(pathlib.Path(__file__).with_name("modhost.py"))]
        with subprocess.Popen([*host, str(dws)]) as module:
            try:
                self.wait_synced()
                self.live_in(module.pid, count, result)
            finally:
                module.terminate()
        run("flux", "module", "load", str(dws))
        # A broker need not notify the agent that this process has ended.
        self.cluster.kill_agent()
        self.cluster.start_agent()
        return result

    def release(self, count: int) -> dict[str, Any]:
        """Release the jobs that live() has held."""
        result: dict[str, Any] = {"jobs": count}
        self.wait_synced()
        with StatusWatch(result, "status"):
            before = self.cpu()
            began = time.monotonic()
            run("flux", "queue", "start", "--all")
            self.drain()
            result["clean_s"] = time.monotonic() - began
            result["cpu_s"] = dict(self.cpu() - before)
        return result

    def live_in(self, module: int, count: int, result: dict[str, Any]) -> None:
        start = cputime.resident_bytes(module)
        with StatusWatch(result, "submit_status"):
            before, mine = self.cpu(), cputime.of_process(module)
            began = time.monotonic()
            self.submit(count, DIRECTIVE)
            self.wait_status("proposals", lambda s: s["phases"]["pending"] >= count)
            result["submit_s"] = time.monotonic() - began
            result["submit_cpu_s"] = {
                **(self.cpu() - before),
                "dws": cputime.of_process(module) - mine,
            }
        grown = cputime.resident_bytes(module) - start
        result["module_bytes_per_job"] = grown / count
        with StatusWatch(result, "attach_status"):
            began = time.monotonic()
            self.cluster.kill_agent()
            self.wait_status("no agent", lambda s: not s["agent"]["attached"])
            self.cluster.start_agent()
            self.wait_status(
                "agent",
                lambda s: s["agent"]["synced"] and not s["agent"]["commands"],
            )
            result["attach_s"] = time.monotonic() - began
            result["attach_cpu_s"] = cputime.of_process(self.cluster.pid(AGENT))
        grown = cputime.resident_bytes(module) - start
        result["module_bytes_per_job_after"] = grown / count


def show(name: str, result: dict[str, Any]) -> None:
    print(f"{name}:")
    for key, value in result.items():
        if isinstance(value, dict):
            value = " ".join(
                f"{k} {v:.2f}" for k, v in sorted(value.items(), key=lambda x: -x[1])
            )
        elif isinstance(value, float):
            value = f"{value:.3f}"
        print(f"  {key:20} {value}")
    sys.stdout.flush()


class Notes(dict[str, Any]):
    """Results by name, each printed at once, or all in the end as JSON."""

    def __init__(self, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def begin(self, storm: Storm) -> None:
        """Pay costs that only the first jobs cause."""
        self["engine"] = storm.cluster.engine
        if not self._as_json:
            print(f"Running on {storm.cluster.engine}", flush=True)
        storm.batch(20)

    def note(self, name: str, part: dict[str, Any]) -> None:
        self[name] = part
        if not self._as_json:
            show(name, part)

    def end(self) -> None:
        if self._as_json:
            print(json.dumps(self, indent=1))


def new_parser(
    prog: str, description: str | None, rabbits: int = 2
) -> argparse.ArgumentParser:
    """Parser with the options that every user of Storm shares."""
    parser = argparse.ArgumentParser(prog=prog, description=description)
    add = parser.add_argument
    for name in ("workdir", "prefix", "from"):
        add(f"--{name}", type=pathlib.Path, help=argparse.SUPPRESS)
    elsewhere = "all but two are of other nodes"
    add("--rabbits", type=int, default=rabbits, help=elsewhere)
    add("--solo", action="store_true", help="on the embedded engine in any case")
    schedule = "schedule with Fluxion, its queue policy being fcfs, easy, ..."
    add("--fluxion", metavar="POLICY", help=schedule)
    add("--json", action="store_true")
    # Settings that Storm reads and that not every benchmark offers as options.
    parser.set_defaults(shell=False, latency=0.0, workers=0)
    return parser


def parse_args() -> argparse.Namespace:
    parser = new_parser("bench/storm", __doc__)
    add = parser.add_argument
    add("--ask-status", action="store_true", help=argparse.SUPPRESS)
    add("-n", "--jobs", type=int, default=1000, help="submitted together")
    add("--live", type=int, default=10000, help="workflows at a time, 0: none")
    add("--latency", type=float, default=0.5, help="of the API (s), 0: leave out")
    add("--workers", type=int, default=256, help="of the agent, for --latency")
    add("--shell", action="store_true", help="run the jobs instead of pretending")
    return parser.parse_args()


def ratios(result: dict[str, Any]) -> dict[str, float]:
    """Ratios of the figures, which machines of any speed can compare."""

    def per_job(key: str) -> float:
        return sum(result[key]["cpu_s"].values()) / float(result[key]["jobs"])

    plain = ("plain jobs", "plain jobs again")
    plain_s = statistics.mean(result[key]["clean_s"] for key in plain)
    plain_cpu = statistics.mean(map(per_job, plain))
    found = {
        "rabbit_to_plain_time": result["rabbit jobs"]["clean_s"] / plain_s,
        "cpu_ms_per_rabbit_job": 1000 * per_job("rabbit jobs"),
        "rabbit_to_plain_cpu": per_job("rabbit jobs") / plain_cpu,
        "cpu_per_job_many_to_few": per_job("rabbit jobs") / per_job("few rabbit jobs"),
    }
    if "slow API" in result:
        slow = result["slow API"]
        found["throughput_slow_to_at_once"] = (
            slow["jobs_per_s_slow"] / slow["jobs_per_s_at_once"]
        )
    return found


def main() -> int:
    args = parse_args()
    if args.ask_status:
        ask_status()
        return 0
    storm = Storm(args)
    notes = Notes(args.json)
    note = notes.note
    with storm.running():
        notes.begin(storm)
        note("plain jobs", storm.batch(args.jobs, None))
        note("few rabbit jobs", storm.batch(max(1, args.jobs // 10)))
        note("rabbit jobs", storm.batch(args.jobs))
        # later batches run with a larger KVS
        note("plain jobs again", storm.batch(args.jobs, None))
        if args.latency:
            note("slow API", storm.slow_api(args.jobs))
        if args.live:
            note("live workflows", storm.live(args.live))
            note("the same run", storm.release(args.live))
    note("ratios", ratios(notes))
    notes.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
