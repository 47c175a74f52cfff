# The object store: plays a Kubernetes API server and its etcd between the HTTP request
# and the stored object. Purely in memory and synchronous; every change is sent as an
# event. Stored objects are shared and never changed.
# SPDX-License-Identifier: LGPL-3.0-only
"""Objects, versions and events."""

from __future__ import annotations

import random
import time
import uuid
from collections import deque
from dataclasses import dataclass
from typing import Any, Callable

from dws_sim import apply, metadata
from dws_sim.errors import (
    ApiError,
    Cause,
    already_exists,
    bad_request,
    conflict,
    invalid,
    not_found,
)
from dws_sim.fields import with_managed
from dws_sim.jsontree import Object, clone, encode, now_seconds
from dws_sim.schema.resources import ALL, NAMESPACES, Resource
from dws_sim.schema.types import Schema
from dws_sim.selectors import FieldSelector, LabelSelector

Key = tuple[str, str]  # namespace ("" when cluster wide), name
FOREGROUND = "foregroundDeletion"
_NO_METADATA = ("metadata",)
_NO_SPEC = ("metadata", "status")
_BODIES = ("spec", "status", "data")
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"


class Event:
    """A change of an object."""

    __slots__ = ("version", "type", "resource", "key", "object", "old", "time", "_text")

    def __init__(
        self,
        version: int,
        type_: str,
        resource: Resource,
        key: Key,
        obj: Object,
        old: Object | None,
    ) -> None:
        self.version = version
        self.type = type_  # ADDED, MODIFIED, DELETED
        self.resource = resource
        self.key = key
        self.object = obj
        self.old = old
        self.time = time.monotonic()
        self._text: bytes | None = None

    def text(self) -> bytes:
        """The object as JSON, encoded once for all watchers."""
        if self._text is None:
            self._text = encode(with_managed(self.object))
        return self._text

    def before(self) -> Object:
        """The object before the change, with the version of the change: a watch sends
        it when the object leaves its selection."""
        obj = dict(self.old or self.object)
        obj["metadata"] = {**obj["metadata"], "resourceVersion": str(self.version)}
        return obj

    def forget_text(self) -> None:
        """Free the text once all watchers have it: history needs the object alone."""
        self._text = None


Subscriber = Callable[[Event], None]


@dataclass(frozen=True)
class Backup:
    """Content of a store at a version: by plural name, the objects by key."""

    version: int
    objects: dict[str, dict[Key, Object]]


def same_uid(one: Object, other: Object) -> bool:
    """Whether that is one object, and not two of the same name."""
    return bool(one["metadata"]["uid"] == other["metadata"]["uid"])


class Admission:
    """Webhooks of a kind, called before the store."""

    def mutate(self, obj: Object) -> None:
        """Change an object that is about to be created."""

    def validate(self, obj: Object, old: Object | None) -> None:
        """Refuse a create (old is None) or an update by raising ApiError."""


class Table:
    """The objects of a kind."""

    def __init__(self, resource: Resource, history: int) -> None:
        self.resource = resource
        self.objects: dict[Key, Object] = {}
        self.namespaces: dict[str, set[str]] = {}
        self.labels: dict[tuple[str, str], set[Key]] = {}
        self.events: deque[Event] = deque(maxlen=history)
        # A watch can start at this version or later.
        self.floor = 0
        self.subscribers: list[Subscriber] = []

    def put(self, key: Key, obj: Object) -> None:
        old = self.objects.get(key)
        self.objects[key] = obj
        if old is None:
            self.namespaces.setdefault(key[0], set()).add(key[1])
        before = old["metadata"].get("labels", {}) if old else {}
        after = obj["metadata"].get("labels", {})
        if before is not after and before != after:
            self._unlabel(key, before)
            for label in after.items():
                self.labels.setdefault(label, set()).add(key)

    def remove(self, key: Key) -> None:
        obj = self.objects.pop(key)
        names = self.namespaces[key[0]]
        names.discard(key[1])
        if not names:
            del self.namespaces[key[0]]
        self._unlabel(key, obj["metadata"].get("labels", {}))

    def _unlabel(self, key: Key, labels: dict[str, str]) -> None:
        for label in labels.items():
            keys = self.labels.get(label)
            if keys is not None:
                keys.discard(key)
                if not keys:
                    del self.labels[label]

    def keys(self, namespace: str | None, selector: LabelSelector) -> list[Key]:
        """Keys of the objects that may match, by the best index, sorted."""
        label = selector.exact()
        if label is not None:
            found = self.labels.get(label, ())
            if namespace is not None:
                return sorted(k for k in found if k[0] == namespace)
            return sorted(found)
        if namespace is not None:
            return [(namespace, n) for n in sorted(self.namespaces.get(namespace, ()))]
        return sorted(self.objects)


class Store:
    """The objects of all kinds."""

    def __init__(self, history: int = 20000, seed: int = 0) -> None:
        """history: events kept per kind for watches that start in the past."""
        self.version = 1000
        self.tables = {r.plural: Table(r, history) for r in ALL}
        self.admission: dict[str, Admission] = {}
        self.owned: dict[str, set[tuple[str, Key]]] = {}
        self.subscribers: list[Subscriber] = []
        self._seed = seed
        self._random = random.Random(seed)
        for table in self.tables.values():
            table.floor = self.version

    # -- reading ----------------------------------------------------------

    def get(self, res: Resource, namespace: str, name: str) -> Object:
        """The stored object; not to be changed. Raises ApiError 404."""
        obj = self.tables[res.plural].objects.get((namespace, name))
        if obj is None:
            raise not_found(res.group, res.plural, name)
        return obj

    def peek(self, res: Resource, namespace: str, name: str) -> Object | None:
        """The stored object or None."""
        return self.tables[res.plural].objects.get((namespace, name))

    def find(
        self,
        res: Resource,
        namespace: str | None = None,
        labels: LabelSelector | None = None,
        fields: FieldSelector | None = None,
    ) -> list[Object]:
        """Objects in the order of namespace and name."""
        table = self.tables[res.plural]
        labels = labels or LabelSelector("")
        found = (table.objects[k] for k in table.keys(namespace, labels))
        return [
            o
            for o in found
            if labels.matches(o) and (fields is None or fields.matches(o))
        ]

    # -- writing ----------------------------------------------------------

    def create(
        self,
        res: Resource,
        namespace: str,
        body: Object,
        dry_run: bool = False,
        managed: list[Object] | None = None,
    ) -> Object:
        """Store a new object, and return it; dry_run: only return it; managed: its
        entries of managed fields."""
        doubts: list[Schema] = []
        obj = self._shape(res, body, {}, doubts)
        meta = obj["metadata"]
        if "resourceVersion" in meta:
            # not a 400: the server takes it for a fault of its own
            raise ApiError(
                500, "", "resourceVersion should not be set on objects to be created"
            )
        metadata.check_place(res, namespace, obj)
        if "name" not in meta and "generateName" in meta:
            tail = "".join(self._random.choice(_SUFFIX) for _ in range(5))
            meta["name"] = meta["generateName"][:58] + tail
        name = meta.get("name", "")
        if res.namespaced:
            place = self.get(NAMESPACES, "", namespace)
            if "deletionTimestamp" in place["metadata"]:
                raise metadata.terminating(res, name, namespace)
        if res.status:
            obj.pop("status", None)
        for field in ("deletionTimestamp", "deletionGracePeriodSeconds"):
            meta.pop(field, None)
        hooks = self.admission.get(res.plural)
        if hooks is not None and not metadata.faults(meta, {}):
            hooks.mutate(obj)
        causes = self._faults(res, obj, {}, bool(doubts) or hooks is not None)
        if causes:
            raise invalid(res.group, res.kind, name, causes)
        if hooks is not None:
            hooks.validate(obj, None)
        key = (namespace if res.namespaced else "", name)
        if key in self.tables[res.plural].objects:
            raise already_exists(res.group, res.plural, name)
        meta["uid"] = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
        meta["creationTimestamp"] = now_seconds()
        meta["generation"] = 1
        if managed:
            meta["managedFields"] = managed
        if not dry_run:
            self._commit("ADDED", res, key, obj, None)
        return obj

    def update(
        self,
        res: Resource,
        namespace: str,
        name: str,
        body: Object,
        subresource: str = "",
        must_have_version: bool = False,
        dry_run: bool = False,
        managed: list[Object] | None = None,
    ) -> Object:
        """Replace an object, or its status, with the new body; dry_run: only return the
        result; managed: its entries of managed fields, None: derive them from the old
        ones.

        Returns:
            The stored object: the old one when nothing changed.
        """
        old = self.get(res, namespace, name)
        doubts: list[Schema] = []
        obj = self._shape(res, body, old, doubts)
        meta = obj["metadata"]
        if meta.setdefault("name", name) != name:
            raise bad_request(
                f"the name of the object ({meta['name']}) does not match the name "
                f"on the URL ({name})"
            )
        if body.get("metadata") is not old["metadata"]:
            metadata.check_place(res, namespace, obj)
            metadata.for_update(res, old, obj, must_have_version)
        if subresource == "status":
            status = obj.get("status")
            obj = dict(old)
            obj.pop("status", None)
            if status is not None:
                obj["status"] = status
            meta = obj["metadata"] = dict(old["metadata"])
        elif res.status:
            obj.pop("status", None)
            if "status" in old:
                obj["status"] = old["status"]
        causes = self._faults(res, obj, old, bool(doubts))
        if causes:
            raise invalid(res.group, res.kind, name, causes)
        hooks = self.admission.get(res.plural)
        if hooks is not None:
            hooks.validate(obj, old)
        meta["resourceVersion"] = old["metadata"]["resourceVersion"]
        if managed is None and "managedFields" in meta:
            managed = apply.kept(old, obj, res.body is None)
        if managed is not None:
            meta["managedFields"] = managed
            if not managed:
                del meta["managedFields"]
        if obj == old:
            return old
        if self._generation_moves(res, old, obj):
            meta["generation"] = old["metadata"]["generation"] + 1
        if dry_run:
            return obj
        key = (namespace if res.namespaced else "", name)
        if "deletionTimestamp" in meta and not meta.get("finalizers"):
            self._commit("DELETED", res, key, obj, old)
        else:
            self._commit("MODIFIED", res, key, obj, old)
        return obj

    def delete(
        self,
        res: Resource,
        namespace: str,
        name: str,
        options: Object | None = None,
    ) -> tuple[Object, bool]:
        """Delete an object, or mark it when it has finalizers. With "dryRun"
        among the options nothing happens to it.

        Returns:
            The object and whether it is gone.
        """
        old = self.get(res, namespace, name)
        options = options or {}
        wanted = options.get("preconditions") or {}
        for field in ("uid", "resourceVersion"):
            if wanted.get(field, old["metadata"][field]) != old["metadata"][field]:
                raise conflict(
                    res.group,
                    res.plural,
                    name,
                    f"Precondition failed: {field} does not match",
                )
        key = (namespace if res.namespaced else "", name)
        obj = dict(old)
        meta = obj["metadata"] = dict(old["metadata"])
        finalizers = list(meta.get("finalizers", []))
        foreground = options.get("propagationPolicy") == "Foreground"
        if foreground and "deletionTimestamp" not in meta:
            finalizers.append(FOREGROUND)
            meta["finalizers"] = finalizers
        if finalizers:
            if "deletionTimestamp" in meta:
                return old, False
            meta["deletionTimestamp"] = now_seconds()
            meta["deletionGracePeriodSeconds"] = 0
            meta["generation"] = meta.get("generation", 1) + 1
            if not options.get("dryRun"):
                self._commit("MODIFIED", res, key, obj, old)
            return obj, False
        if not options.get("dryRun"):
            self._commit("DELETED", res, key, obj, old)
        return obj, True

    # -- inside -----------------------------------------------------------

    @staticmethod
    def _shape(res: Resource, body: Any, old: Object, doubts: list[Schema]) -> Object:
        """A copy of a body with only the fields that the kind knows. Parts identical to
        those of old, the stored object, are shared. If the body may have faults, doubts
        gets an entry."""
        if not isinstance(body, dict):
            raise bad_request("the object must be a JSON object")
        kind = body.get("kind", res.kind)
        version = body.get("apiVersion", res.api_version)
        if kind != res.kind or version not in res.api_versions:
            raise bad_request(
                f"the API version in the data ({version}) does not match the "
                f"expected API version ({res.api_version})"
                if kind == res.kind
                else f"the kind in the data ({kind}) does not match {res.kind}"
            )
        obj: Object = {"apiVersion": res.api_version, "kind": res.kind}
        obj["metadata"] = metadata.normalise(
            body.get("metadata", {}), old.get("metadata", {})
        )
        rest = {k: v for k, v in body.items() if k not in obj}
        if res.body is None:
            obj.update((k, v if v is old.get(k) else clone(v)) for k, v in rest.items())
        else:
            # prune() copies objects and arrays on the way
            obj.update(res.body.prune(rest, old, doubts))
        for key in _BODIES:
            # equal parts are shared: less memory, and quick to compare
            if key in obj and key in old and obj[key] == old[key]:
                obj[key] = old[key]
        return obj

    @staticmethod
    def _faults(res: Resource, obj: Object, old: Object, in_doubt: bool) -> list[Cause]:
        """Faults of an object. Parts that were stored before, and a body that is not in
        doubt, have none."""
        causes = metadata.faults(obj["metadata"], old.get("metadata", {}))
        if res.body is not None and in_doubt:
            for key, sub in res.body.properties.items():
                if key in obj:
                    sub.faults(obj[key], key, causes, old.get(key))
                elif key in res.body.required:
                    causes.append(Cause(key, "Required value", "FieldValueRequired"))
        return causes

    @staticmethod
    def _generation_moves(res: Resource, old: Object, new: Object) -> bool:
        ignored = _NO_SPEC if res.status else _NO_METADATA
        for key in old.keys() | new.keys():
            if key not in ignored:
                was, now = old.get(key), new.get(key)
                if was is not now and was != now:
                    return True
        return False

    def _commit(
        self, type_: str, res: Resource, key: Key, obj: Object, old: Object | None
    ) -> None:
        table = self.tables[res.plural]
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        if type_ != "MODIFIED" or self._has_new_owners(obj, old):
            before = metadata.owner_uids(old) if old else []
            after = metadata.owner_uids(obj) if type_ != "DELETED" else []
            self._change_owners((res.plural, key), before, after)
        if type_ == "DELETED":
            table.remove(key)
        else:
            table.put(key, obj)
        event = Event(self.version, type_, res, key, obj, old)
        if len(table.events) == table.events.maxlen:
            table.floor = table.events[0].version
        table.events.append(event)
        for subscriber in [*table.subscribers, *self.subscribers]:
            subscriber(event)
        event.forget_text()

    @staticmethod
    def _has_new_owners(obj: Object, old: Object | None) -> bool:
        was = old["metadata"].get("ownerReferences") if old else None
        return obj["metadata"].get("ownerReferences") is not was

    def _change_owners(
        self, ref: tuple[str, Key], before: list[str], after: list[str]
    ) -> None:
        for uid in before:
            owned = self.owned.get(uid)
            if owned is not None:
                owned.discard(ref)
                if not owned:
                    del self.owned[uid]
        for uid in after:
            self.owned.setdefault(uid, set()).add(ref)

    def restore(self, res: Resource, key: Key, obj: Object) -> None:
        """Put an object of an earlier life back, as it was."""
        self.tables[res.plural].put(key, obj)
        for uid in metadata.owner_uids(obj):
            self.owned.setdefault(uid, set()).add((res.plural, key))

    def resume(self, version: int) -> None:
        """Continue from a version after restore(): send all objects to the subscribers
        in this process; watches cannot start before that version."""
        self.version = version
        # no name or uid is generated twice
        self._random.seed(f"{self._seed} {version}")
        for table in self.tables.values():
            table.floor = version
        for table in self.tables.values():
            for key, obj in list(table.objects.items()):
                event = Event(version, "ADDED", table.resource, key, obj, None)
                for subscriber in [*table.subscribers, *self.subscribers]:
                    subscriber(event)

    def backup(self) -> Backup:
        """A copy of the present content."""
        objects = {plural: dict(table.objects) for plural, table in self.tables.items()}
        return Backup(self.version, objects)

    def go_back(self, backup: Backup) -> None:
        """Act like an etcd to which a backup was restored: later changes are lost, and
        versions continue from the backup's. Subscribers in this process get each
        difference; the caller has to end watches."""
        self.version = backup.version
        for plural, table in self.tables.items():
            table.events.clear()
            table.floor = self.version
            then = backup.objects[plural]
            for key, obj in list(table.objects.items()):
                if key not in then or not same_uid(then[key], obj):
                    table.remove(key)
                    self._tell("DELETED", table, key, obj, None)
            for key, obj in then.items():
                old = table.objects.get(key)
                if old is not obj:
                    table.put(key, obj)
                    self._tell("MODIFIED" if old else "ADDED", table, key, obj, old)

    def _tell(
        self, type_: str, table: Table, key: Key, obj: Object, old: Object | None
    ) -> None:
        """Notify subscribers of a change that is in no history."""
        before = old or (obj if type_ == "DELETED" else None)
        self._change_owners(
            (table.resource.plural, key),
            metadata.owner_uids(before) if before else [],
            metadata.owner_uids(obj) if type_ != "DELETED" else [],
        )
        event = Event(self.version, type_, table.resource, key, obj, old)
        for subscriber in [*table.subscribers, *self.subscribers]:
            subscriber(event)

    def expire(self) -> None:
        """Forget the past: older watches and continue tokens get 410."""
        for table in self.tables.values():
            table.events.clear()
            table.floor = self.version

    def since(self, res: Resource, version: int) -> list[Event]:
        """The events of a kind after a version.

        Raises:
            ApiError: 410, that is too long ago.
        """
        table = self.tables[res.plural]
        if version < table.floor:
            raise ApiError(
                410,
                "Expired",
                f"too old resource version: {version} ({table.floor})",
            )
        out: list[Event] = []
        for event in reversed(table.events):
            if event.version <= version:
                break
            out.append(event)
        out.reverse()
        return out
