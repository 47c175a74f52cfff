# scripts/lib/held.py: what is computed from eventlogs.
# SPDX-License-Identifier: LGPL-3.0-only
from __future__ import annotations

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "scripts" / "lib"))

import held
from held import Held, Sums, Times


def log(*names: str, status: int = 0) -> list[held.Object]:
    """An eventlog with an event each second."""
    return [
        {"name": name, "timestamp": float(when)}
        | ({"context": {"status": status}} if name == "finish" else {})
        for when, name in enumerate(names)
    ]


RUN = ("submit", "alloc", "prolog-start", "start", "x", "finish", "free", "clean")


def job(jobid: int, alloc: float, free: float, *nodes: str) -> Held:
    return Held(jobid, nodes, Times(alloc, free, alloc, free), "")


def test_times_of_a_job_that_has_run() -> None:
    times = held.times_of(log(*RUN))
    assert times == Times(alloc=1.0, free=6.0, start=3.0, finish=5.0)
    assert (times.held_s, times.computing_s) == (5.0, 2.0)


def test_a_job_that_never_started_has_held_its_nodes_for_nothing() -> None:
    times = held.times_of(log("submit", "alloc", "exception", "free", "clean"))
    assert times and (times.held_s, times.computing_s) == (2.0, 0.0)


def test_a_job_without_nodes_has_no_times() -> None:
    assert held.times_of(log("submit", "clean")) is None


def test_sums_count_nodes() -> None:
    times = Times(alloc=0.0, free=10.0, start=4.0, finish=9.0)
    sums = Sums.of([Held(1, ("a", "b"), times, ""), Held(2, ("c",), times, "")])
    assert sums == Sums(computing=15.0, waiting=15.0)


@pytest.mark.parametrize(
    ("eventlog", "trouble"),
    [
        (log(*RUN), ""),
        (log(*RUN, status=256), "finished with status 256"),
        (log("submit", "alloc"), "not clean"),
        (
            [
                {
                    "name": "exception",
                    "timestamp": 0.0,
                    "context": {"severity": 0, "type": "dws-setup", "note": "no room"},
                }
            ],
            "dws-setup: no room",
        ),
    ],
)
def test_trouble(eventlog: list[held.Object], trouble: str) -> None:
    assert held.trouble_of(eventlog) == trouble


def test_nodes_given_on_are_not_given_twice() -> None:
    assert held.given_twice([job(1, 0, 5, "a", "b"), job(2, 5, 9, "b")]) == []


def test_a_node_given_twice_is_found_behind_a_shorter_job() -> None:
    jobs = [job(1, 0, 9, "a"), job(2, 1, 2, "a"), job(3, 5, 6, "a")]
    assert held.given_twice(jobs) == ["a: 1 and 2", "a: 1 and 3"]
