# The controllers' way to an API server in another process: a copy of every
# kind they use, kept by list and watch, and writes over HTTP.
# SPDX-License-Identifier: LGPL-3.0-only
"""A Cluster behind a Kubernetes API."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

import aiohttp

from dws_sim.controllers.cluster import Cluster, Handler
from dws_sim.errors import ApiError
from dws_sim.jsontree import Object
from dws_sim.schema.resources import RESOURCES, Resource
from dws_sim.selectors import LabelSelector
from dws_sim.store import Key, Table

log = logging.getLogger("dws-sim.remote")

PAGE = 500
WATCH_S = 300
PAUSE_FIRST_S = 0.1
PAUSE_LIMIT_S = 5.0
# Without this policy, some built-in kinds of Kubernetes would orphan their dependents.
DELETE_OPTIONS = {
    "apiVersion": "v1",
    "kind": "DeleteOptions",
    "propagationPolicy": "Background",
}
# Number of uids of deleted objects to remember: the response to a write can arrive
# after the DELETED event.
REMEMBERED = 10000


def _key(obj: Object) -> Key:
    meta = obj["metadata"]
    return meta.get("namespace", ""), meta["name"]


class _Copy:
    """The cache of one kind."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.table = Table(resource, 0)
        self.handlers: list[Handler] = []
        self.gone: deque[str] = deque(maxlen=REMEMBERED)
        self.version = ""

    def put(self, obj: Object, gone: bool = False) -> None:
        """Take in a version of an object, unless a newer one is known."""
        key, meta = _key(obj), obj["metadata"]
        old = self.table.objects.get(key)
        known = old is not None and old["metadata"]["uid"] == meta["uid"]
        if gone:
            self.gone.append(meta["uid"])
            if known:
                self._remove(key, obj)
            return
        if meta["uid"] in self.gone:
            return
        if old is not None and known:
            before = old["metadata"]["resourceVersion"]
            if int(before) >= int(meta["resourceVersion"]):
                return
        elif old is not None:
            self._remove(key, old)
            old = None
        meta.pop("managedFields", None)
        obj.setdefault("apiVersion", self.resource.api_version)
        obj.setdefault("kind", self.resource.kind)
        self.table.put(key, obj)
        self._tell(obj, old, False)

    def _remove(self, key: Key, obj: Object) -> None:
        old = self.table.objects[key]
        self.table.remove(key)
        self._tell(obj, old, True)

    def replace(self, objects: list[Object], version: str) -> None:
        """Take in a list; what is missing from it was deleted meanwhile."""
        listed = {o["metadata"]["uid"] for o in objects}
        for obj in list(self.table.objects.values()):
            meta = obj["metadata"]
            if meta["uid"] not in listed and int(meta["resourceVersion"]) <= int(
                version
            ):
                self.put(obj, gone=True)
        for obj in objects:
            self.put(obj)
        self.version = version

    def _tell(self, obj: Object, old: Object | None, gone: bool) -> None:
        for handler in self.handlers:
            handler(obj, old, gone)


class RemoteCluster(Cluster):
    """The API server at a URL. Reads come from the copies: they can be
    behind, but never behind this process's own writes."""

    def __init__(self, session: aiohttp.ClientSession, plurals: Iterable[str]) -> None:
        """
        Args:
            session: has the server as its base URL, and the credentials.
            plurals: the kinds to follow; others are read one by one.
        """
        self._session = session
        self._copies = {p: _Copy(RESOURCES[p]) for p in plurals}
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Fetch the copies and follow their changes.

        Raises:
            ApiError: a kind cannot be listed.
        """
        for copy in self._copies.values():
            await self._list(copy)
        for copy in self._copies.values():
            self._tasks.append(asyncio.ensure_future(self._follow(copy)))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    def known(self, plural: str) -> list[Object]:
        """The cached objects of a kind that is watched."""
        return list(self._copies[plural].table.objects.values())

    # -- Cluster ----------------------------------------------------------

    async def get(self, plural: str, namespace: str, name: str) -> Object | None:
        copy = self._copies.get(plural)
        if copy is not None:
            return copy.table.objects.get((namespace, name))
        try:
            return await self._send("GET", self._path(plural, namespace, name))
        except ApiError as exc:
            if exc.code != 404:
                raise
            return None

    async def find(
        self,
        plural: str,
        labels: dict[str, str] | None = None,
        namespace: str | None = None,
    ) -> list[Object]:
        selector = LabelSelector.of(labels or {})
        table = self._copies[plural].table
        found = (table.objects[k] for k in table.keys(namespace, selector))
        return [obj for obj in found if selector.matches(obj)]

    async def create(self, plural: str, obj: Object) -> Object:
        res, meta = RESOURCES[plural], obj["metadata"]
        namespace = meta.get("namespace", "")
        body = {"apiVersion": res.api_version, "kind": res.kind, **obj}
        try:
            return self._took(
                plural, await self._send("POST", self._path(plural, namespace), body)
            )
        except ApiError as exc:
            if exc.reason != "AlreadyExists":
                raise
        return self._took(
            plural,
            await self._send("GET", self._path(plural, namespace, meta["name"])),
        )

    async def update(self, plural: str, obj: Object) -> Object:
        return await self._update(plural, obj)

    async def update_status(self, plural: str, obj: Object) -> Object:
        return await self._update(plural, obj, "status")

    async def delete(self, plural: str, namespace: str, name: str) -> bool:
        try:
            path = self._path(plural, namespace, name)
            answer = await self._send("DELETE", path, DELETE_OPTIONS)
        except ApiError as exc:
            if exc.code != 404:
                raise
            return False
        if answer.get("kind") == RESOURCES[plural].kind:
            self._took(plural, answer)
            return True
        copy = self._copies.get(plural)
        old = copy.table.objects.get((namespace, name)) if copy else None
        if copy and old and old["metadata"]["uid"] == answer["details"]["uid"]:
            copy.put(old, gone=True)
        return True

    def subscribe(self, plural: str, handler: Handler) -> None:
        self._copies[plural].handlers.append(handler)

    async def install(self, path: str, obj: Object) -> Object:
        """Create an object at a path of the API, or bring it up to date."""
        at = f"{path}/{obj['metadata']['name']}"
        try:
            return await self._send("POST", path, obj)
        except ApiError as exc:
            if exc.reason != "AlreadyExists":
                raise
        old = await self._send("GET", at)
        new = {**obj, "metadata": {**old["metadata"], **obj["metadata"]}}
        return await self._send("PUT", at, new)

    async def read(self, path: str) -> Object:
        """GET a path.

        Raises:
            ApiError: refused, not there, or the server cannot be reached.
        """
        return await self._send("GET", path)

    async def _update(self, plural: str, obj: Object, subresource: str = "") -> Object:
        path = self._path(plural, *_key(obj), subresource)
        return self._took(plural, await self._send("PUT", path, obj))

    def _took(self, plural: str, obj: Object) -> Object:
        """Take in the answer to a write."""
        copy = self._copies.get(plural)
        if copy is not None:
            meta = obj["metadata"]
            gone = meta.get("deletionGracePeriodSeconds") == 0
            copy.put(obj, gone and not meta.get("finalizers"))
        return obj

    # -- HTTP -------------------------------------------------------------

    @staticmethod
    def _path(plural: str, namespace: str = "", name: str = "", sub: str = "") -> str:
        res = RESOURCES[plural]
        parts = ["/apis" if res.group else "/api", res.api_version]
        if namespace and res.namespaced:
            parts += ["namespaces", namespace]
        parts += [p for p in (plural, name, sub) if p]
        return "/".join(parts)

    async def _send(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        params: Mapping[str, str] | None = None,
    ) -> Object:
        """One request; the answer is an object.

        Raises:
            ApiError: refused, or 503 when the server cannot be reached.
        """
        try:
            async with self._session.request(
                method, path, json=body, params=params
            ) as response:
                text = await response.read()
        except (aiohttp.ClientError, OSError, asyncio.TimeoutError) as exc:
            raise ApiError(503, "ServiceUnavailable", str(exc)) from exc
        return self._answer(response.status, text)

    @staticmethod
    def _answer(code: int, text: bytes) -> Object:
        try:
            value: Any = json.loads(text)
        except ValueError:
            value = {"message": text.decode(errors="replace")}
        if code < 300 and isinstance(value, dict):
            return value
        raise ApiError(
            code,
            str(value.get("reason", "")),
            str(value.get("message", "")),
            value.get("details"),
        )

    async def _list(self, copy: _Copy) -> None:
        path = self._path(copy.resource.plural)
        objects: list[Object] = []
        more: dict[str, str] = {"limit": str(PAGE)}
        while True:
            page = await self._send("GET", path, params=more)
            objects += page["items"]
            token = page["metadata"].get("continue")
            if not token:
                break
            more["continue"] = token
        copy.replace(objects, page["metadata"]["resourceVersion"])

    async def _follow(self, copy: _Copy) -> None:
        pause = PAUSE_FIRST_S
        while True:
            try:
                if not copy.version:
                    await self._list(copy)
                await self._watch(copy)
                pause = PAUSE_FIRST_S
                continue
            except ApiError as exc:
                if exc.code == 410:
                    copy.version = ""
                log.debug("watch of %s: %s", copy.resource, exc)
            except (aiohttp.ClientError, OSError, asyncio.TimeoutError) as exc:
                log.debug("watch of %s: %s", copy.resource, exc)
            await asyncio.sleep(pause)
            pause = min(2 * pause, PAUSE_LIMIT_S)

    async def _watch(self, copy: _Copy) -> None:
        params = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": copy.version,
            "timeoutSeconds": str(WATCH_S),
        }
        path = self._path(copy.resource.plural)
        limit = aiohttp.ClientTimeout(total=None, sock_read=WATCH_S + 30)
        async with self._session.get(path, params=params, timeout=limit) as response:
            if response.status != 200:
                self._answer(response.status, await response.read())
            rest = b""
            # lines can be longer than the reader's own limit
            async for chunk in response.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._event(copy, json.loads(line))

    def _event(self, copy: _Copy, event: Object) -> None:
        obj = event["object"]
        if event["type"] == "ERROR":
            raise ApiError(
                obj.get("code", 500), obj.get("reason", ""), obj.get("message", "")
            )
        version = obj["metadata"]["resourceVersion"]
        if event["type"] != "BOOKMARK":
            copy.put(obj, event["type"] == "DELETED")
        copy.version = version
