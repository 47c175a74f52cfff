# Asks for all storage when a run is over, so that storage which flux-dws still counts
# as taken is missed, whatever its books say.
# SPDX-License-Identifier: LGPL-3.0-only
"""Jobs that have together what one user may have, and jobs that fill a rabbit each."""

from __future__ import annotations

import os

import flux.job
from dws_sim.drives import usable
from flux.job import JobspecV1

from soak import features
from soak.rules import TOTAL_GIB
from soak.world import CAPACITY, World

# How long a job may wait for storage that nobody has.
WAIT_S = 60
GIB = 1 << 30
JOBS = 3  # that have together all that their user may have


def _submit(world: World, node: str, size: int) -> int:
    spec = JobspecV1.from_command(["sleep", "600"], num_tasks=1, num_nodes=1)
    spec.setattr("system.dw", f"#DW jobdw type=raw capacity={size >> 10}KiB name=all")
    spec.setattr("system.constraints", {"hostlist": [node]})
    spec.cwd, spec.environment = "/", {"PATH": os.environ["PATH"]}
    return int(flux.job.submit(world.handle, spec))


def _together(world: World, what: str, wanted: dict[str, int]) -> list[str]:
    """Run a job on each of these nodes, with so many bytes, all at once. Returns an
    error for each that does not start."""
    jobs = {node: _submit(world, node, size) for node, size in wanted.items()}
    wrong = []
    for node, job in jobs.items():
        words = "flux", "job", "wait-event", f"-t{WAIT_S}", str(job)
        if world.attempt(*words, "start")[0]:
            log = world.attempt("flux", "job", "eventlog", str(job))[1]
            wrong.append(f"{what}: a job on {node} has not got it\n{log}")
    for job in jobs.values():
        world.attempt("flux", "cancel", str(job))
        world.attempt("flux", "job", "wait-event", f"-t{WAIT_S}", str(job), "clean")
    return wrong


def check(world: World) -> list[str]:
    """Errors; nobody else may have jobs or storage."""
    # NNF adds a little to each, and Flux counts in whole GiB.
    share = (TOTAL_GIB // JOBS - 1) * GIB
    wrong = _together(
        world,
        f"most of the {TOTAL_GIB} GiB that one user may have",
        dict.fromkeys(world.nodes[:JOBS], share),
    )
    world.change_lines(features.presets())
    size = (usable(CAPACITY) // GIB - 1) * GIB
    return wrong + _together(
        world,
        f"{size} bytes, most of a rabbit",
        dict.fromkeys(world.nodes[::2], size),
    )
