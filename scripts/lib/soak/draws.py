# Draws the jobs and the steps of a soak run from a seed. The seed determines each of
# them; how many a run reaches depends on the machine.
# SPDX-License-Identifier: LGPL-3.0-only
"""Draws that depend on a seed and a number alone."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from soak import features
from soak.jobs import KINDS, LENT, Draft, Kind, draft


class Draws:
    """Random numbers. Each job and each step has its own sequence, which does not
    depend on the numbers drawn before.

    Attributes:
        rng: for the current step.
        steps: how many have begun.
    """

    def __init__(self, seed: int, guests: bool = True) -> None:
        self._seed = seed
        self._jobs = 0
        self._lent = 0  # file systems that expire
        self.steps = 0
        # reshuffled for each round
        self._covering = features.kinds(guests)
        self.rng = random.Random()

    def job(self, kind: Kind | None = None) -> Draft:
        """The next job, of this kind or of any."""
        rng = random.Random(f"{self._seed} job {self._jobs}")
        self._jobs += 1
        kind = kind or self._kind(rng)
        self._lent += kind.lends
        newest = max(self._lent, 1)
        number = rng.randint(max(newest - LENT, 0) + 1, newest)
        name = f"lent{newest if kind.lends else number}"
        return draft(self._jobs - 1, kind, rng, name)

    def number(self, number: int) -> Draft:
        """The job of that number, which must not have been drawn yet."""
        while self._jobs < number:
            self.job()
        return self.job()

    def _kind(self, rng: random.Random) -> Kind:
        """The next kind: every other one comes from the covering array."""
        number, odd = divmod(self._jobs - 1, 2)
        if odd:
            return rng.choice(KINDS)
        turn, place = divmod(number, len(self._covering))
        order = list(self._covering)
        random.Random(f"{self._seed} round {turn}").shuffle(order)
        return order[place]

    def configuration(self, keys: Mapping[str, list[str]]) -> dict[str, str]:
        """The configuration with which the run begins: some keys, and their values."""
        rng = random.Random(f"{self._seed} configuration")
        return {k: rng.choice(v) for k, v in keys.items() if rng.random() < 0.5}

    def step(self, faults: Sequence[str]) -> tuple[bool, str]:
        """Begin the next step: whether to cancel a job, and a fault or "". A round has
        each fault once, and as many steps without."""
        self.rng.seed(f"{self._seed} step {self.steps}")
        order = [*faults, *("" for _ in faults)] or [""]
        turn, place = divmod(self.steps, len(order))
        random.Random(f"{self._seed} faults {turn}").shuffle(order)
        self.steps += 1
        return self.rng.random() < 0.3, order[place]
