# Switches for running controllers: faults, delays, broken hardware. Called by the
# commands of ctl and the steps of scenarios.
# SPDX-License-Identifier: LGPL-3.0-only
"""Switches of the controllers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Callable

from dws_sim.drives import SLOTS
from dws_sim.faults import (
    CONTAINER_MODES,
    SEVERITIES,
    Failure,
    Hold,
    Latency,
    check_state,
)
from dws_sim.jsontree import Object
from dws_sim.scenario import Step
from dws_sim.states import STATES

if TYPE_CHECKING:
    from dws_sim.sim import Controllers

log = logging.getLogger("dws-sim.control")

Handler = Callable[[Object], Awaitable[Object]]
LINK_WORDS = ("Ready", "Offline", "NotPresent", "Failed", "Fenced")


def text_of(args: Object, key: str, default: Any = None) -> str:
    value = args.get(key, default)
    if not isinstance(value, str):
        raise ValueError(f"{key} must be text")
    return value


def number_of(args: Object, key: str, default: Any = None) -> Any:
    value = args.get(key, default)
    if value is not None and (
        not isinstance(value, (int, float)) or isinstance(value, bool) or value < 0
    ):
        raise ValueError(f"{key} must be a number, not negative")
    return value


class Switches:
    """The commands, each a method that takes and returns a JSON object."""

    def __init__(self, controllers: Controllers) -> None:
        self._faults = controllers.faults
        self._hardware = controllers.hardware
        self._health = controllers.health
        self._machine = controllers.machine
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
            "child-timeout": self.child_timeout,
            "stumble": self.stumble,
            "outdate-servers": self.outdate_servers,
            "device-poll": self.device_poll,
        }

    def check(self, steps: list[Step]) -> None:
        """Raises ValueError for a step that is none of these commands."""
        for step in steps:
            if step.command not in self._commands:
                raise ValueError(f"the step {step.command!r} is for dws-sim run")

    async def play(self, steps: list[Step]) -> None:
        """Run the steps of a scenario, each at its time."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        for step in sorted(steps, key=lambda s: s.after_s):
            await asyncio.sleep(max(0.0, began + step.after_s - loop.time()))
            try:
                await self._commands[step.command](step.args)
            except ValueError as exc:
                log.error("scenario: %s: %s", step.command, exc)

    # -- workflow states --------------------------------------------------

    async def hold(self, args: Object) -> Object:
        state = check_state(text_of(args, "state"))
        hold = Hold(text_of(args, "workflow", "*"), bool(args.get("late", False)))
        self._faults.holds.setdefault(state, []).append(hold)
        return {}

    async def release(self, args: Object) -> Object:
        state, name = text_of(args, "state"), args.get("workflow")
        faults = self._faults
        for each in faults.holds if state == "all" else [check_state(state)]:
            faults.holds[each] = [
                h for h in faults.holds.get(each, ()) if name not in (None, h.workflow)
            ]
        faults.changed()
        return {}

    async def latency(self, args: Object) -> Object:
        state, value = text_of(args, "state"), args.get("seconds", 0)
        if state == "mount":
            self._faults.mount_latency = Latency.parse(value)
        elif state == "copy":
            self._faults.copy_latency = Latency.parse(value)
        else:
            self._faults.latencies[check_state(state)] = Latency.parse(value)
        return {}

    async def fail(self, args: Object) -> Object:
        state = text_of(args, "state")
        failures = self._faults.failures
        if args.get("clear"):
            for each in STATES if state == "all" else [check_state(state)]:
                failures.pop(each, None)
        else:
            severity = text_of(args, "severity", "Fatal")
            if severity not in SEVERITIES:
                raise ValueError(f"severity must be one of {', '.join(SEVERITIES)}")
            failures.setdefault(check_state(state), []).append(
                Failure(
                    severity,
                    text_of(args, "message", "simulated failure"),
                    number_of(args, "count"),
                    text_of(args, "workflow", "*"),
                    number_of(args, "probability", 1.0),
                )
            )
        self._faults.changed()
        return {}

    async def fail_copy(self, args: Object) -> Object:
        failures = self._faults.copy_failures
        if args.get("clear"):
            failures.clear()
        else:
            message = text_of(args, "message", "simulated failure")
            job = text_of(args, "job", "*")
            failures.append(Failure("Fatal", message, number_of(args, "count"), job))
        return {}

    async def containers(self, args: Object) -> Object:
        mode = text_of(args, "mode")
        if mode not in CONTAINER_MODES:
            raise ValueError(f"mode must be one of {', '.join(CONTAINER_MODES)}")
        self._faults.containers = mode
        self._faults.changed()
        return {}

    # -- hardware ---------------------------------------------------------

    def _known_rabbit(self, args: Object) -> str:
        name = text_of(args, "rabbit")
        if name not in self._machine.rabbits:
            raise ValueError(f"there is no rabbit {name!r}")
        return name

    async def rabbit(self, args: Object) -> Object:
        name, word = self._known_rabbit(args), text_of(args, "to")
        hardware = self._hardware
        if word == "down":
            hardware.down.add(name)
        elif word == "dead":
            hardware.dead.add(name)
        elif word == "up":
            hardware.reboot(name)
            hardware.drained.discard(name)
            self._health.look(name)
        elif word == "unbooted":
            hardware.unbooted.add(name)
        elif word == "drained":
            hardware.drained.add(name)
        elif word == "fenced":
            hardware.fenced.add(name)
        else:
            raise ValueError(
                "a rabbit goes down, dead, up, unbooted, drained or fenced"
            )
        self._health.enqueue("default", name)
        self._faults.changed()
        return {}

    async def link(self, args: Object) -> Object:
        node, word = text_of(args, "node"), text_of(args, "to")
        word = {"up": "Ready", "down": "Offline"}.get(word, word)
        if word not in LINK_WORDS:
            raise ValueError(f"a link is up, down or one of {', '.join(LINK_WORDS)}")
        rabbit = self._machine.mapping()["computes"].get(node)
        if rabbit is None:
            raise ValueError(f"node {node!r} has no rabbit")
        self._hardware.links[node] = word
        self._health.look(rabbit)
        return {}

    async def drive(self, args: Object) -> Object:
        name, slot, word = self._known_rabbit(args), args.get("slot"), args.get("to")
        if not isinstance(slot, int) or slot not in SLOTS:
            raise ValueError(f"slot must be 1 to {len(SLOTS)}")
        if word not in ("failed", "ok"):
            raise ValueError("a drive is failed or ok")
        failed = self._hardware.drives.setdefault(name, set())
        wear = args.get("wear")
        if wear is not None:
            if not isinstance(wear, int) or wear < 0:
                raise ValueError("wear is a number of percent")
            self._hardware.wear[name, slot] = wear
        (failed.add if word == "failed" else failed.discard)(slot)
        self._health.look(name)
        return {}

    async def child_timeout(self, args: Object) -> Object:
        faults = self._faults
        faults.child_timeout_s = float(number_of(args, "seconds", 300))
        faults.changed()
        return {}

    async def device_poll(self, args: Object) -> Object:
        self._faults.device_poll_s = float(number_of(args, "seconds", 0))
        return {}

    async def stumble(self, args: Object) -> Object:
        probability = number_of(args, "probability", 0)
        if probability > 1:
            raise ValueError("probability must be between 0 and 1")
        self._faults.stumble = float(probability)
        return {}

    async def outdate_servers(self, args: Object) -> Object:
        count = args.get("count", 1)
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise ValueError("count must be a number, not negative")
        self._faults.outdated = count
        return {}

    async def hang_mount(self, args: Object) -> Object:
        node, word = text_of(args, "node"), text_of(args, "to")
        hung = self._faults.hung_nodes
        if word == "on":
            hung.add(node)
        elif word == "off":
            hung.discard(node)
        else:
            raise ValueError("hang-mount is on or off")
        self._faults.changed()
        return {}
