# SPDX-License-Identifier: LGPL-3.0-only
"""flux cancel: cancel jobs by ID, or all that match."""

import os
import sys
from typing import Any

import flux
import solocmd

STATES = {"depend": 2, "priority": 4, "sched": 8, "run": 16, "cleanup": 32}
GROUPS = {
    "pending": ("depend", "priority", "sched"),
    "running": ("run", "cleanup"),
    "active": tuple(STATES),
}


def state_mask(names: list[str]) -> int:
    mask = 0
    for name in ",".join(names).lower().split(","):
        for state in GROUPS.get(name, (name,)):
            if state not in STATES:
                raise ValueError(f"Invalid state {name} specified")
            mask |= STATES[state]
    return mask


def cancel_all(args: Any) -> None:
    user = args.user or str(os.getuid())
    if user == "all":
        userid = 0xFFFFFFFF
    elif user.isdigit():
        userid = int(user)
    else:
        import pwd

        userid = pwd.getpwnam(user).pw_uid
    request = {
        "dry_run": args.dry_run,
        "userid": userid,
        "states": state_mask(args.states or ["active"]),
        "type": "cancel",
        "severity": 0,
    }
    if args.message:
        request["note"] = args.message
    reply = flux.Flux().rpc("job-manager.raiseall", request).get()
    count, errors = reply["count"], reply["errors"]
    jobs = f"{count} job{'' if count == 1 else 's'}"
    if args.quiet:
        return
    if count == 0:
        text = "Matched 0 jobs"
    elif args.dry_run:
        text = f"Would cancel {jobs}"
    else:
        text = f"Canceled {jobs} ({errors} error{'' if errors == 1 else 's'})"
    print(f"flux-cancel: {text}", file=sys.stderr)


def cancel_ids(args: Any) -> None:
    handle = flux.Flux()
    failed = False
    request = {"severity": 0, "type": "cancel", "note": args.message or ""}
    rpcs = [
        (job, handle.rpc("job-manager.raise", dict(request, id=int(job))))
        for job in args.jobids
    ]
    for job, rpc in rpcs:
        try:
            rpc.get()
        except OSError:
            print(
                f"flux-cancel: ERROR: {job.f58}: {rpc.error_string()}", file=sys.stderr
            )
            failed = True
    sys.exit(1 if failed else 0)


def main() -> None:
    top = solocmd.parser("flux-cancel")
    top.add_argument("-n", "--dry-run", action="store_true", help="only count jobs")
    top.add_argument("-q", "--quiet", action="store_true", help="no output")
    top.add_argument("-u", "--user", help="jobs of USER, or all")
    top.add_argument("--all", action="store_true", help="all my jobs")
    top.add_argument(
        "-S",
        "--states",
        "-s",
        action="append",
        metavar="STATES",
        help="jobs in these states (default: active)",
    )
    top.add_argument("-m", "--message", metavar="NOTE", help="reason")
    top.add_argument("jobids", nargs="*", type=solocmd.jobid, metavar="JOBID")
    args = top.parse_args()
    if args.all or args.user or args.states:
        if args.jobids:
            raise ValueError("Do not specify a jobid with --all")
        cancel_all(args)
    elif args.jobids:
        cancel_ids(args)
    else:
        raise ValueError("which jobs?")


if __name__ == "__main__":
    solocmd.run("flux-cancel", main)
