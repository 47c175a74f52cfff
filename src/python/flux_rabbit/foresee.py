# SPDX-License-Identifier: LGPL-3.0-only
#
# Predict the storage of a job before submission (--dw-check). Sizes that NNF computes
# from its profiles are reported as unknown: NNF computes them for a workflow only, and
# a prediction creates none.
"""Predict the storage of a job."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

from flux_k8s import dws

from flux_rabbit import request, term
from flux_rabbit.units import Size

if TYPE_CHECKING:
    from flux_k8s import shapes

Object = dict[str, Any]

GIB = 1 << 30
STORAGE = ("jobdw", "create_persistent")
_PREFIXES = {"jobdw": "DW_JOB_", "persistentdw": "DW_PERSISTENT_"}
ANYWHERE = "anywhere"  # of rabbit.lustre_placement
_TOKEN = {"user-container-auth", "copy-offload"}


@dataclasses.dataclass
class Room:
    """The scheduler's least reservation: for each of `groups` of `nodes` nodes, `gib`
    of its rabbit. With `chassis` each group has a rabbit of its own."""

    groups: int
    nodes: int
    gib: int
    chassis: bool


def sets_of(directive: shapes.Directive) -> list[Object]:
    """The allocation sets that the directive has with any profile, with their least
    sizes."""
    kind, size = directive["args"].get("type", ""), directive["bytes"]
    if directive["command"] not in STORAGE or not size:
        return []
    if kind == "lustre":
        strategy, kind = "AllocateAcrossServers", "ost"
    else:
        strategy = "AllocatePerCompute"
    return [{"allocationStrategy": strategy, "label": kind, "minimumCapacity": size}]


def variables_of(directive: shapes.Directive) -> list[str]:
    """The environment variables that the directive is sure to add to the job."""
    args = directive["args"]
    result = []
    prefix = _PREFIXES.get(directive["command"])
    if prefix:
        result.append(prefix + args["name"].replace("-", "_"))
    if _TOKEN & set(args.get("requires", "").split(",")):
        result.append("DW_WORKFLOW_TOKEN")
    return result


def unknown_of(directive: shapes.Directive) -> str:
    """The part of the directive's storage that only NNF knows, "" without storage."""
    if directive["command"] not in STORAGE:
        return ""
    profile = directive["args"].get("profile")
    who = f"profile {profile}" if profile else "the default profile"
    if directive["args"].get("type") == "lustre":
        return f"what {who} adds: mdt, mgt, more for ost"
    return f"what {who} adds, as padding"


def breakdown(sets: list[Object]) -> Object:
    """The sets as a DirectiveBreakdown."""
    servers = {"kind": "Servers", "name": "none", "namespace": "default"}
    storage = {"lifetime": "job", "reference": servers, "allocationSets": sets}
    return {"status": {"ready": True, "storage": storage}}


def room(resources: list[Any], before: list[Any]) -> Room:
    """The storage and nodes in `resources`; `before` are those without storage."""
    for top in resources:
        inside = top.get("with", [])
        ssds = [entry["count"] for entry in inside if entry["type"] == "ssd"]
        nodes = [entry["count"] for entry in inside if entry["type"] == "node"]
        if ssds and nodes:
            chassis = top["type"] == "chassis"
            return Room(top["count"], nodes[0], ssds[0], chassis)
    counts = [top["count"] for top in before if top["type"] == "node"]
    nodes_there = counts[0] if counts and isinstance(counts[0], int) else 0
    return Room(nodes_there, 1, 0, False)


def rabbits_needed(need: Room, rabbits: list[Object] | None) -> Object:
    """The number of rabbits with the job's storage, from `least` to `most`. If the
    rabbits are known, also their number (`there`) and how many have room for a group
    now (`roomy`)."""
    if need.gib == 0:
        return {"least": 0, "most": 0}
    most = need.groups
    least = need.groups if need.chassis else 1
    if not rabbits:
        return {"least": least, "most": most}
    largest = max(rabbit["capacity"] for rabbit in rabbits)
    if largest:
        least = max(least, -(-need.groups * need.gib * GIB // largest))
    ready = [rabbit for rabbit in rabbits if rabbit["state"] == "Ready"]
    return {
        "least": least,
        "most": max(least, min(most, len(rabbits))),
        "there": len(rabbits),
        "roomy": sum(rabbit["free"] >= need.gib * GIB for rabbit in ready),
    }


def ask_rabbits() -> list[Object] | None:
    """The rabbits of the instance, None if it cannot be asked."""
    return request.rabbits_there()


def foresee(asked: request.Request) -> Object:
    """The prediction for --dw-check --json.

    Raises ValueError if the job would be refused.
    """
    if asked.sources and asked.judged is None:
        raise ValueError("there is no Flux instance to ask for its presets")
    judged = asked.judged or {"directives": [], "warnings": []}
    directives = judged["directives"]
    before = asked.jobspec.jobspec["resources"]
    rabbits = ask_rabbits() if directives else None
    anywhere = bool(directives) and request.configured("lustre_placement") == ANYWHERE
    total = sum(rabbit["capacity"] for rabbit in rabbits or [])
    if rabbits and asked.rabbits is not None:
        rabbits = [entry for entry in rabbits if entry["name"] in asked.rabbits]
    texts = [directive["text"] for directive in directives]
    sizes = dws.sizes(before, texts)
    resources = dws.apply_breakdowns(
        before,
        [breakdown(sets) for sets in map(sets_of, directives) if sets],
        0,
        request.configured("policy.maximums") if directives else None,
        max((rabbit["capacity"] for rabbit in rabbits or []), default=0),
        anywhere,
        total,
        texts,
    )
    if rabbits is not None:
        # Import late: only jobs with directives need this module.
        from flux_rabbit import feasible

        feasible.check(asked.jobspec, resources, asked.rabbits, rabbits)
    need = room(resources, before)
    nodes = need.groups * need.nodes
    return {
        "directives": [
            {
                "place": asked.place(directive["line"]),
                "text": directive["text"],
                "sets": [
                    {
                        "label": entry["label"],
                        "bytes": entry["minimumCapacity"],
                        "count": nodes
                        if entry["allocationStrategy"] == "AllocatePerCompute"
                        else None,
                    }
                    for entry in sets_of(directive)
                ],
                "variables": variables_of(directive),
                "unknown": unknown_of(directive),
            }
            for directive in directives
        ],
        "warnings": judged["warnings"],
        "where": asked.where,
        "anywhere": anywhere,
        "nodes": nodes,
        "scheduled": {
            "groups": need.groups if need.gib else 0,
            "nodes": need.nodes,
            "gib": need.gib,
        },
        "sizes": sizes,
        "rabbits": rabbits_needed(need, rabbits),
    }


def _storage_lines(entry: Object, anywhere: bool) -> list[str]:
    lines = []
    for part in entry["sets"]:
        size = Size(part["bytes"])
        if part["count"] is None:
            where = "any rabbits" if anywhere else "the rabbits of the job"
            how = f"{size} or more, on {where} together"
        else:
            how = f"{part['count']} x {size} or more, one for each node"
        lines.append(f"{part['label']}: {how}")
    if entry["unknown"]:
        lines.append(f"not known before: {entry['unknown']}")
    lines += [f"in the environment: {name}" for name in entry["variables"]]
    return lines


def _span(rabbits: Object) -> str:
    least, most = rabbits["least"], rabbits["most"]
    return str(least) if least == most else f"{least} to {most}"


def lines(told: Object) -> list[str]:
    """The prediction as lines for people."""
    if not told["directives"]:
        return ["no #DW directives: the job gets no storage of rabbits"]
    result = []
    for entry in told["directives"]:
        at = f"{entry['place']}: " if entry["place"] else ""
        result.append(at + entry["text"])
        result += [f"  {line}" for line in _storage_lines(entry, told["anywhere"])]
    result += [f"warning: {text}" for text in told["warnings"]]
    rabbits, scheduled = told["rabbits"], told["scheduled"]
    places = [told["where"][key] for key in ("rabbits", "near") if key in told["where"]]
    at = f", next to {' and '.join(places)}" if places else ""
    result.append(f"nodes: {told['nodes']}{at}")
    size = told["sizes"]["job"]
    if size["taken"]:
        result.append(
            f"taken: {Size(size['taken'])} or more of rabbits, "
            f"for {Size(size['asked'])} asked for"
        )
    if not scheduled["gib"]:
        return result
    per = "node" if scheduled["nodes"] == 1 else f"{scheduled['nodes']} nodes"
    result.append(
        f"reserved: {scheduled['gib']} GiB or more for each {per}, on its rabbit"
    )
    if "there" in rabbits:
        result.append(
            f"rabbits: {_span(rabbits)} of {rabbits['there']}; "
            f"{rabbits['roomy']} have room for {scheduled['gib']} GiB now"
        )
    else:
        result.append(f"rabbits: {_span(rabbits)} (which there are is not known)")
    return result


def report(asked: request.Request, as_json: bool, copies: str | None = None) -> str:
    """The prediction as text or JSON. `copies`, an idset, names the jobs of a bulk
    submission, of which `asked` is the first.

    Raises ValueError if the job would be refused."""
    told = foresee(asked)
    if copies:
        request.warn(asked.prog, f"this is the first of the jobs {copies}")
    if as_json:
        return json.dumps(told)
    return "\n".join(map(term.clean, lines(told)))
