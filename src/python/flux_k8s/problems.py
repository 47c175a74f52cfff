# Logs each problem once and then at growing intervals with a count, however many
# objects it affects: an outage of an hour takes a few lines, not one per request.
# SPDX-License-Identifier: LGPL-3.0-only
"""Log lines that cannot become a flood."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Callable

REMIND_FIRST_S = 60.0
REMIND_CAP_S = 3600.0


@dataclass
class _Problem:
    count: int = 0
    sufferers: set[Hashable] = field(default_factory=set)
    remind_at: float = 0.0
    remind_s: float = REMIND_FIRST_S


class Problems:
    """The present problems and the objects that they affect. For any thread.

    Args:
        logger: receives the lines.
        clock: monotonic seconds.
    """

    def __init__(
        self, logger: logging.Logger, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._logger = logger
        self._clock = clock
        self._lock = threading.Lock()
        self._problems: dict[str, _Problem] = {}
        self._problem_of: dict[Hashable, str] = {}

    def note(self, problem: str, sufferer: Hashable, text: str) -> None:
        """Record a failure. Log the first of a problem at once; count the others, and
        log their number at growing intervals.

        Args:
            problem: identifies the cause.
            sufferer: the affected object, until clear().
            text: the log line.
        """
        now = self._clock()
        with self._lock:
            before = self._problem_of.get(sufferer)
            if before is not None and before != problem:
                self._clear(sufferer)
            self._problem_of[sufferer] = problem
            entry = self._problems.setdefault(problem, _Problem())
            entry.count += 1
            entry.sufferers.add(sufferer)
            if entry.count == 1:
                entry.remind_at = now + entry.remind_s
                self._logger.warning("%s (will be repeated)", text)
            elif now >= entry.remind_at:
                entry.remind_s = min(REMIND_CAP_S, entry.remind_s * 2.0)
                entry.remind_at = now + entry.remind_s
                self._logger.warning(
                    "%s (%d times by now, %d objects)",
                    text,
                    entry.count,
                    len(entry.sufferers),
                )

    def clear(self, sufferer: Hashable) -> None:
        """Note a success. The problem ends with its last sufferer."""
        with self._lock:
            self._clear(sufferer)

    def _clear(self, sufferer: Hashable) -> None:
        problem = self._problem_of.pop(sufferer, None)
        if problem is None:
            return
        entry = self._problems[problem]
        entry.sufferers.discard(sufferer)
        if not entry.sufferers:
            del self._problems[problem]
            self._logger.warning("%s: over after %d failures", problem, entry.count)
