# How long a pass of sched-rabbit takes on a machine of El Capitan's size.
# SPDX-License-Identifier: LGPL-3.0-only
"""Fills a machine of 11,136 nodes and 696 rabbits from a long queue, then
measures further passes over what waits. There is no Flux: it is the planner
alone. Run with flux_sched_rabbit on the path:
``PYTHONPATH=src/modules/sched-rabbit python3 bench/sched_rabbit.py``.
"""

from __future__ import annotations

import argparse
import random
import resource
import time

from flux_sched_rabbit import bits
from flux_sched_rabbit.machine import Machine, Node
from flux_sched_rabbit.plan import Pass
from flux_sched_rabbit.request import Request

NODES_PER_RABBIT = 16
CORES = 96
GIB = 30000


def make_machine(nodes: int) -> Machine:
    hosts = [f"n{i}" for i in range(nodes)]
    return Machine(
        [Node(i, host, (1 << CORES) - 1, 15) for i, host in enumerate(hosts)],
        None,
        {
            f"r{i}": (GIB, hosts[i : i + NODES_PER_RABBIT])
            for i in range(0, nodes, NODES_PER_RABBIT)
        },
    )


def make_job(rng: random.Random) -> Request:
    """Random jobs are hardly ever alike, so the planner's caches rarely help."""
    nodes = int(2 ** rng.uniform(0, 12))
    return Request(
        groups=nodes,
        groups_max=nodes,
        group_gib=rng.choice([0, rng.randint(1, 1800)]),
        exclusive=rng.choice([True, True, False]),
        node_cores=rng.randint(1, CORES),
        duration_s=60.0 * rng.randint(10, 1440),
    )


def run_pass(machine: Machine, queue: list[tuple[int, Request]], depth: int) -> int:
    """One pass; the started jobs leave the queue. Returns how many they are."""
    now = time.time()
    planned = Pass(machine, now, depth, (request for _, request in queue))
    waiting = []
    for jobid, request in queue:
        alloc = planned.consider(request).alloc
        if alloc is None:
            waiting.append((jobid, request))
            continue
        alloc.t_end = now + request.duration_s
        machine.commit(jobid, alloc)
    started = len(queue) - len(waiting)
    queue[:] = waiting
    return started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=11136)
    parser.add_argument("--jobs", type=int, default=5000, help="left in the queue")
    parser.add_argument("--depth", type=int, default=8, help="reservations")
    parser.add_argument("--passes", type=int, default=5)
    args = parser.parse_args()

    rng = random.Random(1)
    machine = make_machine(args.nodes)
    queue: list[tuple[int, Request]] = []
    jobid = 0
    while len(queue) < args.jobs:
        while len(queue) < args.jobs:
            job = make_job(rng)
            if machine.infeasible(job) is None:
                queue.append((jobid, job))
                jobid += 1
        run_pass(machine, queue, args.depth)
        if not machine.idle:
            break
    print("The planner of sched-rabbit, without Flux")
    print(
        f"{len(machine.nodes)} nodes, {len(machine.rabbits)} rabbits,"
        f" {len(machine.allocations)} jobs running, {len(queue)} queued"
    )
    for _ in range(args.passes):
        # Jobs come to an end; the pass fills what they leave.
        for victim in rng.sample(list(machine.allocations), 10):
            machine.release(victim)
        free = bits.count(machine.idle)
        t0, cpu0 = time.perf_counter(), time.process_time()
        started = run_pass(machine, queue, args.depth)
        seconds, cpu = time.perf_counter() - t0, time.process_time() - cpu0
        print(
            f"pass: {seconds:.3f} s, {cpu:.3f} s of CPU time,"
            f" {free} nodes were free, {started} jobs started"
        )
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"memory: {rss} MB")


if __name__ == "__main__":
    main()
