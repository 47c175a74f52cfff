# The resource graph held against graphs that were made by others for the same
# machines, where these samples are at hand (DWS_SAMPLES, or beside the checkout).
# SPDX-License-Identifier: LGPL-3.0-only
"""Same vertices and edges as the sample graphs, and a vertex for each rabbit."""

import json
import os
import pathlib
import tempfile

import pytest
from flux_k8s import dws

TOP = pathlib.Path(__file__).resolve().parents[2]
SAMPLES = pathlib.Path(
    os.environ.get("DWS_SAMPLES", TOP.parent / "shared" / "data" / "samples")
)
FOLDER = SAMPLES / "dws2jgf"
GRAPHS = sorted(FOLDER.glob("expected-*.jgf"))

pytestmark = pytest.mark.skipif(not GRAPHS, reason=f"no samples in {FOLDER}")


def parts(graph):
    """Vertices by path with what a scheduler reads of them, and edges."""
    metadata = {node["id"]: node["metadata"] for node in graph["nodes"]}
    paths = {key: data["paths"]["containment"] for key, data in metadata.items()}
    vertices = {
        paths[key]: (
            data["type"],
            data.get("size", 1),
            data.get("unit", ""),
            data.get("rank", -1),
            data.get("status", 0),
            json.dumps(data.get("properties") or {}, sort_keys=True),
        )
        for key, data in metadata.items()
    }
    edges = sorted((paths[e["source"]], paths[e["target"]]) for e in graph["edges"])
    return vertices, edges


def add_rabbits(vertices, edges):
    """The vertex that each chassis has in our graphs alone, without storage_nodes."""
    for chassis in [v for v in vertices if vertices[v][0] == "chassis"]:
        vertices[f"{chassis}/rabbit"] = ("rabbit", 1, "", -1, 0, "{}")
        edges.append((chassis, f"{chassis}/rabbit"))
    edges.sort()


@pytest.mark.parametrize("path", GRAPHS, ids=lambda path: path.stem)
def test_same_graph(path):
    wanted = json.loads(path.read_text())
    mapping = json.loads((FOLDER / "rabbits.json").read_text())
    resource_set = {k: v for k, v in wanted.items() if k != "scheduling"}
    vertices, edges = parts(wanted["scheduling"]["graph"])
    add_rabbits(vertices, edges)
    root = min(vertices, key=len).strip("/")
    with tempfile.TemporaryFile() as out:
        dws.write_jgf(resource_set, mapping, out.fileno(), root, validate=False)
        out.seek(0)
        ours = json.load(out)
    got_vertices, got_edges = parts(ours["graph"])
    assert got_vertices == vertices
    assert got_edges == edges
