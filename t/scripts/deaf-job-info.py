# SPDX-License-Identifier: LGPL-3.0-only
"""A stand-in for job-info on a rank other than 0, as a broker module.

Load with ``flux module load --name=job-info deaf-job-info.py``. The module forwards
requests to rank 0, but delivers no event of a job, as on a rank whose KVS has missed a
change: a watch of a job's eventlog gets no response, and a look-up finds no eventlog.
"""

from __future__ import annotations

import errno
from typing import Any

import flux.constants
from flux.brokermod import BrokerModule, request_handler


class DeafJobInfo(BrokerModule):
    def pass_on(self, msg: Any, streaming: bool = True) -> None:
        flags = flux.constants.FLUX_RPC_STREAMING if streaming else 0
        future = self.handle.rpc(msg.topic, msg.payload, nodeid=0, flags=flags)
        future.then(self.answer, msg, streaming)

    def answer(self, future: Any, msg: Any, streaming: bool) -> None:
        try:
            self.handle.respond(msg, future.get())
        except OSError as exc:
            self.handle.respond_error(msg, exc.errno, exc.strerror)
            return
        if streaming:
            future.reset()

    @request_handler("eventlog-watch", allow_guest=True)
    def eventlog_watch(self, msg: Any) -> None:
        if msg.payload["path"] != "eventlog":
            self.pass_on(msg)

    @request_handler("lookup", allow_guest=True)
    def lookup(self, msg: Any) -> None:
        if "eventlog" in msg.payload["keys"]:
            self.handle.respond(msg, {"id": msg.payload["id"], "eventlog": ""})
        elif "rabbit_daemons" in msg.payload["keys"]:
            self.handle.respond_error(msg, errno.ENOENT, "")
        else:
            self.pass_on(msg, streaming=False)

    @request_handler("update-watch", allow_guest=True)
    def update_watch(self, msg: Any) -> None:
        self.pass_on(msg)

    @request_handler("eventlog-watch-cancel", allow_guest=True)
    def eventlog_watch_cancel(self, msg: Any) -> None:
        pass

    @request_handler("update-watch-cancel", allow_guest=True)
    def update_watch_cancel(self, msg: Any) -> None:
        pass


def mod_main(h: Any, *args: str) -> None:
    DeafJobInfo(h, *args).run()
