# Limits the write requests of a controller, as its Kubernetes client does (QPS and
# burst). Reads come from a cache and are free.
# SPDX-License-Identifier: LGPL-3.0-only
"""The request limit of a controller's client."""

from __future__ import annotations

import asyncio

from dws_sim.controllers.cluster import Cluster, Handler
from dws_sim.faults import Faults
from dws_sim.jsontree import Object

# Requests that need not wait after a time without any.
RESERVE = 30


class Bucket:
    """Token bucket: computes the wait before each request."""

    def __init__(self) -> None:
        # when all requests so far are through, without the reserve
        self._due = float("-inf")

    def wait_s(self, now: float, rate: float) -> float:
        """Queue a request. Returns the seconds that it has to wait.

        Args:
            rate: requests in a second.
        """
        self._due = max(self._due, now - RESERVE / rate) + 1 / rate
        return max(0.0, self._due - now)


class Paced(Cluster):
    """A cluster whose writes are limited."""

    def __init__(self, cluster: Cluster, faults: Faults) -> None:
        self._cluster, self._faults = cluster, faults
        self._bucket = Bucket()

    async def _turn(self) -> None:
        rate = self._faults.requests_per_s
        if rate:
            now = asyncio.get_running_loop().time()
            wait_s = self._bucket.wait_s(now, rate)
            if wait_s:
                await asyncio.sleep(wait_s)

    async def get(self, plural: str, namespace: str, name: str) -> Object | None:
        return await self._cluster.get(plural, namespace, name)

    async def find(
        self,
        plural: str,
        labels: dict[str, str] | None = None,
        namespace: str | None = None,
    ) -> list[Object]:
        return await self._cluster.find(plural, labels, namespace)

    async def create(self, plural: str, obj: Object) -> Object:
        if self._faults.requests_per_s:
            # the cache shows an existing object
            meta = obj["metadata"]
            known = await self.get(plural, meta.get("namespace", ""), meta["name"])
            if known is not None:
                return known
        await self._turn()
        return await self._cluster.create(plural, obj)

    async def update(self, plural: str, obj: Object) -> Object:
        await self._turn()
        return await self._cluster.update(plural, obj)

    async def update_status(self, plural: str, obj: Object) -> Object:
        await self._turn()
        return await self._cluster.update_status(plural, obj)

    async def delete(self, plural: str, namespace: str, name: str) -> bool:
        await self._turn()
        return await self._cluster.delete(plural, namespace, name)

    def subscribe(self, plural: str, handler: Handler) -> None:
        self._cluster.subscribe(plural, handler)
