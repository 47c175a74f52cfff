# SPDX-License-Identifier: LGPL-3.0-only
"""Reasons why a job without nodes waits: the arithmetic of flux_rabbit.pending."""

from __future__ import annotations

import json
from typing import Any

import pytest
from flux_k8s import dws
from flux_rabbit import pending, show
from flux_rabbit.foresee import GIB
from flux_rabbit.pending import Need, Place

ALL = {
    "version": 1,
    "execution": {
        "R_lite": [{"rank": "0-3", "children": {"core": "0-7"}}],
        "nodelist": ["node[0-3]"],
    },
}
RABBITS = [
    {"name": "rabbit0", "state": "Ready", "free": 500 * GIB, "nodes": "node[0-1]"},
    {"name": "rabbit1", "state": "Ready", "free": 150 * GIB, "nodes": "node2"},
]
HOSTS = {"node0", "node1", "node2", "node3"}


def part(ranks: str, cores: str) -> dict[str, Any]:
    """R with these cores on the nodes of ALL with these ranks."""
    hosts = [f"node[{ranks}]"] if "-" in ranks or "," in ranks else [f"node{ranks}"]
    lite = [{"rank": ranks, "children": {"core": cores}}]
    return {"version": 1, "execution": {"R_lite": lite, "nodelist": hosts}}


def resources(groups: int, kind: str = "slot", **node: Any) -> list[Any]:
    """`groups` times a node with 100 GiB."""
    task = {"type": "slot", "count": 2, "with": [{"type": "core", "count": 3}]}
    vertex = {"type": "node", "count": 1, "with": [task]} | node
    ssd = {"type": "ssd", "count": 100, "exclusive": True}
    return [{"type": kind, "count": groups, "with": [vertex, ssd]}]


def test_need_of_nodes_with_storage() -> None:
    assert pending.need_of(resources(4)) == Need(4, 1, 100, False, 6)
    assert pending.need_of(resources(4, exclusive=True)) == Need(4, 1, 100, False, 0)
    assert pending.need_of(resources(2, "chassis", count=8)) == Need(2, 8, 100, True, 6)


def test_need_of_nodes_without_storage() -> None:
    node = {"type": "node", "count": 3, "exclusive": True}
    assert pending.need_of([node]) == Need(3, 1, 0, False, 0)


def test_need_of_cores_alone_cannot_be_told() -> None:
    slot = {"type": "slot", "count": 3, "with": [{"type": "core", "count": 1}]}
    assert pending.need_of([slot]) is None


def where(groups: int, taken: dict[str, Any] | None = None, **node: Any) -> Any:
    """By rabbit, with node3 next to none, and node1 down."""
    status = {"all": ALL, "allocated": taken, "down": part("1", "0-7")}
    found = dws.shortage(status, resources(groups, **node), None, RABBITS)
    assert found is not None
    return {place["rabbit"]: Place(**place) for place in found["places"]}


def test_nodes_are_counted_where_they_are() -> None:
    places = where(1, exclusive=True)
    assert places["rabbit0"] == Place("rabbit0", "Ready", 500 * GIB, free=1, down=1)
    assert places["rabbit1"] == Place("rabbit1", "Ready", 150 * GIB, free=1)
    assert places[""] == Place("", free=1)


@pytest.mark.parametrize(("cores", "free"), [(3, 1), (4, 0), (0, 0)])
def test_a_node_in_use_is_free_for_who_takes_the_rest(cores: int, free: int) -> None:
    task = {"type": "slot", "count": 2, "with": [{"type": "core", "count": cores}]}
    node = {"with": [task]} if cores else {"exclusive": True}
    places = where(1, part("2", "0-1"), **node)
    assert (places["rabbit1"].free, places["rabbit1"].busy) == (free, 1 - free)


def test_the_hosts_of_cores_in_use_are_found_by_their_ranks() -> None:
    lite = [
        {"rank": "0,3", "children": {"core": "0"}},
        {"rank": "2", "children": {"core": "0-7"}},
    ]
    taken = {"execution": {"R_lite": lite, "nodelist": ["node[0,2-3]"]}}
    places = where(1, {"version": 1, **taken})
    assert (places["rabbit0"].free, places["rabbit1"].free, places[""].free) == (
        *(1, 0, 1),
    )


def test_only_nodes_that_the_job_may_have_are_counted() -> None:
    status = {"all": ALL, "allocated": part("0", "0-7"), "down": None}
    only = {"hostlist": ["node0"]}
    found = dws.shortage(status, resources(1), only, RABBITS)
    assert found is not None and found["text"] == (
        "nodes: it needs 1, 0 of 1 that it may have are free (1 busy)"
    )
    unreadable = {"xor": []}
    found = dws.shortage(status, resources(1), unreadable, RABBITS)
    assert found is not None and found["text"].startswith("its turn:")


def test_a_node_without_a_working_rabbit_is_not_free() -> None:
    status = {"all": ALL, "allocated": None, "down": part("1", "0-7")}
    found = dws.shortage(status, resources(3), None, RABBITS, "node[0-1]")
    assert found is not None and found["text"] == (
        "nodes to come up: it needs 3, and 2 of 4 are up and have a working rabbit"
    )
    places = {place["rabbit"]: Place(**place) for place in found["places"]}
    assert places["rabbit0"] == Place("rabbit0", "Ready", 500 * GIB, broken=1, down=1)


def test_what_would_have_to_change() -> None:
    need = Need(3, 1, 100, False, 0)
    assert pending.reasons(
        need,
        [
            Place("rabbit0", space=50 * GIB, free=0, busy=2),
            Place("rabbit1", space=150 * GIB, free=4),
            Place("rabbit2", "Failed", space=900 * GIB, free=4),
            Place("", free=2, down=1),
        ],
    ) == [
        "rabbit1: 4 of 4 nodes and 150GiB free, fits 1; lacks 50.0GiB",
        "rabbit0: 0 of 2 nodes and 50.0GiB free, fits 0; lacks 1 node, 50.0GiB",
        "rabbit2: 4 of 4 nodes and 900GiB free, fits 0; is Failed",
        "no rabbit: 2 of 3 nodes free, no storage",
    ]


def test_a_job_without_storage_of_its_own_needs_nodes_alone() -> None:
    need = Need(3, 1, 0, False, 0)
    places = [Place("rabbit0", "Offline", free=1, busy=3), Place("", free=1)]
    assert pending.reasons(need, places) == [
        "rabbit0: 1 of 4 nodes free, fits 1; lacks 1 node",
        "no rabbit: 1 of 1 nodes free, fits 1; lacks 1 node",
    ]


def test_the_screen_has_not_each_of_many_rabbits() -> None:
    need = Need(1, 1, 100, False, 0)
    free = (n % 2 for n in range(696))
    places = [Place(f"rabbit{n}", space=GIB, free=f) for n, f in enumerate(free)]
    places[347] = Place("rabbit347", space=200 * GIB, free=1)
    lines = show.shortened(pending.reasons(need, places))
    assert lines[0].startswith("rabbit347: 1 of 1 nodes and 200GiB free, fits 1")
    assert lines[20:] == ["and 676 more (--json)"]
    assert show.shortened(["a"]) == ["a"]


class Answer:
    def __init__(self, value: Any) -> None:
        self._value = value

    def get(self) -> Any:
        return self._value


class Flux:
    """Answers what an Explainer asks, and counts that."""

    def __init__(self, stopped: bool = False) -> None:
        self.asked: list[str] = []
        self._stopped = stopped

    def rpc(self, topic: str, payload: Any = None) -> Answer:
        self.asked.append(topic)
        return {
            "dws.status": Answer({"rabbits": RABBITS}),
            "resource.sched-status": Answer(
                {"all": ALL, "allocated": None, "down": None}
            ),
            "job-list.list-id": Answer({"job": {"urgency": 16}}),
        }[topic]

    def call(self, topic: str, payload: Any) -> Any:
        self.asked.append(topic)
        return {"start": not self._stopped, "stop_reason": "service"}


class Lookup:
    """Stands for the look-up of jobs: job N requests N nodes."""

    def __init__(self, handle: Flux) -> None:
        pass

    def ask(self, number: int, *keys: str, current: bool = False) -> None:
        pass

    def get(self, number: int, key: str) -> str:
        return json.dumps({"resources": resources(number % 100)})


def queued(*numbers: int) -> list[dict[str, Any]]:
    return [{"id": number, "waiting": "", "note": "x"} for number in numbers]


@pytest.fixture
def lookups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending.rpc, "Lookup", Lookup)


@pytest.mark.usefixtures("lookups")
def test_jobs_that_ask_for_the_same_are_looked_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = []
    shortage = dws.shortage
    monkeypatch.setattr(
        dws, "shortage", lambda *args: looks.append(1) or shortage(*args)
    )
    flux = Flux()
    jobs = queued(9, 109, 209, 8)
    pending.Reasons(flux, most=10).note(jobs)
    assert all("nodes to come up: it needs" in job["waiting"] for job in jobs)
    assert len(looks) == 2
    assert flux.asked.count("job-manager.queue-status") == 1
    assert flux.asked.count("dws.status") == 1


@pytest.mark.usefixtures("lookups")
def test_so_many_are_told_in_all_pages_together() -> None:
    reasons = pending.Reasons(Flux(stopped=True), most=3)
    first, second = queued(1, 2), queued(3, 4)
    reasons.note(first)
    reasons.note(second)
    told = "its queue, which is stopped (service)"
    assert [job["waiting"] for job in first + second] == [told, told, told, ""]


@pytest.mark.usefixtures("lookups")
def test_none_is_told_when_the_time_is_over() -> None:
    flux = Flux()
    jobs = queued(1)
    pending.Reasons(flux, most=3, most_s=-1.0).note(jobs)
    assert jobs == queued(1) and not flux.asked
