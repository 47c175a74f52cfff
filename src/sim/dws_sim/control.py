# Turning the simulator's switches while it runs: POST /dws-sim/v1/COMMAND
# with a JSON object, for admin users.
# SPDX-License-Identifier: LGPL-3.0-only
"""Run-time control."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Callable

from aiohttp import web

from dws_sim import errors
from dws_sim.admission import Unreachable
from dws_sim.errors import ApiError
from dws_sim.faults import (
    CONTAINER_MODES,
    SEVERITIES,
    Failure,
    Hold,
    Latency,
    check_state,
)
from dws_sim.jsontree import Object, encode
from dws_sim.rbac import User, wlm_role
from dws_sim.scenario import Step
from dws_sim.schema.resources import RESOURCES, Resource
from dws_sim.states import STATES
from dws_sim.store import Event
from dws_sim.world import DRIVES

if TYPE_CHECKING:
    from dws_sim.sim import Simulator

log = logging.getLogger("dws-sim.control")

Handler = Callable[[Object], Awaitable[Object]]
LINK_WORDS = ("Ready", "Offline", "NotPresent", "Failed", "Fenced")


def _text(args: Object, key: str, default: Any = None) -> str:
    value = args.get(key, default)
    if not isinstance(value, str):
        raise ValueError(f"{key} must be text")
    return value


def _number(args: Object, key: str, default: Any = None) -> Any:
    value = args.get(key, default)
    if value is not None and (
        not isinstance(value, (int, float)) or isinstance(value, bool) or value < 0
    ):
        raise ValueError(f"{key} must be a number, not negative")
    return value


class Control:
    """The commands, each a method that takes and returns a JSON object."""

    def __init__(self, sim: Simulator) -> None:
        self._sim = sim
        self._status_faults: list[list[int]] = []
        self._slow_s = 0.0
        self._admission = sim.store.admission["workflows"]
        sim.server.extensions["dws-sim"] = self._handle
        sim.server.intercept = self._intercept
        self._commands: dict[str, Handler] = {
            "hold": self.hold,
            "release": self.release,
            "latency": self.latency,
            "fail": self.fail,
            "rabbit": self.rabbit,
            "link": self.link,
            "drive": self.drive,
            "hang-mount": self.hang_mount,
            "fail-copy": self.fail_copy,
            "containers": self.containers,
            "api": self.api,
            "token": self.token,
            "child-timeout": self.child_timeout,
            "deny": self.deny,
            "state": self.state,
            "wait-idle": self.wait_idle,
            "wait-state": self.wait_state,
        }

    # -- transport --------------------------------------------------------

    async def _handle(self, request: web.Request, user: User) -> web.StreamResponse:
        if not user.role.is_admin:
            raise errors.forbidden("only admin users control the simulator")
        parts = [p for p in request.path.split("/") if p]
        if request.method != "POST" or len(parts) != 3 or parts[1] != "v1":
            raise errors.no_such_path()
        handler = self._commands.get(parts[2])
        if handler is None:
            raise errors.no_such_path()
        try:
            args = await request.json() if request.can_read_body else {}
            if not isinstance(args, dict):
                raise ValueError("arguments must be a JSON object")
            result = await handler(args)
        except ValueError as exc:
            raise errors.bad_request(str(exc)) from exc
        return web.Response(body=encode(result), content_type="application/json")

    async def play(self, steps: list[Step]) -> None:
        """Do what a scenario says, each step at its time."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        for step in sorted(steps, key=lambda s: s.after_s):
            await asyncio.sleep(max(0.0, began + step.after_s - loop.time()))
            try:
                await self._commands[step.command](step.args)
            except ValueError as exc:
                log.error("scenario: %s: %s", step.command, exc)

    async def _intercept(self, request: web.Request, user: User) -> None:
        """Faults of the API itself. Admin users are spared."""
        if user.role.is_admin:
            return
        if self._slow_s:
            await asyncio.sleep(self._slow_s)
        if self._status_faults:
            entry = self._status_faults[0]
            entry[1] -= 1
            if entry[1] <= 0:
                self._status_faults.pop(0)
            reasons = {
                429: "TooManyRequests",
                500: "InternalError",
                401: "Unauthorized",
            }
            reason = reasons.get(entry[0], "ServiceUnavailable")
            raise ApiError(entry[0], reason, "simulated fault")

    # -- workflow states --------------------------------------------------

    async def hold(self, args: Object) -> Object:
        state = check_state(_text(args, "state"))
        hold = Hold(_text(args, "workflow", "*"), bool(args.get("late", False)))
        self._sim.faults.holds.setdefault(state, []).append(hold)
        return {}

    async def release(self, args: Object) -> Object:
        state, name = _text(args, "state"), args.get("workflow")
        faults = self._sim.faults
        for each in faults.holds if state == "all" else [check_state(state)]:
            faults.holds[each] = [
                h for h in faults.holds.get(each, ()) if name not in (None, h.workflow)
            ]
        faults.changed()
        return {}

    async def latency(self, args: Object) -> Object:
        state, value = _text(args, "state"), args.get("seconds", 0)
        if state == "mount":
            self._sim.faults.mount_latency = Latency.parse(value)
        elif state == "copy":
            self._sim.faults.copy_latency = Latency.parse(value)
        else:
            self._sim.faults.latencies[check_state(state)] = Latency.parse(value)
        return {}

    async def fail(self, args: Object) -> Object:
        state = _text(args, "state")
        failures = self._sim.faults.failures
        if args.get("clear"):
            for each in STATES if state == "all" else [check_state(state)]:
                failures.pop(each, None)
        else:
            severity = _text(args, "severity", "Fatal")
            if severity not in SEVERITIES:
                raise ValueError(f"severity must be one of {', '.join(SEVERITIES)}")
            failures.setdefault(check_state(state), []).append(
                Failure(
                    severity,
                    _text(args, "message", "simulated failure"),
                    _number(args, "count"),
                    _text(args, "workflow", "*"),
                    _number(args, "probability", 1.0),
                )
            )
        self._sim.faults.changed()
        return {}

    async def fail_copy(self, args: Object) -> Object:
        failures = self._sim.faults.copy_failures
        if args.get("clear"):
            failures.clear()
        else:
            message = _text(args, "message", "simulated failure")
            job = _text(args, "job", "*")
            failures.append(Failure("Fatal", message, _number(args, "count"), job))
        return {}

    async def containers(self, args: Object) -> Object:
        mode = _text(args, "mode")
        if mode not in CONTAINER_MODES:
            raise ValueError(f"mode must be one of {', '.join(CONTAINER_MODES)}")
        self._sim.faults.containers = mode
        self._sim.faults.changed()
        return {}

    # -- hardware ---------------------------------------------------------

    def _known_rabbit(self, args: Object) -> str:
        name = _text(args, "rabbit")
        if name not in self._sim.machine.rabbits:
            raise ValueError(f"there is no rabbit {name!r}")
        return name

    def _look(self, rabbit: str) -> None:
        self._sim.controllers.health.enqueue("default", rabbit)

    async def rabbit(self, args: Object) -> Object:
        name, word = self._known_rabbit(args), _text(args, "to")
        hardware = self._sim.controllers.hardware
        if word == "down":
            hardware.down.add(name)
        elif word == "up":
            hardware.reboot(name)
            hardware.drained.discard(name)
        elif word == "unbooted":
            hardware.unbooted.add(name)
        elif word == "drained":
            hardware.drained.add(name)
        elif word == "fenced":
            hardware.fenced.add(name)
        else:
            raise ValueError("a rabbit goes down, up, unbooted, drained or fenced")
        self._look(name)
        return {}

    async def link(self, args: Object) -> Object:
        node, word = _text(args, "node"), _text(args, "to")
        word = {"up": "Ready", "down": "Offline"}.get(word, word)
        if word not in LINK_WORDS:
            raise ValueError(f"a link is up, down or one of {', '.join(LINK_WORDS)}")
        rabbit = self._sim.machine.mapping()["computes"].get(node)
        if rabbit is None:
            raise ValueError(f"node {node!r} has no rabbit")
        self._sim.controllers.hardware.links[node] = word
        self._look(rabbit)
        return {}

    async def drive(self, args: Object) -> Object:
        name, slot, word = self._known_rabbit(args), args.get("slot"), args.get("to")
        if not isinstance(slot, int) or not 0 <= slot < DRIVES:
            raise ValueError(f"slot must be 0 to {DRIVES - 1}")
        if word not in ("failed", "ok"):
            raise ValueError("a drive is failed or ok")
        failed = self._sim.controllers.hardware.drives.setdefault(name, set())
        (failed.add if word == "failed" else failed.discard)(slot)
        self._look(name)
        return {}

    async def child_timeout(self, args: Object) -> Object:
        faults = self._sim.faults
        faults.child_timeout_s = float(_number(args, "seconds", 300))
        faults.changed()
        return {}

    async def hang_mount(self, args: Object) -> Object:
        node, word = _text(args, "node"), _text(args, "to")
        hung = self._sim.faults.hung_nodes
        if word == "on":
            hung.add(node)
        elif word == "off":
            hung.discard(node)
        else:
            raise ValueError("hang-mount is on or off")
        self._sim.faults.changed()
        return {}

    # -- the API ----------------------------------------------------------

    async def api(self, args: Object) -> Object:
        server = self._sim.server
        result: Object = {}
        if "status" in args:
            status = int(_number(args, "status"))
            if not 400 <= status <= 599:
                raise ValueError("status must be an HTTP error")
            self._status_faults.append([status, int(_number(args, "count", 1))])
        if "slow" in args:
            self._slow_s = float(_number(args, "slow"))
        if "stale" in args:
            server.stale_s = float(_number(args, "stale"))
        if args.get("webhook_down"):
            self._sim.store.admission["workflows"] = Unreachable()
        if args.get("expire"):
            server.expire()
            gone = errors.expired(
                "The resourceVersion for the provided watch is too old."
            )
            result["watches"] = server.drop_watches(gone)
        elif args.get("drop_watches"):
            result["watches"] = server.drop_watches()
        if args.get("clear"):
            self._status_faults.clear()
            self._slow_s = server.stale_s = 0.0
            self._sim.store.admission["workflows"] = self._admission
        return result

    async def token(self, args: Object) -> Object:
        context = _text(args, "user", "wlm")
        if context not in ("wlm", "admin"):
            raise ValueError("user must be wlm or admin")
        return {"token": self._sim.renew_token(context)}

    async def deny(self, args: Object) -> Object:
        """Take rights away from the workload manager; without words, give all
        of them back."""
        words = args.get("rights") or []
        if not all(isinstance(word, str) and ":" in word for word in words):
            raise ValueError("a right is RESOURCE:VERB")
        self._sim.set_wlm_role(wlm_role(tuple(words)))
        return {}

    # -- looking on -------------------------------------------------------

    def _workflows(self) -> list[Object]:
        return self._sim.store.find(RESOURCES["workflows"])

    async def state(self, args: Object) -> Object:
        sim = self._sim
        states = Counter(
            o.get("status", {}).get("state", "new") for o in self._workflows()
        )
        storages = sim.store.find(RESOURCES["storages"])
        health = Counter(o.get("status", {}).get("status", "none") for o in storages)
        return {
            "workflows": dict(states),
            "mounts": sim.mounts.count,
            "clientmounts": len(sim.store.tables["clientmounts"].objects),
            "storages": len(sim.store.tables["nnfstorages"].objects),
            "backing": sim.mounts.directories(),
            "allocated": sim.controllers.ledger.total(),
            "capacity": sim.machine.capacity_bytes,
            "rabbits": len(sim.machine.rabbits),
            "nodes": len(sim.machine.nodes),
            "health": dict(health),
            "watches": len(sim.server.watches),
            "requests": sim.server.requests,
            "objects": sum(len(t.objects) for t in sim.store.tables.values()),
            "version": sim.store.version,
            "held": {s: len(h) for s, h in sim.faults.holds.items() if h},
        }

    def _idle(self) -> bool:
        tables = self._sim.store.tables
        kinds = ("workflows", "clientmounts", "nnfaccesses", "nnfstorages")
        return not self._sim.mounts.count and not any(tables[k].objects for k in kinds)

    async def _until(
        self, plurals: list[str], done: Callable[[], bool], args: Object
    ) -> Object:
        """Wait for a change of the store that makes something true."""
        timeout = _number(args, "timeout")
        wake = asyncio.Event()

        def changed(event: Event) -> None:
            wake.set()

        tables = [self._sim.store.tables[p] for p in plurals]
        for table in tables:
            table.subscribers.append(changed)
        try:
            loop = asyncio.get_running_loop()
            end = None if timeout is None else loop.time() + timeout
            while not done():
                wake.clear()
                left = None if end is None else end - loop.time()
                try:
                    await asyncio.wait_for(wake.wait(), left)
                except asyncio.TimeoutError:
                    return {"done": False}
            return {"done": True}
        finally:
            for table in tables:
                table.subscribers.remove(changed)

    async def wait_idle(self, args: Object) -> Object:
        plurals = ["workflows", "clientmounts", "nnfaccesses", "nnfstorages"]
        return await self._until(plurals, self._idle, args)

    async def wait_state(self, args: Object) -> Object:
        name, state = _text(args, "workflow"), _text(args, "state")
        if state != "gone":
            check_state(state)
        res: Resource = RESOURCES["workflows"]

        def done() -> bool:
            obj = self._sim.store.peek(res, _text(args, "namespace", "default"), name)
            if state == "gone" or obj is None:
                return obj is None and state == "gone"
            status = obj.get("status", {})
            ready = bool(status.get("ready"))
            return status.get("state") == state and (ready or not args.get("ready"))

        return await self._until(["workflows"], done, args)
