# Injects faults into the server under test: by switches of dws-sim, or by stopping and
# restarting the processes of a rig of real controllers.
# SPDX-License-Identifier: LGPL-3.0-only
"""Faults for the parity tests of NNF."""

from __future__ import annotations

import abc
import contextlib
import io
import os
import pathlib
import select
import signal
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import pytest
from parity_support import LIMIT_S, MERGE, Object, User
from sim_support import main

# The part of the rig that moves data.
MOVER = "dm"


class Trouble(abc.ABC):
    """Injects faults; mend() undoes all of them."""

    @abc.abstractmethod
    def kill(self, rabbit: str) -> None:
        """End the controller that runs on a rabbit."""

    @abc.abstractmethod
    def revive(self, rabbit: str) -> None:
        """Start the controller of a rabbit again."""

    @abc.abstractmethod
    def patience(self, seconds: int) -> None:
        """How long a child may go unnoticed by its rabbit."""

    @abc.abstractmethod
    def silence(self, *nodes: str) -> None:
        """Only the mount daemons of these compute nodes are dead."""

    @abc.abstractmethod
    def break_copies(self, message: str) -> None:
        """Data movements end like this from now on, once spoil() has seen them."""

    @abc.abstractmethod
    def spoil(self, admin: User, movements: Iterable[Object]) -> None:
        """Fail these movements, which exist now."""

    @abc.abstractmethod
    def mend_copies(self) -> None:
        """Data movements that are made from now on succeed."""

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        """Workflows that are made meanwhile begin Proposal together."""
        yield

    @abc.abstractmethod
    def mend(self) -> None:
        """Make all well."""


class SimTrouble(Trouble):
    """Of dws-sim."""

    def __init__(self, kubeconfig: pathlib.Path) -> None:
        self._kubeconfig = kubeconfig
        self._dead: set[str] = set()
        self._silent: set[str] = set()

    def ctl(self, *words: str) -> None:
        text = io.StringIO()
        with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
            status = main(["ctl", "--kubeconfig", str(self._kubeconfig), *words])
        assert status == 0, text.getvalue()

    def kill(self, rabbit: str) -> None:
        self._dead.add(rabbit)
        self.ctl("rabbit", rabbit, "dead")

    def revive(self, rabbit: str) -> None:
        self._dead.discard(rabbit)
        self.ctl("rabbit", rabbit, "up")

    def patience(self, seconds: int) -> None:
        self.ctl("child-timeout", str(seconds))

    def silence(self, *nodes: str) -> None:
        for node in self._silent | set(nodes):
            self.ctl("hang-mount", node, "on" if node in nodes else "off")
        self._silent = set(nodes)

    def break_copies(self, message: str) -> None:
        self.ctl("fail-copy", "--message", message)

    def spoil(self, admin: User, movements: Iterable[Object]) -> None:
        pass  # they fail by themselves

    def mend_copies(self) -> None:
        self.ctl("fail-copy", "--clear")

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        self.ctl("hold", "Proposal")
        yield
        self.ctl("release", "Proposal")

    def mend(self) -> None:
        for rabbit in list(self._dead):
            self.revive(rabbit)
        self.patience(300)
        self.silence()
        self.mend_copies()


@dataclass
class Process:
    """A process of the rig: all that it takes to start it again."""

    pid: int
    command: list[str]
    environment: dict[str, str]
    folder: str

    @classmethod
    def of(cls, pid: int) -> Process:
        place = pathlib.Path(f"/proc/{pid}")
        command = (place / "cmdline").read_text().split("\0")[:-1]
        lines = (place / "environ").read_text().split("\0")[:-1]
        environment = dict(line.split("=", 1) for line in lines)
        return cls(pid, command, environment, os.readlink(place / "cwd"))

    def end(self) -> None:
        """Kill it, as a fault would, and wait until it is gone."""
        handle = os.pidfd_open(self.pid)
        os.kill(self.pid, signal.SIGKILL)
        with os.fdopen(handle, "rb", buffering=0) as file:
            ready, _, _ = select.select([file], [], [], LIMIT_S)
            assert ready, f"{self.command} does not end"


@dataclass
class RigTrouble(Trouble):
    """Faults of the controllers of a rig, each with its process id in run/NAME.pid
    below 'folder'."""

    folder: pathlib.Path
    _message: str = ""
    _ended: dict[str, Process] = field(default_factory=dict)
    _changed: dict[str, Process] = field(default_factory=dict)

    def _pid(self, name: str) -> pathlib.Path:
        return self.folder / "run" / f"{name}.pid"

    def _end(self, name: str) -> Process:
        process = Process.of(int(self._pid(name).read_text()))
        process.end()
        return process

    def _start(self, name: str, process: Process, **more: str) -> None:
        with (self.folder / "log" / f"{name}.log").open("a") as log:
            started = subprocess.Popen(
                process.command,
                cwd=process.folder,
                env={**process.environment, **more},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._pid(name).write_text(f"{started.pid}\n")
        # what "t/nnf/rig.py DIR stop" ends
        with (self.folder / "run" / "started-again").open("a") as stream:
            stream.write(f"{started.pid}\n")

    def kill(self, rabbit: str) -> None:
        self._ended[rabbit] = self._end(rabbit)

    def revive(self, rabbit: str) -> None:
        self._start(rabbit, self._ended.pop(rabbit))

    def patience(self, seconds: int) -> None:
        process = self._end("slc")
        self._changed.setdefault("slc", process)
        more = {"NNF_CHILD_RESOURCE_TIMEOUT_SECONDS": str(seconds)}
        self._start("slc", process, **more)

    def silence(self, *nodes: str) -> None:
        process = self._end("mounts")
        whole = self._changed.setdefault("mounts", process)
        at = whole.command.index("--nodes") + 1
        left = [n for n in whole.command[at].split(",") if n not in nodes]
        command = [*whole.command[:at], ",".join(left), *whole.command[at + 1 :]]
        self._start("mounts", replace(process, command=command))

    def break_copies(self, message: str) -> None:
        # Stop the data mover; spoil() writes its status instead.
        self._message = message
        self._ended[MOVER] = self._end(MOVER)

    def spoil(self, admin: User, movements: Iterable[Object]) -> None:
        end = {"state": "Finished", "status": "Failed", "message": self._message}
        for obj in movements:
            meta = obj["metadata"]
            path = admin.path("nnfdatamovements", meta["name"], meta["namespace"])
            admin.send("PATCH", f"{path}/status", {"status": end}, MERGE).expect(200)

    def mend_copies(self) -> None:
        self.revive(MOVER)

    def mend(self) -> None:
        for part in list(self._ended):
            self.revive(part)
        for name, process in self._changed.items():
            self._end(name)
            self._start(name, process)
        self._changed.clear()


def of(kubeconfig: pathlib.Path, simulated: bool) -> Trouble:
    """Fault injection for a server; skips the test if there is none."""
    if simulated:
        return SimTrouble(kubeconfig)
    if (kubeconfig.parent / "run" / "slc.pid").exists():
        return RigTrouble(kubeconfig.parent)
    pytest.skip("the processes of this server are not known")
