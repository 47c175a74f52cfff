# Rules for every run: the order of a job's and its workflow's steps, who holds a node,
# how many bytes a job gets, and that nothing is left. Called by soak and tier nnf.
# SPDX-License-Identifier: LGPL-3.0-only
"""Rules over the eventlogs of jobs and the history of the API server."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from held import Held, given_twice, times_of

from oracle.history import OF_WORKFLOWS, History, Object, Seen, stamp

# Longest delay with which the recorder sees a change of which no later one tells, and
# tolerance when times are compared, as clocks are rounded.
LAG_S, TICK_S = 3.0, 0.001
# Overhead that NNF adds to an allocation, and smallest allocation of Lustre
# (nnf-observed).
OVERHEAD, OVERHEAD_BYTES = 0.1, 1 << 30
LUSTRE_LEAST = 4_000_000_000
LUSTRE_LABELS = ("mgt", "mdt", "mgtmdt", "ost")
# Label that DWS sets on the objects of a workflow.
WORKFLOW_LABEL = "dataworkflowservices.github.io/workflow"
MOUNTED_TYPES = ("xfs", "gfs2", "lustre")
ENDING = ("PostRun", "DataOut", "Teardown")
# Events that open an action and, with the other suffix, close it (RFC 21).
PAIRS = {"dependency": ("add", "remove"), "prolog": ("start", "finish")}
PAIRS["epilog"] = PAIRS["prolog"]


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

    def time(self, name: str, which: int = 0) -> float | None:
        """Timestamp of the first event of this name, or of another."""
        times = [e["timestamp"] for e in self.eventlog if e["name"] == name]
        return times[which] if times else None

    @property
    def fatal(self) -> bool:
        """Whether an exception has ended the job."""
        raised = (e for e in self.eventlog if e["name"] == "exception")
        return any(e["context"]["severity"] == 0 for e in raised)

    @property
    def variables(self) -> set[str]:
        """Names of the variables that hold the paths of the job's storage."""
        found = set()
        for line in self.directives:
            keys = dict(re.findall(r"(\w+)=(\S+)", line))
            if line.startswith("#DW jobdw") and keys.get("type") in MOUNTED_TYPES:
                found.add(f"DW_JOB_{keys['name']}")
            elif line.startswith("#DW persistentdw"):
                found.add(f"DW_PERSISTENT_{keys['name']}")
        return found


@dataclass
class Run:
    """A run to check.

    Attributes:
        others: names of workflows and persistent file systems that may be left.
        unmount: begin and end of each time with release_nodes "unmount", when nodes are
            free once they have unmounted; at other times they are after Teardown.
    """

    history: History
    jobs: Mapping[int, Job]
    others: set[str] = field(default_factory=set)
    unmount: Sequence[tuple[float, float]] = ()

    def workflow(self, job: Job) -> list[Object]:
        name = ("workflows", "default", f"fluxjob-{job.id}")
        return [one.object for one in self.history.seen.get(name, []) if one.object]


def check(run: Run, over: bool = True) -> list[str]:
    """Violations of the rules, a line for each; over: all jobs should have ended."""
    wrong = [
        f"fluxjob-{job.id}: {text}"
        for job in run.jobs.values()
        for rule in (_events, _order, _paths, _wishes)
        for text in rule(run, job)
    ]
    rules = (_mounts, _bytes, _twice, _left)[: 4 if over else 3]
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
    for action, (start, finish) in PAIRS.items():
        left: list[str] = []
        for event in job.eventlog:
            what = event.get("context", {}).get("description", "")
            if event["name"] == f"{action}-{start}":
                left.append(what)
            elif event["name"] == f"{action}-{finish}" and what in left:
                left.remove(what)
            elif event["name"] == f"{action}-{finish}":
                yield f"{action}-{finish} of {what} without {action}-{start}"
        # A fatal exception ends a job whose dependencies are still open.
        if left and not (action == "dependency" and job.fatal):
            names = ", ".join(left)
            yield f"{action}-{start} of {names} without {action}-{finish}"


def _before(early: float | None, late: float | None) -> bool:
    return early is not None and late is not None and early < late - TICK_S


def _order(run: Run, job: Job) -> Iterator[str]:
    """Steps in the wrong order, by the clocks of Flux and the API server."""
    states = _states(run.workflow(job))
    if job.touched or job.let_go or not states:
        return
    alloc, start = job.time("alloc"), job.time("start")
    finish, free = job.time("finish", -1), job.time("free", -1)
    asked, ready = states.get("PreRun", (None, None))
    if _before(asked, alloc) or (asked is not None and alloc is None):
        yield "PreRun was asked for before it had nodes"
    if _before(start, ready):
        yield "its tasks began before PreRun was ready"
    for name in ENDING:
        lost = job.killed and job.fatal
        if name in states and _before(states[name][0], finish) and not lost:
            yield f"{name} was asked for before its tasks had ended"
    if asked is None or free is None:
        return
    asked, unmounted = states.get("PostRun", (finish, None))  # or unseen
    early = asked is not None and any(
        begin <= free and end >= (unmounted or asked) for begin, end in run.unmount
    )
    if _before(free, unmounted if early else states.get("Teardown", (0, None))[1]):
        after = "PostRun" if early else "Teardown"
        yield f"its nodes were free before {after} was ready"
    whole = finish is not None and run.history.whole("workflows", finish, free)
    for name in ("PostRun", "DataOut"):
        if whole and start is not None and not job.fatal and name not in states:
            yield f"its storage is gone without {name}"


def _paths(run: Run, job: Job) -> Iterator[str]:
    """Variables that the job's tasks were started without."""
    start, had = job.time("start"), set[str]()
    events = itertools.takewhile(lambda e: e["timestamp"] <= (start or 0), job.eventlog)
    for event in events:
        if event["name"] == "dws_environment":
            had |= set(event["context"].get("variables", {}))
    if start is not None and (missing := job.variables - had):
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
        for mounted, group in itertools.groupby(
            [*seen, Seen(float("inf"), None)], lambda one: _mounted(one.object)
        ):
            versions = list(group)
            if mounted and (item := versions[0].object):
                labels = item["metadata"].get("labels", {})
                last = seen.index(versions[-1]) + 1
                end = history.latest(seen[last]) if last < len(seen) else float("inf")
                workflow = labels.get(f"{WORKFLOW_LABEL}.name", "")
                yield item["spec"]["node"], workflow, versions[0].time, end


def _mounts(run: Run) -> Iterator[str]:
    """Nodes that a later job used while they had a mount of an earlier one."""
    began: dict[str, list[tuple[float, Job]]] = {}
    for job in run.jobs.values():
        if (begun := job.time("start")) is not None:
            for node in job.nodes:
                began.setdefault(node, []).append((begun, job))
    by_name = {f"fluxjob-{job.id}": job for job in run.jobs.values()}
    for node, workflow, begin, end in _intervals(run.history):
        owner = by_name.get(workflow)
        free = owner.time("free", -1) if owner and not owner.restored else None
        if free is None:
            continue
        for start, job in began.get(node, []):
            late = begin < start and free < start < end - LAG_S
            # Without a watch at that time the end of a mount is recorded late.
            seen = run.history.whole("clientmounts", free, start + LAG_S)
            if job is not owner and late and seen:
                yield (
                    f"fluxjob-{job.id}: began on {node} with a mount of {workflow}"
                    f" there, {start - free:.1f} s after the nodes of that were free;"
                    f" it was gone {end - start:.1f} s later"
                )


def _sets(servers: Object | None) -> list[tuple[str, str, int]]:
    """Label, rabbit and bytes of each allocation, those of one rabbit one by one."""
    return [
        (one["label"], where["name"], one["allocationSize"])
        for one in (servers or {}).get("spec", {}).get("allocationSets") or []
        for where in one["storage"]
        for _ in range(where.get("allocationCount", 1))
    ]


def _made(servers: Object | None) -> set[tuple[str, str]]:
    """Label and rabbit of each allocation in the status."""
    return {
        (one["label"], rabbit)
        for one in (servers or {}).get("status", {}).get("allocationSets") or []
        for rabbit, where in (one.get("storage") or {}).items()
        if where.get("allocationSize", 0) > 0
    }


def _whole(status: Object) -> int:
    """Total bytes of a rabbit; its 'capacity' is the free part (nnf-observed 1)."""
    drives = status.get("devices") or []
    return sum(d.get("capacity", 0) for d in drives) or status.get("capacity", 0)


def _bytes(run: Run) -> Iterator[str]:
    """Rabbits allocated beyond their capacity, and allocations that do not match the
    request."""
    changes: list[tuple[float, int, str]] = []
    for seen in run.history.of("servers").values():
        had: Counter[str] = Counter()
        # NNF frees the storage before it deletes the Servers, rabbit by rabbit.
        gone: set[tuple[str, str]] = set()
        for before, one in zip([Seen(0, None), *seen], seen):
            gone |= _made(before.object) - _made(one.object)
            now: Counter[str] = Counter()
            for label, rabbit, size in _sets(one.object):
                now[rabbit] += size if (label, rabbit) not in gone else 0
            changes += [(one.time, now[r] - had[r], r) for r in {*had, *now}]
            had = now
    rabbits = {r["metadata"]["name"]: r for r in run.history.now("storages")}
    total: Counter[str] = Counter()
    for _, change, rabbit in sorted(changes):
        total[rabbit] += change
        most = _whole(rabbits.get(rabbit, {}).get("status", {}))
        if change > 0 and 0 < most < total[rabbit]:
            yield f"{rabbit}: {total[rabbit]} bytes are given, and it has {most}"
    given = {key[2]: seen for key, seen in run.history.of("servers").items()}
    for seen in run.history.of("directivebreakdowns").values():
        for one in reversed(seen):
            storage = (one.object or {}).get("status", {}).get("storage") or {}
            name = (storage.get("reference") or {}).get("name", "")
            if storage.get("allocationSets") and name:
                sets = [s for v in given.get(name, []) if (s := _sets(v.object))]
                yield from _priced(run, name, storage, sets[-1]) if sets else ()
                break


def _priced(
    run: Run, name: str, storage: Object, given: list[tuple[str, str, int]]
) -> Iterator[str]:
    """Allocations that do not match the request: in bytes, or in number by node."""
    owner = re.match(r"fluxjob-(\d+)-", name)
    job = run.jobs.get(int(owner[1])) if owner else None
    for one in storage["allocationSets"]:
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
    for plural in (*OF_WORKFLOWS, "persistentstorageinstances"):
        for item in run.history.now(plural):
            name = item["metadata"]["name"]
            labels = item["metadata"].get("labels", {})
            owner = labels.get(f"{WORKFLOW_LABEL}.name", name)
            if plural == "persistentstorageinstances":
                owner = name
            elif not re.fullmatch(r"fluxjob-\d+", owner):
                continue
            if owner not in run.others:
                yield f"{plural} {name} is left"
    for item in run.history.now("systemstatuses"):
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
