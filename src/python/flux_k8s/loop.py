# Requests side by side in one thread. A coroutine stands for what is to be done, one
# step after the other; what it waits for, a request say, can be started by a loop.
# libcurl's "multi" interface (transport.py) does the work.
# SPDX-License-Identifier: LGPL-3.0-only
"""Coroutines that wait for answers."""

from __future__ import annotations

import heapq
import itertools
import math
import select
import time
import weakref
from collections.abc import Coroutine, Generator
from typing import Any, Callable, TypeVar

from flux_k8s.transport import Done, Multi, NoAnswer, Waited

T = TypeVar("T")
Task = Coroutine[Waited, Any, T]

# How libcurl is told what epoll has seen.
_IN = select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR
_OUT = select.EPOLLOUT | select.EPOLLERR

# How often a turn looks at what has come.
LOOKS = 4


class Loop:
    """What is under way. Of one thread.

    Whoever has it calls turn() when `fd` can be read, and when `due`, which
    changes with each turn and each call, has come. Everything else happens in there.
    """

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self.fd = self._epoll.fileno()
        self.multis: weakref.WeakSet[Multi] = weakref.WeakSet()
        self._by_socket: dict[int, Multi] = {}
        self._timed: dict[Multi, float] = {}
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def close(self) -> None:
        """What is under way is not heard of again."""
        for multi in list(self.multis):
            multi.close()
        self._epoll.close()

    @property
    def due(self) -> float:
        """When to turn at the latest, on the monotonic clock."""
        due = min(self._timed.values(), default=math.inf)
        return min(due, self._timers[0][0]) if self._timers else due

    def call_at(self, due: float, callback: Callable[[], None]) -> None:
        heapq.heappush(self._timers, (due, next(self._order), callback))

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Have it called in a turn, and not in the middle of something else."""
        self.call_at(0.0, callback)

    def spawn(self, task: Task[None]) -> None:
        """Begin with a task, which must not raise anything."""
        self._resume(task, task.send, None)

    def run(self, task: Task[T]) -> T:
        """Turn until a task has come to its end."""
        ended: list[Callable[[], T]] = []

        async def hold() -> None:
            try:
                result = await task
                ended.append(lambda: result)
            except Exception as exc:
                error = exc
                ended.append(lambda: _throw(error))

        self.spawn(hold())
        while not ended:
            wait_s = self.due - time.monotonic()
            self._epoll.poll(None if wait_s == math.inf else max(0.0, wait_s))
            self.turn()
        return ended[0]()

    def _resume(
        self, task: Task[None], step: Callable[[Any], Waited], what: Any
    ) -> None:
        try:
            waited = step(what)
        except StopIteration:
            return

        def done(answer: Any) -> None:
            failed = isinstance(answer, NoAnswer)
            self._resume(task, task.throw if failed else task.send, answer)

        try:
            waited.start(self, done)
        except Exception as exc:
            # It would wait for ever.
            self._resume(task, task.throw, exc)

    def turn(self) -> None:
        """Do all that can be done without waiting, and what has come meanwhile: who
        calls this has more to do before it can again."""
        for _ in range(LOOKS):
            seen = self._epoll.poll(0)
            for fd, events in seen:
                multi = self._by_socket.get(fd)
                if multi is not None:
                    multi.act(fd, bool(events & _IN), bool(events & _OUT))
            self.begin()
            if not seen:
                return

    def begin(self) -> None:
        """Send what is to be sent, and do all else that is due: a turn without a
        look at what has come."""
        while self.due <= time.monotonic():
            self._run_timers()

    def _run_timers(self) -> None:
        now = time.monotonic()
        for multi in [m for m, due in self._timed.items() if due <= now]:
            del self._timed[multi]
            multi.act_on_time()
        while self._timers and self._timers[0][0] <= now:
            heapq.heappop(self._timers)[2]()

    # For Multi: what libcurl wants to be told of

    def watch(self, multi: Multi, fd: int, readable: bool, writable: bool) -> None:
        events = select.EPOLLIN * readable | select.EPOLLOUT * writable
        if fd in self._by_socket:
            self._epoll.modify(fd, events)
        else:
            self._epoll.register(fd, events)
        self._by_socket[fd] = multi

    def unwatch(self, fd: int) -> None:
        if self._by_socket.pop(fd, None) is not None:
            try:
                self._epoll.unregister(fd)
            except OSError:
                pass  # it is closed, and with that not watched any more

    def time(self, multi: Multi, wait_s: float | None) -> None:
        if wait_s is None:
            self._timed.pop(multi, None)
        else:
            self._timed[multi] = time.monotonic() + wait_s


def _throw(error: Exception) -> Any:
    raise error


class Pause:
    """A coroutine that awaits it goes on after a time, or when it is ended."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._loop: Loop | None = None
        self._done: Done | None = None

    def __await__(self) -> Generator[Pause, None, None]:
        yield self

    def start(self, loop: Loop, done: Done) -> None:
        self._loop, self._done = loop, done
        loop.call_at(time.monotonic() + self._seconds, self._go_on)

    def end(self) -> None:
        if self._loop is not None:
            self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(None)
