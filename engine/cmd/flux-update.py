# SPDX-License-Identifier: LGPL-3.0-only
"""flux update: change attributes of a job that has not run, or its limit."""

import json
from typing import Any

import flux
import solocmd
from flux.job import JobID
from flux.job.event import event_watch

SHORT = {"duration": "attributes.system.duration", "queue": "attributes.system.queue"}


def expand_key(key: str) -> str:
    if key in SHORT:
        return SHORT[key]
    if key == "name":
        return "attributes.system.job.name"
    if key.startswith(("attributes.", "resources", "tasks")):
        return key
    return f"attributes.system.{key}"


def new_duration(handle: Any, jobid: int, text: str) -> float:
    """A duration, or a change (+ or -) of the present one."""
    value = solocmd.duration(text.lstrip("+-"))
    if text[0] not in "+-":
        return value
    from flux.job import job_kvs_lookup

    jobspec = job_kvs_lookup(handle, jobid, keys=["jobspec"])["jobspec"]
    current = float(jobspec["attributes"]["system"].get("duration", 0))
    if current == 0:
        raise ValueError("duration is unlimited: cannot add to it")
    result = current + value if text[0] == "+" else current - value
    if result <= 0:
        raise ValueError(f"requested duration {text} would be negative")
    return result


def main() -> None:
    top = solocmd.parser("flux-update")
    top.add_argument("-n", "--dry-run", action="store_true", help="print, do not send")
    top.add_argument("-v", "--verbose", action="store_true", help="print what was done")
    top.add_argument(
        "--no-wait",
        dest="wait",
        action="store_false",
        help="do not wait for the update to appear in the eventlog",
    )
    top.add_argument("jobid", type=solocmd.jobid, metavar="JOBID")
    top.add_argument("updates", nargs="+", metavar="KEY=VALUE")
    args = top.parse_args()
    handle = flux.Flux()
    updates: dict[str, Any] = {}
    for item in args.updates:
        key, sep, value = item.partition("=")
        if not sep:
            raise ValueError(f"{item}: expected KEY=VALUE")
        key = expand_key(key)
        if key == SHORT["duration"]:
            updates[key] = new_duration(handle, args.jobid, value)
            continue
        try:
            updates[key] = json.loads(value)
        except json.JSONDecodeError:
            updates[key] = value
    if args.dry_run:
        for key, value in updates.items():
            print(f"{args.jobid.f58}: would update {key} to {value}")
        return
    before = 0
    if args.wait:
        log = handle.rpc(
            "job-info.lookup",
            {"id": int(args.jobid), "keys": ["eventlog"], "flags": 0},
        ).get()["eventlog"]
        before = len(log.splitlines())
    handle.rpc("job-manager.update", {"id": int(args.jobid), "updates": updates}).get()
    if args.wait:
        for count, event in enumerate(event_watch(handle, JobID(args.jobid)), 1):
            if count > before and event.name == "jobspec-update":
                break
    if args.verbose:
        for key, value in updates.items():
            print(f"updated {key} to {value}")


if __name__ == "__main__":
    solocmd.run("flux-update", main)
