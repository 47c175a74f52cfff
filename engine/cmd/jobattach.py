# SPDX-License-Identifier: LGPL-3.0-only
"""flux job attach: show what a job writes, feed its standard input, and exit
as it did.

Three eventlogs are followed at once: the job's, its exec eventlog when it has
started, and its output when the shell is up.
"""

import argparse
import base64
import errno
import json
import os
import signal
import sys
import time
from typing import Any, Callable, Optional

import flux
from flux.constants import FLUX_POLLIN, FLUX_RPC_STREAMING
from flux.job.JobID import JobID

LEVELS = ("FATAL", "FATAL", "FATAL", "ERROR", " WARN", "", "DEBUG", "TRACE")
INTERRUPT_S = 2.0  # within which a second ^C cancels the job
CHUNK = 65536


def say(text: str) -> None:
    print(f"flux-job: {text}", file=sys.stderr, flush=True)


def decode(context: dict[str, Any]) -> bytes:
    """The data of an RFC 24 data event."""
    data = context.get("data", "")
    if context.get("encoding") == "base64":
        return base64.b64decode(data)
    return data.encode(errors="surrogateescape")


class Attach:
    """The state of one attachment."""

    def __init__(self, handle: flux.Flux, args: argparse.Namespace) -> None:
        self.handle = handle
        self.args = args
        self.jobid = JobID(args.jobid)
        self.exit_code = 0
        self.start = 0.0
        self.open = 0  # eventlogs that are being followed, but the job's own
        self.finished = False
        self.watching_exec = False
        self.watching_output = False
        self.service = ""
        self.interrupted = -INTERRUPT_S
        self.stdin: Optional[Any] = None
        self.stdin_partial = b""
        self.backlog: Optional[int] = args.tail

    # Eventlogs
    def follow(self, path: str, callback: Callable[[dict[str, Any]], None]) -> None:
        if path != "eventlog":
            self.open += 1
        rpc = self.handle.rpc(
            "job-info.eventlog-watch",
            {"id": int(self.jobid), "path": path, "flags": 0},
            flags=FLUX_RPC_STREAMING,
        )
        rpc.then(self.receive, path, callback)

    def receive(
        self, rpc: Any, path: str, callback: Callable[[dict[str, Any]], None]
    ) -> None:
        try:
            line = rpc.get()["event"]
        except OSError as exc:
            if path != "eventlog":
                self.open -= 1
            elif exc.errno == errno.ENOENT:
                say(f"Failed to attach to {self.args.jobid}: No such job")
                self.exit_code = 1
            if exc.errno not in (errno.ENODATA, errno.ENOENT):
                say(f"{path}: {rpc.error_string()}")
                self.exit_code = self.exit_code or 1
            if path == "eventlog":
                self.finished = True
            self.check_done()
            return
        callback(json.loads(line))
        rpc.reset()

    def check_done(self) -> None:
        if self.finished and self.open == 0:
            self.handle.reactor_stop()

    def show(self, prefix: str, event: dict[str, Any]) -> None:
        context = event.get("context")
        text = " " + json.dumps(context, separators=(",", ":")) if context else ""
        when = event["timestamp"] - self.start
        print(f"{when:.3f}s: {prefix}.{event['name']}{text}", file=sys.stderr)

    # The job's own events
    def main_event(self, event: dict[str, Any]) -> None:
        name = event["name"]
        context = event.get("context", {})
        self.start = self.start or event["timestamp"]
        if name == "exception":
            severity = context["severity"]
            when = event["timestamp"] - self.start
            say(
                f"{when:.3f}s: job.exception {self.jobid.f58} type={context['type']} "
                f"severity={severity} {context.get('note', '')}"
            )
            if severity == 0 and not self.finished:
                self.exit_code = self.exit_code or 1
        elif name == "finish":
            self.finish(context["status"])
        if self.args.show_events and name != "exception":
            self.show("job", event)
        if name == "start" and not self.watching_exec:
            self.watching_exec = True
            self.follow("guest.exec.eventlog", self.exec_event)
        if name == self.args.wait_event or name == "clean":
            self.finished = True
            self.check_done()

    def finish(self, status: int) -> None:
        if os.WIFSIGNALED(status):
            self.exit_code = 128 + os.WTERMSIG(status)
            say(f"task(s) {signal.strsignal(os.WTERMSIG(status))}")
        elif status:
            self.exit_code = os.WEXITSTATUS(status)
            code = self.exit_code
            if code > 128 and signal.strsignal(code - 128):
                say(f"task(s) {signal.strsignal(code - 128)}")
            else:
                say(f"task(s) exited with exit code {code}")
        else:
            self.exit_code = 0

    # Events of the execution
    def exec_event(self, event: dict[str, Any]) -> None:
        name = event["name"]
        context = event.get("context", {})
        if name == "shell.init":
            self.service = context["service"]
            self.follow_output()
            if not self.args.read_only and not self.finished:
                self.open_stdin()
        elif name == "complete":
            self.follow_output()
        elif name == "log":
            sys.stderr.write(
                f"{context.get('component', '')}[{context.get('rank', '')}]: "
                f"{context.get('data', '')}"
            )
            sys.stderr.flush()
        if self.args.show_exec and name != "log":
            self.show("exec", event)

    # Output
    def follow_output(self) -> None:
        if not self.watching_output:
            self.watching_output = True
            self.follow("guest.output", self.output_event)

    def output_event(self, event: dict[str, Any]) -> None:
        name = event["name"]
        context = event.get("context", {})
        if name == "data":
            data = decode(context)
            out = sys.stderr if context["stream"] == "stderr" else sys.stdout
            if data and self.args.label_io:
                data = f"{context['rank']}: ".encode() + data
            out.flush()
            out.buffer.write(data)
            out.buffer.flush()
        elif name == "redirect" and not self.args.quiet:
            path = f" to {context['path']}" if "path" in context else ""
            ranks = context["rank"]
            print(f"{ranks}: {context['stream']} redirected{path}", file=sys.stderr)
        elif name == "log":
            self.shell_log(event["timestamp"], context)

    def shell_log(self, timestamp: float, context: dict[str, Any]) -> None:
        if self.args.quiet:
            return
        level = LEVELS[context["level"]]
        parts = [f"{timestamp - self.start:.3f}s: flux-shell[{context.get('rank', 0)}]"]
        if level:
            parts.append(level)
        if context.get("component"):
            parts.append(context["component"])
        if self.args.verbose and "file" in context:
            parts.append(f"{context['file']}:{context['line']}")
        print(": ".join(parts + [context["message"]]), file=sys.stderr)

    # Input
    def open_stdin(self) -> None:
        try:
            if os.isatty(0) and os.tcgetpgrp(0) != os.getpgrp():
                return  # in the background
            os.set_blocking(0, False)
        except OSError:
            return  # closed
        self.stdin = self.handle.fd_watcher_create(0, self.stdin_ready, FLUX_POLLIN)
        self.stdin.start()

    def stdin_ready(self, handle: Any, watcher: Any, fd: int, *args: Any) -> None:
        try:
            data = os.read(0, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            watcher.stop()
            self.send(self.stdin_partial, eof=True)
            return
        data = self.stdin_partial + data
        end = len(data) if self.args.unbuffered else data.rfind(b"\n") + 1
        self.stdin_partial = data[end:]
        if end:
            self.send(data[:end])

    def send(self, data: bytes, eof: bool = False) -> None:
        context: dict[str, Any] = {"stream": "stdin", "rank": self.args.stdin_ranks}
        if eof:
            context["eof"] = True
        if data:
            try:
                context["data"] = data.decode()
            except UnicodeDecodeError:
                context["data"] = base64.b64encode(data).decode()
                context["encoding"] = "base64"
        self.handle.rpc(f"{self.service}.stdin", context).then(self.sent, bool(data))

    def sent(self, rpc: Any, had_data: bool) -> None:
        try:
            rpc.get()
        except OSError as exc:
            if self.stdin:
                self.stdin.stop()
            # A job that has ended, or does not read, is no error.
            if had_data and exc.errno == errno.ENOSYS and not self.finished:
                say("the job takes no standard input")
                self.exit_code = 1
                self.handle.reactor_stop()

    # Signals
    def on_sigint(self, *args: Any) -> None:
        now = time.monotonic()
        if now - self.interrupted < INTERRUPT_S:
            say(f"canceling {self.jobid.f58}")
            request = {
                "id": int(self.jobid),
                "severity": 0,
                "type": "cancel",
                "note": "interrupted by ctrl-C",
            }
            self.handle.rpc("job-manager.raise", request).then(lambda rpc: None)
            self.interrupted = -INTERRUPT_S
            return
        self.interrupted = now
        say("ctrl-C again to cancel the job, ctrl-Z to leave it")

    def on_sigtstp(self, *args: Any) -> None:
        if time.monotonic() - self.interrupted < INTERRUPT_S:
            say("detaching...")
            self.exit_code = 0
            self.handle.reactor_stop()
        else:
            os.kill(os.getpid(), signal.SIGSTOP)

    def run(self) -> int:
        watchers = []
        if not self.args.read_only:
            for signum, callback in (
                (signal.SIGINT, self.on_sigint),
                (signal.SIGTSTP, self.on_sigtstp),
            ):
                watcher = self.handle.signal_watcher_create(signum, callback)
                watcher.start()
                watchers.append(watcher)
        self.follow("eventlog", self.main_event)
        try:
            self.handle.reactor_run()
        finally:
            try:
                os.set_blocking(0, True)
            except OSError:
                pass
        return self.exit_code


def attach(handle: flux.Flux, args: argparse.Namespace) -> int:
    """Attach to args.jobid; returns the exit code to exit with."""
    return Attach(handle, args).run()
