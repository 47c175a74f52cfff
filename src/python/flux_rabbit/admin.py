# SPDX-License-Identifier: LGPL-3.0-only
#
# flux rabbit drain, undrain, disable, enable and release: for the owner of the
# instance.
"""Look after rabbits and stuck jobs."""

from __future__ import annotations

import argparse
import os
import re
import sys
from typing import Any

from flux_k8s import names
from flux_k8s.storage import RabbitManager
from flux_k8s.workflow import raise_exception

from flux_rabbit import cli, rpc, skip_stage_out, term
from flux_rabbit.listing import choose, state_of, waits_for
from flux_rabbit.units import Size

Object = dict[str, Any]

# flux-dws changes only drain reasons that begin with this.
PREFIX = "rabbit: "
# Reasons that name the workflow that has, or may have, a mount there.
MOUNTED = re.compile(
    f"{PREFIX}(?:failed to unmount in .* of|still mounted by|may be mounted by) (.*)"
)
# The state of an ended job in answers of job-list.
INACTIVE = 64

ABOUT = {
    "drain": (
        "Drain the compute nodes next to rabbits, so that no new job runs on them. "
        "Nodes that are drained already keep their reason.",
        ("flux rabbit drain --reason 'firmware' rabbit7",),
    ),
    "undrain": (
        "Undrain the compute nodes next to rabbits that were drained for their "
        f'rabbit: those whose reason begins with "{PREFIX.strip()}". A node stays '
        "drained where a workflow that its reason names has a mount, or may have one; "
        "flux resource undrain gives it back all the same.",
        ("flux rabbit undrain rabbit7", "flux rabbit undrain --all rabbit7"),
    ),
    "disable": (
        "Disable rabbits in Kubernetes: they give no storage to new jobs. What jobs "
        "have there stays. Their compute nodes can be used by other jobs.",
        ("flux rabbit disable --reason 'bad drive' 'rabbit[7-8]'",),
    ),
    "enable": (
        "Enable rabbits in Kubernetes again; this also lifts a fence.",
        ("flux rabbit enable rabbit7",),
    ),
    "release": (
        "Give up the workflow of a job that does not get on. A job that is not in its "
        "epilog yet is ended by an exception, after which its workflow is torn down. "
        "A job in its epilog is let go: first the nodes where something is still "
        "mounted, or may be, are drained and the rabbits where something is still "
        "allocated disabled; Teardown goes on without the job. So is one that ended "
        "while dws-jobtap.so was not loaded, which had no epilog. What will be left "
        "behind is printed and has to be confirmed. With --hurry, which the owner of "
        "the job may say as well, data is not copied out any more, and no node is let "
        "go that has a mount.",
        ("flux rabbit release ƒ2gVz", "flux rabbit release --hurry ƒ2gVz"),
    ),
}


def configure(
    parser: argparse.ArgumentParser, command: str
) -> tuple[str, tuple[str, ...]]:
    """Options of the command."""
    if command == "release":
        parser.add_argument("jobid", metavar="JOBID", help="an active rabbit job")
        parser.add_argument("--reason", metavar="TEXT", help="for the job's eventlog")
        parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
        parser.add_argument(
            "--hurry",
            action="store_true",
            help="in the epilog: unmount and tear down, and copy nothing out any more",
        )
    else:
        parser.add_argument(
            "rabbits", nargs="+", metavar="RABBITS", help="hostlists of rabbits"
        )
        if command in ("drain", "disable"):
            parser.add_argument("--reason", required=True, metavar="TEXT", help="why")
        if command == "undrain":
            parser.add_argument(
                "--all",
                action="store_true",
                help="also nodes that were drained for another reason",
            )
    return ABOUT[command]


def _nodes(rabbits: list[Object]) -> Any:
    from flux.hostlist import Hostlist

    result = Hostlist()
    for rabbit in rabbits:
        result.append(rabbit["nodes"])
    return result


def _drained(handle: rpc.Handle) -> dict[str, str]:
    """The drained hosts of the instance, with their reasons."""
    from flux.hostlist import Hostlist
    from flux.idset import IDset

    status = handle.rpc("resource.status", {}, nodeid=0).get()
    names = Hostlist(",".join(status["R"]["execution"]["nodelist"]))
    result = {}
    for ranks, entry in status["drain"].items():
        for rank in IDset(ranks):
            result[names[rank]] = str(entry.get("reason") or "")
    return result


def _in_instance(handle: rpc.Handle, hosts: Any) -> list[str]:
    """The hosts that are nodes of this instance."""
    from flux.hostlist import Hostlist

    status = handle.rpc("resource.status", {}, nodeid=0).get()
    known = set(Hostlist(",".join(status["R"]["execution"]["nodelist"])))
    return [host for host in hosts if host in known]


def _encode(hosts: list[str]) -> str:
    from flux.hostlist import Hostlist

    return str(Hostlist(hosts).encode())


def drain(handle: rpc.Handle, rabbits: list[Object], reason: str) -> str:
    """Drain the nodes of rabbits that are not drained; returns them."""
    drained = _drained(handle)
    hosts = [h for h in _in_instance(handle, _nodes(rabbits)) if h not in drained]
    if hosts:
        request = {
            "targets": _encode(hosts),
            "reason": PREFIX + reason.removeprefix(PREFIX),
            "mode": "update",
        }
        handle.rpc("resource.drain", request, nodeid=0).get()
    return _encode(hosts)


def _mounts(handle: rpc.Handle, workflows: set[str]) -> dict[str, set[str] | None]:
    """The given workflows that still have mounts, with the hosts of the mounts: None
    until the agent has listed them."""
    from flux.hostlist import Hostlist

    result: dict[str, set[str] | None] = {}
    pages = rpc.job_pages(handle) if workflows else iter(())
    for job in (job for page in pages for job in page):
        name = str((job.get("workflow") or {}).get("name"))
        full = rpc.active_job(handle, job["id"]) if name in workflows else None
        workflow = (full or {}).get("workflow")
        if (
            full
            and workflow
            and not (workflow["state"] == "Teardown" and workflow["ready"])
        ):
            lagging = full.get("lagging")
            result[name] = None if lagging is None else set(Hostlist(lagging))
    return result


def undrain(
    handle: rpc.Handle, rabbits: list[Object], everything: bool
) -> tuple[str, list[str], list[str]]:
    """Undrain the nodes of rabbits. Returns the nodes, errors for nodes that keep a
    mount, and warnings for nodes whose workflow vanished before it was unmounted."""
    drained = _drained(handle)
    hosts = [
        host
        for host in _nodes(rabbits)
        if host in drained and (everything or drained[host].startswith(PREFIX))
    ]
    named: dict[str, list[str]] = {}
    for host in hosts:
        if match := MOUNTED.fullmatch(drained[host]):
            named.setdefault(match.group(1), []).append(host)
    mounts = _mounts(handle, set(named))
    errors, notes = [], []
    for name, there in named.items():
        mounted = mounts.get(name, set())
        kept = [host for host in there if mounted is None or host in mounted]
        hosts = [host for host in hosts if host not in kept]
        if kept:
            what = "may have mounts" if mounted is None else "has mounts"
            errors.append(f"{_encode(kept)} not undrained: {name} {what} there")
        elif name not in mounts:
            text = f"{name} is gone, which had not been unmounted there"
            notes.append(f"{_encode(there)}: {text}: look whether it is now")
    if hosts:
        request = {"targets": _encode(hosts)}
        handle.rpc("resource.undrain", request, nodeid=0).get()
    return _encode(hosts), errors, notes


def who() -> str:
    """The person to record: admins share the instance owner, so look behind sudo."""
    return os.environ.get("SUDO_USER") or cli.user_name(os.getuid())


def set_state(
    handle: rpc.Handle, rabbits: list[Object], state: str, reason: str
) -> list[str]:
    """Enable or disable rabbits; returns the errors."""
    manager = RabbitManager(handle)
    pending = {
        rabbit["name"]: manager.set_state(rabbit["name"], state, reason, who())
        for rabbit in rabbits
    }
    errors = []
    for name, answer in pending.items():
        try:
            answer.get()
        except rpc.RpcError as exc:
            errors.append(f"{name}: {exc.strerror}")
    return errors


def left_behind(job: Object, nodelist: str) -> list[str]:
    """Sentences that name what a released job leaves behind."""
    workflow = job.get("workflow")
    result = []
    if workflow is None:
        return ["nothing: the job has no workflow"]
    result.append(
        f"workflow {workflow['name']}, which stays until its Teardown is done"
        + (f": {workflow['message']}" if workflow["message"] else "")
    )
    if workflow["state"] in ("PreRun", "PostRun", "DataOut", "Teardown"):
        hosts = job.get("lagging") or nodelist or "the job's nodes"
        result.append(
            f"file systems that are still mounted on {hosts}: "
            "those nodes will be drained"
        )
    if workflow["desired"] != "Teardown" and workflow["state"] in (
        "PreRun",
        "PostRun",
        "DataOut",
    ):
        result.append("data that has not been copied out is lost")
    space = job.get("space") or {}
    for name, size in sorted(space.items()):
        result.append(
            f"{Size(size)} on {name}: it will be disabled if that is still allocated"
        )
    return result


def release(handle: rpc.Handle, args: argparse.Namespace) -> int:
    """Run release."""
    number = cli.jobids([args.jobid])[0]
    job = rpc.active_job(handle, number)
    if job is None:
        raise cli.Failure(f"{rpc.f58(number)} is not an active rabbit job")
    listed = rpc.job_list(handle, number)
    ended = listed.get("state") == INACTIVE
    last = ended or job["phase"] == "epilog"
    left = left_behind(job, str(listed.get("nodelist") or ""))
    if not args.json:
        print(
            f"{rpc.f58(number)} of {cli.user_name(job['userid'])} is in "
            f"{state_of(job)}; it waits for: {term.clean(waits_for(job))}"
        )
        if ended:
            print("The job has ended, its storage has not been cleaned up.")
        if last:
            print("If it is let go now, this is left behind:")
        else:
            print("It will be ended by an exception and its workflow torn down:")
            left = ["what the job has not copied out is lost"]
        for text in left:
            print(f"  {term.clean(text)}")
    if not args.yes:
        cli.confirm()
    why = args.reason or "given up with flux rabbit release"
    if ended:
        handle.call("dws.abort", {"jobid": number})
    else:
        kind = names.EPILOG_TIMEOUT if last else names.EXCEPTION_RELEASE
        raise_exception(handle, number, kind, why)
    if args.json:
        cli.print_json({"id": number, "released": last, "left_behind": left})
    elif not last:
        print("The job is ending. If it gets stuck in its epilog, release it again.")
    return 0


def run(args: argparse.Namespace) -> int:
    """Run one of the commands."""
    handle = rpc.Handle()
    if args.command == "release":
        return (
            skip_stage_out.release(handle, args)
            if args.hurry
            else release(handle, args)
        )
    if not cli.is_owner(handle):
        raise cli.Failure("only the owner of the Flux instance may do that")
    rabbits = choose(rpc.rabbits(handle), args)
    errors: list[str] = []
    notes: list[str] = []
    hosts = ""
    if args.command == "drain":
        hosts = drain(handle, rabbits, args.reason)
    elif args.command == "undrain":
        hosts, errors, notes = undrain(handle, rabbits, args.all)
    else:
        state = "Enabled" if args.command == "enable" else "Disabled"
        errors = set_state(handle, rabbits, state, getattr(args, "reason", "") or "")
    if args.json:
        names = [rabbit["name"] for rabbit in rabbits]
        cli.print_json({"rabbits": names, "nodes": hosts, "errors": errors})
    elif args.command in ("drain", "undrain"):
        print(f"{args.command}ed {hosts}" if hosts else "no node to be changed")
    for text in [*errors, *notes]:
        print(f"flux-rabbit: {text}", file=sys.stderr)
    return cli.EXIT_ERROR if errors else 0
