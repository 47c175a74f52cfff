# SPDX-License-Identifier: LGPL-3.0-only
#
# Whether the nodes that queue, constraints and chosen rabbits leave to a job could ever
# satisfy it. The scheduler rejects an unsatisfiable job; --dw-check, which calls this,
# rejects it before submission.
"""Feasibility of a job."""

from __future__ import annotations

import copy
import errno
from typing import Any

from flux_k8s import dws

from flux_rabbit import rpc
from flux_rabbit.pending import Need, need_of

Object = dict[str, Any]

GIB = 1 << 30
DEFAULT_FROBNICATORS = ["defaults", "constraints"]


def as_ingested(jobspec: Any, handle: rpc.Handle) -> Any:
    """A copy of the jobspec with what job-ingest adds: the default queue, and the
    properties that a queue requires of nodes. Raises ValueError, as job-ingest does."""
    from flux.job.frobnicator import JobFrobnicator

    ingest = handle.call("config.get").get("ingest") or {}
    plugins = (ingest.get("frobnicator") or {}).get("plugins", DEFAULT_FROBNICATORS)
    result = copy.deepcopy(jobspec)
    frobnicator = JobFrobnicator([f"--plugins={','.join(plugins)}"])
    frobnicator.start()
    frobnicator.frob(result)
    return result


def check_queue(queue: str, handle: rpc.Handle) -> None:
    """Raises ValueError if the queue takes no jobs."""
    status = handle.call("job-manager.queue-status", {"name": queue} if queue else {})
    if not status.get("enable", True):
        where = f" to queue '{queue}'" if queue else ""
        why = status.get("disable_reason") or "no reason is given"
        raise ValueError(f"job submission{where} is disabled: {why}")


def ask_plugin(jobspec: Any, handle: rpc.Handle) -> None:
    """Raises ValueError with the text with which the jobtap plugin would refuse it."""
    try:
        handle.call("job-manager.dws.validate", {"jobspec": jobspec.jobspec})
    except rpc.Absent:
        pass  # a plugin of an older release has no such service
    except rpc.RpcError as exc:
        if exc.errno != errno.EINVAL:
            raise
        raise ValueError(exc.strerror) from None


def cores_of(resources: Object | None) -> dict[str, int]:
    """The hosts of an R (RFC 20), and how many cores of each it has."""
    from flux.hostlist import Hostlist
    from flux.idset import IDset

    execution = (resources or {}).get("execution") or {}
    ranks: dict[int, int] = {}
    for entry in execution.get("R_lite") or []:
        count = len(IDset(entry["children"].get("core", "")))
        for rank in IDset(entry["rank"]):
            ranks[int(rank)] = ranks.get(int(rank), 0) + count
    hosts = [
        host for text in execution.get("nodelist") or [] for host in Hostlist(text)
    ]
    return dict(zip(hosts, (ranks[rank] for rank in sorted(ranks))))


def _hosts(
    constraint: Object | None,
    rabbits: list[str] | None,
    known: list[Object],
    status: Object,
) -> dict[str, int]:
    """The hosts that the job may be allocated, with their numbers of cores."""
    from flux.hostlist import Hostlist

    allowed = dws.matching_hosts(status, constraint)
    if rabbits is not None:
        near = {
            host
            for rabbit in known
            if rabbit["name"] in rabbits
            for host in Hostlist(rabbit.get("nodes", ""))
        }
        allowed &= near
    cores = cores_of(status["all"])
    return {host: count for host, count in cores.items() if host in allowed}


def _groups(need: Need, hosts: dict[str, int], rabbits: list[Object]) -> int:
    """The number of the job's groups that fit on its hosts and their rabbits when no
    other job holds any."""
    from flux.hostlist import Hostlist

    total = 0
    for rabbit in rabbits:
        nodes = sum(host in hosts for host in Hostlist(rabbit.get("nodes", "")))
        fit = min(nodes // need.nodes, rabbit["capacity"] // GIB // need.gib)
        total += min(fit, 1) if need.chassis else fit
    return total


def check(
    jobspec: Any, resources: list[Any], chosen: list[str] | None, rabbits: list[Object]
) -> None:
    """Compare the job's request with the nodes that its queue and constraints leave.

    Args:
        jobspec: as it is submitted.
        resources: those of the job with its storage.
        chosen: the rabbits next to which its nodes must be, None for any.
        rabbits: as dws.status lists them.
    Raises ValueError, or OSError of the plugin, if it would be refused.
    """
    handle = rpc.Handle()
    pending = handle.rpc("resource.sched-status")
    ingested = as_ingested(jobspec, handle)
    system = ingested.attributes.get("system", {})
    queue = str(system.get("queue") or "")
    check_queue(queue, handle)
    ask_plugin(ingested, handle)
    need = need_of(resources)
    if need is None:
        return
    constraint = system.get("constraints")
    hosts = _hosts(constraint, chosen, rabbits, pending.get())
    hosts = {host: n for host, n in hosts.items() if n >= max(1, need.cores)}
    limits = [f"queue '{queue}'"] if queue else []
    limits += (
        ["its constraints"] if jobspec.attributes["system"].get("constraints") else []
    )
    limits += ["its rabbits"] if chosen is not None else []
    leave = f" that {' and '.join(limits)} leave" if limits else ""
    if len(hosts) < need.total:
        raise ValueError(
            f"the job needs {need.total} nodes, there are {len(hosts)}{leave}: ask for "
            "fewer, or less narrowly"
        )
    fit = _groups(need, hosts, rabbits) * need.nodes if need.gib else need.total
    if fit < need.total:
        each = "each" if need.nodes == 1 else f"each {need.nodes}"
        raise ValueError(
            f"the job needs {need.total} nodes with {need.gib} GiB of the rabbit next "
            f"to {each}, there is room for {fit}{leave}: ask for less, or less narrowly"
        )
