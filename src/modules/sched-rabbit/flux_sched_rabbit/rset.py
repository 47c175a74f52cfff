# Converts resource sets (RFC 20), the mapping and requests of the module dws to and
# from values of the machine.
# SPDX-License-Identifier: LGPL-3.0-only
"""R of the scheduler. GiB of rabbits are in R.scheduling, from which a restarted
scheduler restores them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from flux.hostlist import Hostlist
from flux.idset import IDset
from flux_k8s import dws

from . import bits
from .machine import NOBODY, Machine
from .parts import Allocation

# The writer for R.scheduling: Fluxion, which may schedule an instance inside a job,
# accepts only this one, and then reads only R_lite
# (doc/dev/upstream/fluxion-writer.rst).
WRITER = "fluxion:jgf_shorthand"
GIB = 1 << 30


def encode_idset(numbers: Iterable[int]) -> str:
    return str(IDset(",".join(map(str, sorted(numbers)))))


def encode(
    nodes: Mapping[int, tuple[int, int]],
    hosts: Mapping[int, str],
    properties: Mapping[str, Iterable[int]] | None = None,
    times: tuple[float, float] = (0.0, 0.0),
    nslots: int = 0,
    gib: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """R for these ranks. ``nodes`` maps a rank to its cores and gpus (bit
    masks), ``times`` are start and expiration."""
    alike: dict[tuple[int, int], list[int]] = {}
    ranks = sorted(nodes)
    for rank in ranks:
        alike.setdefault(nodes[rank], []).append(rank)
    lite = []
    for (cores, gpus), members in alike.items():
        children = {"core": encode_idset(bits.members(cores))}
        if gpus:
            children["gpu"] = encode_idset(bits.members(gpus))
        lite.append({"rank": encode_idset(members), "children": children})
    execution: dict[str, Any] = {
        "R_lite": lite,
        "starttime": times[0],
        "expiration": times[1],
        "nodelist": [Hostlist([hosts[rank] for rank in ranks]).encode()],
    }
    if not ranks:
        execution["nodelist"] = []
    if nslots:
        execution["nslots"] = nslots
    # RFC 20: a leading + marks a property of this instance only.
    mine = {
        name: encode_idset(have)
        for name, members in (properties or {}).items()
        if not name.startswith("+") and (have := set(members) & nodes.keys())
    }
    if mine:
        execution["properties"] = mine
    result: dict[str, Any] = {"version": 1, "execution": execution}
    if gib:
        result["scheduling"] = {"writer": WRITER, "rabbits": dict(gib)}
    return result


def summarize(alloc: Allocation) -> str:
    """The allocation in a line for ``flux jobs``, in the form of other schedulers."""
    alike: dict[tuple[int, int], list[int]] = {}
    for rank in sorted(alloc.nodes):
        alike.setdefault(alloc.nodes[rank], []).append(rank)
    parts = []
    for (cores, gpus), ranks in alike.items():
        text = f"rank{_brackets(ranks)}/core{_brackets(bits.members(cores))}"
        if gpus:
            text += f",gpu{_brackets(bits.members(gpus))}"
        parts.append(text)
    parts += [f"{name}:{gib}GiB" for name, gib in alloc.gib.items()]
    return " ".join(parts)


def _brackets(numbers: Iterable[int]) -> str:
    text = encode_idset(numbers)
    return text if text.isdigit() else f"[{text}]"


def rabbits_of_mapping(mapping: Any) -> dict[str, tuple[int, list[str]]]:
    """The GiB and hosts of each rabbit in a mapping. Raises ValueError."""
    try:
        return {
            name: (
                int(entry["capacity"]) // GIB,
                dws.expand_hosts(entry["hostlist"]),
            )
            for name, entry in mapping["rabbits"].items()
        }
    except (AttributeError, KeyError, OverflowError, TypeError) as exc:
        raise ValueError(f"not a rabbitmapping: {exc!r}") from exc


def gib_of_scheduling(scheduling: Any) -> dict[str, int]:
    """The GiB by rabbit in an R.scheduling of encode(); {} for any other."""
    rabbits = scheduling.get("rabbits") if isinstance(scheduling, dict) else None
    if not isinstance(rabbits, dict):
        return {}
    return {str(k): int(v) for k, v in rabbits.items()}


def gib_of_ssds(scheduling: Any) -> dict[str, int]:
    """The GiB of the ssd vertices in an R.scheduling of Fluxion, by the first host
    below the same vertex; {} without any. Fluxion omits a size of 1, and a name made of
    type and id."""
    try:
        vertices = scheduling["graph"]["nodes"]
    except (KeyError, TypeError):
        return {}
    gib: dict[str, int] = {}
    hosts: dict[str, str] = {}
    for vertex in vertices:
        try:
            metadata = vertex["metadata"]
            kind = metadata["type"]
            parent, _, last = metadata["paths"]["containment"].rpartition("/")
        except (AttributeError, KeyError, TypeError):
            continue
        if kind == "ssd":
            gib[parent] = gib.get(parent, 0) + int(metadata.get("size", 1))
        elif kind == "node":
            hosts.setdefault(parent, metadata.get("name") or last)
    return {hosts[parent]: n for parent, n in gib.items() if parent in hosts}


def _table(payload: Any, key: str, kind: type) -> dict[str, Any]:
    """A field that holds an object with values of one type. Raises ValueError."""
    value = payload.get(key, {}) if isinstance(payload, dict) else None
    if not isinstance(value, dict) or not all(
        isinstance(entry, kind) for entry in value.values()
    ):
        of = "strings" if kind is str else "objects"
        raise ValueError(f"{key}: expected an object of {of}")
    return value


def _bytes(value: Any, where: str) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{where}: expected a number of bytes")
    return value


def take_health(payload: Any, machine: Machine, unknown: bool = False) -> None:
    """Apply a health request as a whole, or nothing of it: for each rabbit whether it
    is up, and its bytes (missing: unchanged); for each property its nodes. Raises
    ValueError, also for an unknown rabbit unless ``unknown``."""
    rabbits = {}
    for name, entry in _table(payload, "rabbits", dict).items():
        if name not in machine.rabbits and not unknown:
            raise ValueError(f"rabbits: {name}: unknown")
        up, capacity = entry.get("up"), entry.get("capacity")
        if up is not None and not isinstance(up, bool):
            raise ValueError(f"rabbits: {name}: up: expected true or false")
        if capacity is not None:
            capacity = _bytes(capacity, f"rabbits: {name}: capacity") // GIB
        rabbits[name] = (up, capacity)
    properties = {
        name: machine.with_hosts(hosts)
        for name, hosts in _table(payload, "properties", str).items()
    }
    for name, (up, gib) in rabbits.items():
        machine.set_rabbit(name, up, gib)
    for name, nodes in properties.items():
        machine.set_property(name, nodes)


def parse_hold(payload: Mapping[str, Any]) -> dict[int, dict[str, int]]:
    """The payload of a hold request: GiB by rabbit, by job; job 0 stands for NOBODY.
    Rounds up to whole GiB. Raises ValueError."""
    if "jobs" not in payload:
        raise ValueError("jobs: is required")
    jobs = {}
    for jobid, space in _table(payload, "jobs", dict).items():
        if not jobid.isdecimal():
            raise ValueError(f"jobs: {jobid}: expected the number of a job")
        jobs[int(jobid) or NOBODY] = {
            name: -(-_bytes(size, f"jobs: {jobid}: {name}") // GIB)
            for name, size in space.items()
        }
    if not isinstance(payload.get("complete", False), bool):
        raise ValueError("complete: expected true or false")
    return jobs
