# SPDX-License-Identifier: LGPL-3.0-only
"""Runs a job as one flux-shell process for each node of R.

The shells run on this host, whatever names the nodes have; each gets its rank. The
shells meet in barriers: a shell's request is held until all shells of the job have sent
theirs. A shell ends with this process (flux-shell asks for that).
"""

import errno
import os
import sys
from typing import Any, Optional

from _flux._core import ffi, lib

NOT_RUN = 127 << 8  # the wait status of what could not be started
BARRIERS = 2  # of a shell before its tasks run

# By the address of the subprocess: the shells, and which of them.
RUNNING: dict[int, tuple] = {}


def address(proc: Any) -> int:
    return int(ffi.cast("uintptr_t", proc))


@ffi.callback("void (flux_subprocess_t *)")
def on_completion(proc: Any) -> None:
    shells, index = RUNNING.pop(address(proc))
    shells.ended(index, lib.flux_subprocess_status(proc))


@ffi.callback("void (flux_subprocess_t *, const char *)")
def on_output(proc: Any, stream: Any) -> None:
    shells, index = RUNNING[address(proc)]
    data = ffi.new("const char *[1]")
    size = lib.flux_subprocess_getline(proc, stream, data)
    if size > 0:
        text = ffi.buffer(data[0], size)[:].decode(errors="replace")
        shells.printed(index, ffi.string(stream).decode(), text)


OPS = ffi.new("flux_subprocess_ops_t *")
OPS.on_completion = on_completion
OPS.on_stdout = OPS.on_stderr = on_output


class Shells:
    def __init__(self, job: Any, path: Optional[str]) -> None:
        self.job, self.handle = job, job.handle
        self.path = path or job.service.config.job_shell
        self.path = self.path or os.path.join(sys.path[0], "flux-shell")
        self.procs: list = [None] * len(job.ranks)
        self.left = len(job.ranks)
        self.status = self.barriers = 0
        self.waiting: list = []

    def command(self) -> Any:
        env = dict(os.environb)
        env.pop(b"NOTIFY_SOCKET", None)  # not meant for jobs
        env[b"FLUX_URI"] = self.handle.attr_get("local-uri").encode()
        env[b"FLUX_KVS_NAMESPACE"] = self.job.namespace.encode()
        words = [ffi.new("char[]", b"%s=%s" % item) for item in env.items()]
        cmd = lib.flux_cmd_create(0, ffi.NULL, ffi.new("char *[]", [*words, ffi.NULL]))
        for word in self.path, str(self.job.id):
            lib.flux_cmd_argv_append(cmd, word.encode())
        return ffi.gc(cmd, lib.flux_cmd_destroy)

    def start(self) -> None:
        job = self.job
        if job.reattach:
            job.fatal("job shells were lost in a restart")
            job.complete(1 << 8)
            return
        common = self.command()
        reactor = lib.flux_get_reactor(self.handle.handle)
        for index, rank in enumerate(job.ranks):
            proc = ffi.NULL
            if not job.exception:
                cmd = ffi.gc(lib.flux_cmd_copy(common), lib.flux_cmd_destroy)
                lib.flux_cmd_argv_append(cmd, str(rank).encode())
                proc = lib.flux_local_exec(reactor, 0, cmd, OPS)
            if proc != ffi.NULL:
                self.procs[index] = ffi.gc(proc, lib.flux_subprocess_destroy)
                RUNNING[address(proc)] = self, index
                continue
            # Count the shell as ended; the exception ends the others.
            if not job.exception:
                job.fatal(f"starting {self.path}: {os.strerror(ffi.errno)}")
            self.ended(index, NOT_RUN)
        if not job.exception:
            job.has_started()

    def running(self) -> list:
        return [
            (rank, proc)
            for rank, proc in zip(self.job.ranks, self.procs)
            if proc and lib.flux_subprocess_active(proc)
        ]

    def active(self) -> list:
        """The ranks of shells that have not ended."""
        return [rank for rank, _ in self.running()]

    def kill(self, signum: int) -> None:
        """A shell in the barrier does not look at signals."""
        self.answer(errno.EIO)
        for _, proc in self.running():
            lib.flux_future_destroy(lib.flux_subprocess_kill(proc, signum))

    def printed(self, index: int, stream: str, text: str) -> None:
        """Record output of a shell itself in the exec eventlog."""
        self.job.event(
            "log",
            component="flux-shell",
            stream=stream,
            rank=str(self.job.ranks[index]),
            data=text,
        )

    def ended(self, index: int, status: int) -> None:
        """A shell has ended, or could not be started."""
        job = self.job
        self.status = max(self.status, status)
        self.left -= 1
        if index == 0:
            job.event("shell-exit", rank=job.ranks[0], wait_status=status)
        if self.left == 0:
            job.complete(self.status)
            return
        note = None
        if self.barriers < BARRIERS:  # the others would wait for it in vain
            self.answer(errno.EIO)
            if status:
                note = f"shell rank {index} terminated before job start completed"
        elif status & 0x7F:
            note = f"shell rank {index} was killed by signal {status & 0x7F}"
        if note and not job.exception:
            job.fatal(note)

    # Barriers
    def barrier(self, msg: Any) -> None:
        if self.job.exception or self.left < len(self.procs):
            self.handle.respond_error(msg, errno.EIO, None)
            return
        self.waiting.append(msg)
        if len(self.waiting) == len(self.procs):
            self.barriers += 1
            self.answer(0)

    def answer(self, errnum: int) -> None:
        waiting, self.waiting = self.waiting, []
        for msg in waiting:
            if errnum:
                self.handle.respond_error(msg, errnum, None)
            else:
                self.handle.respond(msg)

    def close(self) -> None:
        self.answer(errno.EIO)
        for proc in self.procs:
            if proc:
                RUNNING.pop(address(proc), None)
        self.procs = []
