# Objects as kubectl asks for them: rows of a table, or their metadata alone.
# SPDX-License-Identifier: LGPL-3.0-only
"""Tables and partial metadata."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Callable

from dws_sim.jsontree import Object, dig, parse_time
from dws_sim.schema.columns import COLUMNS, Column
from dws_sim.schema.resources import Resource

META = "meta.k8s.io/v1"
_NAME = {"name": "Name", "type": "string", "format": "name"}
_AGE = Column("Age", ".metadata.creationTimestamp", "date")
_YEAR = 365 * 86400
# Limit in seconds up to which an age is shown in this unit and, if there is one, a
# smaller one.
_UNITS: tuple[tuple[float, str, int, str, int], ...] = (
    (120, "s", 1, "", 1),
    (600, "m", 60, "s", 1),
    (3 * 3600, "m", 60, "", 1),
    (8 * 3600, "h", 3600, "m", 60),
    (2 * 86400, "h", 3600, "", 1),
    (8 * 86400, "d", 86400, "h", 3600),
    (2 * _YEAR, "d", 86400, "", 1),
    (8 * _YEAR, "y", _YEAR, "d", 86400),
    (float("inf"), "y", _YEAR, "", 1),
)


def age(seconds: float) -> str:
    """An age as Kubernetes shows it: 119s, 5m30s, 20m, 3h20m, 2d3h, 400d."""
    whole = max(0, int(seconds))
    unit, size, small, part = next(u[1:] for u in _UNITS if whole < u[0])
    rest = whole % size // part if small else 0
    return f"{whole // size}{unit}" + (f"{rest}{small}" if rest else "")


def _since(text: Any) -> str:
    """The age of what a time stands for."""
    if text is None:
        return "<unknown>"
    try:
        return age(time.time() - parse_time(str(text)))
    except ValueError:
        return "<invalid>"


def _cell(column: Column, obj: Object) -> Any:
    """The value of an object in a column of a custom resource."""
    value = dig(obj, *column.path.lstrip(".").split("."))
    if value is None:
        return None
    if column.type == "date":
        return _since(value)
    if column.type == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


# -- Kubernetes' own kinds ------------------------------------------------------


def _age_of(obj: Object) -> str:
    return _since(obj["metadata"].get("creationTimestamp"))


def _none(value: Any) -> str:
    return str(value) if value else "<none>"


def _joined(items: Any, key: str) -> str:
    return _none(",".join(str(i.get(key, "")) for i in items or ()))


def _labels(selector: Any) -> str:
    return _none(",".join(f"{k}={v}" for k, v in sorted((selector or {}).items())))


def _pod(obj: Object) -> list[Any]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    states = status.get("containerStatuses", ())
    word = status.get("reason") or status.get("phase", "")
    if word == "Succeeded" and states:
        word = "Completed"
    if "deletionTimestamp" in obj["metadata"]:
        word = "Terminating"
    ready = sum(bool(s.get("ready")) for s in states)
    return [
        f"{ready}/{len(spec.get('containers', ()))}",
        word,
        str(sum(s.get("restartCount", 0) for s in states)),
        _age_of(obj),
        _none(status.get("podIP")),
        _none(spec.get("nodeName")),
        _none(status.get("nominatedNodeName")),
        "<none>",
    ]


_ROLE = "node-role.kubernetes.io/"


def _node(obj: Object) -> list[Any]:
    status, labels = obj.get("status", {}), obj["metadata"].get("labels", {})
    ready = [c for c in status.get("conditions", ()) if c.get("type") == "Ready"]
    words = ["Ready" if c.get("status") == "True" else "NotReady" for c in ready]
    if not words:
        words = ["Unknown"]
    if obj.get("spec", {}).get("unschedulable"):
        words.append("SchedulingDisabled")
    roles = sorted(k[len(_ROLE) :] for k in labels if k.startswith(_ROLE))
    info = status.get("nodeInfo", {})
    places = {a.get("type"): a.get("address") for a in status.get("addresses", ())}
    return [
        ",".join(words),
        _none(",".join(roles)),
        _age_of(obj),
        info.get("kubeletVersion", ""),
        _none(places.get("InternalIP")),
        _none(places.get("ExternalIP")),
        info.get("osImage") or "<unknown>",
        info.get("kernelVersion") or "<unknown>",
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def _service(obj: Object) -> list[Any]:
    spec = obj.get("spec", {})
    ports = ",".join(
        f"{p.get('port')}/{p.get('protocol', 'TCP')}" for p in spec.get("ports", ())
    )
    return [
        spec.get("type", "ClusterIP"),
        _none(spec.get("clusterIP")),
        "<none>",
        _none(ports),
        _age_of(obj),
        _labels(spec.get("selector")),
    ]


def _job(obj: Object) -> list[Any]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    found = {c["type"] for c in status.get("conditions", ()) if c["status"] == "True"}
    word = next((w for w in ("Complete", "Failed") if w in found), "Running")
    began, ended = status.get("startTime"), status.get("completionTime")
    took = ""
    if began:
        end = parse_time(ended) if ended else time.time()
        took = age(end - parse_time(began))
    containers = dig(spec, "template", "spec", "containers")
    return [
        word,
        f"{status.get('succeeded', 0)}/{spec.get('completions') or 1}",
        took,
        _age_of(obj),
        _joined(containers, "name"),
        _joined(containers, "image"),
        _labels(dig(spec, "selector", "matchLabels")),
    ]


def _event(obj: Object) -> list[Any]:
    about, source = obj.get("involvedObject", {}), obj.get("source", {})
    first = obj.get("firstTimestamp") or obj.get("eventTime")
    last = obj.get("lastTimestamp") or first
    who = [source.get("component") or obj.get("reportingComponent", "")]
    kind, name = str(about.get("kind", "")).lower(), about.get("name")
    return [
        _since(last),
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{kind}/{name}" if name else kind,
        about.get("fieldPath", ""),
        ", ".join([*who, *([source["host"]] if source.get("host") else [])]),
        str(obj.get("message", "")).strip(),
        _since(first),
        obj.get("count") or 1,
        obj["metadata"]["name"],
    ]


Cells = Callable[[Object], list[Any]]
# By plural: names of the columns after the name, "+" for those of -o wide, and
# functions for their values.
_OWN: dict[str, tuple[str, Cells]] = {
    "namespaces": (
        "Status,Age",
        lambda o: [dig(o, "status", "phase") or "", _age_of(o)],
    ),
    "secrets": (
        "Type,Data,Age",
        lambda o: [o.get("type", "Opaque"), len(o.get("data") or ()), _age_of(o)],
    ),
    "configmaps": (
        "Data,Age",
        lambda o: [
            len(o.get("data") or ()) + len(o.get("binaryData") or ()),
            _age_of(o),
        ],
    ),
    "services": ("Type,Cluster-IP,External-IP,Port(s),Age,+Selector", _service),
    "pods": (
        "Ready,Status,Restarts,Age,+IP,+Node,+Nominated Node,+Readiness Gates",
        _pod,
    ),
    "nodes": (
        "Status,Roles,Age,Version,+Internal-IP,+External-IP,+OS-Image,"
        "+Kernel-Version,+Container-Runtime",
        _node,
    ),
    "jobs": (
        "Status,Completions,Duration,Age,+Containers,+Images,+Selector",
        _job,
    ),
    "customresourcedefinitions": (
        "Created At",
        lambda o: [o["metadata"]["creationTimestamp"]],
    ),
}
# Columns of events, which begin with the time, and end with the name.
_EVENTS = (
    "Last Seen,Type,Reason,Object,+Subobject,+Source,Message,+First Seen,+Count,+Name"
)


def _definitions(words: str) -> list[Object]:
    return [
        {
            "name": word.lstrip("+"),
            "type": "string",
            "format": "name" if word == "+Name" else "",
            "description": "",
            "priority": int(word.startswith("+")),
        }
        for word in words.split(",")
    ]


def _layout(res: Resource) -> tuple[list[Object], Cells]:
    """The columns of a kind, and what they show of an object."""
    if res.plural == "events":
        return _definitions(_EVENTS), _event
    if res.plural in _OWN:
        words, cells = _OWN[res.plural]
        columns = _definitions(words)
    else:
        chosen = COLUMNS.get(res.plural, (_AGE,))
        columns = [
            {
                "name": c.name,
                "type": c.type,
                "format": "",
                "description": c.description,
                "priority": c.priority,
            }
            for c in chosen
        ]

        def cells(obj: Object) -> list[Any]:
            return [_cell(c, obj) for c in chosen]

    first = {**_NAME, "description": "", "priority": 0}
    return [first, *columns], lambda o: [o["metadata"]["name"], *cells(o)]


def partial(obj: Object, kind: str = "PartialObjectMetadata") -> Object:
    """An object without all but its metadata."""
    return {"apiVersion": META, "kind": kind, "metadata": obj["metadata"]}


def table(
    res: Resource, objects: Sequence[Object], meta: Object, include: str = "Metadata"
) -> Object:
    """The Table of some objects.

    Args:
        meta: of the list that it stands for.
        include: what rows have of their objects: Metadata, Object or None.
    """
    columns, cells = _layout(res)
    rows: list[Object] = []
    for obj in objects:
        row: Object = {"cells": cells(obj)}
        if include == "Object":
            row["object"] = obj
        elif include != "None":
            row["object"] = partial(obj)
        rows.append(row)
    return {
        "kind": "Table",
        "apiVersion": META,
        "metadata": meta,
        "columnDefinitions": columns,
        "rows": rows,
    }
