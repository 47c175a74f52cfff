# The HTTP face of the store: paths, verbs, bodies, lists, watches, errors.
# SPDX-License-Identifier: LGPL-3.0-only
"""The API server."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import random
import secrets
from collections import OrderedDict
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, Callable
from urllib.parse import unquote

from aiohttp import web

from dws_sim import discovery, errors, review
from dws_sim.convert import as_sent, from_version, to_version
from dws_sim.errors import ApiError
from dws_sim.jsontree import Object, decode, encode, number
from dws_sim.past import Past
from dws_sim.patch import json_patch, merge_patch
from dws_sim.rbac import User, Users, refusal
from dws_sim.schema.resources import NAMESPACES, Resource, find
from dws_sim.selectors import FieldSelector, LabelSelector
from dws_sim.store import Store
from dws_sim.watch import Watch

log = logging.getLogger("dws-sim.http")

MAX_BODY_BYTES = 3 << 20
# Snapshots of unfinished lists that are kept for "continue".
MAX_SNAPSHOTS = 64
BOOKMARK_INTERVAL_S = 10.0
# A watch without a timeout ends after once to twice as long.
WATCH_TIMEOUT_S = 1800.0
_PATCHES = {
    "application/merge-patch+json": merge_patch,
    "application/json-patch+json": json_patch,
}
Extension = Callable[[web.Request, User], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Target:
    """What a URL is about; namespace None: all of them."""

    resource: Resource
    version: str
    namespace: str | None
    name: str
    subresource: str

    @property
    def is_served(self) -> bool:
        """Whether the kind has that subresource."""
        if self.subresource == "status":
            return self.resource.status
        return self.subresource in ("", "log" if self.resource.plural == "pods" else "")


def parse_target(parts: list[str]) -> Target:
    """Read a path that is not discovery.

    Raises:
        ApiError: 404, nothing is there.
    """
    if parts[0] == "api" and len(parts) >= 3:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise errors.no_such_path()
    namespace: str | None = None
    if rest[0] == "namespaces" and len(rest) >= 3 and rest[2] != "status":
        namespace, rest = rest[1], rest[2:]
    res = find(group, version, rest[0])
    name = rest[1] if len(rest) > 1 else ""
    sub = rest[2] if len(rest) > 2 else ""
    if res is None or len(rest) > 3 or res.namespaced < (namespace is not None):
        raise errors.no_such_path()
    if name and res.namespaced and namespace is None:
        raise errors.no_such_path()
    if not res.namespaced:
        namespace = ""
    return Target(res, version, namespace, name, sub)


def _json(value: Any, status: int = 200) -> web.Response:
    return web.Response(
        body=encode(value), status=status, content_type="application/json"
    )


def _flag(request: web.Request, name: str) -> bool:
    return request.query.get(name, "") in ("true", "1", "True")


def _dry_run(request: web.Request, kind: str, options: Object | None = None) -> bool:
    """Whether a write shall only be tried.

    Raises:
        ApiError: 422, there is but one way to do that: "All".
    """
    wanted = (options or {}).get("dryRun") or request.query.getall("dryRun", [])
    if not isinstance(wanted, list) or not all(isinstance(w, str) for w in wanted):
        raise errors.bad_request("dryRun must be a list of strings")
    if set(wanted) - {"All"}:
        shown = ", ".join(json.dumps(word) for word in wanted)
        text = f'Unsupported value: []string{{{shown}}}: supported values: "All"'
        cause = errors.Cause("dryRun", text, "FieldValueNotSupported")
        raise errors.invalid("meta.k8s.io", kind, "", [cause])
    return bool(wanted)


class ApiServer:
    """Serves a store to users."""

    def __init__(self, store: Store, users: Users) -> None:
        self.store = store
        self.users = users
        self.watches: set[Watch] = set()
        self.bookmark_interval_s = BOOKMARK_INTERVAL_S
        self.watch_timeout_s = WATCH_TIMEOUT_S
        self.requests = 0
        # asked before each request; may delay it or raise ApiError
        self.intercept: Callable[[web.Request, User], Awaitable[None]] | None = None
        # one more tree of paths, by its first word
        self.extensions: dict[str, Extension] = {}
        self.pod_log: Callable[[str, str, str], str] = lambda *pod: ""
        # seconds by which reads of users lag behind; admin users are spared
        self.stale_s = 0.0
        self._snapshots: OrderedDict[str, tuple[int, list[Object]]] = OrderedDict()

    def application(self) -> web.Application:
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        # a dot would not match a newline
        app.router.add_route("*", r"/{path:[\s\S]*}", self._handle)
        return app

    # -- requests ---------------------------------------------------------

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.requests += 1
        try:
            return await self._route(request)
        except ApiError as exc:
            response = _json(exc.status(), exc.code)
            if exc.has_retry_after:
                response.headers["Retry-After"] = str(exc.retry_after_s)
            return response
        except web.HTTPRequestEntityTooLarge:
            error = ApiError(413, "RequestEntityTooLarge", "the body is too large")
            return _json(error.status(), 413)
        except (asyncio.CancelledError, ConnectionError):
            raise
        except Exception:  # the top of a request: it must have an answer
            log.exception("%s %s", request.method, request.path)
            error = ApiError(500, "InternalError", "Internal error occurred")
            return _json(error.status(), 500)

    async def _route(self, request: web.Request) -> web.StreamResponse:
        # split first: a name may have a slash in it, encoded
        parts = [unquote(p) for p in request.rel_url.raw_path.split("/") if p]
        if parts and parts[0] in ("healthz", "readyz", "livez"):
            return web.Response(text="ok")
        user = self._user(request)
        if user is None:
            raise errors.unauthorized()
        if not parts:
            return _json({"paths": ["/api", "/apis", "/healthz", "/version"]})
        extension = self.extensions.get(parts[0])
        if extension is not None:
            return await extension(request, user)
        if self.intercept is not None:
            await self.intercept(request, user)
        if request.method == "GET":
            document = discovery.document(parts)
            if document is not None:
                return _json(document)
        if parts == review.PATH and request.method == "POST":
            return _json(review.answer(self._decode(await request.read()), user), 201)
        target = parse_target(parts)
        verb = self._verb(request, target)
        resource = target.resource.plural
        if target.subresource:
            resource += f"/{target.subresource}"
        group, place = target.resource.group, target.namespace or ""
        if not user.role.allows(group, resource, place, verb):
            raise refusal(user, verb, group, resource, place, target.name)
        if not target.is_served:
            raise errors.no_such_path()
        past = Past(
            self.store, target.resource, 0.0 if user.role.is_admin else self.stale_s
        )
        return await self._serve(request, target, verb, past)

    def _user(self, request: web.Request) -> User | None:
        """Who asks: the subject of a certificate, or the owner of a token."""
        shown = request.get_extra_info("peercert") or {}
        for part in shown.get("subject", ()):
            for key, value in part:
                if key == "commonName":
                    user = self.users.named(value)
                    if user is not None:
                        return user
        return self.users.find(request.headers.get("Authorization", ""))

    @staticmethod
    def _verb(request: web.Request, target: Target) -> str:
        if target.name:
            verbs = {"GET": "get", "PUT": "update", "PATCH": "patch"}
            if not target.subresource:
                verbs["DELETE"] = "delete"
        else:
            verbs = {"GET": "watch" if _flag(request, "watch") else "list"}
            if target.namespace is not None:
                verbs["POST"] = "create"
                if target.resource is not NAMESPACES:
                    verbs["DELETE"] = "deletecollection"
        if target.resource.read_only:
            verbs = {"GET": verbs["GET"]}
        if target.subresource == "log":
            verbs = {"GET": "get"}
        if request.method not in verbs:
            raise errors.method_not_allowed()
        return verbs[request.method]

    async def _serve(
        self, request: web.Request, target: Target, verb: str, past: Past
    ) -> web.StreamResponse:
        res, namespace = target.resource, target.namespace or ""
        if verb == "watch":
            return await self._watch(request, target, past)
        if verb == "list":
            return _json(self._list(request, target, past))
        if verb == "get":
            obj = past.get(namespace, target.name)
            if target.subresource == "log":
                container = request.query.get("container", "")
                text = self.pod_log(namespace, target.name, container)
                return web.Response(text=text)
            return _json(as_sent(res, obj, target.version))
        raw = await request.read()
        if verb in ("delete", "deletecollection"):
            options = self._decode(raw) if raw.strip() else {}
            if not isinstance(options, dict):
                raise errors.bad_request("delete options must be an object")
            if "propagationPolicy" in request.query:
                options["propagationPolicy"] = request.query["propagationPolicy"]
            options["dryRun"] = _dry_run(request, "DeleteOptions", options)
            if verb == "delete":
                return self._delete(target, options)
            return _json(self._delete_all(request, target, options))
        body = self._decode(raw)
        if verb == "create":
            body = from_version(res, body, target.version)
            dry = _dry_run(request, "CreateOptions")
            obj = self.store.create(res, namespace, body, dry)
            return _json(as_sent(res, obj, target.version), 201)
        if verb == "update":
            body = from_version(res, body, target.version)
            dry = _dry_run(request, "UpdateOptions")
            obj = self.store.update(
                res, namespace, target.name, body, target.subresource, True, dry
            )
        else:
            obj = self._patch(request, target, body)
        return _json(as_sent(res, obj, target.version))

    @staticmethod
    def _decode(raw: bytes) -> Any:
        try:
            return decode(raw)
        except ValueError as exc:
            raise errors.bad_request(
                f"the object provided is unrecognized: {exc}"
            ) from exc

    def _patch(self, request: web.Request, target: Target, body: Any) -> Object:
        apply = _PATCHES.get(request.content_type)
        if apply is None:
            accepted = ", ".join(_PATCHES)
            raise ApiError(
                415,
                "UnsupportedMediaType",
                "the body of the request was in an unknown format - accepted media "
                f"types include: {accepted}",
            )
        if apply is merge_patch and not isinstance(body, dict):
            raise errors.bad_request("a merge patch of an object must be an object")
        res = target.resource
        old = self.store.get(res, target.namespace or "", target.name)
        new = apply(to_version(res, old, target.version), body)
        return self.store.update(
            res,
            target.namespace or "",
            target.name,
            from_version(res, new, target.version),
            target.subresource,
            dry_run=_dry_run(request, "PatchOptions"),
        )

    def _delete(self, target: Target, options: Object) -> web.Response:
        res = target.resource
        obj, gone = self.store.delete(res, target.namespace or "", target.name, options)
        if not gone:
            return _json(as_sent(res, obj, target.version))
        return _json(
            {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Success",
                "details": {
                    "name": target.name,
                    "group": res.group,
                    "kind": res.plural,
                    "uid": obj["metadata"]["uid"],
                },
            }
        )

    # -- lists ------------------------------------------------------------

    @staticmethod
    def _selectors(request: web.Request) -> tuple[LabelSelector, FieldSelector]:
        return (
            LabelSelector(request.query.get("labelSelector", "")),
            FieldSelector(request.query.get("fieldSelector", "")),
        )

    def _delete_all(
        self, request: web.Request, target: Target, options: Object
    ) -> Object:
        res, namespace = target.resource, target.namespace
        objects = self.store.find(res, namespace, *self._selectors(request))
        for obj in objects:
            meta = obj["metadata"]
            self.store.delete(res, meta.get("namespace", ""), meta["name"], options)
        return self._collection(target, objects, self.store.version)

    @staticmethod
    def _number(request: web.Request, name: str) -> int:
        text = request.query.get(name, "0") or "0"
        value = number(text)
        if value is None:
            raise errors.bad_request(f"{name} must be a number, not {text!r}")
        return value

    def _collection(
        self, target: Target, objects: list[Object], version: int
    ) -> Object:
        res = target.resource
        return {
            "apiVersion": res.at(target.version),
            "kind": f"{res.kind}List",
            "metadata": {"resourceVersion": str(version), "continue": ""},
            "items": [as_sent(res, o, target.version) for o in objects],
        }

    def _list(self, request: web.Request, target: Target, past: Past) -> Object:
        limit = self._number(request, "limit")
        token = request.query.get("continue", "")
        if token:
            name, start = self._parse_continue(token)
            version, objects = self._snapshots[name]
        else:
            name, start, version = "", 0, past.version
            objects = past.find(target.namespace, *self._selectors(request))
        end = start + limit if limit else len(objects)
        out = self._collection(target, objects[start:end], version)
        if end < len(objects):
            # Stored objects never change, so the rest of the list is a
            # consistent snapshot for as long as it is kept.
            if not name:
                name = secrets.token_urlsafe(8)
                self._snapshots[name] = (version, objects)
                if len(self._snapshots) > MAX_SNAPSHOTS:
                    self._snapshots.popitem(last=False)
            text = json.dumps({"list": name, "start": end})
            out["metadata"]["continue"] = base64.urlsafe_b64encode(
                text.encode()
            ).decode()
            if "labelSelector" not in request.query:
                out["metadata"]["remainingItemCount"] = len(objects) - end
        elif name:
            del self._snapshots[name]
        return out

    def _parse_continue(self, token: str) -> tuple[str, int]:
        try:
            fields = json.loads(base64.urlsafe_b64decode(token.encode()))
            name, start = str(fields["list"]), int(fields["start"])
        except (ValueError, KeyError, TypeError) as exc:
            raise errors.bad_request("continue key is not valid") from exc
        if name not in self._snapshots or start < 0:
            raise errors.expired(
                "The provided continue parameter is too old to display a "
                "consistent list result."
            )
        return name, start

    def expire(self) -> None:
        """Forget the past: later requests for it get 410."""
        self.forget_lists()
        self.store.expire()

    def forget_lists(self) -> None:
        """Of which parts have not been asked for yet."""
        self._snapshots.clear()

    # -- watches ----------------------------------------------------------

    async def _watch(
        self, request: web.Request, target: Target, past: Past
    ) -> web.StreamResponse:
        labels, fields = self._selectors(request)
        # a watch of one namespace, or of one kind that has none
        namespace = target.namespace
        watch = Watch(
            self.store, target.resource, target.version, namespace, labels, fields
        )
        timeout = self._number(request, "timeoutSeconds")
        bookmarks = _flag(request, "allowWatchBookmarks")
        watch.start(request.query.get("resourceVersion", ""), past)
        response = web.StreamResponse()
        response.content_type = "application/json"
        self.watches.add(watch)
        try:
            await response.prepare(request)
            await watch.run(
                response.write,
                float(timeout) or self.watch_timeout_s * random.uniform(1, 2),
                self.bookmark_interval_s if bookmarks else None,
            )
            await response.write_eof()
        except ConnectionError:
            log.debug("watch of %s: client went away", target.resource)
        finally:
            watch.stop()
            self.watches.discard(watch)
        return response

    def drop_watches(self, error: ApiError | None = None) -> int:
        """End every watch, with an ERROR event if an error is given."""
        watches = list(self.watches)
        for watch in watches:
            if error is not None:
                watch.fail(error)
            else:
                watch.stop()
        return len(watches)
