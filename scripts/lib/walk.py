# Runs a page of the user guide, command by command, in a simulated cluster; or starts
# that cluster alone, for a reader who types the commands.
# SPDX-License-Identifier: LGPL-3.0-only
"""Run by scripts/demo NAME as the initial program of a Flux instance."""

from __future__ import annotations

import argparse
import pathlib
import sys

import flux
from cluster import Cluster, Failed
from demo import keep
from say import BAD, GOOD, say

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "t" / "scripts"))

import doc_examples  # noqa: E402 # it is where the tests run the same pages

# No page: nothing is run.
PLAYGROUND = "playground"


def walk(page: pathlib.Path, workdir: pathlib.Path) -> bool:
    """Run the commands of a page. Returns whether each ended as the page says."""
    text = page.read_text()
    say((text.splitlines()[0], "bold"), f" ({page.relative_to(TOP)})\n")
    found, _ = doc_examples.examples(text)
    good = True
    results = doc_examples.run(found, str(workdir))
    for example, (status, output) in zip(found, results):
        say(("$", "DataOut"), (f" {example.command}", "bold"))
        print(output.rstrip(), flush=True)
        if bool(status) != example.fails:
            say((f"✗ exit status {status}", "bad"))
            good = False
    return good and len(results) == len(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--workdir", type=pathlib.Path, required=True)
    parser.add_argument("--prefix", type=pathlib.Path, required=True)
    parser.add_argument("--picture", help="not used: the page is all there is")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--fast", action="store_true")
    args = parser.parse_args()
    preset = "instant" if args.fast else "demo"
    # the programs that containers.rst shows are to run
    options = ("--root", str(args.workdir / "sim"), "--containers", "run")
    cluster = Cluster(args.workdir, args.prefix, preset, options)
    try:
        cluster.start()
        cluster.wait_synced(flux.Flux())
        say(f"Running on {cluster.engine}")
        good = True
        if args.name != PLAYGROUND:
            page = TOP / "doc" / "user" / f"{args.name}.rst"
            good = walk(page, args.workdir)
            cluster.ctl("wait-idle")
            say(*((GOOD, " nothing is left") if good else (BAD, " it failed")))
        if args.keep:
            keep(args.workdir)
    except Failed as exc:
        say(BAD, f" {exc}")
        good = False
    finally:
        cluster.stop()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
