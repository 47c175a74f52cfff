# How long commands take with many jobs; run by bench/commands.
# SPDX-License-Identifier: LGPL-3.0-only
"""Wall and CPU time of flux rabbit and flux submit, the medians of several runs,
beside commands of Flux itself: most of a short command is the start of Python and
of Flux' own modules. The jobs are held with the queues stopped; those that have
run to their end before are what stats, report and losses look at."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass

import flux.job
from cluster import Failed, run
from storm import DIRECTIVE, Storm, new_parser

BASE = {
    "python -c ''": ["python", "-c", ""],
    "getattr rank": ["getattr", "rank"],
    "jobs -c1": ["jobs", "-c1"],
}
JOB = "JOBID"  # stands for a held job, as DONE does for one that has run
DONE = "DONE"
COMMANDS = [
    ["status"],
    ["list"],
    ["list", "-o", "long"],
    ["df"],
    ["jobs"],
    ["jobs", "--json"],
    ["show", JOB],
    ["show", DONE],
    ["show", "--why", JOB],
    ["timeline", DONE],
    ["stats"],
    ["report"],
    ["top", "-c", "1"],
    ["persistent"],
    ["quota"],
    ["presets"],
    ["profiles"],
    ["losses"],
]
FIELDS = ("wall", "cpu")
# Submit commands are measured in turns, so that other load on the machine hits all.
SUBMIT = ["submit", "-N1", "--quiet", "true"]
SUBMITS = {
    "plain": SUBMIT,
    "-S dw=": ["submit", f"-Sdw={DIRECTIVE}", *SUBMIT[1:]],
    "--dw=": ["submit", f"--dw={DIRECTIVE}", *SUBMIT[1:]],
}


@dataclass(frozen=True)
class Cost:
    """Wall-clock and CPU time of one command, in ms."""

    wall: float
    cpu: float


def once(words: list[str]) -> Cost:
    """Run flux with these words."""
    began = time.monotonic()
    with open(os.devnull, "wb") as null:
        child = subprocess.Popen(["flux", *words], stdout=null, stderr=null)
    _pid, status, used = os.wait4(child.pid, 0)
    wall = time.monotonic() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise Failed(f"flux {' '.join(words)}: exit status {child.returncode}")
    return Cost(1000 * wall, 1000 * (used.ru_utime + used.ru_stime))


def median(costs: list[Cost]) -> Cost:
    return Cost(*(statistics.median(getattr(c, k) for c in costs) for k in FIELDS))


class Commands(Storm):
    held = 0
    done = 0

    def hold(self, count: int) -> None:
        """Submit until this many jobs are held, each with a workflow."""
        self.submit(count - self.held, DIRECTIVE)
        self.held = count
        self.wait_status("proposals", lambda s: s["phases"]["pending"] >= count)

    def job(self, state: int) -> str:
        """Any one job in a state."""
        rpc = flux.job.job_list(self.handle, max_entries=1, attrs=[], states=state)
        return str(flux.job.JobID(rpc.get_jobs()[0]["id"]).f58)

    def measure(self, repeats: int) -> dict[str, Cost]:
        """Each command in its turn, again and again."""
        jobs = {JOB: self.job(flux.constants.FLUX_JOB_STATE_SCHED)}
        jobs[DONE] = self.job(flux.constants.FLUX_JOB_STATE_INACTIVE)
        table = dict(BASE)
        for words in COMMANDS:
            found = [jobs.get(word, word) for word in words]
            table[f"rabbit {' '.join(words)}"] = ["rabbit", *found]
        costs: dict[str, list[Cost]] = {name: [] for name in table}
        for turn in range(repeats + 1):
            for name, words in table.items():
                cost = once(words)
                if turn > 0:  # the first turn reads files that are not cached
                    costs[name].append(cost)
        return {name: median(found) for name, found in costs.items()}

    def submits(self, repeats: int) -> dict[str, dict[str, float]]:
        """Cost of each submit command, and the extra cost of a directive: the median
        difference to the plain submit of the same turn."""
        costs: dict[str, list[Cost]] = {name: [] for name in SUBMITS}
        for turn in range(repeats):
            # Rotate and reverse the order: no command always runs first or after
            # the same other one.
            names = list(SUBMITS)
            names = names[turn % 3 :] + names[: turn % 3]
            for name in names if turn % 2 else reversed(names):
                costs[name].append(once(SUBMITS[name]))
        result = {}
        for name, found in costs.items():
            result[name] = {k: getattr(median(found), k) for k in FIELDS}
            for key in FIELDS:
                result[name][f"{key}_more"] = statistics.median(
                    getattr(a, key) - getattr(b, key)
                    for a, b in zip(found, costs["plain"])
                )
        return result


def show(few: int, many: int, found: dict[int, dict[str, Cost]]) -> None:
    print(f"{'ms, medians':26}{few:>9,} jobs{'':6}{many:>9,} jobs")
    print(f"{'flux ...':26}{'wall':>7}{'CPU':>7}{'':6}{'wall':>7}{'CPU':>7}")
    for name in found[few]:
        cells = (
            f"{found[n][name].wall:7.0f}{found[n][name].cpu:7.0f}" for n in (few, many)
        )
        print(f"{name:26}{(' ' * 6).join(cells)}")


def show_submits(result: dict[str, dict[str, float]]) -> None:
    print(f"{'flux submit':26}{'wall':>7}{'CPU':>7}{'':6}{'more wall':>11}{'CPU':>7}")
    for name, cost in result.items():
        print(
            f"{name:26}{cost['wall']:7.0f}{cost['cpu']:7.0f}{'':6}"
            f"{cost['wall_more']:11.1f}{cost['cpu_more']:7.1f}"
        )


def parse_args() -> argparse.Namespace:
    parser = new_parser("bench/commands", __doc__, rabbits=696)
    add = parser.add_argument
    add("--few", type=int, default=10, help="jobs that are held first")
    add("--live", type=int, default=10000, help="jobs that are held then")
    add("--finished", type=int, default=1000, help="jobs that have run before")
    add("--repeats", type=int, default=9, help="of each command")
    add("--submits", type=int, default=100, help="repeats of each flux submit")
    return parser.parse_args()


def main() -> int:
    args = parse_args()
    commands = Commands(args)
    found: dict[int, dict[str, Cost]] = {}
    with commands.running():
        if not args.json:
            print(f"Running on {commands.cluster.engine}", flush=True)
        commands.batch(max(1, args.finished))
        # As flux rabbit profiles needs it.
        kinds = ("nnfstorageprofiles", "nnfcontainerprofiles")
        commands.cluster.ctl("grant", *(f"{kind}:list" for kind in kinds))
        run("flux", "queue", "stop", "--all")
        for count in (args.few, args.live):
            commands.hold(count)
            found[count] = commands.measure(args.repeats)
        submits = commands.submits(args.submits)
    if args.json:
        table = {n: {k: vars(c) for k, c in f.items()} for n, f in found.items()}
        print(json.dumps({"commands": table, "submit": submits}, indent=1))
    else:
        show(args.few, args.live, found)
        show_submits(submits)
    return 0


if __name__ == "__main__":
    sys.exit(main())
