# dws-sim top: a running simulator at a glance, again and again.
# SPDX-License-Identifier: LGPL-3.0-only
"""The live view."""

from __future__ import annotations

import argparse
import sys
import time

from dws_sim import kubeconfig
from dws_sim.ctl import request
from dws_sim.jsontree import Object
from dws_sim.states import STATES

WIDTH = 30
GIB = 1 << 30
# Rabbits that are shown by name: the fullest ones.
MOST_RABBITS = 16


def _bar(part: float) -> str:
    full = round(max(0.0, min(1.0, part)) * WIDTH)
    return "#" * full + "." * (WIDTH - full)


def picture(state: Object, before: Object | None, elapsed_s: float) -> list[str]:
    """The lines to show.

    Args:
        before: the state of the last picture, elapsed_s ago; None: first one.
    """
    capacity, used = state["capacity"], state["allocated"]
    health = ", ".join(f"{n} {word}" for word, n in sorted(state["health"].items()))
    total = sum(used.values()) / max(1, capacity * state["rabbits"])
    rates = {"requests": 0.0, "version": 0.0}
    if before is not None and elapsed_s > 0:
        rates = {k: (state[k] - before[k]) / elapsed_s for k in rates}
    lines = [
        f"rabbits    {state['rabbits']} ({health}), nodes {state['nodes']}",
        f"capacity   [{_bar(total)}] {100 * total:.1f}% in use",
        f"API        {rates['requests']:.0f} requests/s, "
        f"{rates['version']:.0f} writes/s, {state['watches']} watches, "
        f"{state['objects']} objects",
        f"mounts     {state['mounts']}",
        f"workflows  {sum(state['workflows'].values())}",
    ]
    for name in STATES:
        count = state["workflows"].get(name, 0)
        held = "  held" if state["held"].get(name) else ""
        if count or held:
            lines.append(f"  {name:9} {count:6}{held}")
    fullest = sorted(used.items(), key=lambda u: (-u[1], u[0]))
    for rabbit, size in fullest[:MOST_RABBITS]:
        bar = _bar(size / max(1, capacity))
        lines.append(f"  {rabbit:12} [{bar}] {size / GIB:.1f} GiB")
    if len(fullest) > MOST_RABBITS:
        lines.append(f"  and {len(fullest) - MOST_RABBITS} more with less")
    return lines


def run_top(args: argparse.Namespace) -> int:
    """Show pictures until interrupted; returns the exit status."""
    before: Object | None = None
    last = 0.0
    try:
        access = kubeconfig.read(args.kubeconfig)
        while True:
            now = time.monotonic()
            state = request(access, "state", {})
            lines = picture(state, before, now - last)
            if sys.stdout.isatty() and not args.once:
                print("\033[H\033[J", end="")
            print("\n".join(lines), flush=True)
            if args.once:
                return 0
            before, last = state, now
            time.sleep(args.interval)
    except (OSError, ValueError) as exc:
        print(f"dws-sim: {exc}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0
