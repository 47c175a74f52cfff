# Jobs in a simulated cluster, for the pictures of flux rabbit.
# SPDX-License-Identifier: LGPL-3.0-only
"""Run by scripts/pictures as the initial program of a Flux instance."""

from __future__ import annotations

import argparse
import pathlib
import sys

import flux
from cluster import Cluster, Failed, run

MACHINE = ("--nodes", "node[0-255]", "--rabbits", "rabbit[0-63]")
SIZES = (1, 4, 2, 16, 1, 8, 2, 32)
CAPACITIES = ("600GiB", "150GiB", "300GiB", "60GiB", "900GiB", "200GiB")
JOBS = 48
DIRECTIVE = "#DW jobdw type={} capacity={} name=scratch"


def submit(nodes: int, directive: str, seconds: float) -> str:
    """Submit a job whose tasks Flux simulates for this many seconds."""
    return run(
        *["flux", "submit", f"-N{nodes}", "-S", f"dw={directive}"],
        *["-S", f"exec.test.run_duration={seconds}s", "true"],
    ).strip()


def timeline(out: pathlib.Path) -> None:
    """The demo's job: two nodes, one file system."""
    jobid = submit(2, DIRECTIVE.format("xfs", "10GiB"), 1.5)
    run("flux", "job", "wait-event", "-t", "60", jobid, "clean")
    run("flux", "rabbit", "timeline", "--svg", str(out), jobid)


def top(cluster: Cluster, out: pathlib.Path) -> None:
    """Many jobs at once, and some rabbits with faults."""
    cluster.ctl("latency", "Setup", "1", "6")
    cluster.ctl("latency", "mount", "0.5", "4")
    cluster.ctl("latency", "Teardown", "2", "5")
    cluster.ctl("rabbit", "rabbit13", "down")
    cluster.ctl("rabbit", "rabbit50", "down")
    run("flux", "rabbit", "disable", "--reason", "a drive is worn", "rabbit37")
    for n in range(JOBS):
        directive = DIRECTIVE.format(
            ("xfs", "gfs2", "lustre")[n % 3], CAPACITIES[n % len(CAPACITIES)]
        )
        submit(SIZES[n % len(SIZES)], directive, 2 + n % 7)
    run(
        *["flux", "rabbit", "top", "-c", "4", "-i", "0.7", "--sort", "id"],
        *["--size", "110x34", "--svg", str(out)],
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workdir", type=pathlib.Path, required=True)
    parser.add_argument("--prefix", type=pathlib.Path, required=True)
    parser.add_argument("out", type=pathlib.Path)
    args = parser.parse_args()
    machine = (*MACHINE, "--nodes-per-rabbit", "4", "--capacity", "2TiB")
    cluster = Cluster(args.workdir, args.prefix, "demo", sim_options=machine)
    try:
        cluster.start()
        cluster.wait_synced(flux.Flux())
        timeline(args.out / "timeline.svg")
        top(cluster, args.out / "top.svg")
        run("flux", "cancel", "--all")
        run("flux", "queue", "drain", "-t", "120")
    except Failed as exc:
        print(f"pictures: {exc}", file=sys.stderr)
        return 1
    finally:
        cluster.stop()
    print(f"{args.out}/timeline.svg {args.out}/top.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
