# Runs many rabbit jobs with all kinds of directives at once, and checks that nothing is
# left when they have ended. Other tests draw their jobs from mixed().
# SPDX-License-Identifier: LGPL-3.0-only
"""Run inside an instance: mix.py --workdir DIR --prefix DIR [--jobs N] [--seed S].

Persistent file systems are made first, used by the mix, and some destroyed at
the end: exactly the others must be left. scripts/demo mix does all of it.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import random
import sys
import time
from typing import Any

import flux
import flux.job
from cluster import Cluster, Failed
from elsewhere import PROFILE, make_profile
from flux.job import JobspecV1

KEPT = ["kept-xfs", "kept-lustre"]
DESTROYED = ["gone-gfs2", "gone-lustre"]

JOBDW = "#DW jobdw type={type} capacity=1GiB name=work"
COPY_IN = "#DW copy_in source=/lus/global/in destination=$DW_JOB_work/in"
COPY_OUT = "#DW copy_out source=$DW_JOB_work/out destination=/lus/global/out"
CONTAINER = "#DW container name=cc profile={profile} DW_JOB_foo_local_storage=work"


def create(name: str) -> str:
    kind = name.split("-")[1]
    profile = f" profile={PROFILE}" if kind == "lustre" else ""
    return f"#DW create_persistent type={kind} capacity=5GiB name={name}{profile}"


def destroy(name: str) -> str:
    return f"#DW destroy_persistent name={name}"


def mixed(rng: random.Random) -> list[str]:
    """The directives of one job, drawn at random."""
    kind = rng.choice(["jobdw", "two", "in", "out", "both", "container", "use"])
    storage = JOBDW.format(type=rng.choice(["xfs", "gfs2", "lustre"]))
    if kind == "jobdw":
        return [JOBDW.format(type=rng.choice(["xfs", "gfs2", "lustre", "raw"]))]
    if kind == "two":
        # at most one lustre: management targets never share a rabbit
        return [storage, JOBDW.format(type="xfs").replace("work", "more")]
    if kind == "in":
        return [storage, COPY_IN]
    if kind == "out":
        return [storage, COPY_OUT]
    if kind == "both":
        return [storage, COPY_IN, COPY_OUT]
    if kind == "container":
        profile = rng.choice(["example-success", "example-server", "example-mpi"])
        return [JOBDW.format(type="gfs2"), CONTAINER.format(profile=profile)]
    return [f"#DW persistentdw name={rng.choice(KEPT + DESTROYED)}"]


def jobspec(directives: list[str]) -> JobspecV1:
    spec = JobspecV1.from_command(["true"], num_nodes=1)
    spec.setattr("system.dw", directives)
    spec.cwd = "/"
    return spec


def run(handle: flux.Flux, jobs: list[list[str]]) -> list[str]:
    """Submit all jobs and wait for them. Returns the error of each that failed."""
    futures = [flux.job.submit_async(handle, jobspec(d), waitable=True) for d in jobs]
    wrong = []
    for directives, future in zip(jobs, futures):
        jobid = future.get_id()
        result = flux.job.wait(handle, jobid)
        if not result.success:
            error = result.errstr.decode() if result.errstr else "failed"
            wrong.append(f"{jobid.f58}: {directives}: {error}")
    return wrong


def left_over(handle: flux.Flux, cluster: Cluster, wanted: list[str]) -> list[str]:
    """Objects that are left over, and wanted file systems that are missing."""
    state = json.loads(cluster.ctl("state"))
    status: dict[str, Any] = handle.rpc("dws.status", {}).get()
    found = sorted(p["name"] for p in status["persistent"])
    wrong = []
    if any(state["workflows"].values()) or status["jobs"]:
        wrong.append(f"workflows {state['workflows']}, jobs {status['jobs']}")
    if state["mounts"]:
        wrong.append(f"mounts: {state['mounts']}")
    if found != sorted(wanted):
        wrong.append(f"persistent file systems: {found}, not {sorted(wanted)}")
    if any(p["users"] for p in status["persistent"]):
        wrong.append(f"users of what nobody uses: {status['persistent']}")
    if not wanted and any(state["allocated"].values()):
        wrong.append(f"space is taken: {state['allocated']}")
    return wrong


def settle(
    handle: flux.Flux, cluster: Cluster, wanted: list[str], limit_s: float = 60
) -> list[str]:
    """Wait until nothing is left over. Returns what is left after limit_s."""
    limit = time.monotonic() + limit_s
    while (wrong := left_over(handle, cluster, wanted)) and time.monotonic() < limit:
        time.sleep(0.05)
    return wrong


def mix(handle: flux.Flux, cluster: Cluster, count: int, seed: int) -> list[str]:
    """Do the whole run and return its errors."""
    rng = random.Random(seed)
    wrong = run(handle, [create(name) for name in KEPT + DESTROYED])
    wrong += settle(handle, cluster, KEPT + DESTROYED)
    wrong += run(handle, [mixed(rng) for _ in range(count)])
    wrong += settle(handle, cluster, KEPT + DESTROYED)
    wrong += run(handle, [destroy(name) for name in DESTROYED])
    wrong += settle(handle, cluster, KEPT)
    wrong += run(handle, [destroy(name) for name in KEPT])
    return wrong + settle(handle, cluster, [])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workdir", type=pathlib.Path, required=True)
    parser.add_argument("--prefix", type=pathlib.Path, required=True)
    parser.add_argument("--picture", help="not used")
    parser.add_argument("--fast", action="store_true", help="the default")
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(1000000))
    args = parser.parse_args()
    cluster = Cluster(args.workdir, args.prefix, "instant")
    handle = flux.Flux()
    began = time.monotonic()
    try:
        cluster.start()
        cluster.wait_synced(handle)
        make_profile(cluster.kubeconfig)
        print(f"Running on {cluster.engine}")
        print(f"{args.jobs} jobs, seed {args.seed}", flush=True)
        wrong = mix(handle, cluster, args.jobs, args.seed)
    except Failed as exc:
        wrong = [str(exc)]
    finally:
        cluster.stop()
    for line in wrong:
        print(f"WRONG: {line}")
    print(f"{time.monotonic() - began:.1f} s, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
