# SPDX-License-Identifier: LGPL-3.0-only
#
# Run by bench/jgf: make the input, measure dws2jgf and the baseline in
# processes of their own, and print what it took.
"""Measure flux dws2jgf."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys
import time
from typing import Any


def idset(count: int) -> str:
    return f"0-{count - 1}" if count > 1 else "0"


def make_input(args: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    """R and mapping of a machine whose nodes are the same everywhere."""
    computes: dict[str, str] = {}
    rabbits: dict[str, Any] = {}
    per_rabbit = args.nodes_per_rabbit
    total = args.rabbits * per_rabbit
    for index in range(args.rabbits):
        rabbit = f"fig{total + index + 1}"
        first = index * per_rabbit + 1
        hosts = range(first, first + per_rabbit)
        rabbits[rabbit] = {
            "capacity": 30_000 << 30,
            "hostlist": ",".join(f"fig{n}" for n in hosts),
        }
        computes.update((f"fig{n}", rabbit) for n in hosts)
    children = {"core": idset(args.cores)}
    if args.gpus:
        children["gpu"] = idset(args.gpus)
    R = {
        "version": 1,
        "execution": {
            "R_lite": [{"rank": f"0-{total - 1}", "children": children}],
            "starttime": 0,
            "expiration": 0,
            "nodelist": [f"fig[1-{total}]"],
            "properties": {"pbatch": f"0-{total - 1}"},
        },
    }
    return R, {"computes": computes, "rabbits": rabbits}


def measure(argv: list[str], stdin: pathlib.Path, out: pathlib.Path) -> dict[str, Any]:
    """Run a command; wall and CPU time in seconds, peak memory in MiB."""
    start = time.monotonic()
    pid = os.fork()
    if pid == 0:
        for path, flags, fd in (
            (stdin, os.O_RDONLY, 0),
            (out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 1),
        ):
            os.dup2(os.open(path, flags, 0o600), fd)
        os.execvp(argv[0], argv)
    _pid, status, usage = os.wait4(pid, 0)
    wall = time.monotonic() - start
    if status != 0:
        sys.exit(f"{' '.join(argv)}: exit status {os.waitstatus_to_exitcode(status)}")
    return {
        "wall_s": round(wall, 3),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 3),
        "rss_mib": usage.ru_maxrss // 1024,
        "size_mib": out.stat().st_size >> 20,
    }


def ids(text: str) -> range:
    low, _dash, high = text.partition("-")
    return range(int(low), int(high or low) + 1)


def baseline(R_path: str, mapping_path: str, chunks: int) -> None:
    """The graph as a straightforward program would make it."""
    R = json.loads(pathlib.Path(R_path).read_text())
    mapping = json.loads(pathlib.Path(mapping_path).read_text())
    vertices: list[dict[str, Any]] = []
    edges: list[dict[str, str]] = []

    def add(parent: int, path: str, **metadata: Any) -> int:
        number = len(vertices)
        metadata["paths"] = {"containment": path}
        vertices.append({"id": str(number), "metadata": metadata})
        if number:
            edges.append({"source": str(parent), "target": str(number)})
        return number

    (entry,) = R["execution"]["R_lite"]
    root = add(0, "/fig", type="cluster", name="fig")
    rank = 0
    for index, (rabbit, info) in enumerate(mapping["rabbits"].items()):
        path = f"/fig/chassis{index}"
        properties = {"rabbit": rabbit, "ssdcount": str(chunks)}
        chassis = add(root, path, type="chassis", id=index, properties=properties)
        size = (info["capacity"] // chunks) >> 30
        for n in range(chunks):
            add(chassis, f"{path}/ssd{n}", type="ssd", unit="GiB", size=size, status=1)
        for host in info["hostlist"].split(","):
            here = f"{path}/{host}"
            properties = {"pbatch": ""}
            node = add(
                chassis, here, type="node", name=host, rank=rank, properties=properties
            )
            for kind, numbers in entry["children"].items():
                for n in ids(numbers):
                    add(node, f"{here}/{kind}{n}", type=kind, id=n, rank=rank)
            rank += 1
    graph = {"directed": False, "nodes": vertices, "edges": edges}
    json.dump({"graph": graph}, sys.stdout)


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workdir", type=pathlib.Path, required=True)
    parser.add_argument("--flux", default="flux", metavar="COMMAND")
    parser.add_argument("--rabbits", type=int, default=696)
    parser.add_argument("--nodes-per-rabbit", type=int, default=16)
    parser.add_argument("--cores", type=int, default=96)
    parser.add_argument("--gpus", type=int, default=4)
    parser.add_argument("--chunks", type=int, default=36)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--no-baseline", action="store_true")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def main() -> None:
    args = parse_args()
    R, mapping = make_input(args)
    R_path = args.workdir / "R"
    mapping_path = args.workdir / "mapping.json"
    R_path.write_text(json.dumps(R))
    mapping_path.write_text(json.dumps(mapping))
    out = args.workdir / "out"
    nodes = args.rabbits * args.nodes_per_rabbit
    result: dict[str, Any] = {
        "vertices": 1
        + args.rabbits * (1 + args.chunks)
        + nodes * (1 + args.cores + args.gpus)
    }
    command = [
        *(args.flux, "dws2jgf", "--only-sched", "--cluster-name=fig"),
        *("-c", str(args.chunks), str(mapping_path)),
    ]
    # The fastest of several runs suffers least from other load on the machine.
    runs = [measure(command, R_path, out) for _ in range(args.repeat)]
    result["dws2jgf"] = min(runs, key=lambda run: run["wall_s"])
    if not args.no_baseline:
        result["python"] = measure(
            [
                *(sys.executable, __file__, "baseline"),
                *(str(R_path), str(mapping_path), str(args.chunks)),
            ],
            R_path,
            args.workdir / "out2",
        )
        with open(out, "rb") as a, open(args.workdir / "out2", "rb") as b:
            if json.load(a) != json.load(b):
                sys.exit("the two graphs differ")
        ratio = result["python"]["wall_s"] / result["dws2jgf"]["wall_s"]
        result["ratio"] = round(ratio, 1)
    if args.json:
        print(json.dumps(result))
        return
    print(f"{result['vertices']} vertices")
    for name in ("dws2jgf", "python"):
        if name in result:
            row = result[name]
            print(
                f"{name:8} {row['wall_s']:8.3f} s wall {row['cpu_s']:8.3f} s cpu"
                f" {row['rss_mib']:6} MiB memory {row['size_mib']:5} MiB output"
            )
    if "ratio" in result:
        print(f"ratio    {result['ratio']:8.1f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["baseline"]:
        baseline(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        main()
