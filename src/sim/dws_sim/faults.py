# What goes wrong or slowly, on purpose: holds, latencies, failures by state,
# nodes whose mounts hang. Seeded, so that a run can be repeated.
# SPDX-License-Identifier: LGPL-3.0-only
"""Switches for failures and delays."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Callable

from dws_sim.states import STATES

CONTAINER_MODES = ("ok", "no-start", "no-stop", "fail")
SEVERITIES = ("Minor", "Major", "Fatal")


@dataclass
class Latency:
    """A time in seconds: fixed, or uniform between two."""

    low_s: float
    high_s: float

    @classmethod
    def parse(cls, value: Any) -> Latency:
        """From a number, or a list of two.

        Raises:
            ValueError: it is neither, or negative.
        """
        pair = value if isinstance(value, list) else [value, value]
        if len(pair) != 2 or not all(
            isinstance(v, (int, float)) and not isinstance(v, bool) for v in pair
        ):
            raise ValueError(f"a latency is a number or [low, high], not {value!r}")
        if not 0 <= pair[0] <= pair[1]:
            raise ValueError(f"latency {value!r} is negative or out of order")
        return cls(float(pair[0]), float(pair[1]))

    def sample(self, rng: random.Random) -> float:
        if self.low_s == self.high_s:
            return self.low_s
        return rng.uniform(self.low_s, self.high_s)


@dataclass
class Failure:
    """An error that workflows get in a state."""

    severity: str
    message: str
    # how many times it still happens; None: until it is cleared
    count: int | None = None
    workflow: str = "*"
    probability: float = 1.0


@dataclass
class Hold:
    """A state that workflows do not get ready in."""

    workflow: str = "*"
    # after the work of the state, not before it
    late: bool = False


def check_state(state: str) -> str:
    """Raises ValueError for what is no workflow state."""
    if state not in STATES:
        raise ValueError(f"no such state: {state!r} (one of {', '.join(STATES)})")
    return state


@dataclass
class Faults:
    """All switches. Who changes one calls changed() afterwards."""

    seed: int = 0
    holds: dict[str, list[Hold]] = field(default_factory=dict)
    latencies: dict[str, Latency] = field(default_factory=dict)
    mount_latency: Latency = field(default_factory=lambda: Latency(0, 0))
    copy_latency: Latency = field(default_factory=lambda: Latency(0, 0))
    # data movements that fail: message and how many still, None: all
    copy_failures: list[Failure] = field(default_factory=list)
    failures: dict[str, list[Failure]] = field(default_factory=dict)
    # how containers behave: ok, no-start, no-stop or fail
    containers: str = "ok"
    hung_nodes: set[str] = field(default_factory=set)
    listeners: list[Callable[[], None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)
        self._due: dict[tuple[str, str], float] = {}
        self._spared: set[tuple[int, str]] = set()

    def changed(self) -> None:
        for listener in self.listeners:
            listener()

    def held(self, state: str, workflow: str, late: bool) -> bool:
        return any(
            h.late == late and fnmatchcase(workflow, h.workflow)
            for h in self.holds.get(state, ())
        )

    def delay_left(self, state: str, uid: str, now: float) -> float:
        """Seconds that a workflow still has to spend in a state."""
        latency = self.latencies.get(state)
        if latency is None:
            return 0.0
        due = self._due.get((uid, state))
        if due is None:
            due = self._due[(uid, state)] = now + latency.sample(self._rng)
        return max(0.0, due - now)

    def failure(self, state: str, workflow: str, uid: str) -> Failure | None:
        """The failure that strikes a workflow now, if any. It is used up."""
        for item in self.failures.get(state, ()):
            if not fnmatchcase(workflow, item.workflow):
                continue
            if item.probability < 1.0:
                # the die is cast once for each workflow
                mark = (id(item), uid)
                if mark in self._spared:
                    continue
                if self._rng.random() >= item.probability:
                    self._spared.add(mark)
                    continue
            if item.count is None:
                return item
            if item.count > 0:
                item.count -= 1
                return item
        return None

    def forget(self, uid: str) -> None:
        """A workflow is gone."""
        for state in STATES:
            self._due.pop((uid, state), None)
        self._spared = {m for m in self._spared if m[1] != uid}

    def copy_seconds(self) -> float:
        return self.copy_latency.sample(self._rng)

    def copy_failure(self, job: str) -> str:
        """The message with which a data movement of a job fails, or ""."""
        for item in self.copy_failures:
            if not fnmatchcase(job, item.workflow) or item.count == 0:
                continue
            if item.count is not None:
                item.count -= 1
            return item.message
        return ""

    def mount_delay(self) -> float:
        return self.mount_latency.sample(self._rng)
