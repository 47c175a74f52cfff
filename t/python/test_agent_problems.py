# Log lines that cannot become a flood, and the agent's numbers.
# SPDX-License-Identifier: LGPL-3.0-only
import logging

import pytest
from flux_k8s.problems import REMIND_FIRST_S, Problems
from flux_k8s.stats import Stats, quantile


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def problems(caplog):
    clock = Clock()
    made = Problems(logging.getLogger("flux_k8s.test"), clock)
    return made, clock, lambda: [r.getMessage() for r in caplog.records]


def test_a_problem_is_one_line_whoever_has_it(problems):
    made, _, lines = problems
    for sufferer in range(10_000):
        made.note("HTTP 503", sufferer, f"workflow {sufferer}: no")
    assert lines() == ["workflow 0: no (will be repeated)"]
    for sufferer in range(10_000):
        made.clear(sufferer)
    assert lines()[1:] == ["HTTP 503: over after 10000 failures"]


def test_it_is_mentioned_again_at_growing_intervals(problems):
    made, clock, lines = problems
    for _ in range(24 * 60):
        made.note("HTTP 503", "w", "no")
        clock.now += 60.0
    # a day: 1 + at 1, 3, 7, 15, 31, 63 minutes, then hourly
    assert len(lines()) == 1 + 6 + 22
    assert "times by now" in lines()[1]
    assert clock.now > REMIND_FIRST_S


def test_another_problem_is_another_line(problems):
    made, _, lines = problems
    made.note("HTTP 503", "w", "unavailable")
    made.note("HTTP 500", "w", "broken")
    made.clear("w")
    made.clear("never heard of")
    assert lines() == [
        "unavailable (will be repeated)",
        "HTTP 503: over after 1 failures",
        "broken (will be repeated)",
        "HTTP 500: over after 1 failures",
    ]


def test_quantiles():
    ordered = [float(i) for i in range(1, 101)]
    assert quantile(ordered, 0.5) == 50.0
    assert quantile(ordered, 0.99) == 99.0
    assert quantile([7.0], 0.5) == quantile([7.0], 0.99) == 7.0


def test_summary():
    stats = Stats()
    for i in range(100):
        stats.request("get", "workflows", 200, (i + 1) / 100)
    stats.request("patch", "workflows", 503, 0.5)
    stats.request("patch", "workflows", 0, 5.0)
    stats.retry(503)
    summary = stats.summary()
    assert summary["requests"] == 102
    assert summary["errors"] == {"503": 1, "0": 1}
    assert summary["retries"] == 1
    assert summary["latency"]["get"] == {
        "count": 100,
        "p50": 0.5,
        "p90": 0.9,
        "p99": 0.99,
    }
