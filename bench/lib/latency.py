# Measures rabbit jobs one after the other; run by bench/latency.
# SPDX-License-Identifier: LGPL-3.0-only
"""Time per phase of a job, as its eventlog has it, and in all."""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import sys
import time
from typing import Any

import flux
import flux.job
from cluster import Cluster
from flux.job import JobspecV1

DIRECTIVE = "#DW jobdw type=xfs capacity=10GiB name=scratch"
# Each span: its name, and the two events of a rabbit job that bound it.
SPANS = [
    ("depend: Proposal", "submit", "depend"),
    ("queue", "depend", "alloc"),
    ("prolog: Setup, DataIn, PreRun", "alloc", "start"),
    ("run", "start", "finish"),
    ("epilog: PostRun, DataOut, Teardown", "finish", "free"),
    ("clean", "free", "clean"),
    ("submit to clean", "submit", "clean"),
]


def jobspec(dw: str | None) -> JobspecV1:
    spec = JobspecV1.from_command(["true"], num_nodes=2, num_tasks=2)
    if dw:
        spec.setattr("system.dw", dw)
    return spec


def measure(handle: flux.Flux, dw: str | None) -> dict[str, float]:
    """Run one job; seconds per span, and as the submitter's clock has it."""
    began = time.monotonic()
    jobid = flux.job.submit(handle, jobspec(dw))
    times: dict[str, float] = {}
    for event in flux.job.event_watch(handle, jobid):
        times.setdefault(event.name, event.timestamp)
        if event.name == "clean":
            break
    took = {name: times[end] - times[start] for name, start, end in SPANS}
    took["wall clock"] = time.monotonic() - began
    return took


def quantiles(values: list[float]) -> dict[str, float]:
    return {
        "median_ms": 1000 * statistics.median(values),
        "min_ms": 1000 * min(values),
        "max_ms": 1000 * max(values),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workdir", type=pathlib.Path, required=True)
    parser.add_argument("--prefix", type=pathlib.Path, required=True)
    parser.add_argument("-n", "--jobs", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    handle = flux.Flux()
    # without TLS: measure flux-dws, not encryption
    options = ("--root", str(args.workdir / "sim"), "--no-tls")
    cluster = Cluster(args.workdir, args.prefix, "instant", options)
    result: dict[str, Any] = {}
    try:
        cluster.start()
        result["engine"] = cluster.engine
        cluster.wait_synced(handle)
        measure(handle, DIRECTIVE)
        measure(handle, None)
        for kind, dw in (("rabbit", DIRECTIVE), ("plain", None)):
            runs = [measure(handle, dw) for _ in range(args.jobs)]
            result[kind] = {
                name: quantiles([r[name] for r in runs]) for name in runs[0]
            }
    finally:
        cluster.stop()
    if args.json:
        print(json.dumps(result, indent=1))
        return 0
    print(f"Running on {cluster.engine}")
    print(f"{args.jobs} jobs of 2 nodes, one after the other: median (min-max), ms")
    for name in result["rabbit"]:
        cells = [
            "{median_ms:7.1f} ({min_ms:.1f}-{max_ms:.1f})".format(**result[kind][name])
            for kind in ("rabbit", "plain")
        ]
        print(f"  {name:36} {cells[0]:28} plain job: {cells[1]}")
    ratio = (
        result["rabbit"]["wall clock"]["median_ms"]
        / result["plain"]["wall clock"]["median_ms"]
    )
    print(f"  a rabbit job takes {ratio:.1f} times as long as a plain one")
    return 0


if __name__ == "__main__":
    sys.exit(main())
