# SPDX-License-Identifier: LGPL-3.0-only
"""What a job waits for that has no nodes yet: the arithmetic of flux_rabbit.pending."""

from __future__ import annotations

import json
from typing import Any

import pytest
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
    """An R that has those cores of the nodes of ALL with those ranks."""
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


def where(need: Need, taken: dict[str, Any] | None = None) -> dict[str, Place]:
    """By rabbit, with node3 next to none, and node1 down."""
    status = {"all": ALL, "allocated": taken, "down": part("1", "0-7")}
    places = pending.places(need, status, HOSTS, RABBITS)
    return {place.rabbit: place for place in places}


def test_nodes_are_counted_where_they_are() -> None:
    places = where(Need(1, 1, 100, False, 0))
    assert places["rabbit0"] == Place("rabbit0", "Ready", 500 * GIB, free=1, down=1)
    assert places["rabbit1"] == Place("rabbit1", "Ready", 150 * GIB, free=1)
    assert places[""] == Place("", free=1)


@pytest.mark.parametrize(("cores", "free"), [(6, 1), (7, 0), (0, 0)])
def test_a_node_in_use_is_free_for_who_takes_the_rest(cores: int, free: int) -> None:
    places = where(Need(1, 1, 100, False, cores), part("2", "0-1"))
    assert (places["rabbit1"].free, places["rabbit1"].busy) == (free, 1 - free)


def told(need: Need, *places: Place, limited: bool = False) -> str:
    return pending.told(need, list(places), limited)


def test_nodes_that_are_busy_or_down_are_told_apart() -> None:
    need = Need(3, 1, 100, False, 0)
    rabbit = Place("rabbit0", space=GIB << 10, free=1, busy=2, down=1)
    assert told(need, rabbit) == (
        "nodes: it needs 3, 1 of 4 are free (2 busy, 1 down or drained)"
    )
    rabbit = Place("rabbit0", space=GIB << 10, free=1, busy=1, down=2)
    assert told(need, rabbit, limited=True) == (
        "nodes to come up: it needs 3, and 2 of 4 that it may have are up"
    )


def test_space_counts_only_next_to_free_nodes() -> None:
    need = Need(2, 1, 100, False, 0)
    full = Place("rabbit0", space=99 * GIB, free=4)
    roomy = Place("rabbit1", space=500 * GIB, free=0, busy=4)
    none = Place("", free=4)
    text = "space: it needs 2 nodes with 100 GiB of the rabbit next to each"
    assert told(need, full, roomy, none) == f"{text}, and there is room for 0"
    roomy.free = 1
    assert told(need, full, roomy, none) == f"{text}, and there is room for 1"
    roomy.free = 2
    assert told(need, full, roomy, none).startswith("its turn:")
    roomy.state = "Offline"
    assert told(need, full, roomy, none) == f"{text}, and there is room for 0"


def test_a_chassis_is_given_once() -> None:
    need = Need(2, 2, 100, True, 0)
    one = Place("rabbit0", space=900 * GIB, free=8)
    assert told(need, one, Place("rabbit1", space=GIB, free=2)) == (
        "space: it needs 4 nodes with 100 GiB of the rabbit next to each 2, "
        "and there is room for 2"
    )


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
    assert told(need, *places) == "nodes: it needs 3, 2 of 5 are free (3 busy)"
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
    """Of job N is known that it asks for N nodes."""

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
    places = pending.places
    monkeypatch.setattr(
        pending, "places", lambda *args: looks.append(1) or places(*args)
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
