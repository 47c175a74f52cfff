# Measures flux rabbit with many workflows; run by bench/rabbit.
# SPDX-License-Identifier: LGPL-3.0-only
"""Time to the first output of flux rabbit."""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time
from typing import Any

import flux
from flux.constants import FLUX_RPC_STREAMING
from instance import here

REPEATS = 9
BASELINE = ["getattr", "rank"]
COMMANDS = [
    ["rabbit", "status"],
    ["rabbit", "list"],
    ["rabbit", "df"],
    ["rabbit", "jobs"],
    ["rabbit", "jobs", "--json"],
    ["rabbit", "top", "-c", "1"],
]


def workflow(n: int, instance: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": f"fluxjob-{(n + 1) << 24}",
            "namespace": "default",
            "uid": f"uid-{n}",
            "resourceVersion": str(n + 1),
            "labels": {"flux-framework.org/instance": instance},
        },
        "spec": {"desiredState": "PreRun", "dwDirectives": []},
        "status": {
            "state": "PreRun",
            "status": "DriverWait",
            "ready": False,
            "desiredStateChange": "2026-01-01T00:00:00.000000Z",
        },
    }


def configure(work: pathlib.Path, rabbits: int) -> None:
    names = {f"rabbit{n}": f"node[{16 * n}-{16 * n + 15}]" for n in range(rabbits)}
    mapping = {
        "computes": {f"node{n}": f"rabbit{n // 16}" for n in range(16 * rabbits)},
        "rabbits": {k: {"capacity": 1 << 44, "hostlist": v} for k, v in names.items()},
    }
    (work / "mapping.json").write_text(json.dumps(mapping))
    # The jobs of these workflows do not exist. The workflows stay nevertheless: no
    # agent carries out the module's commands to tear them down.
    table = {"mapping": str(work / "mapping.json")}
    config = flux.Flux().rpc("config.get").get()
    (work / "config.json").write_text(json.dumps({**config, "rabbit": table}))


def flux_command(*words: str) -> None:
    subprocess.run(["flux", *words], check=True, stdout=subprocess.DEVNULL)


def measure(words: list[str]) -> tuple[float, float]:
    """Seconds to the first byte and to the end, medians."""
    first, whole = [], []
    for _ in range(REPEATS):
        start = time.monotonic()
        child = subprocess.Popen(["flux", *words], stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.read(1)
        first.append(time.monotonic() - start)
        child.stdout.read()
        whole.append(time.monotonic() - start)
        child.wait()
    return statistics.median(first), statistics.median(whole)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workdir", type=pathlib.Path, required=True)
    parser.add_argument("--prefix", type=pathlib.Path, required=True)
    parser.add_argument("workflows", type=int, nargs="?", default=10000)
    parser.add_argument("rabbits", type=int, nargs="?", default=696)
    args = parser.parse_args()
    configure(args.workdir, args.rabbits)
    flux_command("config", "load", str(args.workdir / "config.json"))
    flux_command("module", "load", str(args.prefix / "lib/flux/modules/dws.so"))
    plugins = args.prefix / "lib/flux/job-manager/plugins"
    flux_command("jobtap", "load", str(plugins / "dws-jobtap.so"))

    handle = flux.Flux()
    stream = handle.rpc("dws.agent", {"version": 1}, flags=FLUX_RPC_STREAMING)
    instance = stream.get()["instance"]
    objects = [workflow(n, instance) for n in range(args.workflows)]
    report = {"type": "snapshot", "workflows": objects, "storages": []}
    handle.rpc("dws.report", {"reports": [report]}).get()

    zero = measure(BASELINE)[1]
    print(f"Running on {here()}")
    print(f"{args.workflows} workflows, {args.rabbits} rabbits")
    print(f"{'flux ...':24}{'first, s':>10}{'all, s':>10}{'first/getattr':>15}")
    print(f"{' '.join(BASELINE):24}{'':10}{zero:10.3f}")
    for words in COMMANDS:
        first, whole = measure(words)
        print(f"{' '.join(words):24}{first:10.3f}{whole:10.3f}{first / zero:15.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
