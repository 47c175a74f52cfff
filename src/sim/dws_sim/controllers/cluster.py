# The interface of controllers to an API server, and its implementation on the store of
# this process. RemoteCluster (remote.py) implements it for a real server.
# SPDX-License-Identifier: LGPL-3.0-only
"""The controllers' view of the API."""

from __future__ import annotations

import abc
from typing import Callable, Optional

from dws_sim.errors import ApiError
from dws_sim.jsontree import Object
from dws_sim.schema.resources import RESOURCES
from dws_sim.selectors import LabelSelector
from dws_sim.store import Event, Store

# called with the new object, and the old one or None; True: it is gone
Handler = Callable[[Object, Optional[Object], bool], None]


class Cluster(abc.ABC):
    """Returned objects are shared: edit() one to change it. Callers must not change
    an object after passing it here."""

    @abc.abstractmethod
    async def get(self, plural: str, namespace: str, name: str) -> Object | None:
        """An object, or None."""

    @abc.abstractmethod
    async def find(
        self,
        plural: str,
        labels: dict[str, str] | None = None,
        namespace: str | None = None,
    ) -> list[Object]:
        """Objects by labels."""

    @abc.abstractmethod
    async def create(self, plural: str, obj: Object) -> Object:
        """Create an object, or return an existing one of that name."""

    @abc.abstractmethod
    async def update(self, plural: str, obj: Object) -> Object:
        """Replace; ApiError 409 when it has changed since it was read."""

    @abc.abstractmethod
    async def update_status(self, plural: str, obj: Object) -> Object:
        """Replace the status alone."""

    @abc.abstractmethod
    async def delete(self, plural: str, namespace: str, name: str) -> bool:
        """Delete; returns False when it was not there."""

    @abc.abstractmethod
    def subscribe(self, plural: str, handler: Handler) -> None:
        """Hear of every change of a kind, from now on."""


class LocalCluster(Cluster):
    """The store in this process. No call ever waits."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def get(self, plural: str, namespace: str, name: str) -> Object | None:
        return self.store.peek(RESOURCES[plural], namespace, name)

    async def find(
        self,
        plural: str,
        labels: dict[str, str] | None = None,
        namespace: str | None = None,
    ) -> list[Object]:
        selector = LabelSelector.of(labels or {})
        return self.store.find(RESOURCES[plural], namespace, selector)

    async def create(self, plural: str, obj: Object) -> Object:
        namespace = obj["metadata"].get("namespace", "")
        try:
            return self.store.create(RESOURCES[plural], namespace, obj)
        except ApiError as exc:
            if exc.reason != "AlreadyExists":
                raise
        return self.store.get(RESOURCES[plural], namespace, obj["metadata"]["name"])

    async def update(self, plural: str, obj: Object) -> Object:
        return self._update(plural, obj, "")

    async def update_status(self, plural: str, obj: Object) -> Object:
        return self._update(plural, obj, "status")

    def _update(self, plural: str, obj: Object, subresource: str) -> Object:
        meta = obj["metadata"]
        namespace = meta.get("namespace", "")
        return self.store.update(
            RESOURCES[plural], namespace, meta["name"], obj, subresource, True
        )

    async def delete(self, plural: str, namespace: str, name: str) -> bool:
        try:
            self.store.delete(RESOURCES[plural], namespace, name)
        except ApiError as exc:
            if exc.code != 404:
                raise
            return False
        return True

    def subscribe(self, plural: str, handler: Handler) -> None:
        def forward(event: Event) -> None:
            handler(event.object, event.old, event.type == "DELETED")

        self.store.tables[plural].subscribers.append(forward)
