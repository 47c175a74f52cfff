# What a seed stands for: the jobs and the steps of a soak run, whenever it comes
# to them. How many there are in a run depends on the machine.
# SPDX-License-Identifier: LGPL-3.0-only
"""Draws that depend on a seed and a number, and on nothing that happens."""

from __future__ import annotations

import random
from collections.abc import Sequence

from flux.job import JobspecV1

from soak.jobs import KINDS, Kind, jobspec


class Draws:
    """Each job, and each step, begins a sequence of its own: however many numbers
    were drawn for those before it, it is the same.

    Attributes:
        rng: for the step that goes on.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._jobs = 0
        self._steps = 0
        self.rng = random.Random()

    def job(self, kind: Kind | None = None) -> tuple[Kind, JobspecV1]:
        """The next job, of this kind or of any."""
        rng = random.Random(f"{self._seed} job {self._jobs}")
        self._jobs += 1
        kind = kind or rng.choice(KINDS)
        return kind, jobspec(kind, rng)

    def step(self, faults: Sequence[str]) -> tuple[bool, str]:
        """Begin the next step: whether to cancel a job, and a fault or ""."""
        self.rng.seed(f"{self._seed} step {self._steps}")
        self._steps += 1
        cancel = self.rng.random() < 0.3
        fault = self.rng.random() < 0.5
        return cancel, self.rng.choice(faults) if fault and faults else ""
