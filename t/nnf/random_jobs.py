# Runs random jobs for tier nnf: of all types and sizes, up to the largest that fits on
# a rabbit, for one node or for all (two to a rabbit); some stage data in before they
# have nodes, some out.
# SPDX-License-Identifier: LGPL-3.0-only
"""random_jobs.py SEED RABBITS COUNT LARGEST_GIB KEEP

Submits COUNT jobs, waits for their end, and says how each ended: a line with id,
outcome, directive and number of nodes; and what the oracle (scripts/lib/oracle) finds
wrong. With KEEP (a name, or "") one of them creates persistent storage, and the others
leave room for it."""

from __future__ import annotations

import faulthandler
import pathlib
import random
import sys

import flux
import flux.job
from flux.job import JobID, JobspecV1

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts/lib"))

import oracle.witness
from held import trouble_of
from oracle.history import Recorder
from oracle.rules import Run, check

# Fluxion allocates a rabbit in 36 parts of 910 GiB: less than two of them.
KEEP_GIB = 1800
PARTS_GIB = 1821
# a job may have to wait for all others, but Fluxion wants a limit
LIMIT_S = 300


# No Lustre: mocked MGTs share an address, so only one such job could run at a time.
KINDS = ["xfs", "gfs2", "raw"]
COPY = "\n#DW copy_{} source=$DW_JOB_random/a destination=$DW_JOB_random/b"


def directive(
    draw: random.Random, kind: str, nodes: int, rabbits: int, largest_gib: int
) -> str:
    # small ones, large ones, and now and then the largest
    scale = draw.choice([1, 1, 4, 64, 1024])
    part = 1.0 if scale == 1 and draw.random() < 0.5 else draw.random()
    gib = int(largest_gib * part / scale)
    if kind == "lustre":
        gib = gib // 2 * nodes // 2
    elif nodes > rabbits:
        gib //= 2  # two of them share a rabbit
    line = f"#DW jobdw type={kind} capacity={max(gib, 1)}GiB name=random"
    copy = draw.choice(["", "in", "out"])
    return line + (COPY.format(copy) if copy and kind != "raw" else "")


def submit(handle: flux.Flux, line: str, nodes: int) -> int:
    spec = JobspecV1.from_command(
        ["true"], num_tasks=nodes, num_nodes=nodes, exclusive=True
    )
    spec.duration = LIMIT_S
    spec.setattr("system.dw", line)
    if "copy_in" in line:
        spec.setattr("system.dw_data_first", True)
    return int(flux.job.submit(handle, spec))


def ended(handle: flux.Flux, jobid: int) -> str:
    """Wait for the end of a job, and return its outcome."""
    eventlog = []
    for event in flux.job.event_watch(handle, JobID(jobid)):
        eventlog.append(dict(event))
        if event.name == "clean":
            break
    return trouble_of(eventlog) or "completed"


def main() -> int:
    seed, rabbits, count, largest_gib = map(int, sys.argv[1:5])
    keep = sys.argv[5]
    draw = random.Random(seed)
    handle = flux.Flux()
    recorder = Recorder(pathlib.Path("kubeconfig"))
    if not recorder.wait(LIMIT_S):
        sys.exit("random_jobs.py: the API server does not answer")
    jobs: list[tuple[int, str, int]] = []
    if keep:
        largest_gib -= PARTS_GIB
        gib = draw.randint(1, KEEP_GIB)
        line = f"#DW create_persistent type=xfs capacity={gib}GiB name={keep}"
        jobs.append((submit(handle, line, 1), line, 1))
    kinds = ["lustre", *draw.choices(KINDS, k=count)]
    draw.shuffle(kinds)
    for kind in kinds[: count - len(jobs)]:
        size = draw.randint(1, 2 * rabbits)
        line = directive(draw, kind, size, rabbits, largest_gib)
        jobs.append((submit(handle, line, size), line, size))
    bad = 0
    for jobid, line, size in jobs:
        outcome = ended(handle, jobid)
        bad += outcome != "completed"
        print(JobID(jobid).f58plain, outcome, repr(line), size, flush=True)
    found = {jobid: oracle.witness.job(handle, jobid) for jobid, _, _ in jobs}
    # The test looks for leftovers later, when all of it is over.
    events = oracle.witness.events(handle)
    wrong = check(Run(recorder.history, found, events=events, over=False))
    recorder.stop()
    for text in wrong:
        print(f"wrong: {text}")
    return 1 if bad or wrong else 0


if __name__ == "__main__":
    faulthandler.enable()
    sys.exit(main())
