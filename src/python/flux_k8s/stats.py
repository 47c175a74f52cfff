# Counters of the agent's requests to Kubernetes, for dws.status and Prometheus.
# SPDX-License-Identifier: LGPL-3.0-only
"""Numbers about the agent."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from typing import Any

BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
# The latest requests over which quantiles are computed.
RECENT = 1024
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


def quantile(ordered: list[float], q: float) -> float:
    """The smallest value that a share q of an ordered list does not exceed."""
    return ordered[max(0, min(len(ordered) - 1, int(q * len(ordered) + 0.5) - 1))]


@dataclass
class Latency:
    """The durations of requests with one verb."""

    count: int = 0
    total_s: float = 0.0
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_S) + 1))
    recent: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))

    def add(self, seconds: float) -> None:
        self.count += 1
        self.total_s += seconds
        self.buckets[bisect_left(BOUNDS_S, seconds)] += 1
        self.recent.append(seconds)

    def quantiles(self) -> dict[str, float]:
        ordered = sorted(self.recent)
        return {name: quantile(ordered, q) for name, q in QUANTILES.items()}


class Stats:
    """Counters since the agent started. For any thread."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        # by verb, plural name and HTTP status (0: no answer)
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.latency: defaultdict[str, Latency] = defaultdict(Latency)
        # failed tries of commands, by HTTP status (0: no answer)
        self.retries: Counter[int] = Counter()
        self.events: Counter[str] = Counter()
        self.lists: Counter[str] = Counter()
        # malformed objects, by plural name
        self.refused: Counter[str] = Counter()

    def request(self, verb: str, plural: str, status: int, seconds: float) -> None:
        """Count a request that was answered or abandoned."""
        with self.lock:
            self.requests[verb, plural, status] += 1
            self.latency[verb].add(seconds)

    def retry(self, status: int) -> None:
        with self.lock:
            self.retries[status] += 1

    def event(self, plural: str, count: int) -> None:
        with self.lock:
            self.events[plural] += count

    def listed(self, plural: str) -> None:
        with self.lock:
            self.lists[plural] += 1

    def refuse(self, plural: str) -> None:
        with self.lock:
            self.refused[plural] += 1

    def summary(self) -> dict[str, Any]:
        """For dws.status; latency in seconds."""
        with self.lock:
            errors: Counter[str] = Counter()
            for (_, _, status), count in self.requests.items():
                if status == 0 or status >= 400:
                    errors[str(status)] += count
            return {
                "requests": sum(self.requests.values()),
                "errors": dict(errors),
                "retries": sum(self.retries.values()),
                "refused": sum(self.refused.values()),
                "latency": {
                    verb: {"count": latency.count, **latency.quantiles()}
                    for verb, latency in self.latency.items()
                },
            }
