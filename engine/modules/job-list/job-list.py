# SPDX-License-Identifier: LGPL-3.0-only
"""The job-list module: follows the job manager's journal, answers what jobs there are.

Requests that come before the backlog is through wait.
"""

import errno
import json
import operator
import os
from typing import Any, Optional

from _flux._core import lib
from flux.brokermod import BrokerModule, request_handler
from flux.constants import FLUX_RPC_STREAMING
from flux.hostlist import Hostlist
from flux.idset import IDset

NEW, DEPEND, PRIORITY, SCHED, RUN, CLEANUP, INACTIVE = (1 << i for i in range(7))
ACTIVE = INACTIVE - 1
STATES = ("depend", "priority", "sched", "run", "cleanup", "inactive")
COMPLETED, FAILED, CANCELED, TIMEOUT = 1, 2, 4, 8
RESULTS = {
    "completed": COMPLETED,
    "failed": FAILED,
    "canceled": CANCELED,
    "timeout": TIMEOUT,
}
NAMES = {state: 2 << i for i, state in enumerate(STATES)}
NAMES.update(new=NEW, pending=DEPEND | PRIORITY | SCHED, running=RUN | CLEANUP)
NAMES["active"] = ACTIVE & ~NEW
COUNTED = {COMPLETED: "successful", CANCELED: "canceled", TIMEOUT: "timeout"}
TIMES = [f"t_{state}" for state in ("submit", *STATES)]
AS_SUBMITTED = ["name", "userid", "urgency", "queue", "bank", "project", "cwd"]
AS_SUBMITTED += ["duration", "ntasks", "ncores", "dependencies"]
PLACE = ["nnodes", "nodelist", "ranks", "expiration"]
END = ["result", "waitstatus", "success", "exception_occurred"]
END += ["exception_severity", "exception_type", "exception_note"]
ATTRS = [*AS_SUBMITTED, "state", "priority", "annotations", *PLACE, *TIMES, *END]
MAX_UNREAD = 1000
COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


class Invalid(Exception):
    """A request is wrong; the text says how."""

    errnum = errno.EPROTO


class UnknownAttr(Invalid):
    errnum = errno.EINVAL


def path(obj: Any, dotted: str) -> Any:
    for key in dotted.split("."):
        obj = obj.get(key) if isinstance(obj, dict) else None
    return obj


def merge(old: dict, patch: dict) -> dict:
    """`patch` over `old`, level by level; a null removes."""
    new = dict(old)
    for key, value in patch.items():
        if isinstance(value, dict):
            below = new.get(key)
            value = merge(below if isinstance(below, dict) else {}, value)
        new[key] = value
    return {key: value for key, value in new.items() if value is not None}


class Job:
    """The attributes that requests can ask for, and what is needed to make them."""

    def __init__(self, number: int) -> None:
        self.id = number
        self.attrs: dict[str, Any] = {"state": NEW}
        self.states = NEW
        self.jobspec: dict = {}
        self.R: Optional[dict] = None
        self.exception: Optional[dict] = None

    def set(self, key: str, value: Any) -> None:
        if value is None:
            self.attrs.pop(key, None)
        else:
            self.attrs[key] = value

    @property
    def state(self) -> int:
        return self.attrs["state"]

    def enter(self, state: int, when: float) -> None:
        if self.state != state:
            self.attrs["state"] = state
            self.states |= state
            # the first time counts
            self.attrs.setdefault(f"t_{STATES[state.bit_length() - 2]}", when)

    def order(self) -> tuple:
        """Pending jobs by priority, then running and inactive ones, latest first."""
        if self.state & INACTIVE:
            return 2, -self.attrs["t_inactive"], self.id
        if self.state & (RUN | CLEANUP):
            return 1, -self.attrs.get("t_run", 0.0), self.id
        return 0, -self.attrs.get("priority", 0), self.id

    def set_data(self, jobspec: Optional[dict], R: Optional[dict]) -> None:
        if jobspec:
            self.jobspec = jobspec
            self.parse_jobspec()
        if R:
            self.R = R
            self.parse_R()

    def parse_jobspec(self) -> None:
        system = path(self.jobspec, "attributes.system") or {}
        count = {"node": 0, "slot": 0, "core": 0, "exclusive": 0}

        def add(vertices: list, factor: int) -> None:
            for v in vertices:
                n = v.get("count", 1)
                n = factor * (n.get("min", 1) if isinstance(n, dict) else n)
                if v.get("type") in count:
                    count[v["type"]] += n
                count["exclusive"] += v.get("exclusive") is True
                add(v.get("with", []), n)

        for key in ("cwd", "queue", "project", "bank"):
            self.set(key, system.get(key))
        if "duration" in system:
            self.set("duration", float(system["duration"]))
        task = (self.jobspec.get("tasks") or [{}])[0]
        arg0 = (task.get("command") or [None])[0]
        name = path(system, "job.name")
        self.set("name", name or (arg0 and (os.path.basename(arg0) or arg0)))
        add(self.jobspec.get("resources", []), 1)
        if not self.R:  # else R knows better
            whole = count["node"] and count["exclusive"]
            self.set("nnodes", count["node"] or None)
            self.set("ncores", None if whole else count["core"])
        per = path(system, "shell.options.per-resource")
        if per and "type" in per:
            ntasks = (
                per.get("count", 1) * count["node" if per["type"] == "node" else "core"]
            )
        else:
            ntasks = path(task, "count.total")
        self.set("ntasks", count["slot"] if ntasks is None else ntasks)

    def parse_R(self) -> None:
        execution = (self.R or {}).get("execution", {})
        ranks = IDset()
        ncores = 0
        for entry in execution.get("R_lite", []):
            ids = IDset(entry["rank"])
            ncores += len(ids) * len(IDset(entry["children"].get("core", "")))
            ranks.add(ids)
        self.set("nnodes", len(ranks))
        self.set("ncores", ncores)
        self.set(
            "ranks", str(ranks) if len(ranks) == 1 else f"[{ranks}]" if ranks else ""
        )
        self.set("nodelist", str(Hostlist(execution.get("nodelist", []))))
        self.set("expiration", float(execution.get("expiration", 0.0)))

    def event(self, name: str, when: float, context: dict) -> None:
        back = False
        if name == "submit":
            self.set("t_submit", when)
            self.set("userid", context.get("userid"))
            self.set("urgency", context.get("urgency"))
        elif name == "validate":
            self.enter(DEPEND, when)
        elif name == "depend":
            self.enter(PRIORITY, when)
        elif name == "priority":
            self.set("priority", context.get("priority"))
            if self.state == PRIORITY:
                self.enter(SCHED, when)
        elif name == "urgency":
            self.set("urgency", context.get("urgency"))
            back = True
        elif name == "flux-restart":
            back = True
        elif name == "alloc":
            self.attrs.update({k: v for k, v in context.items() if k == "annotations"})
            if self.state == SCHED:
                self.enter(RUN, when)
        elif name == "resource-update":
            self.set("expiration", context.get("expiration"))
        elif name == "exception":
            severity = context["severity"]
            if not self.exception or severity < self.exception["severity"]:
                self.exception = context
            if severity == 0:
                self.enter(CLEANUP, when)
        elif name == "finish":
            self.set("waitstatus", context.get("status"))
            if self.state == RUN:
                self.enter(CLEANUP, when)
        elif name == "clean":
            self.clean(when)
        elif name == "annotations":
            self.set("annotations", context.get("annotations"))
        elif name == "memo":
            notes = merge(self.attrs.get("annotations", {}), {"user": context})
            self.set("annotations", notes or None)
        elif name in ("dependency-add", "dependency-remove"):
            deps = self.attrs.setdefault("dependencies", [])
            known = context.get("description") in deps
            if name == "dependency-add" and not known:
                deps.append(context.get("description"))
            elif name == "dependency-remove" and known:
                deps.remove(context.get("description"))
        elif name == "jobspec-update":
            for key, value in context.items():
                *above, last = key.split(".")
                obj = self.jobspec
                for part in above:
                    obj = obj.setdefault(part, {})
                obj[last] = value
            self.parse_jobspec()
            back = True
        if back and self.state == SCHED:
            self.enter(PRIORITY, when)

    def clean(self, when: float) -> None:
        self.enter(INACTIVE, when)
        success = self.attrs.get("waitstatus") == 0
        why = self.exception or {}
        for key in ("type", "severity", "note"):
            self.set(f"exception_{key}", why.get(key))
        self.set("exception_occurred", bool(why))
        self.set("success", success)
        failed = {"cancel": CANCELED, "timeout": TIMEOUT}.get(why.get("type"), FAILED)
        self.set("result", COMPLETED if success else failed)

    def to_json(self, attrs: list) -> dict:
        found = {"id": self.id}
        for key in attrs:
            if key == "all":
                found.update(self.attrs)
            elif not isinstance(key, str):
                raise UnknownAttr("names of attributes are strings")
            elif key not in ATTRS:
                raise UnknownAttr(f"jobs have no attribute {key}")
            elif key in self.attrs:
                found[key] = self.attrs[key]
        return found


def bits(op: str, value: Any, names: dict) -> int:
    if isinstance(value, int):
        return value
    if not isinstance(value, str):
        raise Invalid(f"{op}: want a name or a number")
    if value.lower() not in names:
        raise Invalid(f"there is no {op[:-1]} {value}")
    return names[value.lower()]


def match_value(job: Optional[Job], op: str, value: Any) -> bool:
    attrs = job.attrs if job else {}
    if op == "userid":
        if not isinstance(value, int):
            raise Invalid("userid: want a number")
        return value & 0xFFFFFFFF == 0xFFFFFFFF or attrs.get(op) == value
    if op == "states":
        return bool(attrs.get("state", 0) & bits(op, value, NAMES))
    if op == "results":
        return bool(attrs.get("result", 0) & bits(op, value, RESULTS))
    if not isinstance(value, str):
        raise Invalid(f"{op}: want a string")
    if op in ("name", "queue"):
        return attrs.get(op) == value
    sign = value[:2] if value[1:2] == "=" else value[:1]
    if sign not in COMPARE:
        raise Invalid(f"{op}: want a time after >, >=, < or <=")
    try:
        limit = float(value[len(sign) :])
    except ValueError:
        raise Invalid("Invalid timestamp value specified") from None
    if limit < 0.0:
        raise Invalid("timestamp value must be >= 0.0")
    return op in attrs and COMPARE[sign](attrs[op], limit)


def match(job: Optional[Job], constraint: Any) -> bool:
    """RFC 31. Without a job, the constraint is only checked."""
    if not isinstance(constraint, dict):
        raise Invalid("no JSON object")
    if len(constraint) > 1:
        raise Invalid("more than one operator")
    for op, values in constraint.items():
        if not isinstance(values, list):
            raise Invalid(f"{op}: want an array")
        if op in ("and", "or", "not"):
            found = [match(job, value) for value in values]
            if op == "or":
                return any(found) or not found
            return all(found) == (op == "and")
        if op not in ("userid", "name", "queue", "states", "results", *TIMES):
            raise Invalid(f"unknown constraint operator: {op}")
        matched = [match_value(job, op, value) for value in values]  # all are checked
        return any(matched)
    return True


class JobList(BrokerModule):
    def __init__(self, h: Any, *args: str) -> None:
        super().__init__(h, *args)
        self.jobs: dict[int, Job] = {}
        self.queues = h.conf_get("queues", {})
        self.ready = False
        self.unread: list[str] = []  # of the journal: most is never asked for
        self.held: list = []  # until ready, or list-id for a state to come
        self.journal = h.rpc(
            "job-manager.events-journal", {"full": True}, flags=FLUX_RPC_STREAMING
        )
        self.journal.then(self.on_journal)

    def on_journal(self, future: Any) -> None:
        try:
            text = future.get_str()
        except OSError as exc:
            if exc.errno != errno.ENODATA:
                self.log.error(f"job-manager.events-journal: {exc}")
            self.stop()
            return
        future.reset()
        self.unread.append(text)
        if self.ready and not self.held and len(self.unread) < MAX_UNREAD:
            return
        self.read()
        if self.ready:
            held, self.held = self.held, []
            for answer, msg in held:
                self.answer(answer, msg)

    def read(self) -> None:
        """Apply what the journal has told."""
        unread, self.unread = self.unread, []
        for text in unread:
            entry = json.loads(text)
            number = entry["id"]
            if number in (-1, 0xFFFFFFFFFFFFFFFF):
                self.ready = True
                continue
            # in the backlog these are up to date: the events change nothing more
            job = self.jobs.setdefault(number, Job(number))
            job.set_data(entry.get("jobspec"), entry.get("R"))
            for e in entry["events"]:
                if e["name"] == "invalidate":
                    del self.jobs[number]
                    break
                job.event(e["name"], e["timestamp"], e.get("context", {}))

    def answer(self, function: Any, msg: Any) -> None:
        """Answer now, or when it can be."""
        if not self.ready:
            self.held.append((function, msg))
            return
        self.read()
        text = msg.payload_str
        try:
            payload = function(json.loads(text) if text else {}, msg)
        except Invalid as exc:
            self.handle.respond_error(msg, exc.errnum, str(exc))
        except LookupError:
            self.handle.respond_error(msg, errno.ENOENT, None)
        else:
            if payload is None:
                self.held.append((function, msg))
            elif payload:
                self.handle.respond(msg, payload)

    @request_handler("list", allow_guest=True)
    def on_list(self, msg: Any) -> None:
        self.answer(self.list_jobs, msg)

    @request_handler("list-id", allow_guest=True)
    def list_id(self, msg: Any) -> None:
        self.answer(self.list_job, msg)

    @request_handler("list-attrs", allow_guest=True)
    def list_attrs(self, msg: Any) -> None:
        self.answer(lambda request, msg: {"attrs": [*ATTRS, "all"]}, msg)

    @request_handler("job-stats", allow_guest=True)
    def job_stats(self, msg: Any) -> None:
        self.answer(self.stats, msg)

    @request_handler("disconnect", allow_guest=True)
    def disconnect(self, msg: Any) -> None:
        self.held = [
            (function, held)
            for function, held in self.held
            if not lib.flux_disconnect_match(msg.handle, held.handle)
        ]

    @request_handler("config-reload")
    def config_reload(self, msg: Any) -> None:
        self.queues = msg.payload.get("queues", {})
        self.handle.respond(msg)

    def list_jobs(self, request: dict, msg: Any) -> dict:
        limit, attrs = request.get("max_entries"), request.get("attrs")
        since, constraint = request.get("since", 0.0), request.get("constraint", {})
        if not isinstance(limit, int) or limit < 0:
            raise Invalid("max_entries is not a number of jobs")
        if not isinstance(since, (int, float)) or since < 0.0:
            raise Invalid("since is not a time")
        if not isinstance(attrs, list):
            raise Invalid("attrs are not an array")
        try:
            match(None, constraint)
        except Invalid as exc:
            raise Invalid(f"constraint object invalid: {exc}") from None
        found = [
            job
            for job in sorted(self.jobs.values(), key=Job.order)
            if job.state != NEW
            and not 0 < job.attrs.get("t_inactive", 0) <= since
            and match(job, constraint)
        ]
        jobs = [job.to_json(attrs) for job in found[: limit or None]]
        if not lib.flux_msg_is_streaming(msg.handle):
            return {"jobs": jobs}
        for n, job in enumerate(jobs):
            self.handle.respond(msg, {"jobs": [job], **({} if n else {"version": 1})})
        self.handle.respond_error(msg, errno.ENODATA, None)
        return {}

    def list_job(self, request: dict, msg: Any) -> Optional[dict]:
        """A job that went inactive counts as having been in the state that is waited
        for: it will not be."""
        attrs, state = request.get("attrs"), request.get("state", 0)
        if "id" not in request or not isinstance(attrs, list):
            raise Invalid("invalid payload")
        if state & ~(ACTIVE | INACTIVE):
            raise Invalid("no such state")
        job = self.jobs[request["id"]]
        if job.state == NEW or (state and not job.states & (state | INACTIVE)):
            return None
        return {"job": job.to_json(attrs)}

    def stats(self, request: dict, msg: Any) -> dict:
        def new(name: Optional[str]) -> dict:
            found: dict = {"job_states": dict.fromkeys((*STATES, "total"), 0)}
            for key in ("successful", "failed", "canceled", "timeout"):
                found[key] = 0
            found["inactive_purged"] = 0
            return {**found, "name": name} if name else found

        whole = new(None)
        queues = {name: new(name) for name in self.queues}
        for job in self.jobs.values():
            if job.state == NEW:
                continue
            name = job.attrs.get("queue")
            for stats in [whole] + (
                [queues.setdefault(name, new(name))] if name else []
            ):
                stats["job_states"][STATES[job.state.bit_length() - 2]] += 1
                stats["job_states"]["total"] += 1
                if job.state == INACTIVE:
                    stats[COUNTED.get(job.attrs["result"], "failed")] += 1
        return {**whole, "queues": list(queues.values())}

    def run(self) -> None:
        super().run()
        for _, msg in self.held:
            self.handle.respond_error(msg, errno.ENOSYS, "job-list is unloading")
