# Injected faults and delays: holds, latencies, failures by state, nodes whose mounts
# hang. Seeded, so that a run can be repeated.
# SPDX-License-Identifier: LGPL-3.0-only
"""Switches for failures and delays."""

from __future__ import annotations

import math
import random
import time
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Callable

from dws_sim.directive import parse
from dws_sim.jsontree import Object, parse_time
from dws_sim.states import FS_TYPES, STATES

CONTAINER_MODES = ("ok", "no-start", "no-stop", "fail")
SEVERITIES = ("Minor", "Major", "Fatal")
# how long such a fault is seen
STUMBLE_S = (0.1, 0.2)
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
    # of workflows with a file system of that type alone
    fs_type: str = ""

    def meets(self, workflow: Object) -> bool:
        """Whether it is for a workflow."""
        if not fnmatchcase(workflow["metadata"]["name"], self.workflow):
            return False
        return not self.fs_type or self.fs_type in fs_types(workflow)


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


# Key of the latency of a state in which no driver has work.
EMPTY = "empty"


def check_timed(key: str) -> str:
    """Raises ValueError for what is neither a state, nor a state and a type of
    file system, nor EMPTY."""
    state, _, fs_type = key.partition(" ")
    if key == EMPTY:
        return key
    if fs_type and fs_type not in FS_TYPES:
        words = ", ".join(FS_TYPES)
        raise ValueError(f"no such type: {fs_type!r} (one of {words})")
    check_state(state)
    return key


def fs_types(workflow: Object) -> set[str]:
    """The types of the file systems that a workflow makes."""
    directives = workflow.get("spec", {}).get("dwDirectives", ())
    return {parse(text).get("type") or "" for text in directives} - {""}


@dataclass
class Faults:
    """All switches. Callers that change one call changed() afterwards.

    Random decisions depend on the seed and on the name of the struck object alone, not
    on the order of events: a run can be repeated.
    """

    seed: int = 0
    holds: dict[str, list[Hold]] = field(default_factory=dict)
    # by state, by state and type of file system, and EMPTY
    latencies: dict[str, Latency] = field(default_factory=dict)
    # how many requests each controller may make in a second; 0: any number
    requests_per_s: float = 0.0
    mount_latency: Latency = field(default_factory=lambda: Latency(0, 0))
    copy_latency: Latency = field(default_factory=lambda: Latency(0, 0))
    # data movements that fail: message and how many still, None: all
    copy_failures: list[Failure] = field(default_factory=list)
    failures: dict[str, list[Failure]] = field(default_factory=dict)
    # how containers behave: ok, no-start, no-stop or fail
    containers: str = "ok"
    hung_nodes: set[str] = field(default_factory=set)
    # how likely a healthy workflow passes through a fault that is soon gone
    stumble: float = 0.0
    # how many workflows still read their Servers from an old cache in Setup
    outdated: int = 0
    # interval at which an NnfAccess checks whether devices are attached to the nodes;
    # 0: they are attached at once
    device_poll_s: float = 0.0
    # how long a child may wait to be noticed by a node
    child_timeout_s: float = 300.0
    listeners: list[Callable[[], None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._due: dict[tuple[str, str], float] = {}
        self._outdated: set[str] = set()

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

    def delay_left(
        self, state: str, workflow: Object, now: float, empty: bool = False
    ) -> float:
        """Seconds that a workflow still has to spend in a state.

        Args:
            empty: no driver has work in that state.
        """
        latencies = self._latencies(state, workflow, empty)
        if not latencies:
            return 0.0
        meta = workflow["metadata"]
        due = self._due.get((meta["uid"], state))
        if due is None:
            # all file systems are made at once: the slowest one counts
            due = now + max(
                latency.sample(self._draw(state, meta["name"])) for latency in latencies
            )
            self._due[(meta["uid"], state)] = due
        return max(0.0, due - now)

    def stumbles(self, state: str, workflow: Object, now: float) -> bool:
        """Whether a healthy workflow shows a fault now."""
        if not self.stumble:
            return False
        meta = workflow["metadata"]
        key = (meta["uid"], f"stumble {state}")
        if key not in self._due:
            draw = self._draw(f"stumble {state}", meta["name"])
            struck = draw.random() < self.stumble
            self._due[key] = now + (draw.uniform(*STUMBLE_S) if struck else 0.0)
        return now < self._due[key]

    def _latencies(self, state: str, workflow: Object, empty: bool) -> list[Latency]:
        """The latencies that apply to a workflow in a state."""
        if empty and EMPTY in self.latencies:
            return [self.latencies[EMPTY]]
        keys = {state}
        if not empty:
            own = {f"{state} {kind}" for kind in fs_types(workflow)}
            keys = {key if key in self.latencies else state for key in own} or keys
        return [self.latencies[key] for key in keys if key in self.latencies]

    def failure(self, state: str, workflow: Object) -> Failure | None:
        """The failure that strikes a workflow now, if any. Uses up one of its count."""
        name = workflow["metadata"]["name"]
        for i, item in enumerate(self.failures.get(state, ())):
            if not item.meets(workflow) or not self._strikes(state, i, name, item):
                continue
            if item.count is None:
                return item
            if item.count > 0:
                item.count -= 1
                return item
        return None

    def _strikes(self, state: str, i: int, name: str, item: Failure) -> bool:
        """The same at each try: the die is cast once for each workflow."""
        if item.probability >= 1.0:
            return True
        chance = self._draw(f"fail {state} {i}", name).random()
        return chance < item.probability

    def outdates(self, uid: str) -> bool:
        """Is this workflow one that reads an old cache? It is so at each try."""
        if self.outdated > 0 and uid not in self._outdated:
            self.outdated -= 1
            self._outdated.add(uid)
        return uid in self._outdated

    def forget(self, uid: str) -> None:
        """A workflow is gone."""
        self._outdated.discard(uid)
        for state in STATES:
            self._due.pop((uid, state), None)
            self._due.pop((uid, f"stumble {state}"), None)

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
