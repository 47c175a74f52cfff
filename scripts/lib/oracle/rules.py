# Rules for every run: the order of a job's and its workflow's steps, who holds a node,
# how many bytes a job gets, and that nothing is left. Called by soak and tier nnf.
# SPDX-License-Identifier: LGPL-3.0-only
"""Rules over the eventlogs of jobs and the history of the API server."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from held import Held, given_twice, times_of

from oracle.away import out_of_service
from oracle.history import LAG_S, OF_WORKFLOWS, TICK_S, History, Object, Seen, stamp

# Overhead that NNF adds to an allocation, and smallest allocation of Lustre
# (nnf-observed).
OVERHEAD, OVERHEAD_BYTES, LUSTRE_LEAST = 0.1, 1 << 30, 4_000_000_000
LUSTRE_LABELS = ("mgt", "mdt", "mgtmdt", "ost")
# Label that DWS sets on the objects of a workflow.
WORKFLOW_LABEL = "dataworkflowservices.github.io/workflow"
# Events that open an action, and those that close it (RFC 21).
CLOSED_BY = {
    "dependency-add": "dependency-remove",
    "prolog-start": "prolog-finish",
    "epilog-start": "epilog-finish",
}
OPENED_BY = {closes: opens for opens, closes in CLOSED_BY.items()}
# Variables with the paths of a job's storage, by its directives.
VARIABLES = {
    "DW_JOB_": r"#DW jobdw (?=.*\btype=(?:xfs|gfs2|lustre)\b).*\bname=(\S+)",
    "DW_PERSISTENT_": r"#DW persistentdw .*\bname=(\S+)",
}
# What may not come before what: events of the job, and requests for states.
ENDING = ("PostRun", "DataOut", "Teardown")
ORDER = (
    ("PreRun", "alloc", "PreRun was asked for before it had nodes"),
    ("start", "PreRun ready", "its tasks began before PreRun was ready"),
    *((s, "finish", f"{s} was asked for before its tasks had ended") for s in ENDING),
)


@dataclass
class Job:
    """Flux's records of a job, and interventions from outside.

    Attributes:
        eventlog: RFC 18 events, oldest first.
        nodes: of R; () if the job never had any.
        exclusive: no other job may share its nodes.
        touched: its workflow was changed, or lost, by hand: its states may come in any
            order, and its storage may be lost.
        restored: the API server was restored to a time when it had this workflow, which
            may exist, and be mounted, once more.
        let_go: an admin has released the job: nodes and rabbits with leftovers are
            drained or disabled.
        killed: the instance was killed meanwhile: Flux writes events with a delay, so
            that the end of the tasks may be lost, on which others have acted.
        unplugged: the plugin was away meanwhile: it may have no prolog, or no epilog.
    """

    id: int
    directives: list[str]
    eventlog: list[Object]
    nodes: tuple[str, ...] = ()
    exclusive: bool = False
    touched: bool = False
    restored: bool = False
    let_go: bool = False
    killed: bool = False
    unplugged: bool = False

    def time(self, name: str, which: int = 0) -> float | None:
        """Timestamp of the first event of this name, or of another."""
        times = [e["timestamp"] for e in self.eventlog if e["name"] == name]
        return times[which] if times else None

    @property
    def fatal(self) -> bool:
        """Whether an exception has ended the job."""
        raised = (e for e in self.eventlog if e["name"] == "exception")
        return any(e["context"]["severity"] == 0 for e in raised)


@dataclass
class Run:
    """A run to check.

    Attributes:
        others: names of workflows and persistent file systems that may be left.
        unmount: begin and end of each time with release_nodes "unmount", when nodes are
            free once they have unmounted; at other times they are after Teardown.
        events: of resource.eventlog, each with its "nodes".
        by_hand: reasons that people have drained nodes and disabled rabbits for.
        over: all jobs should have ended.
    """

    history: History
    jobs: Mapping[int, Job]
    others: Set[str] = field(default_factory=set)
    unmount: Sequence[tuple[float, float]] = ()
    events: Sequence[Object] = ()
    by_hand: Sequence[str] = ()
    over: bool = True

    def workflow(self, job: Job) -> list[Object]:
        name = ("workflows", "default", f"fluxjob-{job.id}")
        return [one.object for one in self.history.seen.get(name, []) if one.object]


def check(run: Run) -> list[str]:
    """Violations of the rules, a line for each."""
    wrong = [
        f"fluxjob-{job.id}: {text}"
        for job in run.jobs.values()
        for rule in (_events, _order, _paths, _wishes)
        for text in rule(run, job)
    ]
    rules = (_mounts, _bytes, _twice, out_of_service, _left)
    return wrong + [text for rule in rules for text in rule(run)]


# -- one job ----------------------------------------------------------------


def _states(workflow: list[Object]) -> dict[str, tuple[float, float | None]]:
    """When each state was first asked for, and ready, by the API server's clock; {} if
    the workflow was created twice."""
    found: dict[str, tuple[float, float | None]] = {}
    for item in workflow:
        status = item.get("status", {})
        name, asked = status.get("state"), status.get("desiredStateChange")
        known = found.get(name, (0, None))[1]
        if not asked or known is not None or name != item["spec"]["desiredState"]:
            continue
        ready = stamp(status["readyChange"]) if status.get("ready") else 0.0
        # an earlier time belongs to the state before
        found[name] = stamp(asked), ready if ready >= stamp(asked) else None
    return found if len({i["metadata"]["uid"] for i in workflow}) < 2 else {}


def _events(run: Run, job: Job) -> Iterator[str]:
    """Unbalanced pairs in the eventlog (RFC 21): each opened action has to close."""
    if job.time("clean") is None:
        yield f"it has not ended: {' '.join(e['name'] for e in job.eventlog)}"
        return
    left: Counter[tuple[str, str]] = Counter()
    for event in job.eventlog:
        name, what = event["name"], event.get("context", {}).get("description", "")
        left[name, what] += name in CLOSED_BY
        if opens := OPENED_BY.get(name):
            if not left[opens, what]:
                yield f"{name} of {what} without {opens}"
            left[opens, what] -= left[opens, what] > 0
    for name, what in left.elements():
        # A fatal exception ends a job whose dependencies are still open.
        if not (name == "dependency-add" and job.fatal):
            yield f"{name} of {what} without {CLOSED_BY[name]}"


def _before(early: float | None, late: float | None) -> bool:
    return early is not None and late is not None and early < late - TICK_S


def _order(run: Run, job: Job) -> Iterator[str]:
    """Steps in the wrong order, by the clocks of Flux and the API server."""
    states = _states(run.workflow(job))
    if job.touched or job.let_go or not states:
        return
    times = {name: job.time(name) for name in ("alloc", "start")}
    times |= {name: job.time(name, -1) for name in ("finish", "free")}
    for state, (asked, ready) in states.items():
        times |= {state: asked, f"{state} ready": ready}
    if job.killed and job.fatal:
        times["finish"] = None
    for first, then, text in ORDER:
        never = then == "alloc" and first in times and times[then] is None
        if never or _before(times.get(first), times.get(then)):
            yield text
    finish, free = job.time("finish", -1), times["free"]
    if "PreRun" not in states or free is None:
        return
    # if nobody has seen PostRun, it was after the tasks
    unmounted = times.get("PostRun ready")
    least = unmounted or times.get("PostRun", finish)
    early = least and any(b <= free and e >= least for b, e in run.unmount)
    after = "PostRun" if early else "Teardown"
    if _before(free, times.get(f"{after} ready")):
        yield f"its nodes were free before {after} was ready"
    whole = finish is not None and run.history.whole("workflows", finish, free)
    for name in ("PostRun", "DataOut"):
        if whole and times["start"] and not job.fatal and name not in states:
            yield f"its storage is gone without {name}"


def _paths(run: Run, job: Job) -> Iterator[str]:
    """Variables that the job's tasks were started without."""
    start = job.time("start")
    had = {
        name
        for event in job.eventlog
        if event["name"] == "dws_environment" and event["timestamp"] <= (start or 0)
        for name in event["context"].get("variables", {})
    }
    wanted = {
        prefix + match[1]
        for prefix, pattern in VARIABLES.items()
        for line in job.directives
        if (match := re.match(pattern, line))
    }
    if start is not None and not job.unplugged and (missing := wanted - had):
        yield f"its tasks began without {', '.join(sorted(missing))}"


def _wishes(run: Run, job: Job) -> Iterator[str]:
    """Directives that the workflow lacks, and a user who is not the job's."""
    submits = (e["context"] for e in job.eventlog if e["name"] == "submit")
    user = next(submits, dict[str, int]()).get("userid")
    for spec in (item["spec"] for item in run.workflow(job)[:1]):
        if user is not None and spec.get("userID", user) != user:
            yield f"its workflow has user {spec['userID']}, and the job {user}"
        lines = spec.get("dwDirectives", job.directives)
        for mine, sent in itertools.zip_longest(job.directives, lines, fillvalue=""):
            # a lease is ours, and variables have been expanded
            missing = set(mine.split()) - set(sent.split())
            missing = {w for w in missing if not re.search(r"^expires=|[${]", w)}
            if missing or not mine:
                yield f"'{mine}' is '{sent}' in its workflow"


# -- all of them ------------------------------------------------------------


def _mounted(item: Object | None) -> bool:
    mounts = (item or {}).get("status", {}).get("mounts") or []
    return any(m.get("state") == "mounted" and m.get("ready") for m in mounts)


def _intervals(history: History) -> Iterator[tuple[str, str, float, float]]:
    """Node, workflow, begin and end of each mount that a ClientMount has reported."""
    for seen in history.of("clientmounts").values():
        begin = None
        for one in [*seen, Seen(math.inf, None)]:
            if begin is None and _mounted(one.object):
                begin = one
            elif begin and begin.object and not _mounted(one.object):
                labels = begin.object["metadata"].get("labels", {})
                workflow = labels.get(f"{WORKFLOW_LABEL}.name", "")
                node = begin.object["spec"]["node"]
                yield node, workflow, begin.time, history.latest(one)
                begin = None


def _mounts(run: Run) -> Iterator[str]:
    """Nodes that a later job used while they had a mount of an earlier one."""
    by_name = {f"fluxjob-{job.id}": job for job in run.jobs.values()}
    for node, workflow, begin, end in _intervals(run.history):
        owner = by_name.get(workflow)
        if not owner or owner.restored or owner.unplugged:
            continue
        free = owner.time("free", -1)
        for job in run.jobs.values():
            start = job.time("start") if node in job.nodes else None
            if job is owner or start is None or free is None:
                continue
            # Without a watch at that time the end of a mount is recorded late.
            seen = run.history.whole("clientmounts", free, start + LAG_S)
            if seen and begin < start and free < start < end - LAG_S:
                yield (
                    f"fluxjob-{job.id}: began on {node} with a mount of {workflow}"
                    f" there, {start - free:.1f} s after the nodes of that were free;"
                    f" it was gone {end - start:.1f} s later"
                )


def _sets(servers: Object) -> list[tuple[str, str, int]]:
    """Label, rabbit and bytes of each allocation, those of one rabbit one by one."""
    return [
        (one["label"], where["name"], one["allocationSize"])
        for one in servers.get("spec", {}).get("allocationSets") or []
        for where in one["storage"]
        for _ in range(where.get("allocationCount", 1))
    ]


def _made(servers: Object) -> set[tuple[str, str]]:
    """Label and rabbit of each allocation in the status."""
    return {
        (one["label"], rabbit)
        for one in servers.get("status", {}).get("allocationSets") or []
        for rabbit, where in (one.get("storage") or {}).items()
        if where.get("allocationSize", 0) > 0
    }


def _bytes(run: Run) -> Iterator[str]:
    """Rabbits allocated beyond their capacity, and allocations that do not match the
    request."""
    changes: list[tuple[float, int, str]] = []
    had: dict[str, Counter[str]] = {}
    # NNF frees the storage before it deletes the Servers, rabbit by rabbit.
    gone: dict[str, set[tuple[str, str]]] = {}
    given: dict[str, list[tuple[str, str, int]]] = {}
    for name, before, item, time, _ in run.history.steps("servers"):
        sets, now = _sets(item), Counter[str]()
        given[name] = sets or given.get(name, [])
        gone[name] = gone.get(name, set()) | (_made(before) - _made(item))
        for label, rabbit, size in sets:
            now[rabbit] += size * ((label, rabbit) not in gone[name])
        was = had.get(name, Counter())
        changes += [(time, now[r] - was[r], r) for r in {*was, *now}]
        had[name] = now
    most = {}
    for item in run.history.now("storages"):
        # 'capacity' is the free part (nnf-observed 1)
        drives = item["status"].get("devices") or []
        size = sum(d.get("capacity", 0) for d in drives)
        most[item["metadata"]["name"]] = size or item["status"].get("capacity", 0)
    total: Counter[str] = Counter()
    for _, change, rabbit in sorted(changes):
        total[rabbit] += change
        has = most.get(rabbit, 0)
        if change > 0 and 0 < has < total[rabbit]:
            yield f"{rabbit}: {total[rabbit]} bytes are given, and it has {has}"
    for seen in run.history.of("directivebreakdowns").values():
        for one in reversed(seen):
            storage = (one.object or {}).get("status", {}).get("storage") or {}
            name = (storage.get("reference") or {}).get("name", "")
            if storage.get("allocationSets") and name:
                yield from _priced(run, name, storage, given.get(name, []))
                break


def _priced(
    run: Run, name: str, storage: Object, given: list[tuple[str, str, int]]
) -> Iterator[str]:
    """Allocations that do not match the request: in bytes, or in number by node."""
    owner = re.match(r"fluxjob-(\d+)-", name)
    job = run.jobs.get(int(owner[1])) if owner else None
    for one in storage["allocationSets"] if given else ():
        label, least = one["label"], one["minimumCapacity"]
        sizes = [size for found, _, size in given if found == label]
        if not sizes:
            yield f"{name}: nothing is allocated for {label}"
            continue
        across = one["allocationStrategy"] == "AllocateAcrossServers"
        few, many = (sum(sizes),) * 2 if across else (min(sizes), max(sizes))
        if few < least:
            yield f"{name}: {few} bytes for {label}, and {least} were asked for"
        most = least + OVERHEAD_BYTES * (len(sizes) if across else 1)
        if label in LUSTRE_LABELS:
            most = max(most, LUSTRE_LEAST * len(sizes))
        if many > most + least * OVERHEAD:
            yield f"{name}: {many} bytes for {label}, where {least} were asked for"
        nodes = len(job.nodes) if job and not job.touched else 0
        alone = one["allocationStrategy"] == "AllocatePerCompute"
        if alone and 0 < nodes < len(sizes):
            yield f"{name}: {len(sizes)} allocations for {label}, and {nodes} nodes"


def _left(run: Run) -> Iterator[str]:
    """Objects of jobs that exist after the end of all jobs."""
    kinds = (*OF_WORKFLOWS, "persistentstorageinstances") if run.over else ()
    for plural in kinds:
        for meta in (item["metadata"] for item in run.history.now(plural)):
            label = meta.get("labels", {}).get(f"{WORKFLOW_LABEL}.name", meta["name"])
            lent = plural == "persistentstorageinstances"
            owner = meta["name"] if lent else label
            ours = lent or re.fullmatch(r"fluxjob-\d+", owner)
            if ours and owner not in run.others:
                yield f"{plural} {meta['name']} is left"
    for item in run.history.now("systemstatuses") if run.over else ():
        for node, state in (item.get("data", {}).get("nodes") or {}).items():
            if state != "Enabled":
                yield f"{node} is {state} in SystemStatus"


def _twice(run: Run) -> Iterator[str]:
    """Nodes of an exclusive job that another job held at the same time."""
    for line in given_twice(
        [
            Held(job.id, job.nodes, times, "", job.exclusive)
            for job in run.jobs.values()
            if (times := times_of(job.eventlog))
        ]
    ):
        yield f"given twice: {line}"
