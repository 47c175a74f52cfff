# Runs the workload once, in an instance of one broker; run by workload.py.
# SPDX-License-Identifier: LGPL-3.0-only
"""Jobs of all kinds on a made-up machine whose storage takes its time."""

from __future__ import annotations

import argparse
import json
import pathlib
import random
import sys
import threading
import time
from typing import Any

import flux
import flux.job
from cluster import Cluster, Failed
from dws_sim.faults import Latency
from dws_sim.scenario import PRESETS
from elsewhere import PROFILE, make_profile
from flux.hostlist import Hostlist
from flux.job import JobspecV1
from held import Held, Object, Sums, given_twice, times_of, trouble_of
from instance import machine_R
from mix import create, settle

NODES, NODES_PER_RABBIT, CORES = 64, 8, 8
CAPACITY = "32TiB"
SIZES = [1, 1, 1, 2, 2, 4, 4, 8, 16]  # nodes of a job
# How long a job computes (s), before it is scaled
COMPUTE = Latency.parse({"median": 240.0, "p95": 900.0})
STAGE_OUT_LIMIT_S = 900.0  # after the last job: few copies take very long
KEPT = ["kept-xfs", "kept-lustre"]
IN = "#DW copy_in source=/lus/global/in destination=$DW_JOB_work/in"
OUT = "#DW copy_out source=$DW_JOB_work/out destination=/lus/global/out"
OURS = {
    "release_nodes": "unmount",
    "lustre_placement": "anywhere",
}
THEIRS = {"data_first": "never"}


def storage(rng: random.Random, kind: str) -> str:
    if kind == "lustre":
        gib = rng.choice([200, 1000, 4000])
        return f"#DW jobdw type=lustre capacity={gib}GiB name=work profile={PROFILE}"
    gib = rng.choice([10, 100, 400])
    return f"#DW jobdw type={kind} capacity={gib}GiB name=work"


def directives(rng: random.Random, count: int) -> list[list[str]]:
    """A third stages in, a third out; of the rest a third each has storage of its
    nodes, Lustre, and storage that is kept."""
    jobs = []
    for i in range(count):
        own = storage(rng, rng.choice(["xfs", "gfs2", "lustre"]))
        rest = [
            [storage(rng, "xfs")],
            [storage(rng, "lustre")],
            [f"#DW persistentdw name={rng.choice(KEPT)}"],
        ]
        jobs.append([[own, IN], [own, OUT], rest[i // 3 % 3]][i % 3])
    rng.shuffle(jobs)
    return jobs


def jobspec(nodes: int, lines: list[str], seconds: float, first: bool) -> str:
    spec = JobspecV1.from_command(
        ["true"], num_nodes=nodes, num_tasks=nodes, exclusive=True
    )
    spec.setattr("system.duration", 6 * 3600)
    spec.setattr("system.dw", lines)
    spec.setattr("system.exec.test.run_duration", f"{seconds:.3f}s")
    if first and not any("persistent" in line for line in lines):
        spec.setattr("system.dw_data_first", True)
    return str(spec.dumps())


def scaled(preset: str, scale: float, seed: int) -> str:
    """A scenario of dws-sim with the times of a preset, shorter."""

    def shorter(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: shorter(v) for key, v in value.items()}
        return [scale * v for v in value] if isinstance(value, list) else scale * value

    return json.dumps({"seed": seed, "latency": shorter(PRESETS[preset])})


class Killer(threading.Thread):
    """Kills a random part, again and again, until it is stopped."""

    def __init__(self, cluster: Cluster, every_s: float, seed: int) -> None:
        super().__init__(daemon=True)
        self.killed: list[str] = []
        self.trouble = ""
        self._kinds = {
            "Fluxion": cluster.load_fluxion,
            "dws": cluster.reload_dws,
            "agent": self._agent,
        }
        self._cluster = cluster
        self._every_s = every_s
        self._rng = random.Random(seed)
        self._stop_it = threading.Event()

    def _agent(self) -> None:
        self._cluster.kill_agent()
        self._cluster.start_agent()

    def run(self) -> None:
        try:
            while not self._stop_it.wait(self._rng.expovariate(1 / self._every_s)):
                kind = self._rng.choice(sorted(self._kinds))
                self._kinds[kind]()
                self.killed.append(kind)
        except Failed as exc:
            self.trouble = str(exc)

    def stop(self) -> None:
        self._stop_it.set()
        self.join()


class Workload:
    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.handle = flux.Flux()
        scenario = args.workdir / "scenario.yaml"
        scenario.write_text(scaled(args.preset, args.scale, args.seed))
        fluxion = {"queue-policy": "conservative"}
        self.cluster = Cluster(
            args.workdir,
            args.prefix,
            "",
            sim_options=("--nodes", f"node[0-{NODES - 1}]")
            + ("--rabbits", f"rabbit[0-{NODES // NODES_PER_RABBIT - 1}]")
            + ("--nodes-per-rabbit", str(NODES_PER_RABBIT), "--capacity", CAPACITY)
            + ("--scenario", str(scenario)),
            rabbit=THEIRS if args.nodes_first else OURS,
            fluxion=fluxion if args.scheduler == "fluxion" else None,
        )

    def submit(self, jobs: list[str]) -> list[int]:
        futures = [flux.job.submit_async(self.handle, spec) for spec in jobs]
        return [int(future.get_id()) for future in futures]

    def drain(self) -> None:
        self.handle.rpc("job-manager.drain", {}).get()

    def lookup(self, jobid: int, key: str) -> str:
        request = {"id": jobid, "keys": [key], "flags": 0}
        return str(self.handle.rpc("job-info.lookup", request).get()[key])

    def job(self, jobid: int) -> Held | str:
        """Nodes and times that the job held; an error text if it never had nodes."""
        eventlog = list(map(json.loads, self.lookup(jobid, "eventlog").splitlines()))
        trouble, times = trouble_of(eventlog), times_of(eventlog)
        name = flux.job.JobID(jobid).f58plain
        if not times:
            return f"{name}: {trouble or 'it has never had nodes'}"
        R = json.loads(self.lookup(jobid, "R"))
        nodes = Hostlist(R["execution"]["nodelist"])
        return Held(jobid, tuple(nodes), times, trouble and f"{name}: {trouble}")

    def run(self) -> Object:
        rng = random.Random(self.args.seed)
        wrong: list[str] = []
        self.submit([jobspec(max(SIZES), [create(k)], 0.1, False) for k in KEPT])
        self.drain()
        wrong += settle(self.handle, self.cluster, KEPT)
        specs = [
            jobspec(
                rng.choice(SIZES),
                lines,
                self.args.scale * COMPUTE.sample(rng),
                not self.args.nodes_first,
            )
            for lines in directives(rng, self.args.jobs)
        ]
        killer = None
        if self.args.kill:
            killer = Killer(self.cluster, self.args.kill, self.args.seed)
            killer.start()
        began = time.monotonic()
        jobids = self.submit(specs)
        self.drain()
        makespan = time.monotonic() - began
        if killer:
            killer.stop()
            wrong += [killer.trouble] if killer.trouble else []
        wrong += settle(self.handle, self.cluster, KEPT, STAGE_OUT_LIMIT_S)
        jobs = [self.job(jobid) for jobid in jobids]
        held = [job for job in jobs if isinstance(job, Held)]
        wrong += [job for job in jobs if isinstance(job, str)]
        wrong += [job.trouble for job in held if job.trouble]
        wrong += given_twice(held)
        sums = Sums.of(held)
        return {
            "engine": self.cluster.engine,
            "jobs": len(jobids),
            "computing_s": sums.computing,
            "waiting_s": sums.waiting,
            "makespan_s": makespan,
            "killed": killer.killed if killer else [],
            "wrong": wrong,
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("workdir", "prefix"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    parser.add_argument("--scheduler", choices=["fluxion", "sched-rabbit"])
    parser.add_argument("--nodes-first", action="store_true")
    parser.add_argument("--preset", default="tuolumne")
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1 / 30)
    parser.add_argument("--kill", type=float, default=0.0)
    args = parser.parse_args()
    workload = Workload(args)
    try:
        workload.cluster.load_machine(machine_R(NODES, CORES).encode())
        workload.cluster.start()
        make_profile(workload.cluster.kubeconfig)
        workload.cluster.wait_synced(workload.handle)
        print(json.dumps(workload.run()))
    except Failed as exc:
        print(f"bench/workload: {exc}", file=sys.stderr)
        return 1
    finally:
        workload.cluster.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
