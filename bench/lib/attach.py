# An agent that starts when there are many workflows; run by bench/attach.
# SPDX-License-Identifier: LGPL-3.0-only
"""An agent is started, again and again, while so many jobs are held in the queue and
have their workflows. The module is in a process of its own, for its memory to be told
from everybody else's. Once before there is any workflow: what both have in memory then
is Python, its packages and libflux; the module, in a broker, has nothing of that."""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
import time
from typing import Any

import cputime
from cluster import run
from growth import Growth
from storm import AGENT, new_parser, show

POLL_S = 0.01
MIB = 1 << 20
BESIDE = 100  # jobs that run while the others are held
STALL_MS = 5.0


def parse_args() -> argparse.Namespace:
    parser = new_parser("bench/attach", __doc__)
    add = parser.add_argument
    add("--live", type=int, default=10000, help="workflows")
    add("--runs", type=int, default=3, help="starts of the agent")
    return parser.parse_args()


class Turns:
    """Reader of the file in which modhost.py records long turns of the reactor."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self._seen = 0

    def since(self) -> dict[str, float]:
        """Turns since the last call. Turns below a millisecond are not recorded."""
        lines = self.path.read_text().split()
        took = [float(line) for line in lines[self._seen :]]
        self._seen = len(lines)
        return {
            "longest_turn_ms": max(took, default=1.0),
            "waitlist_over_5_ms": sum(ms > STALL_MS for ms in took),
        }


def attach(growth: Growth, module: int, turns: Turns) -> dict[str, Any]:
    """Restart the agent, and measure until it has synchronised and is idle."""
    growth.cluster.kill_agent()
    growth.wait_status("no agent", lambda s: not s["agent"]["attached"])
    before, server = cputime.of_process(module), growth.sim_cpu()
    turns.since()
    times = {"begun": time.monotonic()}
    growth.cluster.start_agent()
    slowest = 0.0
    while len(times) < 4:
        asked = time.monotonic()
        agent = growth.status()["agent"]
        now = time.monotonic()
        slowest = max(slowest, now - asked)
        for key in ("attached", "synced"):
            if agent[key]:
                times.setdefault(key, now)
        if agent["synced"] and not agent["commands"]:
            times["idle"] = now
        time.sleep(POLL_S)
    pid = growth.cluster.pid(AGENT)
    return {
        "start_to_synced_s": times["synced"] - times["begun"],
        "attach_to_synced_s": times["synced"] - times["attached"],
        "attach_to_idle_s": times["idle"] - times["attached"],
        "slowest_status_ms": 1000 * slowest,
        "api_server_cpu_s": growth.sim_cpu() - server,
        "agent_cpu_s": cputime.of_process(pid),
        "module_cpu_s": cputime.of_process(module) - before,
        "agent_MiB": cputime.resident_bytes(pid) / MIB,
        "agent_peak_MiB": cputime.peak_bytes(pid) / MIB,
        "module_MiB": cputime.resident_bytes(module) / MIB,
        "module_peak_MiB": cputime.peak_bytes(module) / MIB,
        **turns.since(),
    }


def measure(growth: Growth, args: argparse.Namespace) -> dict[str, Any]:
    run("flux", "module", "remove", "dws")
    dws = args.prefix / "lib" / "flux" / "modules" / "dws.so"
    host = [sys.executable, str(pathlib.Path(__file__).with_name("modhost.py"))]
    turns = Turns(args.workdir / "turns")
    with subprocess.Popen([*host, str(dws), str(turns.path)]) as module:
        try:
            growth.wait_synced()
            empty = attach(growth, module.pid, turns)
            turns.since()
            growth.hold(args.live)
            submitted = turns.since()
            rows = [attach(growth, module.pid, turns) for _ in range(args.runs)]
            growth.beside(BESIDE)
            beside = turns.since()
        finally:
            module.terminate()
    for row in rows:
        agent, dws = row["agent_peak_MiB"], row["module_peak_MiB"]
        row["agent_empty_MiB"] = empty["agent_peak_MiB"]
        row["module_empty_MiB"] = empty["module_peak_MiB"]
        row["agent_workflows_MiB"] = agent - empty["agent_peak_MiB"]
        row["module_workflows_MiB"] = dws - empty["module_peak_MiB"]
        # of all that is ours on the broker's node
        row["together_MiB"] = agent + row["module_workflows_MiB"]
    return {"submitted": submitted, "runs": rows, "beside": beside}


def main() -> int:
    args = parse_args()
    growth = Growth(args)
    with growth.running():
        found = measure(growth, args)
    if args.json:
        print(json.dumps({"engine": growth.cluster.engine, **found}, indent=1))
        return 0
    rows = found["runs"]
    print(f"Running on {growth.cluster.engine}; {args.live:,} workflows")
    for key in rows[0]:
        print(f"{key:20}" + "".join(f"{row[key]:10.2f}" for row in rows))
    show("submitted", found["submitted"])
    show(f"{BESIDE} beside", found["beside"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
