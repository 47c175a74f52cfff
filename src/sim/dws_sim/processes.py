# Containers as processes of this machine, for demonstrations: the command that a
# profile names, with the variables of its pod and the storage of its rabbit. Only
# for workflows of the user who runs the simulator.
# SPDX-License-Identifier: LGPL-3.0-only
"""Processes instead of containers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import shutil
import signal
import subprocess
from dataclasses import dataclass, field
from typing import Callable

from dws_sim.jsontree import Object, dig
from dws_sim.mounts import Mounts
from dws_sim.podlog import Line, Output

log = logging.getLogger("dws-sim.processes")

# Kubernetes' default termination grace period.
GRACE_S = 30.0
# Grace period when the simulator itself ends.
STOP_S = 2.0
# Kills a process group when the simulator has ended, for whatever reason: the kernel
# then closes the other end of this shell's standard input.
KEEPER = ["/bin/sh", "-c", 'read word; kill -s KILL -- "-$0"']
# Size of a read from a pipe.
PIPE_BYTES = 1 << 16
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")
# The files of Secrets that a pod has, by the Secret.
Secrets = dict[str, dict[str, bytes]]


@dataclass(frozen=True)
class Terms:
    """Settings of a pod that come from other objects."""

    # of its workflow
    user: int
    secrets: Secrets


class CannotRun(Exception):
    """A container that cannot run as a process; the text gives the reason."""


@dataclass
class _Pod:
    """A pod that has been started."""

    job: str
    folder: str
    grace_s: float
    # what each container prints, in their order
    outputs: list[Output] = field(default_factory=list)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    alive: set[int] = field(default_factory=set)
    keepers: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    # it was made to end
    ended: bool = False
    kill: asyncio.TimerHandle | None = None

    @property
    def succeeded(self) -> bool:
        codes = [process.returncode for process in self.processes]
        return not self.ended and bool(codes) and not any(codes)

    def send(self, number: int) -> None:
        """A signal to all that its containers have started and not left."""
        for pid in self.alive:
            # not reaped yet, so its pid cannot belong to another process
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, number)


def expand(text: str, env: dict[str, str]) -> str:
    """A word of a command, with $(NAME) as Kubernetes replaces it."""

    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        return "$" if name is None else env.get(name, match.group(0))

    return _REFERENCE.sub(value, text)


class Runner:
    """Runs the containers of pods. Belongs to the event loop it is used in."""

    def __init__(
        self, mounts: Mounts, folder: str, certificate: tuple[bytes, bytes]
    ) -> None:
        """
        Args:
            folder: for a private folder of each pod.
            certificate: by which all of them are known, and its key.
        """
        self.certificate = certificate
        self._mounts = mounts
        self._folder = os.path.realpath(folder)
        self._pods: dict[str, _Pod] = {}
        self._pipe = os.pipe()
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        # of an earlier simulator, which has ended
        for name in os.listdir(self._folder):
            shutil.rmtree(os.path.join(self._folder, name), ignore_errors=True)

    def phase(
        self, pod: Object, terms: Terms, expired: bool, wake: Callable[[], None]
    ) -> str:
        """The phase of a pod: it is started if it is new, and made to end if its
        time is over. wake is called when that has changed it."""
        uid = pod["metadata"]["uid"]
        known = self._pods.get(uid)
        if known is None:
            if expired or pod["status"]["phase"] != "Pending":
                return "Failed"
            known = self._start(pod, terms, wake)
        elif expired and known.alive:
            self._end(known, known.grace_s)
        if known.alive:
            return "Running"
        return "Succeeded" if known.succeeded else "Failed"

    def log(self, pod: Object, container: str) -> list[Line] | None:
        """The end of what a container has printed; "": of the only one. None: it
        was never run here."""
        known = self._pods.get(pod["metadata"]["uid"])
        if known is None:
            return None
        names = [c.get("name") for c in pod["spec"].get("containers", ())]
        index = names.index(container) if container in names else 0
        return known.outputs[index].lines() if index < len(known.outputs) else []

    def end_job(self, job: str) -> None:
        """A Job is gone: so are its pods, and what they have printed."""
        for uid, pod in list(self._pods.items()):
            if pod.job == job:
                self._end(pod, pod.grace_s)
                pod.job = ""
                if not pod.alive:
                    self._remove(uid)

    async def stop(self) -> None:
        """End all of them, and wait for that."""
        for pod in self._pods.values():
            self._end(pod, STOP_S)
        while any(pod.alive for pod in self._pods.values()):
            await asyncio.sleep(0.01)
        for uid in list(self._pods):
            self._remove(uid)

    # -- one pod ----------------------------------------------------------

    def _start(self, pod: Object, terms: Terms, wake: Callable[[], None]) -> _Pod:
        meta, spec = pod["metadata"], pod["spec"]
        owner = meta["ownerReferences"][0]["uid"]
        grace = spec.get("terminationGracePeriodSeconds")
        folder = os.path.join(self._folder, meta["uid"])
        made = _Pod(owner, folder, GRACE_S if grace is None else float(grace))
        self._pods[meta["uid"]] = made
        os.mkdir(folder, mode=0o700)
        for container in spec.get("containers", ()):
            output = Output()
            made.outputs.append(output)
            try:
                self._check(terms.user)
                places = self._volumes(made, spec, container, terms.secrets)
                process = self._run(pod, container, places, folder)
            except (CannotRun, OSError) as exc:
                log.error("%s: %s", meta["name"], exc)
                output.add(f"{meta['name']}: {exc}\n".encode())
                self._end(made, made.grace_s)
                break
            made.processes.append(process)
            made.alive.add(process.pid)
            made.keepers[process.pid] = subprocess.Popen(
                [*KEEPER, str(process.pid)],
                stdin=self._pipe[0],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            self._follow(meta["uid"], made, process, output, wake)
        return made

    @staticmethod
    def _check(user: int) -> None:
        """Raises CannotRun for containers of another user: they would run with the
        rights of the simulator's."""
        if user != os.getuid():
            raise CannotRun(
                f"user {os.getuid()} runs dws-sim, which runs nothing for user {user}"
            )

    def _run(
        self,
        pod: Object,
        container: Object,
        places: dict[str, str],
        folder: str,
    ) -> subprocess.Popen[bytes]:
        env = self._environment(pod, container, places, folder)
        words = [*(container.get("command") or ()), *(container.get("args") or ())]
        if not container.get("command") or not all(isinstance(w, str) for w in words):
            raise CannotRun(
                f"the profile names no command, and image {container.get('image')} "
                "is not run"
            )
        return subprocess.Popen(
            [expand(word, env) for word in words],
            env=env,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
            start_new_session=True,
        )

    @staticmethod
    def _environment(
        pod: Object, container: Object, places: dict[str, str], folder: str
    ) -> dict[str, str]:
        """Its variables alone: nothing of the simulator's but where programs are.
        A path of the pod is the place that stands for it."""
        fields = {
            "spec.nodeName": pod["spec"].get("nodeName", ""),
            "metadata.name": pod["metadata"]["name"],
            "metadata.namespace": pod["metadata"]["namespace"],
        }
        env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": folder}
        for entry in container.get("env", ()):
            value = str(entry.get("value") or "")
            named = dig(entry, "valueFrom", "fieldRef", "fieldPath")
            if named is not None:
                value = str(fields.get(named, ""))
            for path, place in places.items():
                if value == path or value.startswith(f"{path}/"):
                    value = place + value[len(path) :]
                    break
            env[entry["name"]] = expand(value, env)
        return env

    def _volumes(
        self, made: _Pod, spec: Object, container: Object, secrets: Secrets
    ) -> dict[str, str]:
        """Make what stands for the mounts of a container; by their paths."""
        sources = {v["name"]: v for v in spec.get("volumes", ())}
        places: dict[str, str] = {}
        for mount in container.get("volumeMounts", ()):
            source = sources.get(mount["name"], {})
            number = list(sources).index(mount["name"]) if source else -1
            place = os.path.join(made.folder, f"volume.{number}")
            if "secret" in source:
                os.makedirs(place, mode=0o700, exist_ok=True)
                files = secrets.get(source["secret"]["secretName"], {})
                for name, data in files.items():
                    with open(os.path.join(place, os.path.basename(name)), "wb") as out:
                        out.write(data)
            elif "hostPath" in source:
                node, path = spec.get("nodeName", ""), source["hostPath"]["path"]
                seen = self._mounts.seen(node, path)
                if not seen:
                    continue
                self._link(place, seen)
            else:
                continue
            places[mount["mountPath"]] = place
        return places

    @staticmethod
    def _link(place: str, seen: dict[str, str]) -> None:
        """Link the mounts of a rabbit: at the path itself, or in directories there, one
        for each compute."""
        for below, target in seen.items():
            path = os.path.join(place, below) if below else place
            if not os.path.islink(path):
                os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
                os.symlink(target, path)

    def _follow(
        self,
        uid: str,
        pod: _Pod,
        process: subprocess.Popen[bytes],
        output: Output,
        wake: Callable[[], None],
    ) -> None:
        """Take in what a process prints, and notice its end; its group ends with it."""
        loop = asyncio.get_running_loop()
        handle = os.pidfd_open(process.pid)
        assert process.stdout is not None
        pipe = process.stdout
        os.set_blocking(pipe.fileno(), False)

        def read() -> bool:
            """Whether there may be more."""
            data = pipe.read(PIPE_BYTES)
            if data == b"":
                loop.remove_reader(pipe.fileno())
            output.add(data or b"")
            return bool(data)

        def ended() -> None:
            loop.remove_reader(handle)
            os.close(handle)
            keeper = pod.keepers.pop(process.pid)
            keeper.kill()
            keeper.wait()
            # what it has left behind, while its number is its own
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            while read():
                pass
            loop.remove_reader(pipe.fileno())
            pipe.close()
            output.close()
            pod.alive.discard(process.pid)
            if pod.alive:
                return
            if pod.kill is not None:
                pod.kill.cancel()
            if not pod.job:
                self._remove(uid)
            wake()

        loop.add_reader(pipe.fileno(), read)
        loop.add_reader(handle, ended)

    def _end(self, pod: _Pod, grace_s: float) -> None:
        """Send SIGTERM, and SIGKILL to processes that survive the grace period."""
        if not pod.alive:
            pod.ended = pod.ended or not pod.processes
            return
        if not pod.ended:
            pod.ended = True
            pod.send(signal.SIGTERM)
        loop = asyncio.get_running_loop()
        when = loop.time() + grace_s
        if pod.kill is None or pod.kill.when() > when:
            if pod.kill is not None:
                pod.kill.cancel()
            pod.kill = loop.call_at(when, pod.send, signal.SIGKILL)

    def _remove(self, uid: str) -> None:
        pod = self._pods.pop(uid, None)
        if pod is not None:
            shutil.rmtree(pod.folder, ignore_errors=True)
