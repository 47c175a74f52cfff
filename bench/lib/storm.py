# Many rabbit jobs at once; run by bench/storm.
# SPDX-License-Identifier: LGPL-3.0-only
"""What a thousand jobs cost, and ten thousand."""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import time
from collections import Counter
from typing import Any

import cputime
import flux
import flux.job
from cluster import Cluster, Failed, run
from flux.job import JobspecV1

DIRECTIVE = "#DW jobdw type=xfs capacity=10GiB name=scratch"
LIMIT_S = 1800.0
IN_FLIGHT = 200
POLL_S = 0.02
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


class Watch:
    """Asks for dws.status again and again, from a process of its own, and says
    how long the answers took."""

    def __init__(self) -> None:
        self._child = subprocess.Popen(
            [sys.executable, __file__, "--ask-status"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def stop(self) -> list[float]:
        out, _err = self._child.communicate("")
        return sorted(json.loads(out))


def ask_status() -> None:
    """The other end: until standard input is closed."""
    os.set_blocking(0, False)
    handle = flux.Flux()
    took = []
    while True:
        began = time.monotonic()
        handle.rpc("dws.status", {}).get_str()
        took.append(time.monotonic() - began)
        time.sleep(POLL_S)
        try:
            if os.read(0, 1) == b"":
                break
        except BlockingIOError:
            pass
    print(json.dumps(took))


def quantile(ordered: list[float], q: float) -> float:
    return ordered[min(len(ordered) - 1, math.ceil(q * len(ordered)) - 1)]


class Storm:
    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.handle = flux.Flux()
        self.cluster = Cluster(
            args.workdir,
            args.prefix,
            "instant",
            sim_options=("--capacity", "64TiB"),
            agent_options=("--workers", str(args.workers)) if args.workers else (),
        )
        self.broker = int(self.handle.attr_get("broker.pid"))

    # -- looking on

    def cpu(self) -> Counter[str]:
        """CPU seconds so far by component."""
        cpu = cputime.of_threads(self.broker)
        cpu["agent"] = cputime.of_process(self.cluster.pid(AGENT))
        cpu["simulator"] = cputime.of_process(self.cluster.pid(SIM))
        for pid, line in cputime.children(self.broker).items():
            if "sched-rabbit" in line:
                cpu["sched-rabbit"] = cputime.of_process(pid)
        cpu["submitter"] = time.process_time()
        return cpu

    def status(self) -> dict[str, Any]:
        answer: dict[str, Any] = self.handle.rpc("dws.status", {}).get()
        return answer

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
        """Until no job is active and nothing is left of any."""
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
        """Submit so many together and wait until all is over."""
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
        }

    def live(self, count: int) -> dict[str, Any]:
        """So many workflows at the same time, held before their jobs run."""
        result: dict[str, Any] = {"jobs": count}
        run("flux", "queue", "stop", "--all")
        start = cputime.resident_bytes(self.broker)
        watch = Watch()
        before = self.cpu()
        began = time.monotonic()
        self.submit(count, DIRECTIVE)
        self.wait_status("proposals", lambda s: s["phases"]["pending"] >= count)
        result["held_s"] = time.monotonic() - began
        result["held_cpu_s"] = dict(self.cpu() - before)
        self.report_status("status_submit", watch.stop(), result)
        result["rss_bytes_per_job"] = (
            cputime.resident_bytes(self.broker) - start
        ) / count
        watch = Watch()
        began = time.monotonic()
        self.cluster.kill_agent()
        self.wait_status("no agent", lambda s: not s["agent"]["attached"])
        self.cluster.start_agent()
        self.wait_status("agent", lambda s: s["agent"]["synced"])
        result["attach_s"] = time.monotonic() - began
        self.wait_status("in step", lambda s: not s["agent"]["commands"])
        result["in_step_s"] = time.monotonic() - began
        result["attach_cpu_s"] = cputime.of_process(self.cluster.pid(AGENT))
        self.report_status("status_attach", watch.stop(), result)
        watch = Watch()
        before = self.cpu()
        began = time.monotonic()
        run("flux", "queue", "start", "--all")
        self.drain()
        result["run_s"] = time.monotonic() - began
        result["run_cpu_s"] = dict(self.cpu() - before)
        self.report_status("status_run", watch.stop(), result)
        return result

    @staticmethod
    def report_status(key: str, took: list[float], result: dict[str, Any]) -> None:
        result[key] = {
            "asked": len(took),
            "median_ms": 1000 * quantile(took, 0.5),
            "p99_ms": 1000 * quantile(took, 0.99),
            "max_ms": 1000 * took[-1],
        }


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


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/storm", description=__doc__)
    parser.add_argument("--workdir", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--prefix", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--ask-status", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("-n", "--jobs", type=int, default=1000)
    parser.add_argument("--live", type=int, default=10000)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--shell", action="store_true")
    return parser.parse_args()


def main() -> int:
    args = parse_args()
    if args.ask_status:
        ask_status()
        return 0
    storm = Storm(args)
    try:
        storm.cluster.start()
        storm.cluster.wait_synced(storm.handle)
        storm.batch(20)
        show("plain jobs", storm.batch(args.jobs, None))
        show("rabbit jobs", storm.batch(args.jobs))
        if args.live:
            show("live workflows", storm.live(args.live))
    finally:
        storm.cluster.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
