# SPDX-License-Identifier: LGPL-3.0-only
#
# Requests to Flux over the C functions alone: importing all of Flux's bindings
# takes longer than most of these commands.
"""Talk to Flux."""

from __future__ import annotations

import errno
import json
import math
import os
import time
from typing import Any

from _flux._core import ffi, lib
from flux_k8s import names
from flux_k8s.storage import rabbits as rabbits
from flux_k8s.workflow import active_job as active_job
from flux_k8s.workflow import job_pages as job_pages

Object = dict[str, Any]

NODEID_ANY = 0xFFFFFFFF
# The longest time in which a signal is not acted on.
PIECE_S = 0.25
JOBID_MAX = (1 << 63) - 1  # ids are JSON integers
# Attributes to request for ended jobs: a week may have many, so omit the rest.
ENDED_ATTRIBUTES = [
    *("userid", "nnodes", "t_submit", "t_run", "t_cleanup", "t_inactive", "result"),
    *("exception_occurred", "exception_severity", "exception_type", "exception_note"),
    "annotations",
]


class RpcError(OSError):
    """A request that was refused, or could not be sent."""

    def __init__(self, number: int, topic: str, text: str) -> None:
        super().__init__(number, text)
        self.topic = topic

    def __str__(self) -> str:
        # The text of a service does not name it; a mere errno needs the topic.
        said = self.strerror not in (None, os.strerror(self.errno or 0))
        return str(self.strerror) if said else f"{self.topic}: {self.strerror}"


class Absent(RpcError):
    """The topic has no service: a module is not loaded."""


def _text(cdata: Any) -> str:
    return str(ffi.string(cdata).decode("utf-8", errors="replace"))


class Pending:
    """A request without answer yet."""

    def __init__(self, topic: str, future: Any) -> None:
        self._topic = topic
        self._future = future

    def _wait(self, seconds: float) -> bool:
        """Whether the answer, or an error, arrives in time."""
        waited = lib.flux_future_wait_for(self._future, max(0.0, seconds))
        return bool(waited == 0 or ffi.errno != errno.ETIMEDOUT)

    def get(self, timeout_s: float = -1.0) -> Object:
        """Wait for the answer, in pieces: Python acts on Ctrl-C and other signals
        between them.

        Raises:
            RpcError: the answer is an error, or does not arrive in time.
        """
        end = math.inf if timeout_s < 0 else time.monotonic() + timeout_s
        while not self._wait(min(PIECE_S, end - time.monotonic())):
            if time.monotonic() >= end:
                raise RpcError(errno.ETIMEDOUT, self._topic, "no answer in time")
        answer = ffi.new("char *[1]")
        if lib.flux_rpc_get(self._future, answer) < 0:
            number = ffi.errno
            text = _text(lib.flux_future_error_string(self._future))
            kind = Absent if number == errno.ENOSYS else RpcError
            raise kind(number, self._topic, text)
        if answer[0] == ffi.NULL:
            return {}
        value = json.loads(ffi.string(answer[0]))
        return value if isinstance(value, dict) else {}


class Handle:
    """A connection to the Flux instance."""

    def __init__(self, uri: str | None = None) -> None:
        """Connect to the enclosing instance, or to the one at `uri` ("/": the root
        instance). Raises OSError without an instance."""
        self._handle = lib.flux_open(ffi.NULL if uri is None else uri.encode(), 0)
        if self._handle == ffi.NULL:
            raise ConnectionError(
                f"cannot connect to a Flux instance ({os.strerror(ffi.errno)}): is one "
                "running here? Else name one with FLUX_URI"
            )

    def rpc(
        self, topic: str, payload: Object | None = None, nodeid: int = NODEID_ANY
    ) -> Pending:
        """Send a request without waiting for its answer."""
        text = json.dumps(payload or {}).encode()
        future = lib.flux_rpc(self._handle, topic.encode(), text, nodeid, 0)
        if future == ffi.NULL:
            raise RpcError(ffi.errno, topic, "cannot send the request")
        return Pending(topic, ffi.gc(future, lib.flux_future_destroy))

    def call(self, topic: str, payload: Object | None = None) -> Object:
        """Send a request and wait for its answer."""
        return self.rpc(topic, payload).get()

    def attribute(self, name: str) -> str:
        """A broker attribute, "" if there is none of that name."""
        value = lib.flux_attr_get(self._handle, name.encode())
        return "" if value == ffi.NULL else _text(value)


def system_uri() -> str:
    """The address of the system instance at the root if the enclosing instance is a
    job without the module dws, else "". Raises OSError."""
    try:
        here = Handle()
    except OSError:
        return ""  # a command that needs an instance reports the error
    if not here.attribute("parent-uri"):
        return ""
    try:
        status(here)
    except Absent:
        return Handle("/").attribute("local-uri")
    return ""


def jobid(text: str) -> int:
    """A job id in any of its forms.

    Raises:
        ValueError: the text is not a job id.
    """
    number = ffi.new("flux_jobid_t[1]")
    if (
        lib.flux_job_id_parse(os.fsencode(text), number) < 0
        or not 0 < number[0] <= JOBID_MAX
    ):
        raise ValueError(f"'{text}' is not a job id")
    return int(number[0])


def f58(number: int) -> str:
    """A job id as people write it."""
    buffer = ffi.new("char[64]")
    if lib.flux_job_id_encode(number, b"f58", buffer, 64) < 0:
        return str(number)
    return _text(buffer)


def status(handle: Handle) -> Object:
    """The state of the installation (dws.status in doc/protocol.md)."""
    return handle.call(names.TOPIC_STATUS)


def job_list(handle: Handle, number: int) -> Object:
    """A job of job-list. Raises RpcError, with ENOENT for an unknown job."""
    answer = handle.call("job-list.list-id", {"id": number, "attrs": ["all"]})
    return dict(answer["job"])


def job_list_or_none(handle: Handle, number: int) -> Object | None:
    """A job of job-list; None while job-list does not know it yet. Raises RpcError."""
    try:
        return job_list(handle, number)
    except RpcError as exc:
        if exc.errno == errno.ENOENT:
            return None
        raise


def finished_jobs(
    handle: Handle, count: int, user: int | None, since: float = 0.0
) -> list[Object]:
    """The latest ended jobs that used rabbits, latest first.

    Args:
        count: the number of ended jobs to search, 0: all.
        user: only those of this user id.
        since: only those that ended after this time (s since the epoch).
    """
    constraint: Object = {"and": [{"states": ["inactive"]}]}
    if user is not None:
        constraint["and"].append({"userid": [user]})
    answer = handle.call(
        "job-list.list",
        {
            "max_entries": count,
            "attrs": ENDED_ATTRIBUTES,
            "since": since,
            "constraint": constraint,
        },
    )
    return [job for job in answer["jobs"] if uses_rabbits(job)]


def uses_rabbits(job: Object) -> bool:
    """Whether a job of job-list had a workflow, by its memo."""
    user = (job.get("annotations") or {}).get("user") or {}
    return bool(user.get(names.KEY_WORKFLOW) or user.get("rabbits"))


class Lookup:
    """Reads keys of jobs in the KVS by concurrent requests."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._pending: dict[tuple[int, str], Pending] = {}
        self._together: dict[int, tuple[tuple[str, ...], Pending]] = {}
        self._found: dict[tuple[int, str], str] = {}

    def ask(self, number: int, *keys: str, current: bool = False) -> None:
        """Ask for keys of a job; with `current`, with all changes since it was
        submitted."""
        for key in keys:
            flags = lib.FLUX_JOB_LOOKUP_CURRENT if current else 0
            request = {"id": number, "keys": [key], "flags": flags}
            self._pending[number, key] = self._handle.rpc("job-info.lookup", request)

    def ask_together(self, number: int, *keys: str) -> None:
        """Ask in one request for keys of which most jobs have all."""
        request = {"id": number, "keys": keys, "flags": 0}
        self._together[number] = (keys, self._handle.rpc("job-info.lookup", request))

    def _part(self, number: int) -> None:
        """Split the answer to ask_together(). If the job lacks one of the keys the
        answer is ENOENT: then ask for each key alone."""
        keys, pending = self._together.pop(number)
        try:
            answer = pending.get()
        except RpcError as exc:
            if exc.errno != errno.ENOENT:
                raise
            self.ask(number, *keys)
            return
        for key in keys:
            self._found[number, key] = str(answer[key])

    def get(self, number: int, key: str) -> str | None:
        """The text of a requested key; None if the job lacks it.

        Raises:
            RpcError: the job is unknown, or another user's.
        """
        if number in self._together:
            self._part(number)
        if (number, key) in self._found:
            return self._found.pop((number, key))
        try:
            return str(self._pending.pop((number, key)).get()[key])
        except RpcError as exc:
            if exc.errno == errno.ENOENT:
                return None
            raise
