# SPDX-License-Identifier: LGPL-3.0-only
"""A stand-in for the dws service, as a broker module, to test dws-jobtap.so.

Load with ``flux module load --name=dws fake-dws.py [auto] [away] [fail-NAME=TEXT]``.
The module records each request; ``dws.log`` returns the records, ``dws.wait`` with
``{name, jobid}`` responds with one of them as soon as it exists. With ``auto`` every
job succeeds at once: its resources do not change, and its environment gets
``DW_JOB_test``. With ``away`` requests for the status of a job are recorded, and fail
as if there were no module. ``fail-create=WORD`` fails that request.
"""

from __future__ import annotations

import errno
from typing import Any

from flux.brokermod import BrokerModule, request_handler


class FakeDws(BrokerModule):
    def __init__(self, h: Any, *args: str) -> None:
        super().__init__(h, *args)
        self.requests: list[dict[str, Any]] = []
        self.waiting: list[Any] = []
        self.auto = "auto" in args
        self.away = "away" in args
        self.failures = dict(
            arg[len("fail-") :].split("=", 1) for arg in args if arg.startswith("fail-")
        )

    def take(self, name: str, msg: Any) -> bool:
        """Note a request and answer it. False if it was refused."""
        self.requests.append({"name": name, "payload": msg.payload})
        self.waiting = [m for m in self.waiting if not self.answer_wait(m)]
        if name in self.failures:
            self.handle.respond_error(msg, errno.EINVAL, self.failures[name])
            return False
        self.handle.respond(msg, None)
        return self.auto

    def answer_wait(self, msg: Any) -> bool:
        for request in self.requests:
            payload = request["payload"]
            if (request["name"], payload["jobid"]) == (
                msg.payload["name"],
                msg.payload["jobid"],
            ):
                self.handle.respond(msg, payload)
                return True
        return False

    def tell(self, method: str, payload: dict[str, Any]) -> None:
        future = self.handle.rpc(f"job-manager.dws.{method}", payload)
        future.then(self.told, method)

    def told(self, future: Any, method: str) -> None:
        try:
            future.get()
        except OSError as exc:
            self.log.error(f"{method}: {exc}")

    @request_handler("create")
    def create(self, msg: Any) -> None:
        if self.take("create", msg):
            payload = msg.payload
            self.tell(
                "resource-update",
                {
                    "id": payload["jobid"],
                    "resources": payload["resources"],
                    "exclude": None,
                },
            )

    @request_handler("setup")
    def setup(self, msg: Any) -> None:
        if self.take("setup", msg):
            self.tell(
                "prolog-remove",
                {
                    "id": msg.payload["jobid"],
                    "variables": {"DW_JOB_test": "/mnt/test"},
                },
            )

    @request_handler("post_run")
    def post_run(self, msg: Any) -> None:
        if self.take("post_run", msg):
            self.tell("epilog-remove", {"id": msg.payload["jobid"]})

    @request_handler("teardown")
    def teardown(self, msg: Any) -> None:
        self.take("teardown", msg)

    @request_handler("abort")
    def abort(self, msg: Any) -> None:
        self.take("abort", msg)

    @request_handler("status", allow_guest=True)
    def status(self, msg: Any) -> None:
        """Knows the jobs that a request was about, and no plain ones."""
        if self.away:
            self.requests.append({"name": "status", "payload": msg.payload})
            self.waiting = [m for m in self.waiting if not self.answer_wait(m)]
            self.handle.respond_error(msg, errno.ENOSYS, "")
        elif any(r["payload"]["jobid"] == msg.payload["jobid"] for r in self.requests):
            self.handle.respond(
                msg, {"phase": "prolog", "limited": False, "exception": False}
            )
        else:
            self.handle.respond_error(msg, errno.EPERM, "")

    @request_handler("log")
    def requests_get(self, msg: Any) -> None:
        self.handle.respond(msg, {"requests": self.requests})

    @request_handler("wait")
    def wait(self, msg: Any) -> None:
        if not self.answer_wait(msg):
            self.waiting.append(msg)
