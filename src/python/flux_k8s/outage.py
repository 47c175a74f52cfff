# Ends retry pauses early: after an outage of the API server, the first request that
# succeeds wakes the watches and commands that wait to be repeated.
# SPDX-License-Identifier: LGPL-3.0-only
"""The end of an outage, for all who wait for it."""

from __future__ import annotations

import math
import time
from typing import Callable

# A starting API server refuses (403) permitted requests until it has read its rules:
# for this time after an outage 403 is transient.
SETTLE_S = 30.0


class Outage:
    """The health of one API server, shared by its watches and commands.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lost_at = -math.inf
        self._listeners: list[Callable[[], None]] = []

    @property
    def settling(self) -> bool:
        """Whether the API server may still be starting after an outage."""
        return self._clock() - self._lost_at < SETTLE_S

    def listen(self, listener: Callable[[], None]) -> None:
        """Register a function to call when the server is back."""
        self._listeners.append(listener)

    def lost(self) -> None:
        """Note that a connection failed, or that the server reported an internal
        error."""
        self._lost_at = self._clock()

    def ended(self) -> None:
        """Call the listeners: a request has succeeded that had failed before."""
        for listener in self._listeners:
            listener()
