# The store as it was a while ago: what clients see of an API server whose cache
# lags behind.
# SPDX-License-Identifier: LGPL-3.0-only
"""Stale reads."""

from __future__ import annotations

import time

from dws_sim.errors import not_found
from dws_sim.jsontree import Object
from dws_sim.schema.resources import Resource
from dws_sim.selectors import FieldSelector, LabelSelector
from dws_sim.store import Key, Store


class Past:
    """Reads of a kind as they were some seconds ago, as far as the history of
    its events reaches. Zero seconds: as they are."""

    def __init__(self, store: Store, res: Resource, age_s: float = 0.0) -> None:
        self._store = store
        self._res = res
        self.version = store.version
        # objects that were different then; None: not there
        self._before: dict[Key, Object | None] = {}
        if age_s > 0:
            limit = time.monotonic() - age_s
            for event in reversed(store.tables[res.plural].events):
                if event.time < limit:
                    break
                self._before[event.key] = event.old
                self.version = event.version - 1

    def get(self, namespace: str, name: str) -> Object:
        """One object. Raises ApiError 404."""
        key = (namespace, name)
        if key not in self._before:
            return self._store.get(self._res, namespace, name)
        obj = self._before[key]
        if obj is None:
            raise not_found(self._res.group, self._res.plural, name)
        return obj

    def find(
        self, namespace: str | None, labels: LabelSelector, fields: FieldSelector
    ) -> list[Object]:
        """Objects in the order of namespace and name."""
        if not self._before:
            return self._store.find(self._res, namespace, labels, fields)
        objects: dict[Key, Object | None] = {
            **self._store.tables[self._res.plural].objects,
            **self._before,
        }
        return [
            obj
            for key, obj in sorted(objects.items(), key=lambda item: item[0])
            if obj is not None
            and namespace in (None, key[0])
            and labels.matches(obj)
            and fields.matches(obj)
        ]
