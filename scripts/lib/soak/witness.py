# Passes the jobs of a soak run, and the faults that have struck them, to the oracle.
# SPDX-License-Identifier: LGPL-3.0-only
"""From a soak run to the oracle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import flux
import oracle.witness
from oracle import rules
from oracle.history import History

from soak.admin import BY_HAND
from soak.jobs import Job


def _seen(handle: flux.Flux, job: Job) -> rules.Job:
    found = job.seen or oracle.witness.job(handle, job.id)
    found.touched = bool(job.struck) or job.taken_back or job.node_lost
    found.restored = job.brought_back
    found.killed = job.restarted
    found.let_go = "it was let go" in job.struck
    found.unplugged = job.unplugged
    return found


def check(
    handle: flux.Flux,
    jobs: Iterable[Job],
    history: History,
    others: set[str],
    unmount: Sequence[tuple[float, float]],
) -> list[str]:
    """The oracle's errors for a run that is over.

    Args:
        others: workflows that do not belong to these jobs.
        unmount: when release_nodes was "unmount".
    """
    found = {job.id: _seen(handle, job) for job in jobs}
    events = oracle.witness.events(handle)
    return rules.check(rules.Run(history, found, others, unmount, events, [BY_HAND]))
