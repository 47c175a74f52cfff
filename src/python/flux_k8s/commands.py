# Carries out the broker module's commands on Kubernetes objects in a pool of
# worker threads: in order for each object, at the same time for different ones.
# SPDX-License-Identifier: LGPL-3.0-only
"""The command queue (doc/protocol.md, "Module and agent")."""

from __future__ import annotations

import heapq
import itertools
import logging
import re
import threading
import time
from collections import deque
from typing import Any, Callable

from flux.job import JobID

from flux_k8s.crd import RESOURCES
from flux_k8s.kube import BROKEN, UNREACHABLE, ApiError, Kube, Object, is_object
from flux_k8s.logs import read_logs
from flux_k8s.problems import Problems
from flux_k8s.secret import SecretError, read_secret
from flux_k8s.watch import PROBE_CAP_S, backoff_s, pause_s, trim

LOGGER = logging.getLogger(__name__)

BACKOFF_FIRST_S = 0.25
BACKOFF_CAP_S = 60.0
# Conflicting writers of a finalizer list are few; beyond this many refusals
# something else is wrong and the ordinary pause applies.
FINALIZER_TRIES = 5

HTTP_CONFLICT = 409

# Kinds that are written for others to read.
WRITE_ONLY = ("servers", "computes")

Command = dict[str, Any]
Key = tuple[str, str, str]
_JOB_NAME = re.compile(r"^fluxjob-(\d+)(?:-|$)")


class CommandError(Exception):
    """A command that makes no sense; the text names the key at fault."""


def _word(command: Command, key: str) -> str:
    value = command.get(key)
    if not isinstance(value, str) or not value:
        raise CommandError(f"command {command.get('op')}: no {key}")
    return value


def _object(command: Command, key: str) -> dict[str, Any]:
    value = command.get(key)
    if not isinstance(value, dict):
        raise CommandError(f"command {command.get('op')}: {key} is not an object")
    return value


def _create(kube: Kube, command: Command) -> dict[str, Any]:
    plural, namespace = command["kind"], _word(command, "namespace")
    try:
        return {"object": kube.create(plural, namespace, _object(command, "object"))}
    except ApiError as exc:
        if exc.status != 409:
            raise
        result = failure(exc)
        try:
            result["object"] = kube.get(plural, namespace, _word(command, "name"))
        except ApiError as missing:
            if missing.transient:
                raise missing from exc
        return result


def _patch(kube: Kube, command: Command) -> dict[str, Any]:
    obj = kube.patch(
        command["kind"],
        _word(command, "namespace"),
        _word(command, "name"),
        _object(command, "patch"),
    )
    return {} if command["kind"] in WRITE_ONLY else {"object": obj}


def _get(kube: Kube, command: Command) -> dict[str, Any]:
    return {
        "object": kube.get(
            command["kind"], _word(command, "namespace"), _word(command, "name")
        )
    }


def _secret(kube: Kube, command: Command) -> dict[str, Any]:
    """One value of a Secret of a workflow. It is not to be found in any log."""
    workflow = _object(command, "workflow")
    namespace, name = _word(command, "namespace"), _word(command, "name")
    return {
        "value": read_secret(kube, workflow, namespace, name, _word(command, "key"))
    }


def _list(kube: Kube, command: Command) -> dict[str, Any]:
    objects, _ = kube.list_all(command["kind"], command.get("selector") or "")
    for obj in objects:
        trim(obj)
    fields = command.get("fields")
    if isinstance(fields, list):
        paths = [str(field).split(".") for field in fields]
        return {"objects": [_pick(obj, paths) for obj in objects]}
    return {"objects": objects}


def _pick(obj: Object, paths: list[list[str]]) -> dict[str, Any]:
    """The parts of an object at these paths, where it has them."""
    result: dict[str, Any] = {}
    for path in paths:
        source: Any = obj
        target = result
        for key in path[:-1]:
            source = source.get(key) if isinstance(source, dict) else None
            target = target.setdefault(key, {})
        if isinstance(source, dict) and path[-1] in source:
            target[path[-1]] = source[path[-1]]
    return result


def _logs(kube: Kube, command: Command) -> dict[str, Any]:
    limit = command.get("bytes")
    if not isinstance(limit, int) or limit < 0:
        raise CommandError(f"command logs: bytes is {limit!r}")
    namespace, selector = _word(command, "namespace"), _word(command, "selector")
    return {"objects": read_logs(kube, namespace, selector, limit)}


def _drop_finalizer(kube: Kube, command: Command) -> dict[str, Any]:
    """Take one finalizer off, whoever else edits the list meanwhile.

    Ours is the first, as the object was made with it: the first is taken off if
    that is so, and else (422) the list is read. It is replaced whole by a merge
    patch, which is bound to the version that was read. A list that brings back
    a finalizer which has gone since is refused with 422, a changed object with
    409: read again.
    """
    plural, namespace = command["kind"], _word(command, "namespace")
    name, finalizer = _word(command, "name"), _word(command, "finalizer")
    first = "/metadata/finalizers/0"
    take = [
        {"op": "test", "path": first, "value": finalizer},
        {"op": "remove", "path": first},
    ]
    for attempt in itertools.count():
        try:
            if attempt == 0:
                return {"object": kube.patch_json(plural, namespace, name, take)}
            obj = kube.get(plural, namespace, name)
            metadata = obj["metadata"]
            finalizers = metadata.get("finalizers") or []
            if finalizer not in finalizers:
                return {"object": obj}
            patch = {
                "resourceVersion": metadata["resourceVersion"],
                "finalizers": [f for f in finalizers if f != finalizer],
            }
            return {"object": kube.patch(plural, namespace, name, {"metadata": patch})}
        except ApiError as exc:
            if exc.status == 404:
                return {}
            if exc.status not in (409, 422):
                raise
            if attempt == FINALIZER_TRIES:
                raise ApiError(0, exc.reason, exc.message) from exc
    raise AssertionError("unreachable")


def _delete(kube: Kube, command: Command) -> dict[str, Any]:
    try:
        answer = kube.delete(
            command["kind"], _word(command, "namespace"), _word(command, "name")
        )
    except ApiError as exc:
        if exc.status == 404:
            return {}
        raise
    # With the last finalizer gone the answer is a Status, not the object.
    return {"object": answer} if answer.get("kind") != "Status" else {}


_OPERATIONS: dict[str, Callable[[Kube, Command], dict[str, Any]]] = {
    "create": _create,
    "patch": _patch,
    "get": _get,
    "secret": _secret,
    "list": _list,
    "logs": _logs,
    "drop-finalizer": _drop_finalizer,
    "delete": _delete,
}


def failure(error: ApiError) -> dict[str, Any]:
    """The result of a command that the API server refused."""
    return {
        "ok": False,
        "status": error.status,
        "reason": error.reason,
        "message": error.message,
    }


def execute(kube: Kube, command: Command) -> dict[str, Any]:
    """Carry out one command once.

    Returns:
        The keys of its result but for `seq`.
    Raises:
        ApiError: transient trouble; the command is to be repeated.
    """
    try:
        operation = _OPERATIONS.get(str(command.get("op")))
        if operation is None:
            raise CommandError(f"unknown op {command.get('op')!r}")
        if command.get("kind") not in RESOURCES:
            raise CommandError(f"unknown kind {command.get('kind')!r}")
        result: dict[str, Any] = {"ok": True}
        result.update(operation(kube, command))
    except CommandError as exc:
        return failure(ApiError(400, "BadRequest", str(exc)))
    except SecretError as exc:
        return failure(ApiError(exc.status, exc.reason, str(exc)))
    except ApiError as exc:
        # Somebody else was faster, which nobody has to know about.
        conflict = exc.status == 409 and command["op"] in ("patch", "delete")
        if exc.transient or conflict:
            raise
        return failure(exc)
    obj = result.get("object")
    if isinstance(obj, dict):
        if not is_object(obj):
            raise ApiError(0, BROKEN, f"{command['op']}: the answer is no object")
        trim(obj)
    return result


def label(key: Key) -> str:
    """An object for a log line, with the job that it belongs to."""
    plural, _, name = key
    match = _JOB_NAME.match(name)
    if match is None:
        return f"{plural} {name}"
    try:
        return f"{JobID(int(match.group(1))).f58}: {plural} {name}"
    except (ValueError, OverflowError):
        # Users name persistent file systems as they like.
        return f"{plural} {name}"


class CommandQueue:
    """Worker threads and the commands that wait for them.

    Args:
        kube: where the commands go.
        workers: how many run at the same time.
        done: called in a worker thread with a command's result report.
        trouble: called in a worker thread with a report when a command has to
            be repeated for the first time, or for another reason than before.
        outage: called in a worker thread, under the queue's lock, so that the
            last word is true, with what prevents any connection from being
            made, or with None when one could be made again.
    """

    def __init__(
        self,
        kube: Kube,
        workers: int,
        done: Callable[[dict[str, Any]], None],
        trouble: Callable[[dict[str, Any]], None] = lambda report: None,
        outage: Callable[[str | None], None] = lambda error: None,
    ) -> None:
        self._kube = kube
        self._done = done
        self._trouble = trouble
        self._outage = outage
        self._problems = Problems(LOGGER)
        self._cond = threading.Condition()
        self._stopped = False
        self._running = 0
        self._queues: dict[Key, deque[Command]] = {}
        self._failures: dict[Key, int] = {}
        self._told: dict[Key, tuple[int, str]] = {}
        # before when the server does not want to be asked again
        self._not_before: dict[Key, float] = {}
        self._ready: list[tuple[float, int, Key]] = []
        # In an outage: the object that tries, those that wait for it, and how
        # often it has tried.
        self._probe: Key | None = None
        self._parked: list[Key] = []
        self._probes = 0
        self._order = itertools.count()
        kube.comeback.listen(self._hasten)
        self._threads = [
            threading.Thread(target=self._work, name=f"worker-{i}", daemon=True)
            for i in range(workers)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, command: Command) -> None:
        """Queue a command behind others on the same object. Any thread."""
        key = (
            str(command.get("kind")),
            str(command.get("namespace")),
            str(command.get("name") or command.get("selector")),
        )
        with self._cond:
            queue = self._queues.get(key)
            if queue is not None:
                queue.append(command)
                return
            self._queues[key] = deque([command])
            self._make_ready(key, 0.0)

    def depth(self) -> int:
        """How many commands have no result yet."""
        with self._cond:
            return sum(len(queue) for queue in self._queues.values())

    def depths(self) -> dict[str, int]:
        """The same by what they do: running, waiting to be repeated, queued."""
        with self._cond:
            total = sum(len(queue) for queue in self._queues.values())
            failed = len(self._failures)
            running = self._running
        repeated = max(0, failed - running)
        return {
            "running": running,
            "repeated": repeated,
            "queued": max(0, total - running - repeated),
        }

    def stop(self) -> None:
        """Forget what has not begun and end the workers, without waiting. No
        result is reported from now on, of a command under way either."""
        with self._cond:
            self._stopped = True
            self._cond.notify_all()

    def _make_ready(self, key: Key, delay_s: float) -> None:
        due = time.monotonic() + delay_s
        heapq.heappush(self._ready, (due, next(self._order), key))
        self._cond.notify()

    def _next(self) -> tuple[Key, Command] | None:
        """Wait for an object whose turn it is; None when stopped."""
        with self._cond:
            while not self._stopped:
                timeout = None
                if self._ready:
                    timeout = self._ready[0][0] - time.monotonic()
                    if timeout <= 0:
                        key = heapq.heappop(self._ready)[2]
                        if self._probe is not None and key != self._probe:
                            self._parked.append(key)
                            continue
                        self._running += 1
                        return key, self._queues[key][0]
                self._cond.wait(timeout)
            return None

    def _end_outage(self) -> None:
        """The server has answered: everybody may try again."""
        if self._probe is None:
            return
        self._outage(None)
        self._probe = None
        self._probes = 0
        for key in self._parked:
            self._make_ready(key, 0.0)
        self._parked = []

    def _hasten(self) -> None:
        """Somebody has got through: what waits to be repeated may try again."""
        now = time.monotonic()
        with self._cond:
            self._ready = [
                (min(due, max(now, self._not_before.get(key, 0.0))), order, key)
                for due, order, key in self._ready
            ]
            heapq.heapify(self._ready)
            self._cond.notify_all()

    def _finish(self, key: Key, result: dict[str, Any]) -> None:
        with self._cond:
            self._running -= 1
            if self._stopped:
                return
            self._end_outage()
            queue = self._queues[key]
            command = queue.popleft()
            self._failures.pop(key, None)
            self._not_before.pop(key, None)
            status, _ = self._told.pop(key, (HTTP_CONFLICT, ""))
        self._problems.clear(key)
        if status != HTTP_CONFLICT:
            self._kube.comeback.back()
        self._done({"type": "result", "seq": command.get("seq"), **result})
        # Only now may the next on this object begin: results keep their order.
        with self._cond:
            if queue:
                self._make_ready(key, 0.0)
            else:
                del self._queues[key]

    def _postpone(self, key: Key, command: Command, error: ApiError) -> None:
        unreachable = error.status == 0 and error.reason == UNREACHABLE
        with self._cond:
            self._running -= 1
            if self._stopped:
                return
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            cause = (error.status, error.message)
            news = not unreachable and self._told.get(key) != cause
            self._told[key] = cause
        self._kube.stats.retry(error.status)
        if unreachable:
            problem, text = "Kubernetes cannot be reached", error.message
        else:
            status = f"HTTP status {error.status}" if error.status else error.reason
            problem = f"{command.get('op')} {key[0]}: {status}"
            text = f"{command.get('op')} {label(key)}: {error.message}, {status}"
        self._problems.note(problem, key, text)
        if news:
            self._trouble(
                {
                    "type": "trouble",
                    "seq": command.get("seq"),
                    "status": error.status,
                    "message": error.message,
                }
            )
        # Only now: what is said of this try comes before what the next one says.
        with self._cond:
            if not unreachable:
                self._end_outage()
                delay = pause_s(error, failures, BACKOFF_FIRST_S, BACKOFF_CAP_S)
                if error.retry_after_s is not None:
                    self._not_before[key] = time.monotonic() + delay
                self._make_ready(key, delay)
            elif self._probe in (None, key):
                if self._probe is None:
                    self._outage(error.message)
                self._probe = key
                self._probes += 1
                self._make_ready(
                    key, backoff_s(self._probes, BACKOFF_FIRST_S, PROBE_CAP_S)
                )
            else:
                self._parked.append(key)

    def _work(self) -> None:
        while True:
            task = self._next()
            if task is None:
                return
            key, command = task
            try:
                result = execute(self._kube, command)
            except ApiError as exc:
                self._postpone(key, command, exc)
                continue
            except Exception as exc:
                LOGGER.exception("%s %s", command.get("op"), label(key))
                result = failure(ApiError(500, "Internal", f"agent: {exc!r}"))
            self._finish(key, result)
