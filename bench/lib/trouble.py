# Many rabbit jobs with an API server in trouble; run by bench/trouble.
# SPDX-License-Identifier: LGPL-3.0-only
"""The same jobs with a healthy API server, one that answers late, one that refuses
a part of all requests with 429 and Retry-After, and one that is away for a while.
Of each: the throughput as a part of what arithmetic allows, requests for each job,
and how long the slowest job took beside the median. All jobs have to succeed, and
nothing may be left."""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import threading
from collections import Counter
from http import HTTPStatus
from typing import Any

from cluster import Failed
from flux_k8s.errors import ApiError
from storm import Notes, Storm, new_parser, quantile

AWAY_AT = 0.4  # of the time that the jobs take otherwise
RETRY_AFTER_S = 1  # asked for with a refusal


class Trouble(Storm):
    then: threading.Timer | None = None  # begins when jobs are submitted

    def submit(self, count: int, dw: str | None) -> None:
        if self.then is not None:
            self.then.start()
        super().submit(count, dw)

    def counts(self) -> Counter[str]:
        """Asked for until the server does not refuse this very question."""
        while True:
            try:
                return super().counts()
            except ApiError as exc:
                if exc.status != HTTPStatus.TOO_MANY_REQUESTS:
                    raise

    def refusals(self) -> tuple[int, int]:
        """How many requests the simulator has refused, and how many came again
        before they had been asked to."""
        state = json.loads(self.cluster.ctl("state"))
        return state["refused"], state["early"]

    def spans(self, count: int) -> list[float]:
        """Seconds from submission to the end of the latest jobs, sorted."""
        request = {
            "max_entries": count,
            "attrs": ["t_submit", "t_inactive"],
            "constraint": {"states": ["inactive"]},
        }
        jobs = self.handle.rpc("job-list.list", request).get()["jobs"]
        return sorted(job["t_inactive"] - job["t_submit"] for job in jobs)

    def answer_s(self, before: dict[str, Any]) -> float:
        """How long answers took since then: the medians of the latest requests,
        weighted by how many there were."""
        verbs = self.status()["agent"]["api"]["latency"]
        counts = {
            verb: numbers["count"] - before.get(verb, {"count": 0})["count"]
            for verb, numbers in verbs.items()
            if verb != "watch"
        }
        total = sum(verbs[verb]["p50"] * number for verb, number in counts.items())
        return total / sum(counts.values())

    def run(self, count: int) -> dict[str, Any]:
        """Run this many jobs. Raises Failed if one fails or leaves a command behind."""
        refused, early = self.refusals()
        answers = self.status()["agent"]["api"]["latency"]
        batch = self.batch(count)
        queue = self.status()["agent"]["api"]["queue"]
        if any(queue.values()):
            raise Failed(f"commands are left in the agent: {queue}")
        took = self.spans(count)
        refused_now, early_now = self.refusals()
        median = statistics.median(took)
        return {
            "jobs": count,
            "clean_s": batch["clean_s"],
            "jobs_per_s": count / batch["clean_s"],
            "requests_per_job": batch["per_job"]["api_requests"],
            "answers_after_s": self.answer_s(answers),
            "agent_cpu_ms_per_job": 1000 * batch["cpu_s"].get("agent", 0.0) / count,
            "median_s": median,
            "slowest_s": took[-1],
            "p99_to_median": quantile(took, 0.99) / median,
            "slowest_to_median": took[-1] / median,
            "refused": refused_now - refused,
            "too_early": early_now - early,
        }

    def with_trouble(self, count: int, *words: str) -> dict[str, Any]:
        """The same with a fault of the API server."""
        self.cluster.ctl("api", *words)
        try:
            return self.run(count)
        finally:
            self.cluster.ctl("api", "--clear")

    def with_absence(self, count: int, after_s: float, away_s: float) -> dict[str, Any]:
        """Run the same jobs while the API server is away once."""
        words = ("api", "--away", str(away_s))
        self.then = threading.Timer(after_s, self.cluster.ctl, words)
        result = {"away_s": away_s, **self.run(count)}
        if result["slowest_s"] < after_s + away_s:
            raise Failed("the jobs were over before the API server went away")
        return result


def unluckiest(jobs: int, requests: int, rate: float) -> int:
    """Expected refusals of the unluckiest of the jobs, if the server refuses a share
    'rate' of all requests."""
    times, left = 0, 1.0  # share of the jobs with this many refusals, or more
    while left * jobs >= 1.0:
        some = math.comb(requests, times) * rate**times
        left -= some * (1.0 - rate) ** (requests - times)
        times += 1
    return times - 1


def ratios(args: argparse.Namespace, result: dict[str, Any]) -> dict[str, float]:
    """Ratios of the figures, which machines of any speed can compare. 1 is ideal."""
    healthy, late, refused, away = (
        result[key] for key in ("healthy", "late answers", "some refused", "away")
    )
    # dws-sim answers slightly later than configured.
    allowed = args.workers / (late["answers_after_s"] * late["requests_per_job"])
    allowed = min(allowed, healthy["jobs_per_s"])
    requests = healthy["requests_per_job"]
    times = unluckiest(args.jobs, round(requests), args.rate)
    refusals_s = times * RETRY_AFTER_S
    return {
        "late_jobs_per_s_allowed": allowed,
        "late_to_allowed": late["jobs_per_s"] / allowed,
        "refused_to_healthy_and_waits": (healthy["clean_s"] + refusals_s)
        / refused["clean_s"],
        "away_to_healthy_and_absence": (healthy["clean_s"] + away["away_s"])
        / away["clean_s"],
        "requests_refused_to_healthy": refused["requests_per_job"] / requests,
        "requests_away_to_healthy": away["requests_per_job"] / requests,
    }


def parse_args() -> argparse.Namespace:
    parser = new_parser("bench/trouble", __doc__)
    add = parser.add_argument
    add("-n", "--jobs", type=int, default=1000, help="submitted together")
    add("--latency", type=float, default=0.1, help="of late answers (s)")
    add("--rate", type=float, default=0.05, help="this part is refused")
    add("--away", type=float, default=20.0, help="seconds, as 300")
    add("--workers", type=int, default=16, help="of the agent")
    return parser.parse_args()


def main() -> int:
    args = parse_args()
    trouble = Trouble(args)
    notes = Notes(args.json)
    note = notes.note
    with trouble.running():
        notes.begin(trouble)
        count = args.jobs
        note("healthy", trouble.run(count))
        late = ("--slow", str(args.latency))
        note("late answers", trouble.with_trouble(count, *late))
        refused = ("--status", "429", "--rate", str(args.rate))
        refused += ("--retry-after", str(RETRY_AFTER_S))
        note("some refused", trouble.with_trouble(count, *refused))
        after_s = AWAY_AT * notes["healthy"]["clean_s"]
        note("away", trouble.with_absence(count, after_s, args.away))
    note("ratios", ratios(args, notes))
    notes.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
