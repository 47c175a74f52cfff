# SPDX-License-Identifier: LGPL-3.0-only
"""flux exec: run a command once for each node.

All made-up nodes are this host: each run has the name of its node in
HOSTNAME and its rank in FLUX_EXEC_RANK.
"""

import argparse
import os
import subprocess
import sys

import flux
import solocmd
from flux.hostlist import Hostlist
from flux.idset import IDset


def nodes(handle: flux.Flux) -> dict[int, str]:
    resources = handle.rpc("resource.status").get()["R"]["execution"]
    hosts = list(Hostlist(resources["nodelist"]))
    ranks: list[int] = []
    for entry in resources["R_lite"]:
        ranks.extend(IDset(entry["rank"]))
    return dict(zip(ranks, hosts))


def main() -> None:
    top = solocmd.parser("flux-exec")
    top.add_argument(
        "-r", "--rank", default="all", metavar="IDSET", help="on these ranks"
    )
    top.add_argument("-x", "--exclude", default="", metavar="IDSET", help="but these")
    top.add_argument("-d", "--dir", help="working directory")
    top.add_argument("-l", "--label-io", action="store_true", help="label output")
    top.add_argument("-n", "--noinput", action="store_true", help="no standard input")
    top.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND")
    args = top.parse_args()
    if not args.command:
        top.error("a command is required")
    hosts = nodes(flux.Flux())
    ranks = set(hosts) if args.rank == "all" else set(IDset(args.rank))
    ranks -= set(IDset(args.exclude))
    if not ranks <= set(hosts):
        raise ValueError(f"{IDset(sorted(ranks - set(hosts)))}: No route to host")
    worst = 0
    for rank in sorted(ranks):
        env = dict(os.environ, HOSTNAME=hosts[rank], FLUX_EXEC_RANK=str(rank))
        pipe = subprocess.PIPE if args.label_io else None
        done = subprocess.run(
            args.command,
            env=env,
            cwd=args.dir,
            check=False,
            stdin=subprocess.DEVNULL if args.noinput else None,
            stdout=pipe,
            stderr=pipe,
        )
        for data, stream in ((done.stdout, sys.stdout), (done.stderr, sys.stderr)):
            for line in (data or b"").splitlines():
                print(f"{rank}: {line.decode(errors='replace')}", file=stream)
        code = done.returncode if done.returncode >= 0 else 128 - done.returncode
        worst = max(worst, code)
    sys.exit(worst)


if __name__ == "__main__":
    solocmd.run("flux-exec", main)
