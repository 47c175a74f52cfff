# Measures batches of rabbit jobs with the controllers of NNF; run by bench/nnf.
# SPDX-License-Identifier: LGPL-3.0-only
"""nnf.py RIG OUT NAME: a line of JSON in OUT for each batch

nnf.py table OUT: their medians
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import sys
import time
from typing import Any

import flux
import flux.job
from flux.job import JobspecV1
from flux_k8s.kube import Kube

DIRECTIVE = "#DW jobdw type=xfs capacity=10GiB name=scratch"
TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")
LIMIT_S = 600
# longer than the interval at which the agent reports its request counts
STATS_S = 2.5
# controllers of the rig: the storage controller, DWS, and those on rabbits
PARTS = ("slc", "dws", "rabbit-node-*")


def cpu_ms(rig: pathlib.Path, part: str) -> float:
    """CPU time so far of the controllers whose pid files match 'part'."""
    ticks = 0
    for path in (rig / "run").glob(f"{part}.pid"):
        stat = pathlib.Path(f"/proc/{path.read_text().strip()}/stat").read_text()
        fields = stat.rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return 1000 * ticks * TICK_S


class Rig:
    """The rig's cluster and instance, and their costs so far."""

    def __init__(self, folder: pathlib.Path, handle: flux.Flux) -> None:
        self._folder = folder
        self._handle = handle
        self._kube = Kube(str(folder / "kubeconfig"))

    def _status(self) -> dict[str, Any]:
        answer: dict[str, Any] = self._handle.rpc("dws.status").get()
        return answer

    def spent(self) -> dict[str, float]:
        """Writes to etcd, the agent's requests, CPU time of the controllers."""
        time.sleep(STATS_S)
        _, version = self._kube.list_all("systemstatuses")
        costs = {f"{part} ms": cpu_ms(self._folder, part) for part in PARTS}
        # flux-coral2's service does not count its requests
        if agent := self._status().get("agent"):
            costs["requests"] = agent["api"]["requests"]
        return {"writes": int(version), **costs}

    def wait_gone(self) -> None:
        """Wait until no workflow is left."""
        for _ in range(10 * LIMIT_S):
            workflows, _ = self._kube.list_all("workflows")
            if not workflows:
                return
            time.sleep(0.1)
        raise TimeoutError("workflows are left")


def jobspec(first: bool) -> JobspecV1:
    spec = JobspecV1.from_command(["true"], num_tasks=1, num_nodes=1)
    spec.duration = LIMIT_S
    spec.setattr("system.dw", DIRECTIVE)
    if first:
        spec.setattr("system.dw_data_first", True)
    return spec


def times_of(handle: flux.Flux, jobid: int) -> dict[str, float]:
    """Time of each event of a job, which has to succeed."""
    times: dict[str, float] = {}
    for event in flux.job.event_watch(handle, jobid):
        times.setdefault(event.name, event.timestamp)
        if event.name == "finish" and event.context["status"] != 0:
            raise ValueError(f"job {jobid} has failed")
    if "finish" not in times:
        raise ValueError(f"job {jobid} has not run")
    return times


def batch(handle: flux.Flux, rig: Rig, jobs: int, first: bool) -> dict[str, float]:
    """Run this many jobs at once: times of all in s, costs for each."""
    before = rig.spent()
    spec = jobspec(first)
    ids = [flux.job.submit(handle, spec) for _ in range(jobs)]
    each = [times_of(handle, jobid) for jobid in ids]
    began = min(times["submit"] for times in each)
    rig.wait_gone()
    gone = time.time()
    after = rig.spent()
    return {
        "jobs": jobs,
        "all s": max(times["clean"] for times in each) - began,
        "job s": statistics.median(t["clean"] - t["submit"] for t in each),
        "nodes s": statistics.mean(t["free"] - t["alloc"] for t in each),
        "gone s": gone - began,
        **{key: (after[key] - before[key]) / jobs for key in before},
    }


def table(out: pathlib.Path) -> None:
    """Medians of all batches of a name, and the extremes of the first column."""
    results: dict[str, list[dict[str, float]]] = {}
    for line in out.read_text().splitlines():
        result = json.loads(line)
        results.setdefault(result.pop("name"), []).append(result)
    for name, batches in results.items():
        took = [result["all s"] for result in batches]
        words = [f"{min(took):.2f} to {max(took):.2f}"]
        for key in batches[0]:
            words.append(f"{key} {statistics.median(b[key] for b in batches):.4g}")
        print(f"{name} ({len(batches)}):", ", ".join(words))


def main() -> None:
    if sys.argv[1:2] == ["table"]:
        table(pathlib.Path(sys.argv[2]))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rig", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("name")
    parser.add_argument("-n", "--jobs", type=int, default=1)
    parser.add_argument("-b", "--batches", type=int, default=1)
    parser.add_argument("--data-first", action="store_true")
    args = parser.parse_args()
    handle = flux.Flux()
    rig = Rig(args.rig, handle)
    with args.out.open("a") as out:
        for _ in range(args.batches):
            rig.wait_gone()
            result = batch(handle, rig, args.jobs, args.data_first)
            rounded = {key: round(value, 3) for key, value in result.items()}
            out.write(json.dumps({"name": args.name, **rounded}) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
