# SPDX-License-Identifier: LGPL-3.0-only
"""Run Python broker modules, each in a process of its own (RFC 5).

The broker starts this once, with a socket as standard input, and asks for modules
there (python.c). flux-python is loaded before that: it takes longest, and all
modules are forks that have it.
"""

import errno
import gc
import os
import select
import signal
import sys
import traceback

import flux
import flux.brokermod
import flux.hostlist
import flux.idset
import flux.importer
import flux.kvs
from _flux._core import ffi, lib


def check(returned: int, what: str, error) -> None:
    """End the program if a libflux call has failed."""
    if returned < 0:
        text = ffi.string(error[0].text).decode(errors="replace")
        sys.exit(f"{what}: {text}")


def log_error(handle: flux.Flux, text: str) -> None:
    handle.log(3, text.replace("%", "%%"))  # it is a format


def run(handle: flux.Flux, entry, args: list) -> int:
    """Run the module's entry point; returns 0 or an errno."""
    try:
        entry(handle, *args)
    except ValueError as exc:
        log_error(handle, str(exc))
        return errno.EINVAL
    except OSError as exc:
        return exc.errno or errno.ECONNRESET
    except Exception:  # pylint: disable=broad-except
        for line in traceback.format_exc().splitlines():
            log_error(handle, line)
        return errno.ECONNRESET
    return 0


def run_module(uri: str, path: str) -> None:
    """Import the module, then connect: the broker may have asked for it ahead of the
    time when it is wanted."""
    with open("/proc/self/comm", "w") as comm:  # for ps(1)
        comm.write(os.path.splitext(os.path.basename(path))[0])
    try:
        entry = flux.brokermod.resolve_entry_point(flux.importer.import_path(path))
    except (ImportError, SyntaxError, OSError, ValueError) as exc:
        sys.exit(f"{path}: {exc}")
    handle = flux.Flux(url=uri)
    error = ffi.new("flux_error_t[1]")
    argp = ffi.new("char **")
    check(lib.flux_module_initialize(handle.handle, argp, error), path, error)
    args = []
    if argp[0] != ffi.NULL:
        args = ffi.string(argp[0]).decode().split()
        lib.free(argp[0])
    check(lib.flux_module_register_handlers(handle.handle, error), path, error)
    errnum = run(handle, entry, args)
    check(lib.flux_module_finalize(handle.handle, errnum, error), path, error)


class Nursery:
    """The processes of modules."""

    def __init__(self, control: int) -> None:
        self.control = control
        self.ids: dict = {}  # by pid
        self.woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.fds = [control, self.woken, wake]
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake)

    def reap(self) -> None:
        """Tell the broker which modules have ended."""
        while self.ids:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            os.write(self.control, f"{self.ids.pop(pid)} {status}".encode())

    def kill(self, which: str = "") -> None:
        for pid, module in self.ids.items():
            if which in ("", module):
                os.kill(pid, signal.SIGKILL)

    def fork(self, module: str) -> bool:
        """True in the new process."""
        pid = os.fork()
        if pid:
            self.ids[pid] = module
            return False
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for fd in self.fds:
            os.close(fd)
        return True

    def serve(self) -> tuple:
        """Returns in each new process, with URI and path of its module."""
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        poll.register(self.woken, select.POLLIN)
        while True:
            ready = [fd for fd, _ in poll.poll()]
            if self.woken in ready:
                os.read(self.woken, 4096)
                self.reap()
            if self.control in ready:
                what, _, rest = os.read(self.control, 65536).decode().partition(" ")
                if not what:  # the broker has ended
                    self.kill()
                    os._exit(0)
                if what == "kill":
                    self.kill(rest)
                    continue
                module, uri, path = rest.split(" ", 2)
                if self.fork(module):
                    return uri, path


def main() -> None:
    # The broker decides what ends with it: no signal for a terminal's programs does.
    os.setpgid(0, 0)
    control = os.dup(0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    gc.freeze()  # forks share what is never written
    run_module(*Nursery(control).serve())
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # to free all objects would take as long as to start


if __name__ == "__main__":
    main()
