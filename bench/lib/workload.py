# The same jobs in three instances, one after the other; run by bench/workload.
# SPDX-License-Identifier: LGPL-3.0-only
"""How long jobs hold nodes without computing."""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

Object = dict[str, Any]

# Setups of a site; "nodes first" allocates in flux-coral2's order.
WAYS = {
    "Fluxion": ["--scheduler=fluxion"],
    "sched-rabbit": ["--scheduler=sched-rabbit"],
    "nodes first": ["--scheduler=fluxion", "--nodes-first"],
}
HEADING = (
    f"{'':14}{'jobs':>6}{'computing h':>13}{'waiting h':>11}{'of held':>9}"
    f"{'makespan h':>12}{'times fewer':>13}"
)


def run(way: str, args: argparse.Namespace) -> Object:
    """The workload in an instance of its own."""
    here = pathlib.Path(__file__).parent
    with tempfile.TemporaryDirectory(prefix="flux-dws-bench-") as workdir:
        out = subprocess.run(
            [sys.executable, str(here.parent.parent / "scripts/lib/instance.py")]
            + [f"--flux={args.flux}", f"--prefix={args.prefix}"]
            + [f"--workdir={workdir}", "--nodes=1"]
            + [str(here / "workload_run.py"), *WAYS[way]]
            + [f"--jobs={args.jobs}", f"--seed={args.seed}", f"--scale={args.scale}"]
            + [f"--kill={args.kill}", f"--preset={args.preset}"],
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
    return {"way": way, **json.loads(out)}


def row(result: Object, scale: float, base: float) -> str:
    hour = 3600 * scale
    computing, waiting = result["computing_s"], result["waiting_s"]
    return (
        f"{result['way']:14}{result['jobs']:>6}{computing / hour:>13.1f}"
        f"{waiting / hour:>11.1f}{100 * waiting / (computing + waiting):>8.1f}%"
        f"{result['makespan_s'] / hour:>12.2f}{base / waiting:>13.1f}"
    )


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench/workload",
        description="Node-hours that jobs compute, and that they hold nodes without"
        " computing.",
        epilog="Hours are those of the unscaled machine.",
    )
    add = parser.add_argument
    for name in ("flux", "prefix"):
        add(f"--{name}", type=pathlib.Path, help=argparse.SUPPRESS)
    add("-n", "--jobs", type=int, default=200, metavar="N", help="default: 200")
    add("--seed", type=int, default=1, metavar="N", help="of the draws (default: 1)")
    add(
        "--scale",
        type=float,
        default=1 / 30,
        metavar="FACTOR",
        help="of all times of the machine and the jobs (default: 1/30)",
    )
    add("--preset", default="tuolumne", help="of dws-sim's times (default: tuolumne)")
    add(
        "--kill",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="kill Fluxion, dws or the agent at random so often, on an average",
    )
    add("--only", choices=WAYS, action="append", help="only this way of the three")
    add("--json", action="store_true")
    return parser.parse_args()


def main() -> int:
    args = parse_args()
    results = []
    for way in args.only or WAYS:
        print(f"{way} ...", end="\r", file=sys.stderr, flush=True)
        results.append(run(way, args))
        for line in results[-1]["wrong"]:
            print(f"WRONG: {way}: {line}", file=sys.stderr)
    if args.json:
        print(json.dumps(results, indent=1))
    else:
        print(HEADING)
        for result in results:
            print(row(result, args.scale, results[-1]["waiting_s"]))
    return 1 if any(result["wrong"] for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
