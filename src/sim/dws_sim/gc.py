# Garbage collection by owner references: an object whose owners are all gone
# is deleted; an owner deleted in the foreground waits for what it owns.
# SPDX-License-Identifier: LGPL-3.0-only
"""The garbage collector."""

from __future__ import annotations

import asyncio
from collections import deque

from dws_sim.errors import ApiError
from dws_sim.metadata import owner_uids
from dws_sim.schema.resources import NAMESPACES, RESOURCES
from dws_sim.store import FOREGROUND, Event, Key, Store


class Collector:
    """Follows the store's events. Work is done in a later turn of the event
    loop, as in a real cluster: the client has its answer first."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._alive: dict[str, tuple[str, Key]] = {}
        self._work: deque[tuple[str, str, str]] = deque()
        self._queued: set[tuple[str, str, str]] = set()
        store.subscribers.append(self._event)

    def _event(self, event: Event) -> None:
        uid = event.object["metadata"]["uid"]
        if event.type == "DELETED":
            self._alive.pop(uid, None)
            if event.resource is NAMESPACES:
                self._push("namespace", event.key[1], "")
            if uid in self._store.owned:
                self._push("orphans", uid, "")
            for owner in owner_uids(event.object):
                self._push("foreground", owner, "")
            return
        if event.type == "ADDED":
            self._alive[uid] = (event.resource.plural, event.key)
            if event.object["metadata"].get("ownerReferences"):
                self._push("orphan", event.resource.plural, "/".join(event.key))
        if FOREGROUND in event.object["metadata"].get("finalizers", ()):
            self._push("foreground", uid, "")

    def _push(self, what: str, first: str, second: str) -> None:
        item = (what, first, second)
        if item not in self._queued:
            self._queued.add(item)
            if not self._work:
                asyncio.get_running_loop().call_soon(self._run)
            self._work.append(item)

    def _run(self) -> None:
        for _ in range(len(self._work)):
            item = self._work.popleft()
            self._queued.discard(item)
            what, first, second = item
            if what == "orphans":
                for plural, key in list(self._store.owned.get(first, ())):
                    self._check(plural, key)
            elif what == "orphan":
                namespace, _, name = second.partition("/")
                self._check(first, (namespace, name))
            elif what == "namespace":
                self._empty(first)
            else:
                self._foreground(first)
        if self._work:
            asyncio.get_running_loop().call_soon(self._run)

    def _delete(self, plural: str, key: Key) -> None:
        try:
            self._store.delete(RESOURCES[plural], *key)
        except ApiError as exc:
            if exc.code != 404:
                raise

    def _check(self, plural: str, key: Key) -> None:
        obj = self._store.peek(RESOURCES[plural], *key)
        if obj is None:
            return
        if not any(uid in self._alive for uid in owner_uids(obj)):
            self._delete(plural, key)

    def _empty(self, namespace: str) -> None:
        for table in self._store.tables.values():
            if table.resource.namespaced:
                for name in sorted(table.namespaces.get(namespace, ())):
                    self._delete(table.resource.plural, (namespace, name))

    def _foreground(self, uid: str) -> None:
        where = self._alive.get(uid)
        if where is None:
            return
        res, key = RESOURCES[where[0]], where[1]
        owner = self._store.peek(res, *key)
        if owner is None or FOREGROUND not in owner["metadata"].get("finalizers", ()):
            return
        left = False
        for plural, child in list(self._store.owned.get(uid, ())):
            obj = self._store.get(RESOURCES[plural], *child)
            refs = obj["metadata"]["ownerReferences"]
            left |= any(r["uid"] == uid and r.get("blockOwnerDeletion") for r in refs)
            self._delete(plural, child)
        if left and uid in self._store.owned:
            return
        body = dict(owner)
        body["metadata"] = dict(owner["metadata"])
        body["metadata"]["finalizers"] = [
            f for f in owner["metadata"]["finalizers"] if f != FOREGROUND
        ]
        self._store.update(res, key[0], key[1], body)
