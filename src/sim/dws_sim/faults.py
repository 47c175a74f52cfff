# What goes wrong or slowly, on purpose: holds, latencies, failures by state,
# nodes whose mounts hang. Seeded, so that a run can be repeated.
# SPDX-License-Identifier: LGPL-3.0-only
"""Switches for failures and delays."""

from __future__ import annotations

import math
import random
import time
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Callable

from dws_sim.jsontree import Object, parse_time
from dws_sim.states import STATES

CONTAINER_MODES = ("ok", "no-start", "no-stop", "fail")
SEVERITIES = ("Minor", "Major", "Fatal")
# standard deviations from the median of a normal distribution to its 95th
# percentile
_P95 = 1.6448536269514722


@dataclass(frozen=True)
class Latency:
    """A time in seconds: fixed, uniform between two, or with a long tail
    (lognormal), as the times of real systems are."""

    low_s: float
    high_s: float
    # standard deviation of the logarithm, and the logarithm of the median
    sigma: float = 0.0
    log_median: float = 0.0

    @classmethod
    def parse(cls, value: Any) -> Latency:
        """From a number, a list of low and high, or a map of median and p95.

        Raises:
            ValueError: it is none of them, negative or out of order.
        """
        tail = isinstance(value, dict)
        if tail and set(value) != {"median", "p95"}:
            raise ValueError(f"a latency has median and p95, not {value!r}")
        if tail:
            pair = [value["median"], value["p95"]]
        else:
            pair = value if isinstance(value, list) else [value, value]
        if len(pair) != 2 or not all(
            isinstance(v, (int, float)) and not isinstance(v, bool) for v in pair
        ):
            raise ValueError(
                "a latency is a number, [low, high] or {median: M, p95: P}, "
                f"not {value!r}"
            )
        if not 0 <= pair[0] <= pair[1] < math.inf or (tail and not pair[0]):
            raise ValueError(f"latency {value!r} is negative or out of order")
        if tail:
            sigma = math.log(pair[1] / pair[0]) / _P95
            return cls(0.0, math.inf, sigma, math.log(pair[0]))
        return cls(float(pair[0]), float(pair[1]))

    def sample(self, rng: random.Random) -> float:
        if self.high_s == math.inf:
            return rng.lognormvariate(self.log_median, self.sigma)
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
    """All switches. Who changes one calls changed() afterwards.

    What is left to chance depends on the seed and on the name of what it strikes
    alone, not on the order in which things happen: a run can be repeated.
    """

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
    # how long a child may wait to be noticed by a node
    child_timeout_s: float = 300.0
    listeners: list[Callable[[], None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._due: dict[tuple[str, str], float] = {}

    def _draw(self, what: str, name: str) -> random.Random:
        return random.Random(f"{self.seed}/{what}/{name}")

    def changed(self) -> None:
        for listener in self.listeners:
            listener()

    def held(self, state: str, workflow: str, late: bool) -> bool:
        return any(
            h.late == late and fnmatchcase(workflow, h.workflow)
            for h in self.holds.get(state, ())
        )

    def delay_left(self, state: str, workflow: Object, now: float) -> float:
        """Seconds that a workflow still has to spend in a state."""
        latency = self.latencies.get(state)
        if latency is None:
            return 0.0
        meta = workflow["metadata"]
        due = self._due.get((meta["uid"], state))
        if due is None:
            due = now + latency.sample(self._draw(state, meta["name"]))
            self._due[(meta["uid"], state)] = due
        return max(0.0, due - now)

    def failure(self, state: str, workflow: Object) -> Failure | None:
        """The failure that strikes a workflow now, if any. It is used up."""
        name = workflow["metadata"]["name"]
        for i, item in enumerate(self.failures.get(state, ())):
            if not fnmatchcase(name, item.workflow):
                continue
            if item.probability < 1.0:
                # the same at each try: the die is cast once for each workflow
                chance = self._draw(f"fail {state} {i}", name).random()
                if chance >= item.probability:
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

    def copy_seconds(self, name: str) -> float:
        """How long a data movement takes."""
        return self.copy_latency.sample(self._draw("copy", name))

    def copy_failure(self, job: str) -> str:
        """The message with which a data movement of a job fails, or ""."""
        for item in self.copy_failures:
            if not fnmatchcase(job, item.workflow) or item.count == 0:
                continue
            if item.count is not None:
                item.count -= 1
            return item.message
        return ""

    def child_time_left(self, child: Object) -> float:
        """Seconds that a child may still wait to be noticed by its node."""
        began = parse_time(child["metadata"]["creationTimestamp"])
        return began + self.child_timeout_s - time.time()

    def mount_delay(self, node: str, name: str) -> float:
        """How long a node takes for a mount or unmount."""
        if not self.mount_latency.high_s:
            return 0.0
        return self.mount_latency.sample(self._draw(f"mount {node}", name))
