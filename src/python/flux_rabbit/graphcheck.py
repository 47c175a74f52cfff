# SPDX-License-Identifier: LGPL-3.0-only
#
# Checks of selftest for Fluxion's resource graph: flux dws2jgf builds the graph once
# from the mapping and R, so it can disagree with their present contents.
"""The resource graph, against the mapping, Flux and Kubernetes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from flux_rabbit.checks import (
    MATCH_FORMATS,
    Advice,
    Object,
    Site,
    Skip,
    Wrong,
    check,
    modules,
)
from flux_rabbit.units import Size

FLUXION = "sched-fluxion-resource"
GIB = 1 << 30
# Faults that one verdict names; the rest is "and more".
NAMED = 4
ANEW = (
    "make it anew with flux dws2jgf, put it where resource.path or resource.scheduling "
    "says, and start Flux again"
)


@dataclass
class Chassis:
    """A rabbit in the graph."""

    rabbit: str
    promised: int  # ssds by its properties
    ssds: list[int] = field(default_factory=list)  # GiB
    nodes: dict[str, int] = field(default_factory=dict)  # ranks


class Graph:
    """The rabbits and nodes of a graph."""

    def __init__(self, vertices: list[Object]) -> None:
        """Raises AttributeError, KeyError, TypeError or ValueError for a graph that
        flux dws2jgf did not write."""
        self.rabbits: dict[str, Chassis] = {}
        self.others: dict[str, int] = {}
        chassis: dict[str, Chassis] = {}
        for vertex in vertices:
            data = vertex["metadata"]
            properties = data.get("properties") or {}
            if isinstance(properties, dict) and "rabbit" in properties:
                name = str(properties["rabbit"])
                found = Chassis(name, int(properties.get("ssdcount", 0)))
                self.rabbits[name] = chassis[data["paths"]["containment"]] = found
        for vertex in vertices:
            data = vertex["metadata"]
            if data["type"] in ("ssd", "node", "storage_node"):
                parent, _, name = data["paths"]["containment"].rpartition("/")
                self._add(chassis.get(parent), data, name)

    def _add(self, chassis: Chassis | None, data: Object, name: str) -> None:
        if data["type"] != "ssd":
            nodes = chassis.nodes if chassis else self.others
            nodes[name] = int(data.get("rank", -1))
        elif chassis:
            chassis.ssds.append(int(data.get("size", 1)))

    @property
    def nodes(self) -> dict[str, int]:
        """The rank of each node."""
        found = dict(self.others)
        for chassis in self.rabbits.values():
            found.update(chassis.nodes)
        return found


def _names(names: set[str]) -> str:
    from flux.hostlist import Hostlist

    return str(Hostlist(",".join(sorted(names))).encode())


def wrong_rabbits(graph: Graph, mapping: Object) -> list[str]:
    """Rabbits in only one of graph and mapping, and rabbits whose sizes differ."""
    wrong = []
    mapped = mapping["rabbits"]
    if missing := set(mapped) - set(graph.rabbits):
        wrong.append(f"{_names(missing)} of the mapping not in the graph")
    if surplus := set(graph.rabbits) - set(mapped):
        wrong.append(f"{_names(surplus)} of the graph not in the mapping")
    for name in sorted(set(mapped) & set(graph.rabbits)):
        wrong += _wrong_size(graph.rabbits[name], int(mapped[name].get("capacity", 0)))
    return wrong


def _wrong_size(chassis: Chassis, capacity: int) -> list[str]:
    count = len(chassis.ssds)
    if count != chassis.promised:
        return [
            f"{chassis.rabbit} has {count} ssds and says that it has {chassis.promised}"
        ]
    if not count:
        return [f"{chassis.rabbit} has no ssds"]
    if set(chassis.ssds) != {capacity // count // GIB}:
        total = sum(chassis.ssds) * GIB
        return [
            f"{chassis.rabbit} has ssds of {Size(total)} together, "
            f"{Size(capacity)} in the mapping"
        ]
    return []


def wrong_nodes(
    graph: Graph, mapping: Object, ranks: dict[str, int], excluded: set[str]
) -> list[str]:
    """Nodes in only one of graph and R, nodes whose ranks differ between these, and
    nodes whose rabbits differ between graph and mapping."""
    wrong = []
    there = graph.nodes
    if surplus := set(there) & excluded:
        wrong.append(f"{_names(surplus)} of the graph is in resource.exclude")
    if foreign := set(there) - set(ranks):
        wrong.append(f"{_names(foreign)} of the graph is not in R")
    if missing := set(ranks) - excluded - set(there):
        wrong.append(f"{_names(missing)} of R is not in the graph")
    if moved := {h for h, rank in there.items() if ranks.get(h, rank) != rank}:
        host = min(moved)
        wrong.append(
            f"{_names(moved)} has other ranks in R: {host} is {ranks[host]} there, "
            f"{there[host]} in the graph"
        )
    computes = mapping["computes"]
    beside = {h: c.rabbit for c in graph.rabbits.values() for h in c.nodes}
    for host in sorted(set(there) & set(computes)):
        if beside.get(host) != computes[host]:
            wrong.append(
                f"{host} is next to {beside.get(host, 'no rabbit')} in the graph, "
                f"{computes[host]} in the mapping"
            )
    return wrong


def _few(wrong: list[str]) -> str:
    return "; ".join(wrong[:NAMED]) + ("; and more" if len(wrong) > NAMED else "")


def _mapping(site: Site) -> Object:
    from flux_k8s import rabbitmap

    try:
        return rabbitmap.load(str(site.table.get("mapping", "")))
    except rabbitmap.MappingError:
        raise Skip("without a mapping") from None


def _vertices(site: Site) -> list[Object]:
    """The vertices of the graph that Flux passes to Fluxion. Raises Wrong."""
    import flux
    import flux.kvs

    scheduling: Any = flux.kvs.get(flux.Flux(), "resource.R").get("scheduling")
    path = (site.config.get("resource") or {}).get("scheduling")
    try:
        if scheduling is None and path:
            with open(path, "rb") as stream:
                scheduling = json.load(stream)
        vertices = scheduling["graph"]["nodes"]
    except (OSError, ValueError) as exc:
        raise Wrong(f"resource.scheduling: {exc}", ANEW) from None
    except (KeyError, TypeError):
        raise Wrong("R has no graph", ANEW) from None
    return list(vertices)


def ranks_by_host(execution: dict[str, Any]) -> dict[str, int]:
    """The ranks of the hosts of an R, whose nodelist is in rank order (RFC 20)."""
    from flux.hostlist import Hostlist
    from flux.idset import IDset

    ids: list[int] = []
    for entry in execution["R_lite"]:
        ids += list(IDset(str(entry["rank"])))
    return dict(zip(Hostlist(",".join(execution["nodelist"])), sorted(ids)))


def _ranks(site: Site) -> tuple[dict[str, int], set[str]]:
    """The ranks of all hosts, and the hosts that are excluded."""
    from flux.idset import IDset

    answer = site.handle.rpc("resource.status", {}, nodeid=0).get()
    ranks = ranks_by_host(answer["R"]["execution"])
    out = set(IDset(answer.get("exclude") or ""))
    return ranks, {host for host, rank in ranks.items() if rank in out}


@check("resource graph")
def _graph(site: Site) -> str:
    if FLUXION not in modules(site):
        return "none is needed: Fluxion is not loaded"
    params = site.handle.call(f"{FLUXION}.params").get("params") or {}
    format = params.get("match-format")
    if format is not None and format not in MATCH_FORMATS:
        raise Wrong(
            f'Fluxion was loaded with match-format "{format}"',
            f"with rabbits it has to be {' or '.join(MATCH_FORMATS)}: set it in "
            f"[{FLUXION}], and load Fluxion again",
        )
    mapping = _mapping(site)
    try:
        graph = Graph(_vertices(site))
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        raise Wrong(f"it is none of flux dws2jgf: {exc!r}", ANEW) from None
    ranks, excluded = _ranks(site)
    wrong = wrong_rabbits(graph, mapping)
    wrong += wrong_nodes(graph, mapping, ranks, excluded)
    if wrong:
        raise Wrong(_few(wrong), ANEW)
    return f"{len(graph.rabbits)} rabbits, {len(graph.nodes)} nodes"


@check("sizes of rabbits")
def _sizes(site: Site) -> str | Advice:
    from flux_k8s import rabbitmap
    from flux_k8s.errors import ApiError

    if site.kube is None:
        raise Skip("without a kubeconfig or an API server")
    mapped = _mapping(site)["rabbits"]
    try:
        system = site.kube.get("systemconfigurations", "default", "default")
        real = rabbitmap.build(system, site.kube.list_all("storages")[0])["rabbits"]
    except (ApiError, rabbitmap.MappingError) as exc:
        raise Wrong(f"cannot be read: {exc}") from None
    less = [
        f"{name} has {Size(real[name]['capacity'])}, "
        f"{Size(mapped[name]['capacity'])} in the mapping"
        for name in sorted(set(mapped) & set(real))
        if real[name]["capacity"] < mapped[name]["capacity"]
    ]
    if less:
        return Advice(
            _few(less),
            "jobs are not given what is not there; if no drive is lost, make it anew: "
            "flux rabbitmapping, and with Fluxion the graph: flux dws2jgf",
        )
    return f"no rabbit of {len(mapped)} has less than in the mapping"
