# Parses jobspec resources (RFC 14, with rabbit storage) into a request to the machine.
# SPDX-License-Identifier: LGPL-3.0-only
"""The request of a job."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from flux_k8s import dws

Json = Any

# Three centuries, since a duration of 0 means no time limit. Bounded so that sums of
# times can be rounded to seconds.
DURATION_MAX_S = 1e10
# Bounded so that products of counts fit into the integers of R.
COUNT_MAX = (1 << 31) - 1


@dataclass(frozen=True)
class Request:
    """The request of a job. Immutable and hashable, as plan.py caches by requests.

    With ``groups`` 0 the job gets any ``nslots`` slots. Otherwise it gets ``groups``
    times ``group_nodes`` nodes, each with ``node_cores`` cores and ``node_gpus`` gpus,
    and for each group ``group_gib`` GiB on the rabbit next to all its nodes. With
    ``group_storage`` the group also gets ``storage_cores`` cores of that rabbit as a
    storage node (0: the whole node). ``storage_nodes`` are further storage nodes, on
    any rabbits.
    """

    groups: int = 0
    groups_max: int | None = 0  # None: unbounded
    group_nodes: int = 1
    group_gib: int = 0
    group_storage: bool = False
    storage_nodes: int = 0
    storage_cores: int = 0
    distinct: bool = False  # chassis: no two groups on one rabbit
    exclusive: bool = False
    node_slots: int = 1
    node_cores: int = 0
    node_gpus: int = 0
    nslots: int = 0
    nslots_max: int | None = 0
    slot_cores: int = 1
    slot_gpus: int = 0
    duration_s: float = 0.0
    constraint: str = ""  # RFC 31, as JSON text
    linked: bool = False  # only nodes with a working rabbit

    @property
    def where(self) -> tuple[str, bool]:
        """Requests with equal values can use the same nodes."""
        return self.constraint, self.linked

    @property
    def nodes(self) -> int:
        """The least number of nodes, 0 for a request of slots."""
        return self.groups * self.group_nodes

    @property
    def needs_rabbits(self) -> bool:
        """Whether the nodes of a group must be next to the same rabbit."""
        return self.group_gib > 0 or self.group_storage or self.distinct

    @property
    def needs_storage_nodes(self) -> bool:
        return self.group_storage or self.storage_nodes > 0


def parse_count(value: Json, what: str) -> tuple[int, int | None]:
    """A count or a range of counts as (least, most); most None: unbounded.

    Raises ValueError.
    """
    low: Any
    high: Any
    if isinstance(value, str):
        low, dash, high = value.partition("-")
        if not dash and value.endswith("+"):
            low, high = value[:-1], None
        elif not dash:
            high = low
        try:
            low, high = int(low), None if high is None else int(high)
        except ValueError:
            raise ValueError(
                f"count of {what}: {value!r:.60} is not supported"
            ) from None
    elif isinstance(value, dict):
        if value.get("operator", "+") != "+" or value.get("operand", 1) != 1:
            raise ValueError(f"count of {what}: steps are not supported")
        low, high = value.get("min"), value.get("max")
    else:
        low = high = value
    for number in (low, high):
        if number is None and number is not low:
            continue
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise ValueError(f"count of {what}: {value!r:.60} is not a positive number")
        if number > COUNT_MAX:
            raise ValueError(f"count of {what}: more than {COUNT_MAX}")
    if high is not None and high < low:
        raise ValueError(f"count of {what}: {value!r:.60} is empty")
    return low, high


def _fixed(entry: Json) -> int:
    low, high = parse_count(entry.get("count", 1), str(entry.get("type")))
    if low != high:
        raise ValueError(f"count of {entry.get('type')}: a range is not supported here")
    return low


def _children(entry: Json) -> dict[str, Json]:
    """The entries below this one by type. Raises ValueError for a repeated type."""
    result: dict[str, Json] = {}
    for child in entry.get("with") or []:
        kind = child.get("type")
        if kind in result:
            raise ValueError(f"several {kind!r} entries below {entry.get('type')!r}")
        result[kind] = child
    return result


def _only(entry: Json, children: dict[str, Json], *allowed: str) -> None:
    for kind in children:
        if kind not in allowed:
            raise ValueError(f"{kind!r} below {entry.get('type')!r} is not supported")


def _parse_cores(entry: Json) -> tuple[int, int]:
    """Cores and gpus below a slot or a node that has no slot."""
    children = _children(entry)
    _only(entry, children, "core", "gpu")
    cores = _fixed(children["core"]) if "core" in children else 0
    gpus = _fixed(children["gpu"]) if "gpu" in children else 0
    return cores, gpus


def _parse_node(node: Json, fields: dict[str, Any]) -> None:
    children = _children(node)
    slots, cores, gpus = 1, 0, 0
    if "slot" in children:
        _only(node, children, "slot")
        slots = _fixed(children["slot"])
        cores, gpus = _parse_cores(children["slot"])
        if children["slot"].get("exclusive"):
            fields["exclusive"] = True
    else:
        cores, gpus = _parse_cores(node)
    if node.get("exclusive") or cores == 0:
        fields["exclusive"] = True
    fields["node_slots"] = slots
    fields["node_cores"] = slots * cores
    fields["node_gpus"] = slots * gpus


def _parse_storage_node(entry: Json, fields: dict[str, Any]) -> int:
    """Parse a request of storage nodes, whole or by cores. Returns their number."""
    children = _children(entry)
    _only(entry, children, "core")
    if "core" in children and not entry.get("exclusive"):
        fields["storage_cores"] = _fixed(children["core"])
    return _fixed(entry)


def _parse_group(top: Json, fields: dict[str, Any]) -> None:
    """Parse a slot or chassis with nodes, and perhaps storage, below it."""
    children = _children(top)
    _only(top, children, "node", "ssd", "storage_node")
    fields["group_nodes"] = _fixed(children["node"])
    if "ssd" in children:
        fields["group_gib"] = _fixed(children["ssd"])
    if "storage_node" in children:
        if _parse_storage_node(children["storage_node"], fields) != 1:
            raise ValueError(f"a {top['type']} can have one storage_node only")
        fields["group_storage"] = True
    if top.get("exclusive"):
        fields["exclusive"] = True
    fields["groups"], fields["groups_max"] = parse_count(
        top.get("count", 1), str(top["type"])
    )
    fields["distinct"] = top["type"] == "chassis"
    _parse_node(children["node"], fields)


def _parse_slots(slot: Json, fields: dict[str, Any]) -> None:
    low, high = parse_count(slot.get("count", 1), "slot")
    cores, gpus = _parse_cores(slot)
    if cores == 0:
        raise ValueError("a slot needs cores or nodes")
    if slot.get("exclusive"):
        # Without a node entry each slot gets a node of its own.
        fields.update(
            groups=low,
            groups_max=high,
            exclusive=True,
            node_cores=cores,
            node_gpus=gpus,
        )
        return
    fields.update(nslots=low, nslots_max=high, slot_cores=cores, slot_gpus=gpus)


def parse(jobspec: Json) -> Request:
    """Read a jobspec. Raises ValueError with a text for the user."""
    try:
        return _parse(jobspec)
    except RecursionError as exc:
        raise ValueError("malformed jobspec: nested too deeply") from exc
    except (AttributeError, KeyError, TypeError) as exc:
        raise ValueError(f"malformed jobspec: {exc!r}") from exc


def _parse_duration(value: Json) -> float:
    duration_s = float(value or 0.0)
    if not 0 <= duration_s <= DURATION_MAX_S:
        raise ValueError(f"duration: must be from 0 to {DURATION_MAX_S:.0f} seconds")
    return duration_s


def _parse(jobspec: Json) -> Request:
    system = jobspec.get("attributes", {}).get("system") or {}
    fields: dict[str, Any] = {
        "duration_s": _parse_duration(system.get("duration")),
        "linked": dws.uses_storage(system.get("dw")),
    }
    resources = jobspec["resources"]
    constraint = None
    if system.get("constraints"):
        fields["constraint"] = json.dumps(system["constraints"], sort_keys=True)
        constraint = dws.Raw(fields["constraint"].encode())
    dws.check_bounds(resources, constraint)
    rabbits = [entry for entry in resources if entry["type"] == "storage_node"]
    others = [entry for entry in resources if entry["type"] != "storage_node"]
    if len(others) != 1 or len(rabbits) > 1:
        raise ValueError(
            "jobspec resources must have one top level entry, and at most one"
            " storage_node beside it"
        )
    top = others[0]
    kind = top["type"]
    if kind == "node":
        fields["groups"], fields["groups_max"] = parse_count(top["count"], "node")
        _parse_node(top, fields)
    elif kind == "chassis" or (kind == "slot" and "node" in _children(top)):
        _parse_group(top, fields)
    elif kind == "slot":
        _parse_slots(top, fields)
    else:
        raise ValueError(f"top level resource {kind!r} is not supported")
    if rabbits:
        if fields.get("group_storage"):
            raise ValueError("several storage_node entries are not supported")
        fields["storage_nodes"] = _parse_storage_node(rabbits[0], fields)
    return Request(**fields)
