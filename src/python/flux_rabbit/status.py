# SPDX-License-Identifier: LGPL-3.0-only
#
# flux rabbit status.
"""The state of the installation on one screen."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from flux_rabbit import cli, rpc, term
from flux_rabbit.listing import age_of, state_of, waits_for
from flux_rabbit.term import Line
from flux_rabbit.timeline import STATES
from flux_rabbit.units import Size, duration, percent

Object = dict[str, Any]

# A workflow that is longer in one state is shown as stuck.
LONG_S = 60.0
BAR = 30
# Leaves room at 80 columns for the figures beside the bar.
BAR_SPACE = 20
GROUPS = {
    "ready": ("Ready",),
    "degraded": ("Degraded", "Starting", "Suspect"),
    "offline": ("Offline", "Failed", "NotPresent", "Fenced", "Unknown"),
    "disabled": ("Disabled", "Drained"),
}


def configure(
    parser: argparse.ArgumentParser, command: str
) -> tuple[str, tuple[str, ...]]:
    """Options."""
    return (
        "Show on one screen: the way to Kubernetes, rabbits by health, their space, "
        "workflows by state, and the one that has been longest in its state. Users "
        "who do not own the instance see their own jobs. The exit status is 3 when "
        "Kubernetes cannot be reached.",
        ("flux rabbit status", "flux rabbit status --json | jq .rabbits.states"),
    )


def health(status: Object) -> tuple[bool, str]:
    """Whether plugin, agent and API server work, and a text on their state."""
    agent = status["agent"]
    if not status["synced"]:
        return False, "the jobtap plugin does not answer: is dws-jobtap.so loaded?"
    if not status["plugin"]:
        return False, "dws-jobtap.so is not loaded: jobs that end keep their mounts"
    if not agent["attached"]:
        return False, "no agent is attached: is flux-coral2-dws running?"
    if not agent["reachable"]:
        text = "the agent cannot reach the Kubernetes API server"
        return False, f"{text}: {agent['trouble']}" if agent.get("trouble") else text
    if not agent["synced"]:
        return False, "the agent has not read all workflows yet"
    waiting = agent["commands"]
    return True, f"connected, {waiting} request{'s' * (waiting != 1)} under way"


def groups(states: dict[str, int]) -> dict[str, int]:
    """The number of rabbits in each of GROUPS."""
    return {
        name: sum(states.get(word, 0) for word in words)
        for name, words in GROUPS.items()
    }


def bar(parts: list[tuple[float, str]], whole: float, width: int) -> Line:
    """A bar of the parts of a whole, distinct without colour, too. A part above 0 has
    at least one cell."""
    line: Line = []
    left = width
    for (part, style), glyph in zip(parts, "█▒"):
        cells = round(part / whole * width) if whole > 0 else 0
        cells = min(left, max(cells, 1 if part > 0 else 0))
        line.append((glyph * cells, style))
        left -= cells
    line.append(("░" * left, "dim"))
    return line


def screen(status: Object) -> list[Line]:
    """The status as lines for a terminal."""
    good, text = health(status)
    lines: list[Line] = [
        [("Kubernetes  ", "dim"), ("● ", "good" if good else "bad"), (text, "")]
    ]
    rabbits = status["rabbits"]
    row: Line = [("Rabbits     ", "dim"), (f"{rabbits['count']}: ", "")]
    styles = {"ready": "good", "degraded": "warn", "offline": "bad", "disabled": "warn"}
    for name, count in groups(rabbits["states"]).items():
        style = styles[name] if count or name == "ready" else "dim"
        row += [(f"{count} {name}", style), ("  ", "")]
    lines.append(row)
    capacity, used = rabbits["capacity"], rabbits["used"]
    foreign = rabbits["foreign"]
    row = [("Space       ", "dim")]
    row += bar([(used, "run"), (foreign, "cleanup")], capacity, BAR_SPACE)
    row.append((f"  {Size(used)} of {Size(capacity)} used", ""))
    if capacity:
        row.append((f" ({percent(used, capacity)})", ""))
    if foreign:
        row.append((f", {Size(foreign)} foreign", ""))
    lines.append(row)
    row = [("Workflows   ", "dim"), (str(status["workflows"]), "")]
    if status["unmade"]:
        row.append((f", {status['unmade']} to be made", "warn"))
    if status.get("remade"):
        row.append((f", {status['remade']} made anew", "dim"))
    lines.append(row)
    most = max(status["states"].values(), default=0)
    for state in STATES:
        count = status["states"].get(state, 0)
        if count:
            cells = max(1, round(count / most * BAR))
            lines.append(
                [(f"  {state:9} ", state), ("█" * cells, state), (f" {count}", "")]
            )
    oldest = status.get("oldest")
    if oldest:
        lines += _oldest(oldest)
    return lines


def _oldest(job: Object) -> list[Line]:
    workflow = job["workflow"]
    since = age_of(job) or 0.0
    wrong = job["exception"] or workflow["trouble"]
    style = "bad" if wrong else "warn" if since > LONG_S else ""
    label = "Stuck       " if wrong or since > LONG_S else "Oldest      "
    lines: list[Line] = [
        [
            (label, "dim"),
            (rpc.f58(job["id"]), "bold"),
            (f" in {state_of(job)} for {duration(since)}: ", style),
            (waits_for(job), ""),
        ]
    ]
    if workflow["message"] and workflow["message"] not in waits_for(job):
        lines.append([("            ", ""), (workflow["message"], style)])
    return lines


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    status = rpc.status(rpc.Handle())
    good, text = health(status)
    if args.json:
        status["healthy"] = good
        status["health"] = text
        cli.print_json(status)
    else:
        term.show(screen(status), cli.colour(args), sys.stdout)
    return 0 if good else cli.EXIT_BAD
