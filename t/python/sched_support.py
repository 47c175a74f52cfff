# sched-rabbit without a broker, and requests at random: for tests, and for
# t/fuzz/fuzz_scheduler.py.
# SPDX-License-Identifier: LGPL-3.0-only
"""A scheduler that gets arbitrary requests of users."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import random
import time
from types import SimpleNamespace
from typing import Any
from unittest import mock

import flux.kvs
import flux.scheduler
from flux_sched_rabbit.scheduler import LINE_MAX, RabbitScheduler

GIB = 1 << 30
NODES = 8  # two of them next to each rabbit
CORES = 4
LAST_INT = (1 << 63) - 1  # of JSON as Flux reads it


def check_json(value: Any) -> None:
    """Can Flux read this?"""
    if isinstance(value, dict):
        assert all(isinstance(key, str) for key in value)
        for entry in value.values():
            check_json(entry)
    elif isinstance(value, list):
        for entry in value:
            check_json(entry)
    elif isinstance(value, str):
        value.encode()
        assert "\0" not in value
    elif isinstance(value, float):
        assert math.isfinite(value)
    elif value is not None and not isinstance(value, bool):
        assert isinstance(value, int) and -LAST_INT - 1 <= value <= LAST_INT


class Asked:
    """Stands for the request of the job manager for a job: it is decided once."""

    def __init__(self) -> None:
        self.R: Any = None
        self.note: str | None = None
        self.cancelled = False

    def _decide(self) -> None:
        assert self.R is None and self.note is None and not self.cancelled

    def success(self, R: Any, annotations: Any) -> None:
        self._decide()
        check_json(R)
        check_json(annotations)
        self.R = R

    def deny(self, note: str) -> None:
        self._decide()
        check_line(note)
        self.note = note

    def cancel(self) -> None:
        self._decide()
        self.cancelled = True

    def annotate(self, annotations: Any) -> None:
        check_json(annotations)


def check_line(text: str) -> None:
    """Is it a line for an eventlog?"""
    assert text and len(text) <= LINE_MAX and text.isprintable()


class Handle:
    """Stands for the broker. ``answer`` is the last response to it."""

    def __init__(self, mapping: str | None) -> None:
        self.mapping = mapping
        self.answer: Any = None
        self.handle = None

    def conf_get(self, key: str) -> str | None:
        return self.mapping

    def respond(self, msg: Any, payload: Any) -> None:
        check_json(payload)
        self.answer = (0, "")

    def respond_error(self, msg: Any, errnum: int, text: str) -> None:
        check_json(text)
        self.answer = (errnum, text)


class Log:
    """Has what is logged as an error: defects."""

    level = 7

    def __init__(self) -> None:
        self.errors: list[str] = []

    def error(self, text: str) -> None:
        check_line(text)
        self.errors.append(text)

    def info(self, text: str) -> None:
        pass

    debug = warning = info

    def __call__(self, level: int, text: str) -> None:
        pass


def light_init(self: Any, h: Any, *args: str) -> None:
    """In the place of the base class, which wants a broker."""
    self._h = h
    self._queue = []
    self._pending_args = []
    self._acquire_rpc = None
    self.log = Log()


class LightScheduler(RabbitScheduler):
    """sched-rabbit on a machine of NODES nodes and a rabbit for each two."""

    def _request_schedule(self) -> None:
        self.wanted = True


def make_scheduler(mapping: str | None = None) -> Any:
    """A scheduler of a machine that is all up and free; ``mapping``: name of a file."""
    with (
        mock.patch.object(flux.scheduler.Scheduler, "__init__", light_init),
        mock.patch.object(
            flux.kvs, "get", side_effect=FileNotFoundError(errno.ENOENT, "")
        ),
    ):
        scheduler = LightScheduler(Handle(mapping))
    scheduler.log = Log()
    R = {
        "version": 1,
        "execution": {
            "R_lite": [
                {
                    "rank": f"0-{NODES - 1}",
                    "children": {"core": f"0-{CORES - 1}", "gpu": "0"},
                }
            ],
            "starttime": 1.0,
            "expiration": 0.0,
            "nodelist": [f"n[0-{NODES - 1}]"],
            "properties": {"batch": "0-5", "debug": "6-7"},
        },
    }
    scheduler._resources = scheduler._make_pool(R)
    scheduler.resources.set_rabbits(
        {f"r{i}": (100, [f"n{2 * i}", f"n{2 * i + 1}"]) for i in range(NODES // 2)}
    )
    return scheduler


# Requests


def anything(rng: random.Random, depth: int = 3) -> Any:
    """Random JSON of any kind that Flux accepts."""
    kind = rng.randrange(12 if depth else 9)
    if kind == 0:
        return None
    if kind == 1:
        return rng.random() < 0.5
    if kind == 2:
        return rng.choice([0, 1, -1, 2, 7, 1 << 31, 1 << 32, LAST_INT, -LAST_INT])
    if kind == 3:
        return rng.choice([0.0, -0.5, 1.5, 1e10, 1e308, 5e-324])
    if kind in (4, 5, 6):
        return word(rng)
    if kind == 7:
        return word(rng) * rng.choice([1, 10, 300, 2000])
    if kind == 8:
        return nested(rng, rng.choice([5, 40, 330, 900]))
    if kind == 9:
        return [anything(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {word(rng): anything(rng, depth - 1) for _ in range(rng.randrange(4))}


def word(rng: random.Random) -> str:
    return rng.choice(
        [
            "",
            "a",
            "n0",
            "n[0-3]",
            "n[0-9999999]",
            "n[0-65535]x",
            "n[0-9],n[5-20]",
            "0-3",
            "0-9999999",
            "0-4294967295",
            "[1,3,5-7]",
            "9-1",
            "n[",
            "batch",
            "^batch",
            "^",
            "type",
            "core",
            "node",
            "\u202e\n\x1b[31m",
            "\u00e4" * 40,
            "2+",
            "1-4:2:*",
            "-1",
            "1e9",
            "-",
        ]
    )


def nested(rng: random.Random, depth: int) -> Any:
    result: Any = {"properties": ["batch"]}
    for _ in range(depth):
        result = {rng.choice(["and", "or", "not"]): [result]}
    return result


def constraint(rng: random.Random, depth: int = 3, wide: int | None = None) -> Any:
    """Only lists at one level, `wide` from the leaves, are long: of long lists in long
    lists the text would have more bytes than there is memory."""
    if wide is None:
        wide = rng.randrange(depth + 1)
    operator = rng.choice(
        ["and", "or", "not", "properties", "hostlist", "ranks", word(rng)]
    )
    if rng.random() < 0.05:
        return anything(rng)
    if operator in ("and", "or", "not") and depth:
        values = [constraint(rng, depth - 1, wide) for _ in range(rng.randrange(4))]
    else:
        values = [word(rng) for _ in range(rng.randrange(4))]
    if depth == wide and rng.random() < 0.05:
        values *= rng.choice([100, 2000])
    result = {operator: values if rng.random() < 0.95 else anything(rng)}
    if rng.random() < 0.1:
        result.update({word(rng): [word(rng)]})
    return result


def count(rng: random.Random) -> Any:
    if rng.random() < 0.8:
        return rng.randrange(1, 5)
    return rng.choice(
        [
            0,
            -1,
            1 << 31,
            LAST_INT,
            1e308,
            "2+",
            "1-3",
            {"min": 1},
            {"min": 1, "max": 3},
            {"min": 3, "max": 1},
            {"min": LAST_INT, "operand": 2},
            anything(rng),
        ]
    )


def entry(rng: random.Random, kinds: list[str], depth: int) -> Any:
    if rng.random() < 0.03:
        return anything(rng)
    kind = rng.choice(kinds)
    result: dict[str, Any] = {"type": kind, "count": count(rng), "label": "task"}
    if rng.random() < 0.3:
        result["exclusive"] = rng.random() < 0.8 or anything(rng)
    inner = {
        "chassis": ["node", "ssd", "storage_node"],
        "slot": ["core", "gpu", "node", "ssd", "storage_node"],
        "node": ["slot", "core", "gpu"],
        "storage_node": ["core"],
    }.get(kind, ["core"])
    if depth and kind not in ("core", "gpu", "ssd"):
        result["with"] = [
            entry(rng, inner, depth - 1) for _ in range(rng.randrange(1, 4))
        ]
    if rng.random() < 0.02:
        result.pop(rng.choice(list(result)))
    return result


def jobspec(rng: random.Random) -> Any:
    """A random jobspec, most of it nearly valid."""
    if rng.random() < 0.02:
        return anything(rng)
    system: dict[str, Any] = {
        "duration": rng.choice([0, 0, 10, 60.5, 3600, 1.5e308, 1e10, anything(rng)])
    }
    if rng.random() < 0.6:
        system["constraints"] = constraint(rng)
    if rng.random() < 0.1:
        system[word(rng)] = anything(rng)
    tops = ["chassis", "slot", "slot", "node", "storage_node"]
    resources: Any = [entry(rng, tops, 4) for _ in range(rng.choice([1, 1, 1, 2, 0]))]
    if rng.random() < 0.02:
        resources = anything(rng)
    attributes = {"system": system} if rng.random() < 0.98 else anything(rng)
    return {"resources": resources, "attributes": attributes, "version": 1}


class Session:
    """A scheduler, and random messages to it."""

    def __init__(self, rng: random.Random, seconds: float = math.inf) -> None:
        """No step may take so many seconds of CPU."""
        self.rng = rng
        self.seconds = seconds
        self.scheduler = make_scheduler()
        self.asked: dict[int, Asked] = {}
        self.next = 1

    def message(self, payload: Any) -> Any:
        return SimpleNamespace(payload=payload)

    def alloc(self) -> None:
        jobid = self.next
        self.next += 1
        self.asked[jobid] = Asked()
        priority = self.rng.randrange(32)
        asked = self.asked[jobid]
        self.scheduler.alloc(asked, jobid, priority, 1, 1.0, self.request())

    def request(self) -> Any:
        """A jobspec; to read it as a message takes self.reading seconds of CPU. Parts
        of it may be there many times, and so it may be of any size."""
        made = jobspec(self.rng)
        began = time.process_time()
        with contextlib.suppress(RecursionError):
            json.loads(json.dumps(made))
        self.reading = time.process_time() - began
        return made

    def schedule(self) -> None:
        self.scheduler.schedule()

    def feasibility(self) -> None:
        self.scheduler._handle_feasibility(self.message({"jobspec": self.request()}))
        assert self.scheduler.handle.answer is not None

    def _pick(self) -> int:
        return self.rng.choice([*self.asked, 0])

    def free(self) -> None:
        jobid = self._pick()
        asked = self.asked.get(jobid)
        if asked is not None and asked.R is not None:
            self.scheduler.free(jobid, self.scheduler._make_pool(asked.R), final=True)
            del self.asked[jobid]

    def cancel(self) -> None:
        self.scheduler.cancel(self._pick())

    def expire(self) -> None:
        when = self.rng.choice([0.0, 1.0, time.time() + 60, 1.5e308])
        self.scheduler._handle_expiration(
            self.message({"id": self._pick(), "expiration": when})
        )

    def change_nodes(self) -> None:
        change = self.rng.choice(["mark_up", "mark_down"])
        getattr(self.scheduler.resources, change)(f"{self.rng.randrange(NODES)}")

    def tell(self) -> None:
        """Send a message as the module dws, or as another client of the owner."""
        topic = self.rng.choice(["health", "hold", "config_reload"])
        payload = anything(self.rng)
        if self.rng.random() < 0.7:
            payload = {
                "rabbits": {"r0": {"up": self.rng.random() < 0.5}},
                "properties": {"badrabbit": word(self.rng)},
                "jobs": {"7": {"r0": self.rng.randrange(100) * GIB}},
                "complete": self.rng.random() < 0.5,
            }
        self.scheduler.handle.answer = None
        getattr(self.scheduler, topic)(self.message(payload))
        assert self.scheduler.handle.answer is not None
        if not self.scheduler.resources.machine.rabbits:
            self.scheduler.resources.set_rabbits({"r0": (100, ["n0", "n1"])})

    def step(self) -> None:
        steps = [self.alloc] * 6 + [self.schedule] * 3 + [self.free] * 2
        steps += [self.feasibility, self.cancel, self.expire, self.change_nodes]
        chosen = self.rng.choice([*steps, self.tell])
        self.reading = 0.0
        began = time.process_time()
        chosen()
        took = time.process_time() - began
        assert took < self.seconds + 3 * self.reading, chosen.__name__
        assert self.scheduler.log.errors == []

    def finish(self) -> None:
        """When all jobs are gone all is free again."""
        scheduler = self.scheduler
        for jobid in list(self.asked):
            scheduler.cancel(jobid)
            scheduler.resources.free(jobid, final=True)
        machine = scheduler.resources.machine
        for jobid in list(machine.held):
            machine.hold(jobid, {})
        assert scheduler._queue == []
        assert machine.idle == machine.all_nodes
        assert all(r.free_gib == r.capacity_gib for r in machine.rabbits.values())
