# Instructions of dws.so per rabbit job; run by bench/profile.
# SPDX-License-Identifier: LGPL-3.0-only
"""Instructions of the module dws.so per rabbit job, by function, from submit to
clean. The module runs in a process of its own, under callgrind; or the agent does."""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import subprocess
import sys
from collections import Counter

from cluster import Failed, run
from growth import Growth
from storm import new_parser

WARM_UP = 10  # jobs
TOTAL = re.compile(r"^ *([\d,]+) .*PROGRAM TOTALS", re.MULTILINE)
LINE = re.compile(r"^ *([\d,]+) \([ \d.]+%\) +(.*)$", re.MULTILINE)


class Profile(Growth):
    """An instance whose module dws, or agent, runs under callgrind as 'child'."""

    child: subprocess.Popen[bytes]

    def start(self) -> None:
        if self.args.agent:
            self.cluster.kill_agent()
            self.wait_status("no agent", lambda s: not s["agent"]["attached"])
            agent = self.args.prefix / "bin" / "flux-coral2-dws"
            self.start_child(agent, "--kubeconfig", self.cluster.kubeconfig)
        else:
            run("flux", "module", "remove", "dws")
            dws = self.args.prefix / "lib" / "flux" / "modules" / "dws.so"
            host = pathlib.Path(__file__).with_name("modhost.py")
            self.start_child(host, dws)
        self.wait_synced()

    def start_child(self, *command: pathlib.Path | str) -> None:
        """Start a Python program under callgrind, which counts nothing yet."""
        self.child = subprocess.Popen(
            [
                *("valgrind", "--tool=callgrind", "--instr-atstart=no"),
                f"--callgrind-out-file={self.args.workdir}/callgrind.out",
                *(sys.executable, *map(str, command)),
            ],
            stderr=subprocess.DEVNULL,
        )

    def cpu(self) -> Counter[str]:
        """Empty: a profile needs no CPU times, and may have replaced the agent."""
        return Counter()

    def control(self, *words: str) -> None:
        run("callgrind_control", *words, str(self.child.pid))

    def measure(self) -> pathlib.Path:
        """Returns the file that callgrind has written."""
        self.hold(self.args.live)
        self.beside(WARM_UP)
        self.control("--instr=on")
        self.beside(self.args.jobs)
        self.control("--dump")
        self.control("--instr=off")
        return next(self.args.workdir.glob("callgrind.out.*"))


def annotate(out: pathlib.Path, inclusive: bool) -> str:
    return run(
        "callgrind_annotate",
        *("--threshold=100", "--show-percs=yes"),
        f"--inclusive={'yes' if inclusive else 'no'}",
        str(out),
    )


def number(text: str) -> int:
    return int(text.replace(",", ""))


def show(title: str, text: str, jobs: int, lines: int) -> None:
    print(f"\n{title}:")
    for count, what in LINE.findall(text)[:lines]:
        function, _, where = what.partition(" [")
        name = function.rpartition(":")[2]
        library = pathlib.PurePath(where.rstrip("]")).name
        print(f"{number(count) / jobs:12,.0f}  {name} ({library})")


def parse_args() -> argparse.Namespace:
    parser = new_parser("bench/profile", __doc__)
    add = parser.add_argument
    add("-n", "--jobs", type=int, default=200, help="that are measured")
    add("--live", type=int, default=10, help="other jobs, which have a workflow")
    add("--agent", action="store_true", help="of the agent in place of the module")
    add("--lines", type=int, default=40, help="of each table")
    add("--keep", type=pathlib.Path, help="callgrind's file, for kcachegrind")
    return parser.parse_args()


def main() -> int:
    args = parse_args()
    profile = Profile(args)
    with profile.running():
        print(f"Running on {profile.cluster.engine}", flush=True)
        profile.start()
        try:
            out = profile.measure()
        finally:
            profile.child.terminate()
            profile.child.wait()
    inclusive = annotate(out, True)
    total = TOTAL.search(inclusive)
    if not total:
        raise Failed("callgrind has written nothing")
    print(f"{number(total[1]) / args.jobs:,.0f} instructions per job")
    show("With what they call", inclusive, args.jobs, args.lines)
    show("By themselves", annotate(out, False), args.jobs, args.lines)
    if args.keep:
        kept = getattr(args, "from") / args.keep
        kept.write_bytes(out.read_bytes())
        print(f"\ncallgrind's file: {os.path.relpath(kept)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
