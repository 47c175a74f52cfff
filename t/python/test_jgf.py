# SPDX-License-Identifier: LGPL-3.0-only
#
# The resource graph through Python, held against a plain construction of the
# same tree.
"""Tests of flux_k8s.dws.write_jgf()."""

import errno
import json
import os
import tempfile

import pytest
from flux_k8s import dws
from hypothesis import given, settings
from hypothesis import strategies as st

GIB = 1 << 30


def write(R, mapping, **kwargs):
    with tempfile.TemporaryFile() as out:
        count = dws.write_jgf(R, mapping, out.fileno(), **kwargs)
        out.seek(0)
        return count, out.read().decode()


def make_R(hosts, cores, first_rank=0):
    last = first_rank + len(hosts) - 1
    return {
        "version": 1,
        "execution": {
            "R_lite": [
                {
                    "rank": f"{first_rank}-{last}" if len(hosts) > 1 else str(last),
                    "children": {"core": f"0-{cores - 1}" if cores > 1 else "0"},
                }
            ],
            "nodelist": hosts,
        },
    }


def paths(rabbits, hosts, cores, chunks):
    """Path of each vertex to that of its parent."""
    result = {"/c": None}
    near = set()
    for index, members in enumerate(rabbits.values()):
        chassis = f"/c/chassis{index}"
        result[chassis] = "/c"
        result.update({f"{chassis}/ssd{n}": chassis for n in range(chunks)})
        result[f"{chassis}/rabbit"] = chassis
        near.update(members)
        for host in members:
            if host in hosts:
                result[f"{chassis}/{host}"] = chassis
    result.update({f"/c/{host}": "/c" for host in hosts if host not in near})
    for node in [p for p in result if p.rpartition("/")[2] in hosts]:
        result.update({f"{node}/core{n}": node for n in range(cores)})
    return result


@settings(max_examples=100)
@given(
    st.lists(st.integers(0, 4), max_size=5),
    st.integers(0, 3),
    st.integers(1, 3),
    st.integers(1, 4),
    st.integers(0, 100),
)
def test_graph_is_the_tree(sizes, others, cores, chunks, first_rank):
    rabbits = {}
    hosts = []
    for index, size in enumerate(sizes):
        members = [f"n{len(hosts) + i}" for i in range(size)]
        rabbits[f"r{index}"] = members
        hosts += members
    hosts += [f"x{i}" for i in range(others)]
    if not hosts:
        return
    mapping = {
        "computes": {h: r for r, members in rabbits.items() for h in members},
        "rabbits": {
            r: {"capacity": 100 * GIB, "hostlist": ",".join(members)}
            for r, members in rabbits.items()
        },
    }
    R = make_R(hosts, cores, first_rank)
    count, text = write(R, mapping, cluster="c", chunks=chunks)
    graph = json.loads(text)["graph"]
    names = {v["id"]: v["metadata"]["paths"]["containment"] for v in graph["nodes"]}
    parents = {names[e["target"]]: names[e["source"]] for e in graph["edges"]}
    parents["/c"] = None
    assert parents == paths(rabbits, hosts, cores, chunks)
    assert count == len(names) == len(graph["edges"]) + 1
    ranks = {
        v["metadata"]["name"]: v["metadata"]["rank"]
        for v in graph["nodes"]
        if v["metadata"]["type"] == "node"
    }
    assert ranks == {host: first_rank + i for i, host in enumerate(hosts)}
    assert all(
        v["metadata"]["size"] == 100 // chunks and v["metadata"]["status"] == 1
        for v in graph["nodes"]
        if v["metadata"]["type"] == "ssd"
    )


MAPPING = {
    "computes": {"a1": "r1"},
    "rabbits": {"r1": {"capacity": GIB, "hostlist": "a1"}},
}


def test_R_around_the_graph():
    R = make_R(["a1"], 1)
    old = dws.Raw(json.dumps({"scheduling": {"old": "é"}, **R, "x": "é"}).encode())
    raw = dws.Raw(json.dumps(MAPPING).encode())
    count, text = write(old, raw, cluster="c", whole=True)
    assert count == 1 + 1 + 36 + 1 + 2
    result = json.loads(text)
    assert list(result["scheduling"]) == ["graph"]
    assert len(result.pop("scheduling")["graph"]["nodes"]) == count
    assert result == {**R, "x": "é"}


def test_nul_does_not_end_the_text():
    with pytest.raises(ValueError, match="NUL"):
        write(make_R(["a1"], 1), dws.Raw(b"{}\0{}"), cluster="c")


def test_nothing_is_written_for_bad_input():
    with tempfile.TemporaryFile() as out:
        with pytest.raises(ValueError, match="not in R: a1"):
            dws.write_jgf(
                make_R(["b1"], 1), MAPPING, out.fileno(), cluster="c", whole=True
            )
        assert os.fstat(out.fileno()).st_size == 0


def test_failure_to_write_is_an_oserror():
    reader, writer = os.pipe()
    os.close(reader)
    try:
        with pytest.raises(OSError) as info:
            dws.write_jgf(make_R(["a1"], 1), MAPPING, writer, cluster="c")
        assert info.value.errno == errno.EPIPE
    finally:
        os.close(writer)
