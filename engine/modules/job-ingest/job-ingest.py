# SPDX-License-Identifier: LGPL-3.0-only
"""The job-ingest module: makes jobs of what is submitted.

A jobspec passes the frobnicator and the validator, as [ingest] has them. Then the job
gets its ID, J and jobspec go to the KVS, and the job manager is told. Requests that
come together share a commit and an announcement.
"""

import errno
import json
import os
import time
from typing import Any, Callable, Optional

from _flux._core import ffi, lib
from flux.brokermod import BrokerModule, request_handler
from ingest_crew import Crew

FLAGS = lib.FLUX_JOB_DEBUG | lib.FLUX_JOB_WAITABLE | lib.FLUX_JOB_NOVALIDATE
URGENCIES = range(lib.FLUX_JOB_URGENCY_MIN, lib.FLUX_JOB_URGENCY_MAX + 1)
# Exceptions by which plugins reject a jobspec, and of code that meets a malformed one.
FAULTS = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    OSError,
    RecursionError,
)
FIELDS = ("userid", "urgency", "flags")  # of a job, beside its jobspec
FROBNICATORS = ["defaults", "constraints"]
VALIDATORS = ["jobspec"]


class Refused(Exception):
    def __init__(self, errnum: int, text: str) -> None:
        super().__init__(text)
        self.errnum = errnum


class Job:
    """A request on its way."""

    def __init__(self, msg: Any) -> None:
        self.msg = msg
        try:
            request = msg.payload
            self.J, self.flags = request["J"], request["flags"]
            self.urgency = request["urgency"]
            if [type(x) for x in (self.J, self.flags, self.urgency)] != [str, int, int]:
                raise TypeError
        except FAULTS:
            raise Refused(errno.EPROTO, "malformed request") from None
        cred = ffi.new("struct flux_msg_cred *")
        lib.flux_msg_get_cred(msg.handle, cred)
        self.userid = cred.userid
        self.check(bool(cred.rolemask & lib.FLUX_ROLE_OWNER))
        self.jobspec = self.unwrap(bool(cred.rolemask & lib.FLUX_ROLE_OWNER))
        self.stages: list[Stage] = []
        self.id, self.text = 0, ""  # of the jobspec

    def check(self, owner: bool) -> None:
        only = "only the instance owner can submit with"
        first, last = URGENCIES[0], URGENCIES[-1]
        if self.flags & ~FLAGS:
            raise Refused(errno.EPROTO, "invalid job flags")
        if self.urgency not in URGENCIES:
            raise Refused(errno.EINVAL, f"urgency range is [{first}:{last}]")
        if owner:
            return
        if self.flags & lib.FLUX_JOB_NOVALIDATE:
            raise Refused(errno.EPERM, f"{only} FLUX_JOB_NOVALIDATE")
        if self.urgency > lib.FLUX_JOB_URGENCY_DEFAULT:
            text = f"{only} urgency >{lib.FLUX_JOB_URGENCY_DEFAULT}"
            raise Refused(errno.EINVAL, text)
        if self.flags & lib.FLUX_JOB_WAITABLE:
            raise Refused(errno.EINVAL, f"{only} FLUX_JOB_WAITABLE")

    def unwrap(self, owner: bool) -> dict:
        signer = ffi.new("uint32_t *")
        text = lib.flux_unwrap_string(self.J.encode(), False, signer, ffi.NULL)
        if text == ffi.NULL:
            why = os.strerror(ffi.errno)
            raise Refused(ffi.errno, f"could not unwrap jobspec: {why}")
        try:
            jobspec = json.loads(ffi.string(text))
        except (ValueError, RecursionError) as exc:
            raise Refused(errno.EINVAL, f"jobspec: invalid JSON: {exc}") from None
        finally:
            lib.free(text)
        if signer[0] != self.userid:
            text = f"signer={signer[0]} != requestor={self.userid}"
            raise Refused(errno.EPERM, text)
        if not owner:  # there is no other type
            text = "only instance owner can use sign-type=none"
            raise Refused(errno.EPERM, text)
        if not isinstance(jobspec, dict):
            raise Refused(errno.EINVAL, "jobspec is not an object")
        return jobspec


class Stage:
    """A step of each jobspec: nothing, a function, or plugins in processes."""

    def __init__(self, name: str, conf: Any, plugins: list) -> None:
        self.name = name
        self.function: Optional[Callable[[dict], dict]] = None
        self.crew: Optional[Crew] = None
        if not isinstance(conf, dict):
            raise ValueError(f"[ingest.{name}] is no table")
        self.args, self.given = conf.get("args", []), conf.get("plugins", [])
        for key, value in ("plugins", self.given), ("args", self.args):
            if not isinstance(value, list) or any(type(s) is not str for s in value):
                raise ValueError(f"[ingest.{name}] {key}: not strings")
        self.off = conf.get("disable", False)
        if not isinstance(self.off, bool):
            raise ValueError(f"[ingest.{name}] disable: not true or false")
        self.plugins = self.given or plugins
        self.builtin = self.plugins == plugins and not self.args

    def command(self) -> list:
        plugins = f"--plugins={','.join(self.plugins)}"
        return ["flux", f"job-{self.name}", plugins, *self.args]


def frobnicator(conf: dict) -> Callable[[dict], dict]:
    """flux-python's plugins "defaults" and "constraints"."""
    from flux.job import Jobspec
    from flux.job.frobnicator.plugins.constraints import apply_constraints
    from flux.job.frobnicator.plugins.defaults import DefaultsConfig
    from flux.queue import QueueConf

    queues = QueueConf.from_config(conf)
    defaults = DefaultsConfig(queues)

    def frobnicate(jobspec: dict) -> dict:
        spec = Jobspec(**jobspec)
        defaults.apply_defaults(spec)
        apply_constraints(queues, spec)
        return spec.jobspec

    return frobnicate


def validate(jobspec: dict) -> dict:
    """flux-python's plugin "jobspec"."""
    from flux.job import validate_jobspec

    validate_jobspec(json.dumps(jobspec), require_version=1)
    return jobspec


class Ingest(BrokerModule):
    def __init__(self, h: Any, *args: str) -> None:
        super().__init__(h, *args)
        self.crews: list[Crew] = []
        self.waiting: list[Job] = []  # for a commit
        self.unanswered: dict[Job, None] = {}
        self.committing = False
        self.configure(h.conf_get(), args)
        # IDs go on after the highest that the job manager knows
        highest = h.rpc("job-manager.getinfo").get()["max_jobid"]
        self.clock = (highest >> 24) + 1 - self.now()
        self.stamp, self.sequence = (highest >> 24) + 1, 0
        self.timer = h.timer_watcher_create(0.0, lambda *_: self.commit())

    # Configuration
    def configure(self, conf: dict, args: tuple = ()) -> None:
        """Options of the module count until the configuration is loaded again."""
        ingest = conf.get("ingest", {})
        if not isinstance(ingest, dict):
            raise ValueError("[ingest] is no table")
        count = ingest.get("batch-count", 0)
        options = ingest.get("validator", {})
        for arg in args:
            name, _, value = arg.partition("=")
            if name in ("validator-plugins", "validator-args"):
                options = {**options, name[len("validator-") :]: value.split(",")}
            elif arg == "disable-validator":
                options = {**options, "disable": True}
            elif name == "batch-count" and value.isdigit():
                count = int(value)
            else:
                raise ValueError(f"Invalid option: {arg}")
        if type(count) is not int:
            raise ValueError("[ingest] batch-count: not a number")
        stages = [
            Stage("frobnicator", ingest.get("frobnicator", {}), FROBNICATORS),
            Stage("validator", options, VALIDATORS),
        ]
        defaults = conf.get("policy", {}).get("jobspec", {}).get("defaults")
        if not (stages[0].given or defaults or conf.get("queues")):
            stages[0].off = True
        for crew in self.crews:
            crew.retire()
        self.crews = []
        for stage in stages:
            if not stage.builtin and not stage.off:
                stage.crew = Crew(self.handle, stage.command(), self.on_result)
                self.crews.append(stage.crew)
        self.conf, self.stages, self.batch_count = conf, stages, count

    @request_handler("config-reload")
    def config_reload(self, msg: Any) -> None:
        try:
            self.configure(msg.payload)
        except FAULTS as exc:
            self.handle.respond_error(msg, errno.EINVAL, str(exc))
        else:
            self.handle.respond(msg)

    # Stages
    @request_handler("submit", allow_guest=True)
    def submit(self, msg: Any) -> None:
        try:
            job = Job(msg)
        except Refused as exc:
            self.handle.respond_error(msg, exc.errnum, str(exc))
            return
        self.unanswered[job] = None
        job.stages = [stage for stage in self.stages if not stage.off]
        if job.flags & lib.FLUX_JOB_NOVALIDATE:
            job.stages = [s for s in job.stages if s.name != "validator"]
        self.advance(job)

    def advance(self, job: Job) -> None:
        while job.stages:
            stage = job.stages[0]
            if stage.crew:
                fields = {key: getattr(job, key) for key in FIELDS}
                stage.crew.ask(job, {"jobspec": job.jobspec, **fields})
                return
            try:
                if not stage.function:
                    frobnicates = stage.name == "frobnicator"
                    stage.function = frobnicator(self.conf) if frobnicates else validate
                job.jobspec = stage.function(job.jobspec)
            except FAULTS as exc:
                self.refuse(job, errno.EINVAL, str(exc))
                return
            job.stages.pop(0)
        self.add(job)

    def on_result(self, job: Job, result: dict) -> None:
        """A crew has answered."""
        stage = job.stages.pop(0)
        errnum, data = result["errnum"], result.get("data")
        if errnum:
            text = result.get("errstr") or "rejected by a plugin"
            self.refuse(job, errnum, text)
        elif stage.name == "frobnicator" and not isinstance(data, dict):
            text = "the frobnicator has answered with no jobspec"
            self.refuse(job, errno.EINVAL, text)
        else:
            job.jobspec = data or job.jobspec
            self.advance(job)

    def refuse(self, job: Job, errnum: int, text: str) -> None:
        del self.unanswered[job]
        self.handle.respond_error(job.msg, errnum, text)

    # Jobs
    @staticmethod
    def now() -> int:
        return time.monotonic_ns() // 1000000

    def next_id(self) -> int:
        """A FLUID (RFC 19): 40 bits of time since the first job, 14 of generator (here
        0), 10 of sequence."""
        now = self.now() + self.clock
        self.sequence += 1
        if now > self.stamp:
            self.stamp, self.sequence = now, 0
        elif self.sequence == 1024:  # borrow from the future
            self.stamp, self.sequence = self.stamp + 1, 0
        return self.stamp << 24 | self.sequence

    def add(self, job: Job) -> None:
        # the environment is in J, and bulky: the jobspec goes without
        system = job.jobspec.get("attributes", {}).get("system")
        if isinstance(system, dict):
            system.pop("environment", None)
        try:
            job.text = json.dumps(job.jobspec, allow_nan=False)
        except FAULTS as exc:
            self.refuse(job, errno.EINVAL, f"jobspec: {exc}")
            return
        job.id = self.next_id()
        self.waiting.append(job)
        if not self.committing and len(self.waiting) == (self.batch_count or 1):
            self.timer.reset()

    def commit(self) -> None:
        from flux.job import JobID
        from flux.kvs import KVSTxn

        jobs, self.waiting = self.waiting, []
        txn = KVSTxn(self.handle)
        for job in jobs:
            path = JobID(job.id).kvs
            txn.put(f"{path}.J", job.J, raw=True)
            txn.put(f"{path}.jobspec", job.text, raw=True)
        self.committing = True
        txn.commit_async().then(self.on_commit, jobs)

    def on_commit(self, future: Any, jobs: list) -> None:
        self.committing = False
        if self.waiting:
            self.timer.reset()
        try:
            future.get()
        except OSError as exc:
            for job in jobs:
                self.refuse(job, exc.errno, "KVS commit failed")
        else:
            self.announce(jobs)

    def announce(self, jobs: list) -> None:
        now, announced = time.time(), []
        for job in jobs:
            fields = {key: getattr(job, key) for key in FIELDS}
            head = json.dumps({"id": job.id, "t_submit": now, **fields})
            announced.append(f'{head[:-1]}, "jobspec": {job.text}}}')
        request = f'{{"jobs": [{", ".join(announced)}]}}'
        future = self.handle.rpc("job-manager.submit", request)
        future.then(self.on_announced, jobs)

    def on_announced(self, future: Any, jobs: list) -> None:
        try:
            errors = dict((future.get() or {}).get("errors", []))
        except OSError as exc:
            if len(jobs) > 1:  # one that jansson cannot read does not fail others
                for job in jobs:
                    self.announce([job])
                return
            self.refuse(jobs[0], exc.errno, exc.strerror)
            rejected = jobs
        else:
            rejected = [job for job in jobs if job.id in errors]
            for job in jobs:
                if job.id in errors:
                    self.refuse(job, errno.EINVAL, errors[job.id])
                else:
                    del self.unanswered[job]
                    self.handle.respond(job.msg, {"id": job.id})
        if rejected:
            self.remove(rejected)

    def remove(self, jobs: list) -> None:
        """Remove jobs that the job manager has rejected from the KVS."""
        from flux.job import JobID
        from flux.kvs import KVSTxn

        txn = KVSTxn(self.handle)
        for job in jobs:
            txn.unlink(JobID(job.id).kvs)
        txn.commit_async().then(self.on_removed)

    def on_removed(self, future: Any) -> None:
        try:
            future.get()
        except OSError as exc:
            self.log.error(f"error removing rejected jobs from the KVS: {exc}")

    def run(self) -> None:
        super().run()
        for crew in self.crews:
            crew.kill()
        for job in list(self.unanswered):
            self.refuse(job, errno.ENOSYS, "job-ingest is unloading")
