# Measures solo and flux-core in turn; run by bench/engine.
# SPDX-License-Identifier: LGPL-3.0-only
"""Jobs and RPC round trips per second of two engines, and their ratio.

With --client this is the program that runs in an instance and measures it.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

from instance import Engine, scheduler

CORES = 32
IN_FLIGHT = 64
WHAT = {
    "jobs": "jobs, submit to clean",
    "rpcs": "RPCs, one after the other",
    "rpcs_in_flight": f"RPCs, {IN_FLIGHT} under way",
}


def jobs_per_second(count: int) -> float:
    import flux
    import flux.job

    handle = flux.Flux()
    spec = flux.job.JobspecV1.from_command(["true"])
    spec.setattr("system.exec.test.run_duration", "0.001s")
    text = spec.dumps()
    began = time.monotonic()
    futures = [flux.job.submit_async(handle, text, waitable=True) for _ in range(count)]
    for future in futures:
        future.get_id()
    for _ in range(count):
        result = flux.job.wait(handle)
        if not result.success:
            raise RuntimeError(result.errstr)
    return count / (time.monotonic() - began)


def rpcs_per_second(count: int, in_flight: int) -> float:
    import flux

    handle = flux.Flux()
    began = time.monotonic()
    for first in range(0, count, in_flight):
        futures = [
            handle.rpc("broker.ping", {"seq": i, "pad": ""}, nodeid=0)
            for i in range(first, first + in_flight)
        ]
        for future in futures:
            future.get()
    return count / (time.monotonic() - began)


def client(jobs: int, rpcs: int) -> dict[str, Any]:
    jobs_per_second(jobs // 10 + 1)  # what the first ones load is not measured
    return {
        "scheduler": scheduler(),
        "jobs": jobs_per_second(jobs),
        "rpcs": rpcs_per_second(rpcs, 1),
        "rpcs_in_flight": rpcs_per_second(rpcs, IN_FLIGHT),
    }


def write_config(folder: pathlib.Path) -> None:
    """Configure R with CORES cores for both engines, whatever the machine has."""
    R = {
        "version": 1,
        "execution": {
            "R_lite": [{"rank": "0", "children": {"core": f"0-{CORES - 1}"}}],
            "starttime": 0,
            "expiration": 0,
            "nodelist": [socket.gethostname()],
        },
    }
    (folder / "R").write_text(json.dumps(R))
    (folder / "bench.toml").write_text(
        f'[resource]\npath = "{folder}/R"\nnoverify = true\nnorestrict = true\n'
    )


def run(flux: str, folder: pathlib.Path, args: argparse.Namespace) -> dict[str, Any]:
    sizes = [str(args.jobs), str(args.rpcs)]
    out = subprocess.run(
        [flux, "start", f"--config-path={folder}"]
        + [flux, "python", __file__, "--client", *sizes],
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    result: dict[str, Any] = json.loads(out)
    return result


def main() -> None:
    if sys.argv[1:2] == ["--client"]:
        print(json.dumps(client(int(sys.argv[2]), int(sys.argv[3]))))
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("--ours", required=True)
    parser.add_argument("--flux", default="")
    parser.add_argument("-n", "--jobs", type=int, default=1000)
    parser.add_argument("--rpcs", type=int, default=64 * 100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    engines = {"solo": args.ours}
    if args.flux:
        engines["flux-core"] = args.flux
    measured: dict[str, list[dict[str, Any]]] = {name: [] for name in engines}
    with tempfile.TemporaryDirectory(prefix="flux-dws-bench-") as name:
        folder = pathlib.Path(name)
        write_config(folder)
        for _ in range(args.rounds):
            for engine, flux in engines.items():
                measured[engine].append(run(flux, folder, args))
    rates = {
        engine: {what: statistics.median(r[what] for r in rounds) for what in WHAT}
        for engine, rounds in measured.items()
    }
    prefix = pathlib.Path(args.ours).parent.parent
    names = {
        engine: f"{Engine(pathlib.Path(flux), prefix).describe()}, scheduler"
        f" {measured[engine][0]['scheduler']}"
        for engine, flux in engines.items()
    }
    if args.json:
        print(json.dumps({**rates, "engines": names}))
        return
    for engine, name in names.items():
        print(f"{engine}: {name}")
    print(f"{'per second':<28}" + "".join(f"{name:>12}" for name in rates), end="")
    print(f"{'ratio':>12}" if args.flux else "")
    for what, title in WHAT.items():
        row = [rates[engine][what] for engine in rates]
        print(f"{title:<28}" + "".join(f"{rate:>12.0f}" for rate in row), end="")
        print(f"{row[0] / row[1]:>12.2f}" if args.flux else "")


if __name__ == "__main__":
    main()
