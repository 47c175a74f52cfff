# A made-up machine behind dws.status, the same at every start, for looking at
# what commands make of it.
# SPDX-License-Identifier: LGPL-3.0-only
"""Answer dws.status: ``flux python fake-dws-status.py RABBITS JOBS [wide]``.

Prints "ready" when requests are answered, and ends with its standard input or
the instance. With "change" as a payload key, the next answer differs: a job is
gone, one is new, one has a new state and a rabbit is offline.

``wide`` makes everything as long as it gets on a large machine: names, numbers,
messages; and answers what else flux rabbit asks the module, of which there is none
without it.
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
            "age": 3600.0 + 60 * n,
        },
    }


# As long as it gets

ERROR = (
    "DW Directive 1: Internal error: copy of "
    "/mnt/nnf/0cf1d9c5-9bbb-4a0c-8f12-1d1f0e4f6d36-0/hetchy1001-0/out to "
    "/lus/global/climate/simulations/run-2026-11/out: dcp: Disk quota exceeded "
    "[fault: user; make room at the destination]"
)
DIRECTIVES = [
    "#DW jobdw type=lustre capacity=2000TiB name=checkpoint profile=large-striped",
    "#DW copy_out source=$DW_JOB_checkpoint/climate/simulations/run-2026-11/out "
    "destination=/lus/global/climate/simulations/run-2026-11/out",
]
# Index of the job that all requests by jobid get: it proceeds in spite of a fault.
LOOKED_AT = 6
PIB = 1 << 50
NOTHING: dict[str, Any] = {
    "persistent": [],
    "space": {},
    "dws.losses": {"losses": []},
    "dws.quota": {"known": True, "limits": {}, "users": [], "banks": []},
    "dws.profiles": {"storage": {"profiles": []}, "containers": {"profiles": []}},
}


def wide_name(n: int) -> str:
    return f"hetchy{1001 + n}"


def widened_rabbit(rabbit: dict[str, Any]) -> dict[str, Any]:
    n = int(rabbit["name"].removeprefix("rabbit"))
    wrong = rabbit["state"] != "Ready"
    sizes = {key: rabbit[key] * 40 for key in ("capacity", "free", "used", "foreign")}
    return {
        **rabbit,
        **sizes,
        "name": wide_name(n),
        "nodes": f"rzvernal[{1001 + n * 16}-{1016 + n * 16}]",
        "drives": [14, 18] if wrong else [16, 16],
        "wear": 103,
        "broken": {f"rzvernal{1001 + n * 16}": "Degraded"} if wrong else {},
        "reason": "drive 7 replaced, waits for the vendor" if wrong else "",
        "message": ERROR if wrong else "",
        "since": "2026-11-24T17:02:11Z" if wrong else "",
        "by": "weissenberger" if wrong else "",
    }


def widened_job(job: dict[str, Any]) -> dict[str, Any]:
    wrong = job["workflow"]["state"] == "DataOut"
    return {
        **job,
        "userid": 4_200_000_000 + job["id"] % 7,
        "rabbits": "hetchy[1001-1128,1130-1257]",
        "waiting": f"{job['workflow']['desired']} to be done on 256 rabbits",
        "note": job["note"] and f"{job['note']}, 12m left, 3 of 4096 copies",
        "workflow": {
            **job["workflow"],
            "trouble": wrong,
            "status": "Error" if wrong else job["workflow"]["status"],
            "message": ERROR if wrong else "",
        },
    }


def persistent(n: int, now: float, rabbits: int) -> dict[str, Any]:
    on = [wide_name(i) for i in range(1 + n * 100 % max(1, rabbits))]
    return {
        "name": f"climate-{1000 + n}",
        "uid": f"0cf1d9c5-9bbb-4a0c-8f12-{n:012}",
        "namespace": "default",
        "type": "lustre",
        "userid": 4_200_000_000,
        "user": "4200000000",
        "state": "Active",
        "created": now - 86400.0 * (n + 30),
        "expires": now + 86400.0 * 20 if n % 2 else 0.0,
        "expiring": n % 4 == 1,
        "destroying": False,
        "users": [{"workflow": f"fluxjob-{i}", "jobid": i} for i in range(n % 5)],
        "space": dict.fromkeys(on, 3 * PIB // 100),
    }


def profile(n: int) -> dict[str, Any]:
    size = {"capacityScalingFactor": "1.25", "allocationPadding": "300MiB"}
    target = {"capacity": "5GiB", "scale": 10, "colocateComputes": True}
    return {
        "metadata": {"name": f"striped-{n}", "namespace": "nnf-system"},
        "data": {
            "default": n == 0,
            **{f"{kind}Storage": size for kind in ("xfs", "gfs2", "raw")},
            "lustreStorage": {
                "mgtOptions": {"capacity": "5GiB", "count": 1},
                "mdtOptions": target,
                "ostOptions": {**size, **target},
            },
        },
    }


def container(n: int) -> dict[str, Any]:
    names = ("DW_JOB_local_storage", "DW_PERSISTENT_shared", "DW_GLOBAL_lus")
    return {
        "metadata": {"name": f"reduce-{n}", "namespace": "nnf-system"},
        "data": {
            "preRunTimeoutSeconds": 3600,
            "postRunTimeoutSeconds": 3600,
            "retryLimit": 6,
            "numPorts": 4,
            "userID": 4_200_000_000 if n == 0 else None,
            "storages": [{"name": name, "optional": True} for name in names],
        },
    }


def asides(now: float, rabbits: int) -> dict[str, Any]:
    """Responses of the module to its other requests."""
    rules = {
        "everybody": {"total": "2048TiB", "job": "1024TiB", "node": "32TiB"},
        "banks": {"total": "9000TiB", "per": "bank"},
    }
    use = {"bytes": 3 * PIB // 2, "jobs": 1000, "waiting": 1000}
    user = {**use, "userid": 4_200_000_000, "persistent": 12}
    return {
        "persistent": [persistent(n, now, rabbits) for n in range(20)],
        "space": {wide_name(n): 3 * PIB // 100 for n in range(6)},
        "dws.losses": {
            "losses": [
                {
                    "id": FIRST_ID + n * 4096,
                    "userid": 4_200_000_000,
                    "t": now,
                    "text": ERROR,
                    "until": now + 3600 if n % 2 else 0,
                }
                for n in range(256)
            ]
        },
        "dws.quota": {
            "known": True,
            "limits": rules,
            "users": [user],
            "banks": [{**use, "bank": "climate"}],
        },
        "dws.profiles": {
            "storage": {"profiles": [profile(n) for n in range(3)]},
            "containers": {"profiles": [container(n) for n in range(3)]},
        },
    }


class Service:
    def __init__(
        self, handle: flux.Flux, rabbits: int, jobs: int, wide: bool = False
    ) -> None:
        self._handle = handle
        self._wide = wide
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
        if wide:
            self._rabbits = [list(map(widened_rabbit, r)) for r in self._rabbits]
            self._jobs = [list(map(widened_job, j)) for j in self._jobs]
        self._more = asides(now, rabbits) if wide else NOTHING

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
            "remade": 0,
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
            "persistent": self._more["persistent"],
            **({"oldest": jobs[-1]} if jobs else {}),
        }

    def answer(
        self, handle: flux.Flux, watcher: object, msg: flux.message.Message, arg: object
    ) -> None:
        if msg.topic == "dws.disconnect":
            return
        request = msg.payload or {}
        if request.get("change"):
            self._changed = True
        if msg.topic != "dws.status":
            answer = self._more[msg.topic]
            if msg.topic == "dws.profiles":
                answer = answer[request["kind"]]
        elif "jobid" in request:
            answer = dict(self._jobs[0][LOOKED_AT], id=request["jobid"])
            answer.update(directives=DIRECTIVES, space=self._more["space"])
        else:
            answer = self._list(request) if "list" in request else self._summary()
        handle.respond(msg, answer)


def main() -> None:
    rabbits, jobs = map(int, sys.argv[1:3])
    wide = sys.argv[3:] == ["wide"]
    handle = flux.Flux()
    handle.service_register("dws").get()
    service = Service(handle, rabbits, jobs, wide)
    handle.msg_watcher_create(service.answer, FLUX_MSGTYPE_REQUEST, "dws.*").start()
    handle.fd_watcher_create(
        sys.stdin.fileno(), lambda *args: handle.reactor_stop()
    ).start()
    print("ready", flush=True)
    handle.reactor_run()


main()
