# Runs concurrent requests in one thread: a coroutine for each task, whose awaitables,
# such as a request, the loop starts. libcurl's "multi" interface (transport.py)
# transfers the data. The agent turns the loop in the Flux reactor.
# SPDX-License-Identifier: LGPL-3.0-only
"""A loop for coroutines that wait for answers."""

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

# Events of epoll that mean readable and writable to libcurl.
_IN = select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR
_OUT = select.EPOLLOUT | select.EPOLLERR

# Polls of the sockets in one turn.
LOOKS = 4


class Loop:
    """The coroutines and transfers of one thread.

    The owner calls turn() when `fd` is readable, and at the time `due`, which changes
    with each turn and each call. Coroutines and callbacks run inside turn().
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
        """Drop all transfers under way, without an answer."""
        for multi in list(self.multis):
            multi.close()
        self._epoll.close()

    @property
    def due(self) -> float:
        """The time of the next turn at the latest, on the monotonic clock."""
        due = min(self._timed.values(), default=math.inf)
        return min(due, self._timers[0][0]) if self._timers else due

    def call_at(self, due: float, callback: Callable[[], None]) -> None:
        heapq.heappush(self._timers, (due, next(self._order), callback))

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call a function in the next turn, outside of other callbacks."""
        self.call_at(0.0, callback)

    def spawn(self, task: Task[None]) -> None:
        """Start a task, which must not raise any exception."""
        self._resume(task, task.send, None)

    def run(self, task: Task[T]) -> T:
        """Turn until a task ends; returns its result, or raises its exception."""
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
            # Raise in the task, which would wait for ever.
            self._resume(task, task.throw, exc)

    def turn(self) -> None:
        """Handle all events without waiting. Poll LOOKS times, as the caller may take a
        while before its next turn."""
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
        """Send new requests and run due timers: a turn without polling the sockets."""
        while self.due <= time.monotonic():
            self._run_timers()

    def _run_timers(self) -> None:
        now = time.monotonic()
        for multi in [m for m, due in self._timed.items() if due <= now]:
            del self._timed[multi]
            multi.act_on_time()
        while self._timers and self._timers[0][0] <= now:
            heapq.heappop(self._timers)[2]()

    # For Multi: sockets and timeouts of libcurl

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
                pass  # closing the socket has removed it from epoll

    def time(self, multi: Multi, wait_s: float | None) -> None:
        if wait_s is None:
            self._timed.pop(multi, None)
        else:
            self._timed[multi] = time.monotonic() + wait_s


def _throw(error: Exception) -> Any:
    raise error


class Pause:
    """Suspends the coroutine that awaits it for a time, or until end()."""

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
