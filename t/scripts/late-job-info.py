# SPDX-License-Identifier: LGPL-3.0-only
"""A stand-in for job-info on rank 0, as a broker module, for the start of one shell.

Load with ``flux module load --name=job-info late-job-info.py [lookup] [watch]
[fail=ERRNO]``. The module has the events of a job only with ``lookup`` in answer to the
second look-up of its eventlog and later ones, and only with ``watch`` in answer to a
watch. Without ``watch`` a watch gets no response, or with ``fail`` that error, such as
``fail=ENODATA`` for the end of the eventlog.
"""

from __future__ import annotations

import errno
import json
import os
from typing import Any

import flux.constants
import flux.kvs
from flux.brokermod import BrokerModule, request_handler
from flux.job import JobID


class LateJobInfo(BrokerModule):
    def __init__(self, h: Any, *args: str) -> None:
        super().__init__(h, *args)
        self.lookups = 0
        self.fail = next((a[len("fail=") :] for a in args if a.startswith("fail=")), "")

    def read(self, jobid: int, key: str) -> Any:
        """A value of a job; an eventlog as text, as several lines are no JSON."""
        return flux.kvs.get(self.handle, f"{JobID(jobid).kvs}.{key}")

    def value(self, msg: Any, key: str) -> Any:
        if key == "eventlog":
            self.lookups += 1
            if "lookup" not in self.args or self.lookups == 1:
                return ""
        value = self.read(msg.payload["id"], key)
        decode = msg.payload["flags"] & flux.constants.FLUX_JOB_LOOKUP_JSON_DECODE
        return value if decode or isinstance(value, str) else json.dumps(value)

    @request_handler("lookup")
    def lookup(self, msg: Any) -> None:
        answer = {"id": msg.payload["id"]}
        try:
            for key in msg.payload["keys"]:
                answer[key] = self.value(msg, key)
        except OSError as exc:
            self.handle.respond_error(msg, exc.errno or errno.EIO, str(exc))
            return
        self.handle.respond(msg, answer)

    @request_handler("eventlog-watch")
    def eventlog_watch(self, msg: Any) -> None:
        if self.fail:
            errnum = getattr(errno, self.fail)
            self.handle.respond_error(msg, errnum, os.strerror(errnum))
        elif "watch" in self.args:
            for line in self.read(msg.payload["id"], "eventlog").splitlines(True):
                self.handle.respond(msg, {"event": line})

    @request_handler("update-watch")
    def update_watch(self, msg: Any) -> None:
        key = msg.payload["key"]
        self.handle.respond(msg, {key: self.read(msg.payload["id"], key)})

    @request_handler("eventlog-watch-cancel")
    def eventlog_watch_cancel(self, msg: Any) -> None:
        pass

    @request_handler("update-watch-cancel")
    def update_watch_cancel(self, msg: Any) -> None:
        pass


def mod_main(h: Any, *args: str) -> None:
    LateJobInfo(h, *args).run()
