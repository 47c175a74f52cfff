# A made-up machine behind dws.status, the same at every start, for looking at
# what commands make of it.
# SPDX-License-Identifier: LGPL-3.0-only
"""Answer dws.status: ``flux python fake-dws-status.py RABBITS JOBS``.

Prints "ready" when requests are answered, and ends with its standard input or
the instance. With "change" as a payload key, the next answer differs: a job is
gone, one is new, one has a new state and a rabbit is offline.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import flux
from flux.constants import FLUX_MSGTYPE_REQUEST

TIB = 1 << 40
PHASES = ("depend", "pending", "prolog", "prolog", "prolog", "running", "epilog")
STATES = ("Proposal", "Proposal", "Setup", "DataIn", "PreRun", "PreRun", "DataOut")
NOTES = {
    "DataIn": "rabbit: staging in 43%, 1.2 GB/s",
    "PreRun": "rabbit: mounting 12/16 nodes",
    "DataOut": "rabbit: staging out 7%",
}
FIRST_ID = 1 << 30
WORDS = ("Ready", "Ready", "Degraded", *("Ready",) * 11, "Disabled", "Offline")


def rabbit(n: int, changed: bool) -> dict[str, Any]:
    state = WORDS[n % len(WORDS)]
    foreign = TIB // 8
    used = (TIB - foreign) * (n * 37 % 101) // 101 if state == "Ready" else 0
    nodes = f"node[{n * 16}-{n * 16 + 15}]"
    return {
        "name": f"rabbit{n}",
        "state": "Offline" if changed and n == 0 else state,
        "capacity": TIB,
        "free": TIB - used - foreign,
        "used": used,
        "foreign": foreign,
        "nodes": nodes,
        "message": "",
        "reason": "",
        "allocations": n % 5,
        "links": {"Ready": 16},
        "broken": {},
    }


def job(n: int, now: float, changed: bool) -> dict[str, Any]:
    kind = n % len(PHASES)
    if changed and n == 2:
        kind = 3
    state = STATES[kind]
    arrived = PHASES[kind] in ("pending", "running")
    return {
        "id": FIRST_ID + n * 4096,
        "userid": 0,
        "phase": PHASES[kind],
        "note": "" if arrived else NOTES.get(state, ""),
        "waiting": "the job to end" if arrived else f"{state} to be done",
        "exception": n % 50 == 49,
        "rabbits": f"rabbit{n % 7}",
        "workflow": {
            "name": f"fluxjob-{FIRST_ID + n * 4096}",
            "desired": state,
            "state": state,
            "ready": arrived,
            "status": "Completed" if arrived else "DriverWait",
            "trouble": False,
            "message": "",
            "since": now - 3600 - 60 * n,
        },
    }


class Service:
    def __init__(self, handle: flux.Flux, rabbits: int, jobs: int) -> None:
        self._handle = handle
        self._changed = False
        now = time.time()
        self._rabbits = [
            [rabbit(n, changed) for n in range(rabbits)] for changed in (False, True)
        ]
        last = jobs if jobs < 3 else jobs + 1
        self._jobs = [
            [job(n, now, False) for n in range(jobs)],
            [job(n, now, True) for n in range(1, last)],
        ]

    def _list(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["list"] == "rabbits":
            return {"rabbits": self._rabbits[self._changed]}
        after = request.get("after", 0)
        rest = [job for job in self._jobs[self._changed] if job["id"] > after]
        page = rest[: request["max"]]
        more = {"next": page[-1]["id"]} if len(page) < len(rest) else {}
        return {"jobs": page, **more}

    def _summary(self) -> dict[str, Any]:
        rabbits, jobs = self._rabbits[self._changed], self._jobs[self._changed]
        words = [rabbit["state"] for rabbit in rabbits]
        states = [job["workflow"]["state"] for job in jobs]
        return {
            "instance": "0",
            "synced": True,
            "plugin": True,
            "jobs": len(jobs),
            "workflows": len(jobs),
            "unmade": 0,
            "phases": {},
            "states": {word: states.count(word) for word in STATES},
            "agent": {
                "attached": True,
                "synced": True,
                "reachable": True,
                "commands": 3,
            },
            "rabbits": {
                "count": len(rabbits),
                "capacity": sum(rabbit["capacity"] for rabbit in rabbits),
                "used": sum(rabbit["used"] for rabbit in rabbits),
                "foreign": sum(rabbit["foreign"] for rabbit in rabbits),
                "states": {word: words.count(word) for word in set(words)},
            },
            "oldest": jobs[-1],
        }

    def answer(
        self, handle: flux.Flux, watcher: object, msg: flux.message.Message, arg: object
    ) -> None:
        request = msg.payload or {}
        if request.get("change"):
            self._changed = True
        answer = self._list(request) if "list" in request else self._summary()
        handle.respond(msg, answer)


def main() -> None:
    rabbits, jobs = map(int, sys.argv[1:3])
    handle = flux.Flux()
    handle.service_register("dws").get()
    service = Service(handle, rabbits, jobs)
    handle.msg_watcher_create(
        service.answer, FLUX_MSGTYPE_REQUEST, "dws.status"
    ).start()
    handle.fd_watcher_create(
        sys.stdin.fileno(), lambda *args: handle.reactor_stop()
    ).start()
    print("ready", flush=True)
    handle.reactor_run()


main()
