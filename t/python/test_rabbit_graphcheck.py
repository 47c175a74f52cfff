# Verdicts of flux rabbit selftest on resource graphs.
# SPDX-License-Identifier: LGPL-3.0-only
from typing import Any

import pytest
from flux_rabbit import graphcheck

GIB = 1 << 30
RANKS = {"n0": 0, "n1": 1, "r0": 2, "login": 3}
MAPPING: dict[str, Any] = {
    "computes": {"n0": "r0", "n1": "r0"},
    "rabbits": {"r0": {"capacity": 41 * GIB, "hostlist": "n[0-1]"}},
}


def vertex(kind: str, path: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"type": kind, "paths": {"containment": path}, **more}}


def chassis(rabbit: str = "r0", count: int = 2) -> dict[str, Any]:
    properties = {"rabbit": rabbit, "ssdcount": str(count)}
    return vertex("chassis", "/c/chassis0", properties=properties)


def good() -> list[dict[str, Any]]:
    return [
        vertex("cluster", "/c"),
        chassis(),
        vertex("ssd", "/c/chassis0/ssd0", size=20),
        vertex("ssd", "/c/chassis0/ssd1", size=20),
        vertex("node", "/c/chassis0/n0", rank=0),
        vertex("core", "/c/chassis0/n0/core0", rank=0),
        vertex("node", "/c/chassis0/n1", rank=1),
        vertex("storage_node", "/c/chassis0/r0", rank=2),
        vertex("node", "/c/login", rank=3, properties=["login"]),
    ]


def wrong(vertices: list[dict[str, Any]], *excluded: str) -> list[str]:
    graph = graphcheck.Graph(vertices)
    return graphcheck.wrong_rabbits(graph, MAPPING) + graphcheck.wrong_nodes(
        graph, MAPPING, RANKS, set(excluded)
    )


def test_ranks_of_one_entry_lie_between_those_of_another():
    lite = [{"rank": "0,2", "children": {}}, {"rank": "1", "children": {}}]
    execution = {"R_lite": lite, "nodelist": ["a", "b[7-8]"]}
    assert graphcheck.ranks_by_host(execution) == {"a": 0, "b7": 1, "b8": 2}


def test_good():
    assert wrong(good()) == []


@pytest.mark.parametrize(
    "at,other,text",
    [
        (1, chassis(count=3), "r0 has 2 ssds and says that it has 3"),
        (1, chassis(rabbit="r9"), "r0 of the mapping not in the graph"),
        (1, chassis(rabbit="r9"), "r9 of the graph not in the mapping"),
        (1, chassis(rabbit="r9"), "n0 is next to r9 in the graph, r0 in the mapping"),
        (
            3,
            vertex("ssd", "/c/chassis0/ssd1", size=10),
            "r0 has ssds of 30.0GiB together, 41.0GiB in the mapping",
        ),
        (
            4,
            vertex("node", "/c/n0", rank=0),
            "n0 is next to no rabbit in the graph, r0 in the mapping",
        ),
        (
            6,
            vertex("node", "/c/chassis0/n1", rank=7),
            "n1 has other ranks in R: n1 is 1 there, 7 in the graph",
        ),
        (7, vertex("core", "/c/x"), "r0 of R is not in the graph"),
        (8, vertex("node", "/c/other", rank=3), "other of the graph is not in R"),
    ],
)
def test_wrong(at, other, text):
    vertices = good()
    vertices[at] = other
    assert text in wrong(vertices)


def test_nodes_that_are_excluded():
    assert wrong(good(), "login") == ["login of the graph is in resource.exclude"]
    assert wrong(good()[:-1], "login") == []


def test_no_ssds():
    vertices = [v for v in good() if v["metadata"]["type"] != "ssd"]
    vertices[1] = chassis(count=0)
    assert wrong(vertices) == ["r0 has no ssds"]


@pytest.mark.parametrize("vertices", [[{}], [{"metadata": 7}], [chassis(count="x")]])
def test_no_graph_of_ours(vertices):
    with pytest.raises((AttributeError, KeyError, TypeError, ValueError)):
        graphcheck.Graph(vertices)
