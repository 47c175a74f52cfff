# SPDX-License-Identifier: LGPL-3.0-only
"""Processes that run plugins of job-ingest: a line of JSON in, a line out.

The crew starts processes when there is work, more of them when much is waiting, and
ends idle ones after a while.
"""

import contextlib
import errno
import json
import socket
import subprocess
from collections import deque
from syslog import LOG_DEBUG, LOG_ERR
from typing import Any, Callable

from flux.constants import FLUX_POLLIN

SIZE, BACKLOG = 4, 32
IDLE_TIMEOUT = 5.0


class Worker:
    def __init__(self, crew: "Crew") -> None:
        self.crew = crew
        self.job: Any = None  # that it works on
        self.retired = False  # takes no more
        self.unread = b""
        self.socket, theirs = socket.socketpair()
        errors, self.errors = socket.socketpair()
        with theirs, self.errors:
            self.process = subprocess.Popen(
                crew.command, stdin=theirs, stdout=theirs, stderr=self.errors
            )
        handle = crew.handle
        self.errors = errors
        self.watchers = [
            handle.fd_watcher_create(self.socket.fileno(), self.on_output, FLUX_POLLIN),
            handle.fd_watcher_create(errors.fileno(), self.on_errors, FLUX_POLLIN),
        ]
        for watcher in self.watchers:
            watcher.start()
        self.timer = handle.timer_watcher_create(IDLE_TIMEOUT, lambda *_: self.retire())

    def take(self, job: Any, request: dict) -> None:
        self.job = job
        self.timer.stop()
        with contextlib.suppress(OSError):  # it has ended, which on_output sees
            self.socket.sendall(json.dumps(request).encode() + b"\n")

    def retire(self) -> None:
        self.retired = True
        if self.job is None:
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_WR)

    def on_output(self, *_: Any) -> None:
        try:
            data = self.socket.recv(65536)
        except OSError:
            data = b""
        if not data:
            self.close()
            self.crew.ended(self, self.process.wait())
            return
        *lines, self.unread = (self.unread + data).split(b"\n")
        for line in lines:
            self.on_line(line.decode(errors="replace"))

    def on_line(self, line: str) -> None:
        if self.job is None:
            self.crew.log(LOG_ERR, f"unexpected output: {line}")
            return
        try:
            result = json.loads(line)
            result["errnum"] + 0
        except (ValueError, TypeError, KeyError):
            text = "invalid answer of a plugin process"
            result = {"errnum": errno.EINVAL, "errstr": text}
        job, self.job = self.job, None
        if self.retired:
            self.retire()
        else:
            self.timer.reset()
        self.crew.answer(job, result)
        self.crew.dispatch()

    def on_errors(self, *_: Any) -> None:
        data = self.errors.recv(65536)
        if not data:
            self.watchers[1].stop()
        for line in data.decode(errors="replace").splitlines():
            self.crew.log(LOG_DEBUG, line)

    def close(self) -> None:
        for watcher in (*self.watchers, self.timer):
            watcher.stop()
            watcher.destroy()
        self.socket.close()
        self.errors.close()


class Crew:
    def __init__(self, handle: Any, command: list, answer: Callable) -> None:
        self.handle, self.command, self.answer = handle, command, answer
        self.workers: list[Worker] = []
        self.waiting: deque = deque()

    def log(self, level: int, text: str) -> None:
        text = text.replace("%", "%%")  # it is a format
        self.handle.log(level, f"{self.command[1]}: {text}")

    def ask(self, job: Any, request: dict) -> None:
        """Queue a request, which gets one answer."""
        self.waiting.append((job, request))
        self.dispatch()

    def dispatch(self) -> None:
        while self.waiting:
            running = [worker for worker in self.workers if not worker.retired]
            idle = [worker for worker in running if worker.job is None]
            if not idle:
                enough = min(SIZE, 1 + len(self.waiting) // BACKLOG)
                if len(running) >= enough:
                    return
                try:
                    idle = [Worker(self)]
                except OSError as exc:
                    job, _ = self.waiting.popleft()
                    self.answer(job, {"errnum": exc.errno, "errstr": str(exc)})
                    continue
                self.workers += idle
            idle[0].take(*self.waiting.popleft())

    def ended(self, worker: Worker, status: int) -> None:
        self.workers.remove(worker)
        if status:
            how = "exited with rc" if status > 0 else "killed by signal"
            self.log(LOG_ERR, f"{how} {abs(status)}")
        if worker.job is not None:
            text = "Unrecoverable error: worker unexpectedly exited"
            self.answer(worker.job, {"errnum": errno.EPROTO, "errstr": text})
        self.dispatch()

    def retire(self) -> None:
        """Work that has been taken is finished."""
        for worker in self.workers:
            worker.retire()

    def kill(self) -> None:
        for worker in self.workers:
            worker.process.kill()
            worker.process.wait()
