# Rules for every run: the order of a job's and its workflow's steps, who holds a node,
# how many bytes a job gets, and that nothing is left. Called by soak and tier nnf.
# SPDX-License-Identifier: LGPL-3.0-only
"""Rules over the eventlogs of jobs and the history of the API server."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from held import Held, given_twice, times_of

from oracle.history import OF_WORKFLOWS, History, Object, Seen

# Longest delay with which the recorder sees a change.
LAG_S = 3.0
# Tolerance when times are compared, as clocks are rounded.
TICK_S = 0.001
# Overhead that NNF adds to an allocation, and smallest allocation of Lustre
# (nnf-observed).
OVERHEAD = 0.1
OVERHEAD_BYTES = 1 << 30
LUSTRE_LEAST = 4_000_000_000
LUSTRE_LABELS = ("mgt", "mdt", "mgtmdt", "ost")
# Label that DWS sets on the objects of a workflow.
WORKFLOW_LABEL = "dataworkflowservices.github.io/workflow"
ACROSS = "AllocateAcrossServers"
PER_COMPUTE = "AllocatePerCompute"
MOUNTED_TYPES = ("xfs", "gfs2", "lustre")
ENDING = ("PostRun", "DataOut", "Teardown")
# Pairs of events that open and close an action, matched by description (RFC 21).
PAIRS = (
    ("dependency-add", "dependency-remove"),
    ("prolog-start", "prolog-finish"),
    ("epilog-start", "epilog-finish"),
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
    """

    id: int
    directives: list[str]
    eventlog: list[Object]
    nodes: tuple[str, ...] = ()
    exclusive: bool = False
    touched: bool = False
    restored: bool = False
    let_go: bool = False

    def times(self, name: str) -> list[float]:
        """Timestamps of all events of this name."""
        return [e["timestamp"] for e in self.eventlog if e["name"] == name]

    def time(self, name: str) -> float | None:
        """Timestamp of the first event of this name, if any."""
        return next(iter(self.times(name)), None)

    def last(self, name: str) -> float | None:
        return next(reversed(self.times(name)), None)

    @property
    def fatal(self) -> bool:
        """Whether an exception has ended the job."""
        return any(
            e["name"] == "exception" and e["context"]["severity"] == 0
            for e in self.eventlog
        )

    def words(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Command and keys of each directive."""
        for line in self.directives:
            try:
                words = shlex.split(line)
            except ValueError:
                continue
            if len(words) > 1 and words[0] == "#DW":
                keys = dict(w.split("=", 1) for w in words[2:] if "=" in w)
                yield words[1], keys

    @property
    def variables(self) -> set[str]:
        """Names of the variables that hold the paths of the job's storage."""
        found = set()
        for command, keys in self.words():
            if command == "jobdw" and keys.get("type") in MOUNTED_TYPES:
                found.add(f"DW_JOB_{keys['name']}")
            elif command == "persistentdw":
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

    def workflow(self, job: Job) -> list[Seen]:
        return self.history.seen.get(("workflows", "default", f"fluxjob-{job.id}"), [])

    def free_after(self, unmounted: float | None, free: float) -> str:
        """The state that must precede the release of nodes unmounted at that time."""
        early = unmounted is not None and any(
            begin <= free and end >= unmounted for begin, end in self.unmount
        )
        return "PostRun" if early else "Teardown"


def check(run: Run, over: bool = True) -> list[str]:
    """Violations of the rules, a line for each; over: all jobs should have ended."""
    wrong: list[str] = []
    for job in run.jobs.values():
        states = _states(run.workflow(job))
        for text in (*_events(job), *_order(run, job, states), *_paths(job)):
            wrong.append(f"fluxjob-{job.id}: {text}")
    wrong += _mounts(run)
    wrong += _bytes(run)
    wrong += _twice(run.jobs.values())
    if over:
        wrong += _left(run)
    return wrong


# -- one job ----------------------------------------------------------------


@dataclass(frozen=True)
class State:
    """A state of a workflow: when it was requested, and when it was ready, by the API
    server's clock; None if no version showed that."""

    name: str
    asked: float
    ready: float | None


def _stamp(text: str | None) -> float | None:
    if not text:
        return None
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def _states(seen: Iterable[Seen]) -> dict[str, State]:
    """The first occurrence of each state; {} if the workflow was created twice."""
    found: dict[str, State] = {}
    made: set[str] = set()
    for one in seen:
        if one.object is None:
            continue
        made.add(one.object["metadata"]["uid"])
        status = one.object.get("status", {})
        name, asked = status.get("state"), _stamp(status.get("desiredStateChange"))
        if not name or asked is None or name != one.object["spec"]["desiredState"]:
            continue
        before = found.get(name)
        if before and before.ready is not None:
            continue
        ready = _stamp(status.get("readyChange")) if status.get("ready") else None
        if ready is not None and ready < asked:
            ready = None  # the time belongs to the state before
        found[name] = State(name, asked, ready)
    return found if len(made) < 2 else {}


def _events(job: Job) -> Iterator[str]:
    """Unbalanced pairs in the eventlog (RFC 21): each opened action has to close."""
    names = [e["name"] for e in job.eventlog]
    if "clean" not in names:
        yield f"it has not ended: {' '.join(names)}"
        return
    for start, finish in PAIRS:
        open_: list[str] = []
        for event in job.eventlog:
            what = event.get("context", {}).get("description", "")
            if event["name"] == start:
                open_.append(what)
            elif event["name"] == finish and what in open_:
                open_.remove(what)
            elif event["name"] == finish:
                yield f"{finish} of {what} without {start}"
        # A fatal exception ends a job whose dependencies are still open.
        if open_ and not (start == "dependency-add" and job.fatal):
            yield f"{start} of {', '.join(open_)} without {finish}"


def _order(run: Run, job: Job, states: dict[str, State]) -> Iterator[str]:
    """Steps in the wrong order, by the clocks of Flux and the API server."""
    if job.touched or job.let_go or not states:
        return
    alloc, start = job.time("alloc"), job.time("start")
    finish, free = job.last("finish"), job.last("free")

    def asked(name: str) -> float | None:
        return states[name].asked if name in states else None

    def before(early: float | None, late: float | None) -> bool:
        return early is not None and late is not None and early < late - TICK_S

    if before(asked("PreRun"), alloc) or ("PreRun" in states and alloc is None):
        yield "PreRun was asked for before it had nodes"
    if "PreRun" in states and before(start, states["PreRun"].ready):
        yield "its tasks began before PreRun was ready"
    for name in ENDING:
        if before(asked(name), finish):
            yield f"{name} was asked for before its tasks had ended"
    if "PreRun" in states and free is not None:
        done = {name: states[name].ready for name in ENDING if name in states}
        after = run.free_after(done.get("PostRun"), free)
        late = [t for n, t in done.items() if t and after in ("PostRun", n)]
        if late and before(free, min(late)):
            yield f"its nodes were free before {after} was ready"
    whole = run.history.whole("workflows", finish or 0.0, free or 0.0)
    if start is not None and finish is not None and whole and not job.fatal:
        for name in ("PostRun", "DataOut"):
            if free is not None and name not in states:
                yield f"its storage is gone without {name}"


def _paths(job: Job) -> Iterator[str]:
    """Variables that the job's tasks were started without."""
    start = job.time("start")
    if start is None or not job.variables:
        return
    had: set[str] = set()
    for event in job.eventlog:
        if event["timestamp"] > start:
            break
        if event["name"] == "dws_environment":
            had |= set(event["context"].get("variables", {}))
    if missing := job.variables - had:
        yield f"its tasks began without {', '.join(sorted(missing))}"


# -- all of them ------------------------------------------------------------


@dataclass(frozen=True)
class Mount:
    """A mount that a ClientMount has reported on a node."""

    node: str
    workflow: str
    begin: float
    end: float


def _mounted(item: Object | None) -> bool:
    mounts = (item or {}).get("status", {}).get("mounts") or []
    return any(m.get("state") == "mounted" and m.get("ready") for m in mounts)


def _intervals(history: History) -> Iterator[Mount]:
    for seen in history.of("clientmounts").values():
        begin, node, workflow = None, "", ""
        for one in seen:
            if _mounted(one.object):
                assert one.object is not None
                labels = one.object["metadata"].get("labels", {})
                workflow = labels.get(f"{WORKFLOW_LABEL}.name", "")
                node = one.object["spec"]["node"]
                begin = one.time if begin is None else begin
            elif begin is not None:
                yield Mount(node, workflow, begin, one.time)
                begin = None
        if begin is not None:
            yield Mount(node, workflow, begin, float("inf"))


def _mounts(run: Run) -> Iterator[str]:
    """Nodes that a later job used while they had a mount of an earlier one."""
    by_name = {f"fluxjob-{job.id}": job for job in run.jobs.values()}
    had: dict[str, list[tuple[float, Job]]] = {}
    for job in run.jobs.values():
        start = job.time("start")
        for node in job.nodes if start is not None else ():
            had.setdefault(node, []).append((start or 0.0, job))
    for mount in _intervals(run.history):
        owner = by_name.get(mount.workflow)
        free = owner.last("free") if owner else None
        if owner is None or owner.restored or free is None:
            continue
        for start, job in had.get(mount.node, []):
            late = free < start and start + LAG_S < mount.end
            # Without a watch at that time the end of a mount is recorded late.
            seen = run.history.whole("clientmounts", free, start + LAG_S)
            if job is not owner and late and mount.begin < start and seen:
                yield (
                    f"fluxjob-{job.id}: began on {mount.node} with a mount of "
                    f"{mount.workflow} there, {start - free:.1f} s after the nodes of "
                    f"that were free; it was gone {mount.end - start:.1f} s later"
                )


def _sets(servers: Object) -> Iterator[tuple[str, str, int]]:
    """Label, rabbit and bytes of each allocation, those of one rabbit one by one."""
    for one in servers.get("spec", {}).get("allocationSets") or []:
        for where in one["storage"]:
            for _ in range(where.get("allocationCount", 1)):
                yield one["label"], where["name"], one["allocationSize"]


def _made(servers: Object | None) -> set[tuple[str, str]]:
    """Label and rabbit of each allocation in the status."""
    sets = (servers or {}).get("status", {}).get("allocationSets") or []
    return {
        (one["label"], rabbit)
        for one in sets
        for rabbit, where in (one.get("storage") or {}).items()
        if where.get("allocationSize", 0) > 0
    }


def _whole(status: Object) -> int:
    """Total bytes of a rabbit; its 'capacity' is the free part (nnf-observed 1)."""
    drives = status.get("devices") or []
    return sum(d.get("capacity", 0) for d in drives) or status.get("capacity", 0)


def _bytes(run: Run) -> Iterator[str]:
    """Allocations smaller than requested or out of proportion to the request, and
    rabbits allocated beyond their capacity."""
    capacity = {
        item["metadata"]["name"]: _whole(item["status"])
        for item in run.history.now("storages")
        if "status" in item
    }
    changes: list[tuple[float, str, int]] = []
    asked = _asked(run)
    for (_, _, name), seen in run.history.of("servers").items():
        had: Counter[str] = Counter()
        # NNF frees the storage before it deletes the Servers, rabbit by rabbit.
        made: set[tuple[str, str]] = set()
        gone: set[tuple[str, str]] = set()
        last: list[tuple[str, str, int]] = []
        for one in seen:
            gone |= made - _made(one.object)
            made = _made(one.object)
            sets = list(_sets(one.object or {}))
            last = sets or last
            now: Counter[str] = Counter()
            for label, rabbit, size in sets:
                now[rabbit] += 0 if (label, rabbit) in gone else size
            changes += [(one.time, r, now[r] - had[r]) for r in {*had, *now}]
            had = now
        if name in asked and last:
            yield from _priced(name, asked[name], last, _nodes(run, name))
    total: Counter[str] = Counter()
    for _, rabbit, change in sorted(changes, key=lambda c: (c[0], c[2])):
        total[rabbit] += change
        most = capacity.get(rabbit, 0)
        if change > 0 and most and total[rabbit] > most:
            yield f"{rabbit}: {total[rabbit]} bytes are given, and it has {most}"


def _asked(run: Run) -> dict[str, dict[str, tuple[str, int]]]:
    """Strategy and requested bytes by label, for each Servers by its name."""
    found: dict[str, dict[str, tuple[str, int]]] = {}
    for seen in run.history.of("directivebreakdowns").values():
        for one in seen:
            storage = (one.object or {}).get("status", {}).get("storage") or {}
            sets = storage.get("allocationSets")
            if sets and (name := storage.get("reference", {}).get("name")):
                found[name] = {
                    s["label"]: (s["allocationStrategy"], s["minimumCapacity"])
                    for s in sets
                }
    return found


def _nodes(run: Run, name: str) -> int | None:
    """Number of nodes of the job that owns a Servers; None if unknown."""
    owner = re.match(r"fluxjob-(\d+)-", name)
    job = run.jobs.get(int(owner[1])) if owner else None
    return len(job.nodes) or None if job and not job.touched else None


def _priced(
    name: str,
    asked: dict[str, tuple[str, int]],
    sets: list[tuple[str, str, int]],
    nodes: int | None,
) -> Iterator[str]:
    """Allocations that do not match the request: in bytes, or in number by node."""
    for label, (strategy, least) in asked.items():
        sizes = [size for found, _, size in sets if found == label]
        if not sizes:
            yield f"{name}: nothing is allocated for {label}"
            continue
        across = strategy == ACROSS
        count = len(sizes) if across else 1
        had = sum(sizes) if across else max(sizes)
        if (had if across else min(sizes)) < least:
            yield f"{name}: {had} bytes for {label}, and {least} were asked for"
        most = least + OVERHEAD_BYTES * count
        if label in LUSTRE_LABELS:
            most = max(most, LUSTRE_LEAST * len(sizes))
        if had > most + least * OVERHEAD:
            yield f"{name}: {had} bytes for {label}, where {least} were asked for"
        if strategy == PER_COMPUTE and nodes and len(sizes) > nodes:
            yield f"{name}: {len(sizes)} allocations for {label}, and {nodes} nodes"


def _left(run: Run) -> Iterator[str]:
    """Objects of jobs that exist after the end of all jobs."""
    for plural in OF_WORKFLOWS:
        for item in run.history.now(plural):
            name = item["metadata"]["name"]
            labels = item["metadata"].get("labels", {})
            owner = labels.get(f"{WORKFLOW_LABEL}.name", name)
            if re.fullmatch(r"fluxjob-\d+", owner) and owner not in run.others:
                yield f"{plural} {name} is left"
    for item in run.history.now("persistentstorageinstances"):
        if item["metadata"]["name"] not in run.others:
            yield f"persistentstorageinstances {item['metadata']['name']} is left"
    for item in run.history.now("systemstatuses"):
        for node, state in (item.get("data", {}).get("nodes") or {}).items():
            if state != "Enabled":
                yield f"{node} is {state} in SystemStatus"


def _twice(jobs: Iterable[Job]) -> Iterator[str]:
    """Nodes of an exclusive job that another job held at the same time."""
    had = [
        Held(job.id, job.nodes, times, "", job.exclusive)
        for job in jobs
        if (times := times_of(job.eventlog))
    ]
    for line in given_twice(had):
        yield f"given twice: {line}"
