# SPDX-License-Identifier: LGPL-3.0-only
"""The job-info module: guests cannot read the KVS, but may see here what it has about
their own jobs.

Each answer needs the main eventlog: its first entry says whose job it is, and updates
of the jobspec are in it.

An eventlog below "guest." lies in the job's own namespace while the job runs, and
afterwards in the job's directory. Its watch goes through steps: wait in the main
eventlog for the job to start, follow the namespace, then read the rest.
"""

import base64
import errno
import json
from typing import Any, Callable, Optional

from _flux._core import lib
from flux.brokermod import BrokerModule, request_handler
from flux.constants import FLUX_RPC_NORESPONSE, FLUX_RPC_STREAMING
from job_keys import kvs_key as any_key
from job_keys import kvs_namespace

JSON_DECODE = lib.FLUX_JOB_LOOKUP_JSON_DECODE
CURRENT = lib.FLUX_JOB_LOOKUP_CURRENT
INITIAL_SENTINEL = lib.FLUX_JOB_EVENT_WATCH_INITIAL_SENTINEL
WAITCREATE = lib.FLUX_JOB_EVENT_WATCH_WAITCREATE
APPENDED = lib.FLUX_KVS_WATCH | lib.FLUX_KVS_WATCH_APPEND


class Refused(Exception):
    def __init__(self, errnum: int, text: Optional[str] = None) -> None:
        super().__init__(text)
        self.errnum = errnum
        self.text = text


def kvs_key(jobid: int, key: str) -> str:
    try:
        return any_key(jobid, key)
    except ValueError:
        raise Refused(errno.EPROTO) from None


def entries(text: str) -> list:
    try:
        return [json.loads(line) for line in text.splitlines()]
    except ValueError:
        raise Refused(errno.EPROTO) from None


def authorize(msg: Any, eventlog: Optional[str]) -> None:
    try:
        submit = json.loads((eventlog or "").partition("\n")[0])
        userid = submit["context"]["userid"]
    except (ValueError, KeyError, TypeError):
        raise Refused(errno.EPROTO, "malformed eventlog") from None
    if submit["name"] != "submit":
        raise Refused(errno.EPROTO, "malformed eventlog")
    if lib.flux_msg_authorize(msg.handle, userid) < 0:
        raise Refused(errno.EPERM, "restricted to the user of the job")


class Lookup:
    """A request for values of a job, and for its eventlog."""

    def __init__(self, info: "Info", msg: Any, request: dict) -> None:
        self.info, self.msg = info, msg
        try:
            self.id, self.keys = request["id"], request["keys"]
            self.flags = request["flags"]
        except KeyError:
            raise Refused(errno.EPROTO) from None
        if self.flags & ~(JSON_DECODE | CURRENT):
            raise Refused(errno.EPROTO, "unknown flags")
        if not isinstance(self.keys, list):
            raise Refused(errno.EPROTO, "keys are not an array")
        self.found: dict[str, Any] = {}
        self.awaited = dict.fromkeys(["eventlog", *self.keys])
        for key in list(self.awaited):
            info.get(kvs_key(self.id, key), self.on_value, key)

    def on_value(self, text: Optional[str], errnum: int, key: str) -> None:
        self.found[key] = text, errnum
        del self.awaited[key]
        if not self.awaited:
            self.info.answer(self.msg, self.result)

    def result(self) -> dict:
        eventlog, errnum = self.found["eventlog"]
        if errnum:
            text = "invalid job id" if errnum == errno.ENOENT else None
            raise Refused(errnum, text)
        authorize(self.msg, eventlog)
        return {"id": self.id, **{key: self.value(key) for key in self.keys}}

    def value(self, key: str) -> Any:
        text, errnum = self.found[key]
        if errnum == errno.ENOENT:
            raise Refused(errnum, f"{key}: key not found")
        if errnum:
            raise Refused(errnum)
        if key not in ("R", "jobspec") or not self.flags:
            return text
        try:
            value = json.loads(text)
        except ValueError:
            raise Refused(errno.EPROTO, f"{key}: no valid JSON") from None
        if self.flags & CURRENT:
            for entry in entries(self.found["eventlog"][0]):
                if key == "jobspec" and entry["name"] == "jobspec-update":
                    update(value, entry["context"])
                elif key == "R" and entry["name"] == "resource-update":
                    value["execution"].update(entry["context"])
        return value if self.flags & JSON_DECODE else json.dumps(value)


def update(jobspec: dict, changes: dict) -> None:
    for path, value in changes.items():
        *above, last = path.split(".")
        obj = jobspec
        for key in above:
            obj = obj.setdefault(key, {})
        obj[last] = value


class Watch:
    """A stream of the entries of an eventlog."""

    def __init__(self, info: "Info", msg: Any, request: dict) -> None:
        self.info, self.msg = info, msg
        try:
            self.id, path = request["id"], request["path"]
            self.flags = request["flags"]
        except KeyError:
            raise Refused(errno.EPROTO) from None
        if not lib.flux_msg_is_streaming(msg.handle):
            text = "an eventlog is watched by a streaming RPC"
            raise Refused(errno.EPROTO, text)
        if self.flags & ~(INITIAL_SENTINEL | WAITCREATE):
            raise Refused(errno.EPROTO, "unknown flags")
        self.guest = path.startswith("guest.")
        self.path = path[len("guest.") :] if self.guest else path
        self.main = path == "eventlog"
        self.allowed = self.sentinel = False
        self.sent = 0  # entries
        self.stream: Any = None
        self.step: Any = None
        if self.guest:
            self.follow(self.on_main, "eventlog", APPENDED)
        elif self.main:
            self.follow(self.on_data, path, self.kvs_flags())
        else:
            info.get(kvs_key(self.id, "eventlog"), self.on_owner)

    def kvs_flags(self) -> int:
        flags = APPENDED
        if self.flags & WAITCREATE:
            flags |= lib.FLUX_KVS_WAITCREATE
        if self.flags & INITIAL_SENTINEL:
            flags |= lib.FLUX_KVS_WATCH_INITIAL_SENTINEL
        return flags

    def follow(
        self, step: Callable, key: str, flags: int, namespace: Optional[str] = None
    ) -> None:
        self.unfollow()
        if not namespace:
            namespace, key = "primary", kvs_key(self.id, key)
        self.step = step
        request = {"key": key, "namespace": namespace, "flags": flags}
        self.stream = self.info.handle.rpc(
            "kvs-watch.lookup", request, flags=FLUX_RPC_STREAMING
        )
        self.stream.then(self.on_stream)

    def unfollow(self) -> None:
        """The stream goes on until the KVS has ended it."""
        if self.stream:
            tag = {"matchtag": self.stream.pimpl.get_matchtag()}
            self.info.handle.rpc("kvs-watch.cancel", tag, flags=FLUX_RPC_NORESPONSE)
            self.stream = None

    def on_stream(self, future: Any) -> None:
        text, errnum = value_of(future)
        if future is self.stream:
            if errnum:
                self.stream = None
            try:
                self.step(text, errnum)
            except Refused as exc:
                self.end(exc.errnum)
        if not errnum:
            future.reset()

    def end(self, errnum: int) -> None:
        if self.info.watches.pop(self, self) is None:
            self.info.handle.respond_error(self.msg, errnum, None)
        self.unfollow()

    def allow(self, eventlog: Optional[str]) -> None:
        if not self.allowed:
            authorize(self.msg, eventlog)
        self.allowed = True

    def send_sentinel(self) -> None:
        if self.flags & INITIAL_SENTINEL and not self.sentinel:
            self.info.handle.respond(self.msg)
        self.sentinel = True

    def send(self, text: str) -> bool:
        """Returns true after the last entry of a main eventlog."""
        for line in text.splitlines(keepends=True):
            self.info.handle.respond(self.msg, {"event": line})
            self.sent += 1
            if self.main and json.loads(line).get("name") == "clean":
                return True
        return False

    def on_owner(self, text: Optional[str], errnum: int) -> None:
        if self not in self.info.watches:
            return
        try:
            if errnum:
                raise Refused(errnum)
            self.allow(text)
            self.follow(self.on_data, self.path, self.kvs_flags())
        except Refused as exc:
            self.end(exc.errnum)

    def on_main(self, text: Optional[str], errnum: int) -> None:
        """A guest path: see where to look."""
        if errnum:
            raise Refused(errnum)
        self.allow(text)
        found = entries(text or "")
        names = [entry["name"] for entry in found]
        released = [e for e in found if e["name"] == "release"]
        if "clean" in names or any(e["context"].get("final") for e in released):
            self.read_rest()
        elif "start" in names:
            space = kvs_namespace(self.id)
            self.follow(self.on_data, self.path, self.kvs_flags(), space)

    def on_data(self, text: Optional[str], errnum: int) -> None:
        if self.guest and errnum == errno.ENOTSUP:  # namespace is gone
            self.read_rest()
            return
        if errnum:
            raise Refused(errnum)
        if text is None:
            self.send_sentinel()
            return
        self.allow(text)
        if self.send(text):
            self.send_sentinel()
            self.end(errno.ENODATA)

    def read_rest(self) -> None:
        self.unfollow()
        key = kvs_key(self.id, f"guest.{self.path}")
        self.info.get(key, self.on_rest)

    def on_rest(self, text: Optional[str], errnum: int) -> None:
        if self not in self.info.watches:
            return
        if errnum and not self.sent:
            self.end(errnum)
            return
        self.send("".join((text or "").splitlines(keepends=True)[self.sent :]))
        if not errnum:
            self.send_sentinel()
        self.end(errno.ENODATA)


def value_of(future: Any) -> tuple:
    """The value of a lookup and 0, or None and an errno."""
    try:
        answer = future.get()
    except OSError as exc:
        return None, exc.errno
    if answer is None:  # sentinel
        return None, 0
    if answer["val"]["type"] != "val":
        return None, errno.EISDIR
    return base64.b64decode(answer["val"]["data"]).decode(errors="replace"), 0


class Info(BrokerModule):
    def __init__(self, h: Any, *args: str) -> None:
        super().__init__(h, *args)
        self.watches: dict[Watch, None] = {}

    def get(self, key: str, function: Callable, *args: Any) -> None:
        request = {"key": key, "namespace": "primary", "flags": 0}
        future = self.handle.rpc("kvs.lookup", request)
        future.then(lambda future: function(*value_of(future), *args))

    def answer(self, msg: Any, function: Callable, *args: Any) -> Any:
        try:
            payload = function(*args)
        except Refused as exc:
            self.handle.respond_error(msg, exc.errnum, exc.text)
            return None
        if isinstance(payload, dict):
            self.handle.respond(msg, payload)
        return payload

    @request_handler("lookup", allow_guest=True)
    def on_lookup(self, msg: Any) -> None:
        self.answer(msg, Lookup, self, msg, msg.payload)

    @request_handler("eventlog-watch", allow_guest=True)
    def on_watch(self, msg: Any) -> None:
        watch = self.answer(msg, Watch, self, msg, msg.payload)
        if watch:
            self.watches[watch] = None

    @request_handler("eventlog-watch-cancel", allow_guest=True)
    def on_cancel(self, msg: Any) -> None:
        for watch in list(self.watches):
            if lib.flux_cancel_match(msg.handle, watch.msg.handle):
                watch.end(errno.ENODATA)

    @request_handler("disconnect", allow_guest=True)
    def on_disconnect(self, msg: Any) -> None:
        for watch in list(self.watches):
            if lib.flux_disconnect_match(msg.handle, watch.msg.handle):
                del self.watches[watch]
                watch.unfollow()
