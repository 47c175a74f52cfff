# Carries out the broker module's commands on Kubernetes objects: in order for one
# object, concurrently for different ones. session.py has the queue.
# SPDX-License-Identifier: LGPL-3.0-only
"""The command queue (doc/protocol.md, "Module and agent")."""

from __future__ import annotations

import heapq
import itertools
import logging
import math
import re
import time
from collections import deque
from typing import Any, Callable

from flux.job import JobID

from flux_k8s.crd import RESOURCES
from flux_k8s.errors import BROKEN, UNREACHABLE, ApiError
from flux_k8s.fields import FieldError, Picked, project, text_of
from flux_k8s.kube import Kube
from flux_k8s.listwatch import PROBE_CAP_S, backoff_s, pause_s
from flux_k8s.logs import read_logs
from flux_k8s.loop import Loop, Task
from flux_k8s.objects import Name, is_object, version_of
from flux_k8s.problems import Problems
from flux_k8s.secret import SecretError, read_secret

LOGGER = logging.getLogger(__name__)

BACKOFF_FIRST_S = 0.25
BACKOFF_CAP_S = 60.0
# Wake waiting commands at most this often: when some requests fail and others succeed,
# each success would wake them.
HASTEN_S = 1.0
# Few clients write a finalizer list: after this many conflicts, suspect another fault
# and retry with the ordinary pause.
FINALIZER_TRIES = 5

HTTP_CONFLICT = 409

# The field that may be empty: an empty selector selects all objects.
ALL = "selector"

# Kinds whose answers to a patch the module does not read.
WRITE_ONLY = ("servers", "computes")

Command = dict[str, Any]
Key = tuple[str, str, str]
_JOB_NAME = re.compile(r"^fluxjob-(\d+)(?:-|$)")


class CommandError(Exception):
    """A malformed command; the text names the key at fault."""


def check_fields(command: Command) -> None:
    """Check the presence and the types of the fields of a command.

    Raises:
        CommandError: for the first bad field.
    """
    op = command.get("op")
    if not isinstance(op, str) or op not in _FIELDS:
        raise CommandError(f"unknown op {op!r}")
    for name, kind in _FIELDS[op].items():
        key = name.rstrip("?")
        if key not in command:
            if key == name:
                raise CommandError(f"{op}: {key}: is required")
        elif not _fits(command[key], kind) or (command[key] == "" and key != ALL):
            raise CommandError(f"{op}: {key}: expected {_TYPES[kind]}")
    if "kind" in _FIELDS[op] and command["kind"] not in RESOURCES:
        raise CommandError(f"{op}: unknown kind {command['kind']!r}")


def _fits(value: Any, kind: type) -> bool:
    if kind is int:
        return type(value) is int and value >= 0  # True is an int, too
    return isinstance(value, kind)


async def _create(kube: Kube, command: Command) -> dict[str, Any]:
    plural, namespace = command["kind"], command["namespace"]
    try:
        return {"object": await kube.acreate(plural, namespace, command["object"])}
    except ApiError as exc:
        if exc.status != 409:
            raise
        result = failure(exc)
        try:
            result["object"] = await kube.aget(plural, namespace, command["name"])
        except ApiError as missing:
            if missing.transient:
                raise missing from exc
        return result


async def _patch(kube: Kube, command: Command) -> dict[str, Any]:
    patch = command["patch"]
    where = command["kind"], command["namespace"], command["name"]
    operations = _operations(command.get("finalizer"), patch)
    try:
        obj = await kube.apatch_json(*where, operations) if operations else None
    except ApiError as exc:
        if exc.status != 422:
            raise
        # The finalizer is not the first, or missing. Write the spec alone: the module
        # sees the finalizer in the answer.
        obj = None
    if obj is None:
        obj = await kube.apatch(*where, patch)
    return {} if command["kind"] in WRITE_ONLY else {"object": obj}


def _operations(finalizer: str | None, patch: dict[str, Any]) -> list[dict[str, Any]]:
    """A JSON patch that removes the finalizer and writes the spec at once; empty
    without a finalizer, or if the patch writes more than the spec."""
    spec = patch.get("spec")
    if finalizer is None or not isinstance(spec, dict) or len(patch) > 1:
        return []
    writes = [
        {"op": "add", "path": f"/spec/{key}", "value": value}
        for key, value in spec.items()
    ]
    return _take_first(finalizer) + writes


def _take_first(finalizer: str) -> list[dict[str, Any]]:
    """A JSON patch that removes the finalizer if it is the first of the list, as in
    objects that we create."""
    first = "/metadata/finalizers/0"
    return [
        {"op": "test", "path": first, "value": finalizer},
        {"op": "remove", "path": first},
    ]


async def _get(kube: Kube, command: Command) -> dict[str, Any]:
    return {
        "object": await kube.aget(
            command["kind"], command["namespace"], command["name"]
        )
    }


async def _secret(kube: Kube, command: Command) -> dict[str, Any]:
    """A value of a Secret of a workflow, which must not reach any log."""
    workflow = command["workflow"]
    namespace, name = command["namespace"], command["name"]
    return {"value": await read_secret(kube, workflow, namespace, name, command["key"])}


async def _list(kube: Kube, command: Command) -> dict[str, Any]:
    plural = command["kind"]
    objects, _ = await kube.alist_all(plural, command["selector"])
    fields = command.get("fields")
    if command.get("whole") is True:
        return {"texts": [text_of(plural, obj) for obj in objects]}
    found = [project(plural, obj, listed=True) for obj in objects]
    if fields is not None:
        paths = [str(field).split(".") for field in fields]
        found = [_pick(obj, paths) for obj in found]
    return {"objects": found}


def _pick(obj: dict[str, Any], paths: list[list[str]]) -> dict[str, Any]:
    """The parts of an object at these paths; missing ones are left out."""
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


async def _logs(kube: Kube, command: Command) -> dict[str, Any]:
    namespace, selector = command["namespace"], command["selector"]
    limit, since = command["bytes"], command.get("since")
    return {"objects": await read_logs(kube, namespace, selector, limit, since)}


async def _drop_finalizer(kube: Kube, command: Command) -> dict[str, Any]:
    """Remove one finalizer, despite concurrent writers of the list.

    Try to remove it as the first entry. If another is first (422), read the list and
    replace it by a merge patch bound to the version that was read. The server rejects a
    changed object (409) and a list that brings back a removed finalizer (422): read
    again.
    """
    plural, namespace = command["kind"], command["namespace"]
    name, finalizer = command["name"], command["finalizer"]
    take = _take_first(finalizer)
    for attempt in itertools.count():
        try:
            if attempt == 0:
                return {"object": await kube.apatch_json(plural, namespace, name, take)}
            obj = await kube.aget(plural, namespace, name)
            metadata = obj["metadata"]
            finalizers = metadata.get("finalizers") or []
            if finalizer not in finalizers:
                return {"object": obj}
            patch = {
                "resourceVersion": metadata["resourceVersion"],
                "finalizers": [f for f in finalizers if f != finalizer],
            }
            return {
                "object": await kube.apatch(
                    plural, namespace, name, {"metadata": patch}
                )
            }
        except ApiError as exc:
            if exc.status == 404:
                return {}
            if exc.status not in (409, 422):
                raise
            if attempt == FINALIZER_TRIES:
                raise ApiError(0, exc.reason, exc.message) from exc
    raise AssertionError("unreachable")


async def _delete(kube: Kube, command: Command) -> dict[str, Any]:
    try:
        answer = await kube.adelete(
            command["kind"], command["namespace"], command["name"]
        )
    except ApiError as exc:
        if exc.status == 404:
            return {}
        raise
    # An object without finalizers is gone at once: the answer is a Status.
    return {"object": answer} if answer.get("kind") != "Status" else {}


# Fields of each operation besides op and seq; "?" ends the names of optional ones.
_OF_KIND: dict[str, type] = {"kind": str, "namespace": str}
_OF_OBJECT = {**_OF_KIND, "name": str}
_FIELDS: dict[str, dict[str, type]] = {
    "create": {**_OF_OBJECT, "object": dict},
    "patch": {**_OF_OBJECT, "patch": dict, "finalizer?": str, "once?": bool},
    "get": {**_OF_OBJECT, "whole?": bool},
    "secret": {**_OF_OBJECT, "key": str, "workflow": dict},
    "list": {"kind": str, "selector": str, "fields?": list, "whole?": bool},
    "logs": {**_OF_KIND, "selector": str, "bytes": int, "since?": int, "name?": str},
    "drop-finalizer": {**_OF_OBJECT, "finalizer": str},
    "delete": _OF_OBJECT,
    "kubeconfig": {"path?": str},  # carried out in agent.py
}
_TYPES = {
    str: "a text",
    int: "an integer of 0 or more",
    bool: "true or false",
    list: "an array",
    dict: "an object",
}
_Operation = Callable[[Kube, Command], Task[dict[str, Any]]]
_OPERATIONS: dict[str, _Operation] = {
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


async def execute(kube: Kube, command: Command) -> dict[str, Any]:
    """Carry out one command once.

    Returns:
        The keys of its result but for `seq`.
    Raises:
        ApiError: a transient error; the command has to be repeated.
    """
    try:
        check_fields(command)
        result: dict[str, Any] = {"ok": True}
        result.update(await _OPERATIONS[command["op"]](kube, command))
    except CommandError as exc:
        return failure(ApiError(400, "BadRequest", str(exc)))
    except SecretError as exc:
        return failure(ApiError(exc.status, exc.reason, str(exc)))
    except ApiError as exc:
        # A conflict with another writer is transient.
        conflict = exc.status == 409 and command["op"] in ("patch", "delete")
        if exc.transient or conflict:
            raise
        return failure(exc)
    except FieldError as exc:
        return _unread(kube, command, exc)
    obj = result.get("object")
    if isinstance(obj, dict) and not isinstance(obj, Picked):
        if not is_object(obj):
            raise ApiError(0, BROKEN, f"{command['op']}: the answer is no object")
        try:
            whole = command.get("whole") is True
            result["object"] = project(command["kind"], obj, whole)
        except FieldError as exc:
            return _unread(kube, command, exc)
    return result


def _unread(kube: Kube, command: Command, error: FieldError) -> dict[str, Any]:
    """The result for an answer that the module cannot read: repeating the command would
    not help, and the module waits for a result."""
    LOGGER.error("%s", error)
    kube.stats.refuse(command["kind"])
    text = f"the answer of Kubernetes cannot be read: {error}"
    return failure(ApiError(500, "Invalid", text))


def label(key: Key) -> str:
    """An object for a log line, with the job that it belongs to."""
    plural, _, name = key
    match = _JOB_NAME.match(name)
    if match is None:
        return f"{plural} {name}"
    try:
        return f"{JobID(int(match.group(1))).f58}: {plural} {name}"
    except (ValueError, OverflowError):
        # Not a job id: users choose the names of persistent file systems.
        return f"{plural} {name}"


class CommandQueue:
    """The commands that have no result yet. Belongs to the loop's thread, which also
    calls the callbacks.

    Args:
        kube: the client for the API server.
        loop: runs the commands.
        workers: the number of concurrent commands.
        done: called with the result report of a command.
        trouble: called with a report when a command fails for the first time, or for
            another reason than before, and has to be repeated.
        outage: called with the error when no connection can be opened, and with None
            when the server answers again.
        known: returns the version of an object that was reported last, or 0.
        went_back: called with kind and reason when a `get` returns an older version
            than was known when it was sent.
    """

    def __init__(
        self,
        kube: Kube,
        loop: Loop,
        workers: int,
        done: Callable[[dict[str, Any]], None],
        trouble: Callable[[dict[str, Any]], None] = lambda report: None,
        outage: Callable[[str | None], None] = lambda error: None,
        known: Callable[[str, Name], int] = lambda plural, name: 0,
        went_back: Callable[[str, str], None] = lambda plural, why: None,
    ) -> None:
        self._kube = kube
        self._loop = loop
        self._workers = workers
        self._done = done
        self._trouble = trouble
        self._outage = outage
        self._known = known
        self._went_back = went_back
        self._problems = Problems(LOGGER)
        self._stopped = False
        self._starting = False
        self._running = 0
        self._queues: dict[Key, deque[Command]] = {}
        self._failures: dict[Key, int] = {}
        self._reported: dict[Key, tuple[int, str]] = {}
        # the end of the pause that the server requested (Retry-After)
        self._not_before: dict[Key, float] = {}
        self._ready: list[tuple[float, int, Key]] = []
        # when the loop calls _on_alarm(), for delayed commands
        self._alarm = math.inf
        # In an outage: the object whose command probes the server, the objects that
        # wait for it, and the number of its tries.
        self._probe: Key | None = None
        self._parked: list[Key] = []
        self._probes = 0
        self._order = itertools.count()
        # the earliest time of the next _hasten(), and whether that is scheduled
        self._hasten_at = 0.0
        self._hastening = False
        kube.outage.listen(self._on_outage_end)

    def submit(self, command: Command) -> None:
        """Queue a command behind others on the same object."""
        key = (
            str(command.get("kind")),
            str(command.get("namespace")),
            str(command.get("name") or command.get("selector")),
        )
        queue = self._queues.get(key)
        if queue is not None:
            queue.append(command)
            return
        self._queues[key] = deque([command])
        self._make_ready(key, 0.0)
        self._start()

    def depth(self) -> int:
        """The number of commands without a result."""
        return sum(len(queue) for queue in self._queues.values())

    def depths(self) -> dict[str, int]:
        """The number of commands without a result: running, waiting to be repeated,
        queued."""
        repeated = max(0, len(self._failures) - self._running)
        return {
            "running": self._running,
            "repeated": repeated,
            "queued": max(0, self.depth() - self._running - repeated),
        }

    def stop(self) -> None:
        """Drop commands that have not begun, and results of those under way."""
        self._stopped = True

    def _make_ready(self, key: Key, delay_s: float) -> None:
        due = time.monotonic() + delay_s
        heapq.heappush(self._ready, (due, next(self._order), key))

    def _start(self) -> None:
        """Start the commands that are due, up to the number of workers."""
        if self._starting:
            return  # a command has ended at once, within the loop that starts the next
        self._starting = True
        try:
            self._start_ready()
        finally:
            self._starting = False

    def _start_ready(self) -> None:
        while self._ready and self._running < self._workers and not self._stopped:
            due, _, key = self._ready[0]
            if due > time.monotonic():
                self._call_at(due)
                return
            heapq.heappop(self._ready)
            if self._probe is not None and key != self._probe:
                self._parked.append(key)
                continue
            self._running += 1
            self._loop.spawn(self._run(key, self._queues[key][0]))

    def _call_at(self, due: float) -> None:
        if due < self._alarm:
            self._alarm = due
            self._loop.call_at(due, self._on_alarm)

    def _on_alarm(self) -> None:
        self._alarm = math.inf
        self._start()

    def _end_outage(self) -> None:
        """After an answer of the server, release the commands that wait for the
        probe."""
        if self._probe is None:
            return
        self._outage(None)
        self._probe = None
        self._probes = 0
        for key in self._parked:
            self._make_ready(key, 0.0)
        self._parked = []

    def _on_outage_end(self) -> None:
        if not self._hastening:
            self._hastening = True
            self._loop.call_at(self._hasten_at, self._hasten)

    def _hasten(self) -> None:
        """Repeat waiting commands now, but for pauses that the server requested."""
        now = time.monotonic()
        self._hastening = False
        self._hasten_at = now + HASTEN_S
        self._ready = [
            (min(due, max(now, self._not_before.get(key, 0.0))), order, key)
            for due, order, key in self._ready
        ]
        heapq.heapify(self._ready)
        self._start()

    def _finish(self, key: Key, result: dict[str, Any], answered: bool = True) -> None:
        if answered:
            self._end_outage()
        queue = self._queues[key]
        command = queue.popleft()
        if key in self._failures:
            self._recover(key)
        if queue:
            self._make_ready(key, 0.0)
        else:
            del self._queues[key]
        self._done({"type": "result", "seq": command.get("seq"), **result})

    def _recover(self, key: Key) -> None:
        """Clear the failures of a command that has succeeded after repeats."""
        del self._failures[key]
        self._not_before.pop(key, None)
        status, _ = self._reported.pop(key)
        self._problems.clear(key)
        if status != HTTP_CONFLICT:
            self._kube.outage.ended()

    def _postpone(self, key: Key, command: Command, error: ApiError) -> None:
        unreachable = error.status == 0 and error.reason == UNREACHABLE
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        cause = (error.status, error.message)
        news = not unreachable and self._reported.get(key) != cause
        self._reported[key] = cause
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
            self._make_ready(key, backoff_s(self._probes, BACKOFF_FIRST_S, PROBE_CAP_S))
        else:
            self._parked.append(key)

    async def _run(self, key: Key, command: Command) -> None:
        """Carry out a command once, then start the next."""
        error = None
        plural, namespace, name = key
        known = 0
        if command.get("op") == "get":
            known = self._known(plural, (namespace, name))
        try:
            result = await execute(self._kube, command)
        except ApiError as exc:
            error = exc
        except Exception as exc:
            LOGGER.exception("%s %s", command.get("op"), label(key))
            result = failure(ApiError(500, "Internal", f"agent: {exc!r}"))
        self._running -= 1
        if self._stopped:
            return
        if error is not None and command.get("once") is True:
            # The module needs no result: do not repeat the command.
            self._finish(key, failure(error), answered=error.status != 0)
        elif error is not None:
            self._postpone(key, command, error)
        else:
            self._finish(key, result)
            found = version_of(result.get("object") or {}) if known else 0
            if 0 < found < known:
                self._went_back(plural, f"{name}: version {found} after {known}")
        self._start()
