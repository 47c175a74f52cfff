# Injected refusals that do not depend on the request: a server is overloaded (429) or
# in trouble. A refusal applies to a number of requests, or to a share of all requests
# until it is cleared.
# SPDX-License-Identifier: LGPL-3.0-only
"""Requests that an API server refuses for now."""

from __future__ import annotations

import hashlib
import random
import time
from dataclasses import dataclass
from typing import Callable

from aiohttp import web

from dws_sim.errors import RETRY_AFTER_S, ApiError

_REASONS = {429: "TooManyRequests", 500: "InternalError", 401: "Unauthorized"}


@dataclass
class Refusal:
    """An answer for the next `count` requests or, with a `rate`, a share of all."""

    status: int
    count: int = 1
    rate: float = 0.0
    retry_after_s: int = RETRY_AFTER_S

    @property
    def error(self) -> ApiError:
        reason = _REASONS.get(self.status, "ServiceUnavailable")
        return ApiError(
            self.status, reason, "simulated fault", retry_after_s=self.retry_after_s
        )


class Refusals:
    """The active refusals, and clients that retried before their Retry-After.

    Args:
        seed: of random decisions.
        clock: monotonic seconds.
    """

    def __init__(
        self, seed: int = 0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._random = random.Random(seed)
        self._refusals: list[Refusal] = []
        # before when a request that was refused is not to be made again
        self._not_before: dict[bytes, float] = {}
        self.refused = 0
        self.early = 0

    def add(self, refusal: Refusal) -> None:
        self._refusals.append(refusal)

    def clear(self) -> None:
        """End all of them."""
        self._refusals.clear()

    def _due(self) -> Refusal | None:
        """The first refusal that applies to this request. Counts it down."""
        for refusal in self._refusals:
            if refusal.rate:
                if self._random.random() < refusal.rate:
                    return refusal
                continue
            refusal.count -= 1
            if refusal.count <= 0:
                self._refusals.remove(refusal)
            return refusal
        return None

    async def meet(self, request: web.Request) -> None:
        """A request has come. Raises ApiError if it is refused."""
        if not self._refusals and not self._not_before:
            return
        text = f"{request.method} {request.rel_url.raw_path_qs}\n".encode()
        key = hashlib.sha256(text + await request.read()).digest()
        now = self._clock()
        if now < self._not_before.pop(key, now):
            self.early += 1
        refusal = self._due()
        if refusal is None:
            return
        self.refused += 1
        error = refusal.error
        if error.has_retry_after:
            self._not_before[key] = now + refusal.retry_after_s
        raise error
