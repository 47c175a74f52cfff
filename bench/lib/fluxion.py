# Loads Fluxion with graphs of one machine, in turn; run by bench/fluxion.
# SPDX-License-Identifier: LGPL-3.0-only
"""What a resource graph costs Fluxion: time to load it, memory of the broker that
does, and time to match jobs of several sizes. The nodes of the machine are made up.

With --client this is the program that runs in an instance and measures it.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

import jgf
from instance import Engine

GIB_PER_NODE = 100
JOB_NODES = (1, 64, 560)
RESOURCE = "sched-fluxion-resource"

Object = dict[str, Any]


def jobspec(nodes: int, gib: int) -> str:
    """Jobspec of whole nodes, each with storage on the rabbit next to it."""
    core: Object = {"type": "core", "count": 1}
    task: Object = {"type": "slot", "count": 1, "label": "task", "with": [core]}
    node: Object = {"type": "node", "count": 1, "exclusive": True, "with": [task]}
    kinds = [node]
    if gib:
        kinds.append({"type": "ssd", "count": gib, "exclusive": True})
    slot: Object = {"type": "slot", "count": nodes, "label": "rabbit", "with": kinds}
    command = {"command": ["true"], "slot": "task", "count": {"per_slot": 1}}
    return json.dumps(
        {
            "version": 1,
            "resources": [slot],
            "tasks": [command],
            "attributes": {"system": {"duration": 3600}},
        }
    )


class Client:
    """Measures the graph that the instance's configuration names."""

    def __init__(self, args: argparse.Namespace) -> None:
        import flux

        self.args = args
        self.handle = flux.Flux()
        self.broker = int(self.handle.attr_get("broker.pid"))
        self.jobid = 0

    def measure(self, R: pathlib.Path) -> Object:
        """Load the machine 'R', then match jobs."""
        listing = subprocess.check_output(["flux", "module", "list"], text=True)
        for line in listing.splitlines():
            if line.startswith("sched-"):
                self._module("remove", line.split()[0])
        self._module("remove", "resource")
        before = self._memory_mib()
        R.rename(R.with_name("R"))
        began = time.monotonic()
        self._module("load", "resource", "noverify", "monitor-force-up")
        loaded = time.monotonic()
        words = [f"match-format={self.args.format}", f"match-policy={self.args.policy}"]
        self._module("load", RESOURCE, *words)
        vertices = self.handle.rpc(f"{RESOURCE}.stats-get").get()["V"]
        ready = time.monotonic()
        result: Object = {
            "vertices": vertices,
            "resource_s": loaded - began,
            "fluxion_s": ready - loaded,
            "memory_mib": self._memory_mib() - before,
        }
        self._fill()
        result["match"] = {str(n): self._match(n) for n in JOB_NODES}
        self._module("remove", RESOURCE)
        return result

    def _fill(self) -> None:
        """Allocate half of the machine to jobs, in patches."""
        spec = jobspec(self.args.fill, self.args.gib)
        nodes = self.args.rabbits * self.args.nodes_per_rabbit
        count = nodes // self.args.fill
        tried = [self._allocate(spec) for _ in range(count * 3 // 4)]
        jobs = [jobid for jobid, seconds in tried if seconds is not None]
        random.Random(1).shuffle(jobs)
        for jobid in jobs[: count // 4]:
            self._cancel(jobid)

    def _match(self, nodes: int) -> Object | None:
        """Milliseconds of one match; None if no such job fits."""
        spec = jobspec(nodes, self.args.gib)
        took = []
        for _ in range(self.args.jobs):
            jobid, seconds = self._allocate(spec)
            if seconds is None:
                return None
            took.append(1000 * seconds)
            self._cancel(jobid)
        p99 = statistics.quantiles(took, n=100, method="inclusive")[98]
        return {"p50_ms": statistics.median(took), "p99_ms": p99}

    def _allocate(self, spec: str) -> tuple[int, float | None]:
        """Id and seconds of one match; None if the job does not fit."""
        self.jobid += 1
        payload = {"cmd": "allocate", "jobid": self.jobid, "jobspec": spec}
        began = time.monotonic()
        try:
            self.handle.rpc(f"{RESOURCE}.match", payload).get_str()
        except OSError:
            return self.jobid, None
        return self.jobid, time.monotonic() - began

    def _cancel(self, jobid: int) -> None:
        self.handle.rpc(f"{RESOURCE}.cancel", {"jobid": jobid}).get()

    def _module(self, verb: str, *words: str) -> None:
        subprocess.run(["flux", "module", verb, *words], check=True)

    def _memory_mib(self) -> float:
        text = pathlib.Path(f"/proc/{self.broker}/status").read_text()
        return int(text.partition("VmRSS:")[2].split()[0]) / 1024


class Bench:
    """A machine, and an instance for each graph of that machine."""

    def __init__(self, args: argparse.Namespace, folder: pathlib.Path) -> None:
        self.args = args
        self.folder = folder
        engine = Engine(args.flux, args.prefix)
        engine.prepare(folder, 1, 1)
        self.env = engine.environment(folder)
        self.options = engine.options(folder, 1)
        self.first_R = (folder / "R").read_bytes()
        libs = str(pathlib.Path(__file__).parent.parent.parent / "scripts" / "lib")
        self.env["PYTHONPATH"] = f"{libs}:{self.env['PYTHONPATH']}"
        R, mapping = jgf.make_input(args)
        (folder / "R.plain").write_text(json.dumps(R))
        (folder / "mapping.json").write_text(json.dumps(mapping))

    def run(self, name: str, graph: bytes, gib: int) -> Object:
        """Measure one graph in an instance of its own."""
        self._say(f"{name}: {len(graph) >> 20} MiB")
        # The graph marks rabbits as down. No module marks them up here.
        text = re.sub(rb', ?"status": ?1\b', b"", graph)
        R = self.folder / "R.next"
        R.write_bytes(text)
        # Memory that malloc reuses from the graph before would not be counted.
        (self.folder / "R").write_bytes(self.first_R)
        numbers = ("rabbits", "nodes_per_rabbit", "fill", "jobs", "format", "policy")
        words = [
            f"--{key.replace('_', '-')}={getattr(self.args, key)}" for key in numbers
        ]
        out = subprocess.run(
            [*(str(self.args.flux), "start"), *self.options]
            + [*(str(self.args.flux), "python", __file__), f"--client={R}"]
            + [f"--gib={gib}", *words],
            stdout=subprocess.PIPE,
            check=True,
            env=self.env,
        ).stdout
        self._say("")
        return {"graph": name, "R_mib": len(text) / 2**20, **json.loads(out)}

    def plain(self) -> bytes:
        return (self.folder / "R.plain").read_bytes()

    def ours(self, chunks: int) -> bytes:
        return self._make(["dws2jgf", f"--chunks-per-nnf={chunks}"], self.env)

    def coral2(self) -> bytes:
        # Its packages have the names of ours.
        packages = self.folder / "coral2"
        packages.mkdir()
        (theirs,) = self.args.coral2.glob("lib/python3*/site-packages/flux_k8s")
        (packages / "flux_k8s").symlink_to(theirs)
        path = [packages, self.args.coral2_client, self.env["PYTHONPATH"]]
        program = self.args.coral2 / "libexec" / "flux" / "cmd" / "flux-dws2jgf.py"
        env = {**self.env, "PYTHONPATH": ":".join(map(str, path))}
        return self._make(["python", str(program), "--no-validate"], env)

    def _make(self, words: list[str], env: dict[str, str]) -> bytes:
        self._say(f"making the graph: {words[0]}")
        with open(self.folder / "R.plain", "rb") as stdin:
            done = subprocess.run(
                [str(self.args.flux), *words, "--cluster-name=fig"]
                + [str(self.folder / "mapping.json")],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                check=True,
                env=env,
            )
        return done.stdout

    def _say(self, text: str) -> None:
        if sys.stderr.isatty():
            print(f"\r{text:<60}\r", end="", file=sys.stderr, flush=True)


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench/fluxion", description=(__doc__ or "").partition("\n\n")[0]
    )
    for option in ("--flux", "--prefix", "--coral2", "--coral2-client", "--client"):
        parser.add_argument(option, type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--gib", type=int, help=argparse.SUPPRESS)
    machine = {"rabbits": 696, "nodes-per-rabbit": 16, "cores": 96, "gpus": 4}
    for name, count in machine.items():
        parser.add_argument(
            f"--{name}", type=int, default=count, metavar="N", help=f"default: {count}"
        )
    parser.add_argument(
        "--chunks",
        type=lambda text: [int(word) for word in text.split(",")],
        default=[36],
        metavar="N,...",
        help="parts that dws2jgf splits each rabbit into (default: 36)",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=10,
        metavar="N",
        help="of each size, 2 or more (default: 10)",
    )
    parser.add_argument(
        "--fill",
        type=int,
        default=64,
        metavar="NODES",
        help="of each job that fills the machine before (default: 64)",
    )
    parser.add_argument("--format", default="rv1", help="match-format (default: rv1)")
    parser.add_argument(
        "--policy", default="lonodex", help="match-policy (default: lonodex)"
    )
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


HEADING = (
    f"{'graph':<14}{'vertices':>9}{'R MiB':>7}{'resource s':>12}{'fluxion s':>11}"
    f"{'memory MiB':>12}  match ms, p50/p99 of jobs of "
    f"{', '.join(map(str, JOB_NODES))} nodes"
)


def row(result: Object) -> str:
    times = [
        f"{match['p50_ms']:.1f}/{match['p99_ms']:.1f}" if match else "no room"
        for match in result["match"].values()
    ]
    return (
        f"{result['graph']:<14}{result['vertices']:>9}{result['R_mib']:>7.0f}"
        f"{result['resource_s']:>12.1f}{result['fluxion_s']:>11.1f}"
        f"{result['memory_mib']:>12.0f}  {'  '.join(times)}"
    )


def main() -> None:
    args = parse_args()
    if args.client:
        print(json.dumps(Client(args).measure(args.client)))
        return
    results = []

    def add(name: str, graph: bytes, gib: int) -> None:
        results.append(bench.run(name, graph, gib))
        if not args.json:
            print(row(results[-1]), flush=True)

    with tempfile.TemporaryDirectory(prefix="flux-dws-bench-") as name:
        bench = Bench(args, pathlib.Path(name))
        if not args.json:
            print(HEADING, flush=True)
        add("no rabbits", bench.plain(), 0)
        for chunks in args.chunks:
            add(f"dws2jgf -c {chunks}", bench.ours(chunks), GIB_PER_NODE)
        if args.coral2:
            add("flux-coral2", bench.coral2(), GIB_PER_NODE)
    if args.json:
        print(json.dumps(results))


if __name__ == "__main__":
    main()
