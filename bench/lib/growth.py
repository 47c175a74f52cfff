# Measures CPU time of a rabbit job beside many held ones; run by bench/growth.
# SPDX-License-Identifier: LGPL-3.0-only
"""CPU time of a rabbit job, from submit to clean, while so many others are held in
the queue and have their workflows. Each figure is the median of several runs."""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

import flux.job
from cluster import Failed
from flux_k8s.names import KEY_WORKFLOW
from storm import DIRECTIVE, LIMIT_S, Storm, jobspec, new_parser

# Components that run at a site: neither the simulator nor the submitting process.
SHOWN = {"dws": "dws.so", "agent": "agent", "job-manager": "job manager", "kvs": "KVS"}
ALL = "all"
PLAIN = "a plain job"  # all of it; it grows, too
NOT_COUNTED = ("simulator", "submitter")
POLL_S = 0.25
HELD = 0  # urgency


class Growth(Storm):
    held = 0

    def hold(self, count: int) -> None:
        """Submit until this many jobs are held, each with a workflow on record. The
        record is written seconds later, and would count for another job."""
        spec = jobspec(DIRECTIVE, shell=False)
        waiting = [
            flux.job.submit_async(self.handle, spec, urgency=HELD)
            for _ in range(count - self.held)
        ]
        ids = [future.get_id() for future in waiting]
        self.held = count
        self.wait_status("proposals", lambda s: s["phases"]["pending"] >= count)
        if ids:
            self.wait_record(ids[-1])

    def wait_record(self, jobid: int) -> None:
        request = {"id": jobid, "keys": [KEY_WORKFLOW], "flags": 0}
        limit = time.monotonic() + LIMIT_S
        while time.monotonic() < limit:
            try:
                self.handle.rpc("job-info.lookup", request).get()
                return
            except FileNotFoundError:
                time.sleep(POLL_S)
        raise Failed(f"no {KEY_WORKFLOW} of {jobid}")

    def beside(self, count: int, dw: str | None = DIRECTIVE) -> Counter[str]:
        """CPU seconds by component of this many jobs that run to their end."""
        before, outcome = self.cpu(), self.stats()
        self.submit(count, dw)
        limit = time.monotonic() + LIMIT_S
        while self.stats()["successful"] < outcome["successful"] + count:
            if time.monotonic() > limit:
                raise Failed(f"not all of {count} jobs succeeded: {self.stats()}")
            time.sleep(POLL_S)
        self.wait_status("workflows", lambda s: s["workflows"] == self.held)
        return self.cpu() - before


def site_s(row: Counter[str]) -> float:
    return sum(v for k, v in row.items() if k not in NOT_COUNTED)


def measure(growth: Growth, live: int, jobs: int, runs: int) -> dict[str, Any]:
    growth.hold(live)
    rows = [growth.beside(jobs) for _ in range(runs)]
    plain = [growth.beside(jobs, None) for _ in range(runs)]

    def median_ms(seconds: Iterable[float]) -> float:
        return 1000 * statistics.median(seconds) / jobs

    cpu = {key: median_ms(row[key] for row in rows) for key in SHOWN}
    cpu[ALL] = median_ms(map(site_s, rows))
    cpu[PLAIN] = median_ms(map(site_s, plain))
    return {"live": live, "cpu_ms_per_job": cpu}


def show(row: dict[str, Any]) -> None:
    figures = "".join(f"{v:14.2f}" for v in row["cpu_ms_per_job"].values())
    print(f"{row['live']:10,}{figures}", flush=True)


# The plot

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 60, 620, 24, 310
COLOURS = {"dws": "#0969da", "agent": "#bc4c00", ALL: "#59636e", PLAIN: "#1a7f37"}
LABELS = {**SHOWN, ALL: "all of Flux's", PLAIN: PLAIN}
STYLE = """<style>
 .bg{fill:#ffffff}.fg{fill:#1f2328}.dim{fill:#59636e}.grid{stroke:#d0d7de}
 text{font-family:system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif}
 @media (prefers-color-scheme:dark){.bg{fill:#0d1117}.fg{fill:#e6edf3}
 .dim{fill:#9198a1}.grid{stroke:#3d444d}}
</style>"""


def step(top: float) -> float:
    """Between lines of the grid: one, two or five times a power of ten."""
    power = 10 ** math.floor(math.log10(top / 4))
    return float(next(n * power for n in (1, 2, 5, 10) if n * power >= top / 4))


def plot(rows: list[dict[str, Any]], where: str) -> str:
    """A picture of the table (SVG)."""
    top = 1.15 * max(row["cpu_ms_per_job"][ALL] for row in rows)
    first, last = (math.log10(rows[i]["live"]) for i in (0, -1))

    def x(live: float) -> float:
        return LEFT + (math.log10(live) - first) / ((last - first) or 1) * (
            RIGHT - 110 - LEFT
        )

    def y(value: float) -> float:
        return BOTTOM - value / top * (BOTTOM - TOP)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" role="img" font-size="13">',
        "<title>CPU time of a rabbit job beside many others</title>",
        STYLE,
        f'<rect class="bg" width="{WIDTH}" height="{HEIGHT}" rx="6"/>',
    ]
    value = 0.0
    while value < top:
        parts.append(
            f'<path class="grid" d="M{LEFT} {y(value):.1f}H{RIGHT - 110}"/>'
            f'<text class="dim" x="{LEFT - 8}" y="{y(value) + 4:.1f}" '
            f'text-anchor="end">{value:g}</text>'
        )
        value += step(top)
    for row in rows:
        parts.append(
            f'<text class="dim" x="{x(row["live"]):.1f}" y="{BOTTOM + 20}" '
            f'text-anchor="middle">{row["live"]:,}</text>'
        )
    for key, colour in COLOURS.items():
        points = [(x(r["live"]), y(r["cpu_ms_per_job"][key])) for r in rows]
        line = "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
        parts.append(
            f'<path d="M{line}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        parts += [
            f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.5" fill="{colour}"/>'
            for a, b in points
        ]
        name = LABELS[key]
        parts.append(
            f'<text x="{RIGHT - 100}" y="{points[-1][1] + 4:.1f}" '
            f'fill="{colour}">{name}</text>'
        )
    parts.append(
        f'<text class="fg" x="{LEFT}" y="{HEIGHT - 10}">jobs in the queue that have a '
        f"workflow; CPU time of one more job (ms), {where}</text></svg>"
    )
    return "\n".join(parts) + "\n"


def parse_args() -> argparse.Namespace:
    parser = new_parser("bench/growth", __doc__)
    add = parser.add_argument
    add("--live", default="10,100,1000,10000", help="workflows at a time")
    add("-n", "--jobs", type=int, default=100, help="that are measured beside them")
    add("--runs", type=int, default=3, help="of which the median counts")
    add("--svg", metavar="FILE", help="where to draw it")
    return parser.parse_args()


def main() -> int:
    args = parse_args()
    growth = Growth(args)
    rows = []
    with growth.running():
        growth.beside(20)
        if not args.json:
            print(f"Running on {growth.cluster.engine}; CPU time per job (ms)")
            print(
                f"{'workflows':>10}"
                + "".join(f"{s:>14}" for s in (*SHOWN.values(), ALL, PLAIN))
            )
        for live in map(int, args.live.split(",")):
            rows.append(measure(growth, live, args.jobs, args.runs))
            if not args.json:
                show(rows[-1])
    if args.json:
        print(json.dumps({"engine": growth.cluster.engine, "rows": rows}, indent=1))
    if args.svg:
        path = vars(args)["from"] / args.svg
        path.write_text(plot(rows, growth.cluster.engine.split(",")[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
