# Turning the simulator's switches while it runs: POST /dws-sim/v1/COMMAND
# with a JSON object, for admin users.
# SPDX-License-Identifier: LGPL-3.0-only
"""Run-time control."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Callable

from aiohttp import web

from dws_sim import errors
from dws_sim.admission import Unreachable
from dws_sim.errors import RETRY_AFTER_S
from dws_sim.faults import (
    check_state,
)
from dws_sim.jsontree import Object, encode
from dws_sim.rbac import User, wlm_role
from dws_sim.refusals import Refusal, Refusals
from dws_sim.schema.resources import RESOURCES, Resource
from dws_sim.store import Backup, Event
from dws_sim.switches import Switches, number_of, text_of

if TYPE_CHECKING:
    from dws_sim.sim import Simulator

log = logging.getLogger("dws-sim.control")

# An answer has got through after this time.
ANSWER_S = 0.2

Handler = Callable[[Object], Awaitable[Object]]


class Control(Switches):
    """The commands for a whole simulator."""

    def __init__(self, sim: Simulator) -> None:
        super().__init__(sim.controllers)
        self._sim = sim
        self._refusals = Refusals(sim.faults.seed)
        self._slow_s = 0.0
        self._backup: Backup | None = None
        self._admission = sim.store.admission["workflows"]
        sim.server.extensions["dws-sim"] = self._handle
        sim.server.intercept = self._intercept
        self._commands.update(
            {
                "api": self.api,
                "backup": self.backup,
                "restore": self.restore,
                "token": self.token,
                "deny": self.deny,
                "grant": self.grant,
                "state": self.state,
                "wait-idle": self.wait_idle,
                "wait-state": self.wait_state,
            }
        )

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

    async def _intercept(self, request: web.Request, user: User) -> None:
        """Faults of the API itself. Admin users are spared."""
        if user.role.is_admin:
            return
        if self._slow_s:
            await asyncio.sleep(self._slow_s)
        await self._refusals.meet(request)

    # -- the API ----------------------------------------------------------

    @staticmethod
    def _refusal(args: Object) -> Refusal:
        status = int(number_of(args, "status"))
        if not 400 <= status <= 599:
            raise ValueError("status must be an HTTP error")
        rate = float(number_of(args, "rate", 0.0))
        if rate > 1:
            raise ValueError("rate must be between 0 and 1")
        after = int(number_of(args, "retry_after", RETRY_AFTER_S))
        return Refusal(status, int(number_of(args, "count", 1)), rate, after)

    async def api(self, args: Object) -> Object:
        server = self._sim.server
        result: Object = {}
        if "status" in args:
            self._refusals.add(self._refusal(args))
        if "slow" in args:
            self._slow_s = float(number_of(args, "slow"))
        if "stale" in args:
            server.stale_s = float(number_of(args, "stale"))
        if "away" in args:
            self._sim.go_away(ANSWER_S, float(number_of(args, "away")))
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
            self._refusals.clear()
            self._slow_s = server.stale_s = 0.0
            self._sim.store.admission["workflows"] = self._admission
        return result

    async def backup(self, args: Object) -> Object:
        """Back up all objects, in place of the last backup."""
        self._backup = self._sim.store.backup()
        return {"version": self._backup.version}

    async def restore(self, args: Object) -> Object:
        """Restore the backup, as an admin restores a lost etcd: all watches end, and
        resource versions go back. The state before becomes the next backup."""
        if self._backup is None:
            raise ValueError("there is no backup")
        backup, self._backup = self._backup, self._sim.store.backup()
        before = self._backup.version
        watches = self._sim.server.drop_watches()
        self._sim.server.forget_lists()
        await self._sim.controllers.go_back(self._sim.store, backup)
        return {"version": backup.version, "was": before, "watches": watches}

    async def token(self, args: Object) -> Object:
        context = text_of(args, "user", "wlm")
        if context not in ("wlm", "admin"):
            raise ValueError("user must be wlm or admin")
        return {"token": self._sim.renew_token(context)}

    @staticmethod
    def _rights(args: Object) -> tuple[str, ...]:
        words = args.get("rights") or []
        if not all(isinstance(w, str) and w.count(":") == 1 for w in words):
            raise ValueError("a right is RESOURCE:VERB")
        for word in words:
            if word.split(":")[0].split("/")[0] not in RESOURCES:
                raise ValueError(f"{word}: there is no such resource")
        return tuple(words)

    async def deny(self, args: Object) -> Object:
        """Revoke rights of the workload manager; without words, restore all of
        them."""
        self._sim.set_wlm_role(wlm_role(self._rights(args)))
        return {}

    async def grant(self, args: Object) -> Object:
        """Grant the workload manager rights beyond its role; without words, revoke all
        grants."""
        self._sim.set_wlm_role(wlm_role(more=self._rights(args)))
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
            "refused": self._refusals.refused,
            "early": self._refusals.early,
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
        timeout = number_of(args, "timeout")
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
        name, state = text_of(args, "workflow"), text_of(args, "state")
        if state != "gone":
            check_state(state)
        res: Resource = RESOURCES["workflows"]

        def done() -> bool:
            obj = self._sim.store.peek(res, text_of(args, "namespace", "default"), name)
            if state == "gone" or obj is None:
                return obj is None and state == "gone"
            status = obj.get("status", {})
            ready = bool(status.get("ready"))
            return status.get("state") == state and (ready or not args.get("ready"))

        return await self._until(["workflows"], done, args)
