# SPDX-License-Identifier: LGPL-3.0-only
#
# flux getrabbit: from compute nodes or jobs to rabbits, and back.
"""Look up rabbits and the compute nodes next to them."""

from __future__ import annotations

import argparse
import sys

from flux_k8s import program, rabbitmap, texts


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="flux getrabbit",
        description="Print the compute nodes next to the given rabbits, or the "
        "rabbits next to compute nodes or of jobs, as an RFC 29 hostlist. "
        "Without arguments, print all rabbits.",
    )
    parser.add_argument(
        "rabbits",
        nargs="*",
        metavar="RABBITS",
        help="hostlists of rabbits, to be mapped to compute nodes",
    )
    parser.add_argument(
        "-c",
        "--computes",
        nargs="+",
        metavar="HOSTS",
        default=[],
        help="hostlists of compute nodes, to be mapped to rabbits",
    )
    parser.add_argument(
        "-j",
        "--jobids",
        nargs="+",
        metavar="JOBID",
        default=[],
        help="jobs, to be mapped to the rabbits they use",
    )
    args = parser.parse_args()
    if args.rabbits and (args.computes or args.jobids):
        parser.error("RABBITS cannot be combined with --computes or --jobids")
    return args


def job_rabbits(handle: object, jobid: str) -> str:
    """The rabbits of a job, from the memo that its workflow leaves."""
    import flux.job

    try:
        number = flux.job.JobID(jobid)
    except ValueError:
        raise rabbitmap.MappingError(f"'{jobid}' is not a job id") from None
    try:
        info = flux.job.job_list_id(handle, number, ["annotations"]).get_jobinfo()
    except FileNotFoundError:
        raise rabbitmap.MappingError(f"there is no job {jobid}") from None
    # without annotation this is an object that reads as an empty string
    rabbits = str(info.user.rabbits)
    if not rabbits:
        raise rabbitmap.MappingError(f"job {jobid} uses no rabbits")
    return rabbits


def main() -> None:
    args = parse_args()
    import flux

    handle = flux.Flux()
    mapping = rabbitmap.load(rabbitmap.configured_path(handle))
    # Such as a variable that is not set.
    if not all(text.strip() for text in (*args.rabbits, *args.computes)):
        raise rabbitmap.MappingError("an empty hostlist names no host")
    if args.rabbits:
        found = rabbitmap.computes_of(mapping, args.rabbits)
        print(texts.clean(rabbitmap.encode(found)))
    elif args.computes or args.jobids:
        found = [job_rabbits(handle, jobid) for jobid in args.jobids]
        found += rabbitmap.rabbits_of(mapping, args.computes)
        print(texts.clean(rabbitmap.encode(found)))
    else:
        print(texts.clean(rabbitmap.all_rabbits(mapping)))


if __name__ == "__main__":
    sys.exit(program.run("flux-getrabbit", main, (rabbitmap.MappingError,)))
