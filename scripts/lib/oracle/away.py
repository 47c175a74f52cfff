# Rules for nodes and rabbits that are taken out of service: each for a cause that the
# manual names, and flux-dws undoes what it has done.
# SPDX-License-Identifier: LGPL-3.0-only
"""Rules over resource.eventlog, Storages and SystemStatus."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from oracle.history import LAG_S, Object

if TYPE_CHECKING:
    from oracle.rules import Run

# Longest time from the end of a cause to what is done about it.
LATE_S = 60.0
LINK = "rabbit: lost its PCIe link"
LET_GO, NODE_FAILURE = "dws-epilog-timeout", "dws-node-failure"
# Reasons of drained nodes and disabled rabbits, which end with a workflow: its job has
# one of these exceptions, or has ended without the plugin (None).
OF_JOBS: dict[str, tuple[str | None, ...]] = {
    r"rabbit: failed to unmount in \w+ of fluxjob-(\d+)": (LET_GO, NODE_FAILURE),
    r"rabbit: (?:failed to mount|no file system) in .* fluxjob-(\d+)": (NODE_FAILURE,),
    r"rabbit: still mounted by fluxjob-(\d+)": (None, NODE_FAILURE),
    r"rabbit: may be mounted by fluxjob-(\d+)": (LET_GO,),
    r"workflow fluxjob-(\d+) timed out and still has an allocation here": (LET_GO,),
}


@dataclass(frozen=True)
class Away:
    """A time in which a node was drained for a reason or, without one, offline."""

    node: str
    reason: str | None
    begin: float
    end: float


def aways(events: Sequence[Object]) -> list[Away]:
    """All such times, of events of resource.eventlog; "nodes" of each is a list."""
    since: dict[tuple[str, bool], tuple[str | None, float]] = {}
    found = []
    for event in events:
        name, now, drained = event["name"], event["timestamp"], "drain" in event["name"]
        for node in event["nodes"]:
            last = since.get((node, drained))
            if last and name != "offline":
                found.append(Away(node, *last, now))
                del since[node, drained]
            if name in ("drain", "offline"):
                reason = event["context"].get("reason", "") if drained else None
                since[node, drained] = reason, now
    return found + [Away(node, *last, math.inf) for (node, _), last in since.items()]


def _link_lost(run: Run, node: str, time: float) -> bool:
    """Whether the link of a node may have been lost shortly before that time."""
    return not run.history.whole("storages", time - LATE_S, time + LAG_S) or any(
        computer["name"] == node and computer["status"] != "Ready"
        for _, _, item, begin, end in run.history.steps("storages")
        if begin - LAG_S < time and end > time - LATE_S
        for computer in item.get("status", {}).get("access", {}).get("computes") or []
    )


def _unfounded(run: Run, where: str, reason: str, time: float) -> str:
    """What is wrong with a reason that a node or a rabbit has since then; or ""."""
    if time < run.history.began or reason in run.by_hand:
        return ""
    if reason == LINK:
        return "" if _link_lost(run, where, time) else "its link was not lost"
    for pattern, types in OF_JOBS.items():
        if match := re.fullmatch(pattern, reason):
            job = run.jobs.get(int(match[1]))
            if not job or (None in types and job.unplugged):
                return ""
            log = [e for e in job.eventlog if e["timestamp"] < time + LAG_S]
            had = {e["context"]["type"] for e in log if e["name"] == "exception"}
            return "" if had & {*types} else "nobody has given up that job"
    return "nothing has this reason"


def out_of_service(run: Run) -> Iterator[str]:
    """Drains, disabled rabbits, and nodes that are disabled in SystemStatus, without
    a cause; and drains that are left."""
    away = aways(run.events)
    for one in (one for one in away if one.reason is not None):
        text = f"{one.node} was drained for '{one.reason}', and "
        if wrong := _unfounded(run, one.node, one.reason or "", one.begin):
            yield text + wrong
        elif one.end == math.inf and run.over and one.reason not in run.by_hand:
            yield text + "still is"
    for name, before, item, time, _ in run.history.steps("storages"):
        had, has = (
            one.get("metadata", {}).get("annotations", {}).get("disable_reason")
            for one in (before, item)
        )
        if has and has != had and (wrong := _unfounded(run, name, has, time)):
            yield f"{name} was disabled for '{has}', and {wrong}"
    for _, before, item, time, _ in run.history.steps("systemstatuses"):
        was, now = (one.get("data", {}).get("nodes") or {} for one in (before, item))
        for node in now if before else ():
            causes = (a for a in away if a.node == node and a.end > time - LATE_S)
            if now[node] == "Enabled" or was.get(node, "Enabled") != "Enabled":
                continue
            if not any(a.begin < time for a in causes):
                yield f"{node} is {now[node]} in SystemStatus, and was not away"
