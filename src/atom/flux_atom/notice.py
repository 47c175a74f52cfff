# What Flux's prolog and epilog scripts atom-begin and atom-end do.
# SPDX-License-Identifier: LGPL-3.0-only
"""One notice for one job on this node.

The client and its configuration are those of the PBS hook, installed beside
this file as flux_atom/client.py.
"""

from __future__ import annotations

import argparse
import errno
import os
import signal
import socket
import sys
from types import FrameType
from typing import Any

import flux
import flux.constants
from flux.idset import IDset
from flux.job import JobID

from flux_atom import client

# As long as the PBS hook's default alarm: what ATOM may need to make a node
# usable.
ALARM_S = 300


class Alarm(BaseException):
    """The notice took too long altogether. No error of whatever is interrupted, so
    that nothing handles it there."""


def _on_alarm(_signum: int, _frame: FrameType | None) -> None:
    raise Alarm("no success before the alarm")


def cores_by_host(resource_set: dict[str, Any]) -> dict[str, int]:
    """How many cores of each host a resource set (RFC 20) has."""
    execution = resource_set["execution"]
    ranks: dict[int, int] = {}
    for entry in execution["R_lite"]:
        cores = IDset(entry["children"].get("core", "")).count()
        for rank in IDset(str(entry["rank"])):
            ranks[rank] = ranks.get(rank, 0) + cores
    hosts = list(flux.hostlist.Hostlist(execution["nodelist"]))
    return dict(zip(hosts, (ranks[rank] for rank in sorted(ranks))))


def asks_exclusive(resources: list[dict[str, Any]]) -> bool:
    """Does a jobspec (RFC 14) ask for its nodes exclusively?"""
    return any(
        (vertex.get("type") == "node" and vertex.get("exclusive") is True)
        or asks_exclusive(vertex.get("with", []))
        for vertex in resources
    )


def is_exclusive(
    resources: list[dict[str, Any]],
    job_r: dict[str, Any],
    all_r: dict[str, Any],
    host: str,
) -> bool:
    """Has a job a node for itself: because it said so, or because it was
    given every core of it."""
    if asks_exclusive(resources):
        return True
    taken = cores_by_host(job_r).get(host, 0)
    return taken > 0 and taken == cores_by_host(all_r).get(host)


def job_is_exclusive(handle: flux.Flux, jobid: JobID, host: str) -> bool:
    """Ask Flux whether a job has a node for itself.

    Raises:
        OSError: Flux does not know, or cannot be asked.
    """
    info = flux.job.job_kvs_lookup(handle, jobid, keys=["jobspec", "R"])
    if not info or not info.get("R"):
        raise OSError(errno.ENOENT, f"no R of job {jobid.f58plain}")
    all_r = handle.rpc("resource.status", {}, nodeid=0).get()["R"]
    return is_exclusive(info["jobspec"]["resources"], info["R"], all_r, host)


def drain(handle: flux.Flux, host: str, reason: str) -> None:
    """Take the node out of service; one that is drained keeps its reason."""
    handle.rpc(
        "resource.drain",
        {"targets": host, "reason": client.shown(f"atom: {reason}"), "mode": "update"},
        nodeid=0,
    ).get()


def notify(
    handle: flux.Flux, action: str, jobid: JobID, uid: int, host: str, atom: client.Atom
) -> None:
    """Send one notice."""
    if action == "begin":
        atom.begin(jobid.f58plain, uid, job_is_exclusive(handle, jobid, host))
    else:
        atom.end(jobid.f58plain)


def run(action: str, jobid: JobID, uid: int, host: str, alarm_s: int) -> int:
    """Send one notice, giving up before alarm_s. Returns the exit code for the
    script.

    A begin that fails for what is wrong with ATOM or its configuration drains
    the node: what is wrong would fail the next job, too. An end never fails, as
    Flux drains each node on which the epilog does: the job has done well, and
    there is nothing wrong with the node.
    """
    failed = 1 if action == "begin" else 0
    log = client.quiet(
        lambda text: print(f"atom-{action}: {jobid.f58plain}: {text}", file=sys.stderr)
    )
    try:
        handle = flux.Flux()
        table = handle.conf_get("atom")
        if table is None:
            return 0  # not configured: off
        signal.signal(signal.SIGALRM, _on_alarm)
        signal.alarm(alarm_s)
        try:
            if action == "begin":
                config = client.check_config(table, "[atom]")
            else:
                config = client.end_config(table, "[atom]", log)
            atom = client.Atom(config, log, alarm_s)
            notify(handle, action, jobid, uid, host, atom)
        except (client.ConfigError, client.AtomError, Alarm) as exc:
            signal.alarm(0)
            log(str(exc))
            if action == "begin":
                drain(handle, host, str(exc))
            return failed
        finally:
            signal.alarm(0)
    except OSError as exc:
        log(f"Flux does not answer: {exc}")
        return failed
    except Exception as exc:
        # Such as an answer of Flux in another form: no fault of the node.
        log(f"{type(exc).__name__}: {exc}")
        return failed
    return 0


def main(action: str) -> int:
    """Entry point of atom-begin and atom-end."""
    parser = argparse.ArgumentParser(
        prog=f"atom-{action}",
        description=f"Tell ATOM that a job is to {action} on this node; run by "
        "Flux's prolog or epilog. Does nothing without an [atom] table in the "
        "Flux configuration.",
    )
    parser.add_argument("--jobid", default=os.environ.get("FLUX_JOB_ID"))
    parser.add_argument("--uid", type=int, default=os.environ.get("FLUX_JOB_USERID"))
    parser.add_argument(
        "--host",
        default=os.environ.get("FLUX_ATOM_HOST") or socket.gethostname(),
        help="name of this node in Flux (default: the host's name)",
    )
    parser.add_argument(
        "--alarm",
        metavar="S",
        type=int,
        default=ALARM_S,
        help="give up after so many seconds in all (default: %(default)s)",
    )
    args = parser.parse_args()
    if args.jobid is None or args.uid is None:
        parser.error("no job: FLUX_JOB_ID and FLUX_JOB_USERID are not set")
    try:
        jobid = JobID(args.jobid)
    except ValueError:
        parser.error(f"--jobid: {client.shown(args.jobid)} is not a job id")
    if args.alarm < 1:
        parser.error(f"--alarm: expected 1 or more, got {args.alarm}")
    return run(action, jobid, int(args.uid), args.host, args.alarm)
