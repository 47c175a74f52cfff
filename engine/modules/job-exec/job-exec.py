# SPDX-License-Identifier: LGPL-3.0-only
"""The job-exec module: runs the jobs that job-manager sends.

job-manager sends one job-exec.start request for each job (RFC 32) and gets responses of
type start, exception, finish and release. A job passes through these steps, each begun
by the answer to the one before: create the guest namespace, link it into the job's
directory, run, append the last events, move the namespace into the job's directory,
release the resources. A restarted job-manager or instance sends start again with
"reattach".
"""

import errno
import json
import os
import time
from typing import Any, Callable, Optional

from _flux._core import ffi, lib
from exec_config import Config, parse_duration
from exec_shells import Shells
from flux.brokermod import BrokerModule, event_handler, request_handler
from flux.idset import IDset
from job_keys import APPEND, commit, entry, f58, kvs_key, kvs_namespace

SIGALRM, SIGKILL = 14, 9
FAILED = 1 << 8  # the wait status of exit code 1
LONGEST_PAUSE = 300.0  # seconds between signals


class Simulation:
    """Runs a job that has attributes.system.exec.test: waits for run_duration, then
    ends with wait_status."""

    def __init__(self, job: "Job", test: dict, limit: Any) -> None:
        self.job, self.timer = job, None
        self.status, self.left = int(test.get("wait_status", 0)), 0.0
        if "run_duration" in test:
            self.left = parse_duration(test["run_duration"])
        elif isinstance(limit, (int, float)):
            self.left = limit
        if job.reattach:  # only the rest remains
            self.left = max(0.0, self.left - (time.time() - job.starttime))
            self.left *= not test.get("reattach_finish", 0)

    def start(self) -> None:
        self.job.has_started()
        self.timer = self.job.timer(self.left, lambda: self.job.complete(self.status))

    def kill(self, signum: int) -> None:
        self.job.complete(signum)

    def active(self) -> list:
        return []

    def close(self) -> None:
        if self.timer:
            self.timer.stop()


class Job:
    def __init__(self, service: "Exec", msg: Any) -> None:
        request = msg.payload
        self.service, self.handle, self.msg = service, service.handle, msg
        self.id, self.userid = int(request["id"]), int(request["userid"])
        self.jobspec, self.reattach = request["jobspec"], bool(request["reattach"])
        execution = request["R"]["execution"]
        self.starttime = float(execution.get("starttime", 0.0))
        self.expiration = float(execution.get("expiration", 0.0))
        parts = [IDset(part["rank"]) for part in execution["R_lite"]]
        self.ranks = sorted({rank for part in parts for rank in part})
        if not self.ranks:
            raise ValueError("no ranks")
        self.t0 = time.time()
        self.namespace = kvs_namespace(self.id)
        self.task: Any = None  # what runs it
        self.kill_timeout, self.kill_count = service.config.kill_timeout, 0
        self.exception_status: Optional[int] = None
        self.expire: Any = None
        self.kill_timers: list = []
        self.has_namespace = self.exception = self.finalizing = False
        self.running = self.completed = False

    # Messages
    def respond(self, kind: str, **data: Any) -> None:
        text = json.dumps({"id": self.id, "type": kind, "data": data}).encode()
        if lib.flux_respond(self.handle.handle, self.msg.handle, text) < 0:
            self.log_failure(f"{kind} response: {os.strerror(ffi.errno)}")

    def tell(self, topic: str, payload: dict) -> None:
        """Send a request whose answer nobody waits for."""
        text = json.dumps(payload).encode()
        args = topic.encode(), text, lib.FLUX_NODEID_ANY, lib.FLUX_RPC_NORESPONSE
        lib.flux_future_destroy(lib.flux_rpc(self.handle.handle, *args))

    def event(self, name: str, **context: Any) -> None:
        """The KVS keeps the order of commits: nobody waits for this one."""
        op = "exec.eventlog", APPEND, entry(name, context)
        self.tell("kvs.commit", commit(self.namespace, op))

    def raise_exception(self, kind: str, note: str) -> None:
        if not self.exception:
            self.respond("exception", severity=0, type=kind, note=note)
        self.exception = True

    def fatal(self, note: str) -> None:
        """End the job with an exception."""
        self.raise_exception("exec", note)
        if self.task:
            self.cancel()
        else:
            self.finalize()

    # Steps
    def step(self, what: str, topic: str, payload: dict, then: Callable) -> None:
        """The next step is `then`, with the errno of the answer and the note that says
        what failed."""

        def answered(future: Any) -> None:
            try:
                future.get()
            except OSError as exc:
                then(exc.errno, f"{what}: {os.strerror(exc.errno)}")
            else:
                then(0, "")

        self.handle.rpc(topic, payload).then(answered)

    def create(self) -> None:
        request = {"namespace": self.namespace, "owner": self.userid, "flags": 0}
        what = "failed to create guest ns"
        self.step(what, "kvs.namespace-create", request, self.created)

    def created(self, errnum: int, note: str) -> None:
        # EEXIST: taken up again, also after a crash before the start event was written
        if errnum not in (0, errno.EEXIST):
            self.fatal(note)
            return
        self.has_namespace = True
        self.event("reattach" if self.reattach else "init")
        link = {"target": ".", "namespace": self.namespace}
        request = commit("primary", (kvs_key(self.id, "guest"), 0, link))
        what = "failed to link guest namespace"
        self.step(what, "kvs.commit", request, self.linked)

    def linked(self, errnum: int, note: str) -> None:
        if errnum:
            self.fatal(note)
            return
        if self.exception:  # came meanwhile
            self.finalize()
            return
        try:
            system = self.jobspec["attributes"]["system"]
            settings = system.get("exec", {})
            if "test" in settings:
                limit = system.get("duration")
                self.task = Simulation(self, settings["test"], limit)
            else:
                self.task = Shells(self, settings.get("job_shell"))
        except (LookupError, TypeError, ValueError, AttributeError):
            text = os.strerror(errno.EINVAL)
            self.fatal(f"failed to initialize implementation: {text}")
            return
        if not self.reattach:
            self.event("starting")
        self.task.start()

    def has_started(self) -> None:
        """The job shells run, or the simulation does."""
        self.running = True
        self.set_expiration()
        self.respond("reattached" if self.reattach else "start")

    def complete(self, status: int) -> None:
        """The tasks have ended: `status` is the greatest wait status."""
        if self.completed:
            return
        self.completed = True
        if self.exception_status is not None:
            status = self.exception_status
        elif self.exception and status == 0:
            status = FAILED
        self.respond("finish", status=status)
        self.finalize(entry("complete", {"status": status}))

    def finalize(self, events: str = "") -> None:
        if self.finalizing:
            return
        self.finalizing = True
        self.stop_timers()
        if not self.has_namespace:
            self.release()
            return
        op = "exec.eventlog", APPEND, events + entry("done", {})
        request = commit(self.namespace, op)
        what = "append to exec.eventlog"
        self.step(what, "kvs.commit", request, self.move)

    def move(self, errnum: int, note: str) -> None:
        """A copy and a removal would lose what the guest commits in between."""
        self.log_failure(note)
        key = kvs_key(self.id, "guest")
        request = {"namespace": self.namespace, "key": key}
        what = "move guest namespace"
        self.step(what, "kvs.namespace-move", request, self.moved)

    def moved(self, errnum: int, note: str) -> None:
        self.log_failure(note)
        self.release()

    def log_failure(self, note: str) -> None:
        if note:
            self.service.log.error(f"{f58(self.id)}: {note}")

    def release(self) -> None:
        self.respond("release", ranks="all", final=True)
        self.service.jobs.pop(self.id, None)
        self.close()

    # Ends
    def timer(self, after: float, function: Callable, repeat: float = 0.0) -> Any:
        timer = self.handle.timer_watcher_create(
            after, lambda *_: function(), repeat=repeat
        )
        timer.start()
        return timer

    def stop_timers(self) -> None:
        for timer in [self.expire, *self.kill_timers]:
            if timer:
                timer.stop()

    def cancel(self) -> None:
        if not self.completed:
            self.task.kill(self.service.config.term_signal)
            self.start_kill_timers()

    def start_kill_timers(self) -> None:
        t = self.kill_timeout
        if not self.completed and not self.kill_timers:
            self.kill_timers = [
                self.timer(t, self.kill_tasks, repeat=t),
                self.timer(5 * t, self.kill_shells),
            ]

    def kill_tasks(self) -> None:
        """The signal goes by way of the shell to all tasks."""
        signum = self.service.config.kill_signal
        self.tell("job-manager.kill", {"signum": signum, "id": self.id})

    def kill_shells(self) -> None:
        """Not even then: kill the shells, with growing pauses, and give up at last."""
        self.kill_timers[0].stop()
        self.kill_timeout = min(2 * self.kill_timeout, LONGEST_PAUSE)
        self.kill_timers[1].reset(after=self.kill_timeout)
        self.kill_count += 1
        left = self.task.active()
        if left and self.kill_count >= self.service.config.max_kill_count:
            drain = {
                "targets": ",".join(map(str, left)),
                "reason": f"processes of job {f58(self.id)} survive SIGKILL",
                "mode": "update",
            }
            self.tell("resource.drain", drain)
            self.complete(1)
        else:
            self.task.kill(SIGKILL)

    def set_expiration(self) -> None:
        """Raise the timeout exception when the time of R is over. A job that could
        begin only late, for its length, gets that time back."""
        at, delay = self.expiration, self.t0 - self.starttime
        if self.expire:
            self.expire.stop()
            self.expire = None
        if at <= 0.0 or self.completed:
            return
        allowed = (at - self.starttime) * self.service.config.max_start_delay_percent
        if not self.reattach and self.starttime > 0.0 and delay * 100 > allowed:
            at += delay
        self.expire = self.timer(max(0.0, at - time.time()), self.expired)

    def expired(self) -> None:
        self.raise_exception("timeout", "resource allocation expired")
        self.task.kill(SIGALRM)
        self.start_kill_timers()

    def close(self) -> None:
        self.stop_timers()
        if self.task:
            self.task.close()


class Exec(BrokerModule):
    def __init__(self, h: Any, *args: str) -> None:
        super().__init__(h, *args)
        self.jobs: dict[int, Job] = {}
        self.config = Config(h.conf_get())
        h.event_subscribe("job-exception")
        h.rpc("job-manager.exec-hello", {"service": "job-exec"}).get()

    @request_handler("start")
    def on_start(self, msg: Any) -> None:
        try:
            job = Job(self, msg)
        except (LookupError, TypeError, ValueError, AttributeError):
            self.handle.respond_error(msg, errno.EPROTO, None)
            return
        if job.id in self.jobs:
            self.handle.respond_error(msg, errno.EEXIST, None)
            return
        self.jobs[job.id] = job
        job.create()

    @event_handler("job-exception", prefix=False)
    def on_exception(self, msg: Any) -> None:
        event = msg.payload
        job = self.jobs.get(event["id"])
        if event["severity"] != 0 or not job or job.finalizing:
            return
        status = event.get("wait_status", -1)
        if not job.exception and status >= 0:
            signum = status & 0x7F
            job.exception_status = (128 + signum if signum else status >> 8) << 8
        job.exception = True
        if job.task:
            job.cancel()

    @request_handler("expiration")
    def on_expiration(self, msg: Any) -> None:
        request = msg.payload
        job = self.jobs.get(request["id"])
        if not job:
            self.handle.respond_error(msg, errno.ENOENT, None)
            return
        job.expiration = float(request["expiration"])
        if job.running and not job.finalizing:
            job.set_expiration()
        self.handle.respond(msg)

    @request_handler("config-reload")
    def on_config(self, msg: Any) -> None:
        try:
            self.config = Config(msg.payload)
        except ValueError as exc:
            self.handle.respond_error(msg, errno.EINVAL, str(exc))
            return
        self.handle.respond(msg)

    @request_handler("shell-barrier", allow_guest=True)
    def on_barrier(self, msg: Any) -> None:
        job = self.jobs.get(msg.payload["id"])
        if not job or not isinstance(job.task, Shells):
            self.handle.respond_error(msg, errno.ENOENT, None)
        elif lib.flux_msg_authorize(msg.handle, job.userid) < 0:
            self.handle.respond_error(msg, errno.EPERM, None)
        else:
            job.task.barrier(msg)

    def run(self) -> None:
        super().run()
        for job in self.jobs.values():
            job.close()
