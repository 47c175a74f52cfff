# Draws a flame graph of the CPU time of rabbit jobs; run by bench/flames.
# SPDX-License-Identifier: LGPL-3.0-only
"""Samples the processor while rabbit jobs run from submit to clean, with perf a thread
of the broker, that of dws.so if no other is named, or with py-spy the agent, and draws
what was found: the wider a function, the more often it was there, with what it calls
above it."""

from __future__ import annotations

import argparse
import pathlib
import shutil
import signal
import subprocess
import sys
from collections import Counter
from html import escape

from cluster import Failed
from growth import Growth
from storm import AGENT, new_parser

WARM_UP = 50  # jobs
HERTZ = 1499
Stack = tuple[str, ...]  # the caller first


def perf_command(broker: int, data: pathlib.Path) -> list[str]:
    return [
        *("perf", "record", "-q", "-e", "cpu-clock", "-F", str(HERTZ)),
        *("--call-graph", "dwarf,8192", "-o", str(data), "-p", str(broker)),
    ]


def perf_frame(line: str) -> str:
    """Function, or library if unknown, of a line "ADDRESS FUNCTION (FILE)" of perf."""
    _address, _, what = line.strip().partition(" ")
    function, _, where = what.rpartition(" (")
    name = function.partition("+0x")[0]
    library = pathlib.PurePath(where.rstrip(")")).name
    return name if name not in ("", "[unknown]") else f"({library.partition('.so')[0]})"


def perf_stacks(data: pathlib.Path, thread: str) -> Counter[Stack]:
    found: Counter[Stack] = Counter()
    script = ["perf", "script", "-i", str(data), "--comm", thread, "-F", "ip,sym,dso"]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    for block in done.stdout.split("\n\n"):
        frames: list[str] = []
        for line in reversed(block.strip().splitlines()):
            name = perf_frame(line)
            # what has no names is as deep as it likes
            if not frames or name[0] != "(" or frames[-1] != name:
                frames.append(name)
        if frames:
            found[tuple(frames)] += 1
    return found


def py_spy_command(agent: int, raw: pathlib.Path) -> list[str]:
    return [
        *("py-spy", "record", "--nonblocking", "-r", "500", "-d", "600"),
        *("-f", "raw", "-o", str(raw), "--pid", str(agent)),
    ]


def py_spy_stacks(raw: pathlib.Path) -> Counter[Stack]:
    found: Counter[Stack] = Counter()
    for line in raw.read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        frames = (frame.partition(" (")[0] for frame in stack.split(";"))
        found[tuple(frames)] += int(count)
    return found


# The picture

WIDTH, ROW, TOP = 1000, 17, 40
LETTER = 6.6
NARROWEST = 4.0
COLOURS = ("#f2b36b", "#eea05a", "#f5c483", "#e8914a", "#f0ab74")


def boxes(
    stacks: Counter[Stack], depth: int = 0, left: int = 0
) -> list[tuple[str, int, int, int]]:
    """Name, depth, samples to the left of it, and its own."""
    found: list[tuple[str, int, int, int]] = []
    inner: dict[str, Counter[Stack]] = {}
    for stack, count in stacks.items():
        if len(stack) > depth:
            inner.setdefault(stack[depth], Counter())[stack] = count
    for name, part in sorted(inner.items()):
        found.append((name, depth, left, part.total()))
        found += boxes(part, depth + 1, left)
        left += part.total()
    return found


def draw(stacks: Counter[Stack], title: str) -> str:
    total = stacks.total()
    scale = WIDTH / total
    shown = [box for box in boxes(stacks) if box[3] * scale >= NARROWEST]
    height = TOP + ROW * (1 + max(depth for _, depth, _, _ in shown))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img" font-size="11" '
        'font-family="monospace">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="8" y="22" font-size="14">{escape(title)}</text>',
    ]
    for name, depth, left, count in shown:
        x, width = left * scale, count * scale
        y = height - ROW * (depth + 1)
        colour = COLOURS[sum(name.encode()) % len(COLOURS)]
        letters = int((width - 4) / LETTER)
        text = name if len(name) <= letters else name[: letters - 1] + "…"
        share = f"{name}: {100 * count / total:.1f} %"
        parts.append(
            f'<g><title>{escape(share)}</title><rect x="{x:.1f}" y="{y}" '
            f'width="{width - 0.4:.1f}" height="{ROW - 1}" fill="{colour}"/>'
            + (
                f'<text x="{x + 2:.1f}" y="{y + 12}">{escape(text)}</text>'
                if letters >= 3
                else ""
            )
            + "</g>"
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def record(growth: Growth, args: argparse.Namespace) -> Counter[Stack]:
    found = args.workdir / "samples"
    if args.agent:
        command = py_spy_command(growth.cluster.pid(AGENT), found)
    else:
        command = perf_command(growth.broker, found)
    if not shutil.which(command[0]):
        how = {"perf": "apt-get install linux-perf", "py-spy": "pip install py-spy"}
        raise Failed(f"{command[0]} is not here: {how[command[0]]}")
    growth.hold(args.live)
    growth.beside(WARM_UP)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as recorder:
        growth.beside(args.jobs)
        recorder.send_signal(signal.SIGINT)
    return py_spy_stacks(found) if args.agent else perf_stacks(found, args.thread)


def parse_args() -> argparse.Namespace:
    parser = new_parser("bench/flames", __doc__)
    add = parser.add_argument
    add("-n", "--jobs", type=int, default=600, help="while which samples are taken")
    add("--live", type=int, default=10, help="other jobs, which have a workflow")
    add("--thread", default="dws", help="of the broker: the name of a module")
    add("--agent", action="store_true", help="of the agent in place of the broker")
    add("file", type=pathlib.Path, help="where to draw it")
    return parser.parse_args()


def main() -> int:
    args = parse_args()
    growth = Growth(args)
    with growth.running():
        stacks = record(growth, args)
    if not stacks:
        raise Failed("nothing was seen")
    what = "the agent" if args.agent else f"the thread {args.thread}"
    title = f"{what}, {args.jobs} jobs beside {args.live:,}; {growth.cluster.engine}"
    (getattr(args, "from") / args.file).write_text(draw(stacks, title))
    print(f"{args.file}: {stacks.total()} samples")
    return 0


if __name__ == "__main__":
    sys.exit(main())
