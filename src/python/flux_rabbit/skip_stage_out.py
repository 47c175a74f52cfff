# SPDX-License-Identifier: LGPL-3.0-only
#
# flux rabbit release --hurry, for the owner of the job and the instance owner.
"""End a job's epilog without staging out the rest of its data."""

from __future__ import annotations

import argparse
from typing import Any

from flux_k8s import names
from flux_k8s.workflow import raise_exception

from flux_rabbit import cli, rpc, term
from flux_rabbit.listing import waits_for

Object = dict[str, Any]


def lost(job: Object) -> list[str]:
    """The copies lost if stage-out is skipped now, as "SOURCE -> DESTINATION"."""
    workflow = job.get("workflow")
    if workflow is None:
        return []
    if workflow["state"] == "DataOut" and workflow["ready"]:
        return []
    return list(job.get("copy_out", ()))


def _check(job: Object, number: int) -> None:
    """Raises Failure if there is nothing to skip."""
    name = rpc.f58(number)
    if job["phase"] == "gone":
        raise cli.Failure(f"{name} has ended: the data that it left is still copied")
    if job["phase"] != "epilog":
        raise cli.Failure(f"{name} is not in its epilog: end it with flux cancel first")
    workflow = job.get("workflow")
    if workflow is None or workflow["desired"] == "Teardown":
        raise cli.Failure(f"nothing can be skipped: the storage of {name} is removed")


def release(handle: rpc.Handle, args: argparse.Namespace) -> int:
    """Run release --hurry."""
    number = cli.jobids([args.jobid])[0]
    job = rpc.active_job(handle, number)
    if job is None:
        raise cli.Failure(f"{rpc.f58(number)} is not an active rabbit job")
    _check(job, number)
    left = lost(job)
    where = term.clean(waits_for(job))
    if not args.json:
        print(f"{rpc.f58(number)} waits for: {where}")
        print("If that is skipped, this is lost:" if left else "Nothing is lost.")
        for text in left:
            print(f"  {term.clean(text)}")
    if not args.yes:
        cli.confirm()
    note = args.reason or "in a hurry"
    if left:
        note += f"; not copied out: {', '.join(left)} ({where})"
    raise_exception(handle, number, names.EXCEPTION_RELEASE, note)
    if args.json:
        cli.print_json({"id": number, "lost": left})
    return 0
