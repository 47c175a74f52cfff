# Who waits because the API server is in trouble need not wait any longer once
# somebody has got through to it again.
# SPDX-License-Identifier: LGPL-3.0-only
"""The end of an outage, for all who wait for it."""

from __future__ import annotations

import math
import time
from typing import Callable

# A server that starts refuses (403) what it allows as soon as it has read its
# rules: so long after it was in trouble.
SETTLE_S = 30.0


class Comeback:
    """What those who talk to one API server tell each other.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._trouble_at = -math.inf
        self._listeners: list[Callable[[], None]] = []

    @property
    def settling(self) -> bool:
        """Whether it has been away a moment ago."""
        return self._clock() - self._trouble_at < SETTLE_S

    def listen(self, listener: Callable[[], None]) -> None:
        """Have this called, by whoever gets through, when the server is back."""
        self._listeners.append(listener)

    def lost(self) -> None:
        """A connection was lost, or could not be made; or there was no answer
        but that the server is in trouble."""
        self._trouble_at = self._clock()

    def back(self) -> None:
        """Something has succeeded that had failed before."""
        for listener in self._listeners:
            listener()
