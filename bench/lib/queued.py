# The cost of queued rabbit jobs on a large machine; run by bench/queued.
# SPDX-License-Identifier: LGPL-3.0-only
"""CPU time of the module dws, in a process of its own, and of the broker, while one
job has all nodes and rabbit jobs wait. Measures each dws.so in turn: one that is built
with FIRST and LOOK of src/modules/dws/tell/queued.c at 1e9 never looks at jobs."""

from __future__ import annotations

import argparse
import pathlib
import subprocess
import sys
import time

import cputime
import flux.job
from cluster import Failed, run
from flux.job import JobspecV1
from instance import machine_R
from storm import DIRECTIVE, Storm, new_parser

CORES = 4


class Queue(Storm):
    @property
    def modules(self) -> pathlib.Path:
        folder: pathlib.Path = self.args.prefix / "lib" / "flux" / "modules"
        return folder

    def machine(self) -> tuple[str, ...]:
        last = self.args.rabbits - 1
        hosts = f"node[0-{self.args.nodes - 1}]"
        return ("--nodes", hosts, "--rabbits", f"rabbit[0-{last}]")

    def fill(self) -> None:
        """Give the whole machine to a job that never ends."""
        nodes = self.args.nodes
        self.cluster.load_machine(machine_R(nodes, CORES).encode())
        run("flux", "module", "load", str(self.modules / "sched-rabbit.py"))
        spec = JobspecV1.from_command(
            ["true"], num_nodes=nodes, num_tasks=nodes, exclusive=True
        )
        spec.setattr("system.exec.test.run_duration", "1000h")
        holder = flux.job.submit(self.handle, spec)
        flux.job.event_wait(self.handle, holder, "alloc", raiseJobException=True)

    def queue(self, count: int) -> None:
        self.submit(count, DIRECTIVE)
        self.wait_status("the queue", lambda s: s["phases"]["pending"] >= count)

    def measure(self, module: pathlib.Path) -> None:
        """The CPU time with this module from the end of its start on."""
        host = str(pathlib.Path(__file__).with_name("modhost.py"))
        seconds = self.args.seconds
        with subprocess.Popen([sys.executable, host, str(module)]) as child:
            try:
                self.cluster.kill_agent()
                self.cluster.start_agent()
                self.wait_synced()
                self.wait_status(
                    "the queue", lambda s: s["phases"]["pending"] >= self.args.jobs
                )
                time.sleep(seconds / 4)
                before, mine = self.cpu(), cputime.of_process(child.pid)
                time.sleep(seconds)
                mine = cputime.of_process(child.pid) - mine
                more = {k: v / seconds for k, v in (self.cpu() - before).items()}
            finally:
                child.terminate()
        rest = " ".join(f"{k}={v:.2%}" for k, v in more.items() if v > 0.0005)
        print(f"{module}: dws={mine / seconds:.2%} {rest}", flush=True)


def parse_args() -> argparse.Namespace:
    parser = new_parser("bench/queued", __doc__, rabbits=696)
    add = parser.add_argument
    add("-n", "--jobs", type=int, default=1000, help="that wait")
    add("--nodes", type=int, default=11136)
    add("--seconds", type=float, default=40.0, help="of each measurement")
    add("--repeat", type=int, default=2)
    add("modules", type=pathlib.Path, nargs="*", help="dws.so, default: ours")
    return parser.parse_args()


def main() -> int:
    args = parse_args()
    queue = Queue(args)
    with queue.running():
        print(f"{queue.cluster.engine}: {args.jobs} jobs, {args.nodes} nodes")
        queue.fill()
        queue.queue(args.jobs)
        run("flux", "module", "remove", "dws")
        folder = getattr(args, "from")
        for _ in range(args.repeat):
            for module in args.modules or [queue.modules / "dws.so"]:
                queue.measure(folder / module)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as exc:
        sys.exit(f"bench/queued: {exc}")
