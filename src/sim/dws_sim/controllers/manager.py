# Runs the controllers: a queue of names without duplicates, workers, retries
# with growing pauses, and timers. Only the queue knows about backoff.
# SPDX-License-Identifier: LGPL-3.0-only
"""The reconcile loop."""

from __future__ import annotations

import abc
import asyncio
import logging
from collections import deque

from dws_sim.controllers.cluster import Cluster
from dws_sim.errors import ApiError
from dws_sim.jsontree import Object

log = logging.getLogger("dws-sim.controllers")

BACKOFF_FIRST_S = 0.005
BACKOFF_LIMIT_S = 1000.0
# How long workers may run before the event loop gets a turn.
TURN_S = 0.005


class Retry(Exception):
    """Work that failed and shall be tried again with backoff."""


class Controller(abc.ABC):
    """Brings one kind of object to where it should be."""

    # the kind whose objects are reconciled
    plural: str

    def __init__(self, cluster: Cluster, manager: Manager) -> None:
        self.cluster = cluster
        self.manager = manager
        cluster.subscribe(self.plural, self._changed)
        manager.controllers.append(self)

    def _changed(self, obj: Object, old: Object | None, gone: bool) -> None:
        meta = obj["metadata"]
        if gone:
            self.forget(obj)
        else:
            self.enqueue(meta.get("namespace", ""), meta["name"])

    def forget(self, obj: Object) -> None:  # noqa: B027
        """An object is gone: drop what is remembered of it."""

    def enqueue(self, namespace: str, name: str) -> None:
        """Reconcile an object soon."""
        self.manager.add((self, namespace, name))

    @abc.abstractmethod
    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Bring one object forward.

        Returns:
            Seconds after which to look again, or None: at the next event.
        Raises:
            Retry, ApiError: try again, later each time.
        """


Item = tuple[Controller, str, str]


class Manager:
    """The queue and its workers."""

    def __init__(self, workers: int = 1) -> None:
        self.controllers: list[Controller] = []
        self.workers = workers
        self._queue: deque[Item] = deque()
        self._queued: set[Item] = set()
        self._active: set[Item] = set()
        self._again: set[Item] = set()
        self._failures: dict[Item, int] = {}
        self._timers: dict[Item, asyncio.TimerHandle] = {}
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        for _ in range(self.workers):
            self._tasks.append(asyncio.ensure_future(self._work()))

    async def stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def settled(self) -> None:
        """Wait until nothing is queued; timers do not count."""
        await self._idle.wait()

    def add(self, item: Item) -> None:
        """Queue an item, once."""
        if item in self._active:
            self._again.add(item)
        elif item not in self._queued:
            self._queued.add(item)
            self._queue.append(item)
            self._idle.clear()
            self._wake.set()

    def add_after(self, item: Item, delay_s: float) -> None:
        """Queue an item later; the earlier of two times counts."""
        loop = asyncio.get_running_loop()
        when = loop.time() + delay_s
        timer = self._timers.get(item)
        if timer is not None:
            if timer.when() <= when:
                return
            timer.cancel()
        self._timers[item] = loop.call_at(when, self._timeout, item)

    def _timeout(self, item: Item) -> None:
        del self._timers[item]
        self.add(item)

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        turn = loop.time()
        while True:
            if not self._queue:
                self._wake.clear()
                if not self._active:
                    self._idle.set()
                await self._wake.wait()
                turn = loop.time()
                continue
            if loop.time() - turn > TURN_S:
                await asyncio.sleep(0)
                turn = loop.time()
                continue
            item = self._queue.popleft()
            self._queued.discard(item)
            self._active.add(item)
            try:
                await self._one(item)
            finally:
                self._active.discard(item)
            if item in self._again:
                self._again.discard(item)
                self.add(item)

    async def _one(self, item: Item) -> None:
        controller, namespace, name = item
        try:
            delay = await controller.reconcile(namespace, name)
        except (ApiError, Retry) as exc:
            log.debug("%s %s/%s: %s", controller.plural, namespace, name, exc)
            self._backoff(item)
            return
        except Exception:  # the top of a task: one object must not stop all
            log.exception("%s %s/%s", controller.plural, namespace, name)
            self._backoff(item)
            return
        self._failures.pop(item, None)
        if delay is not None:
            self.add_after(item, delay)

    def _backoff(self, item: Item) -> None:
        count = self._failures.get(item, 0)
        self._failures[item] = count + 1
        self.add_after(
            item, min(BACKOFF_FIRST_S * 2 ** min(count, 30), BACKOFF_LIMIT_S)
        )
