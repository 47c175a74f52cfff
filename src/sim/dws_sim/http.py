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

from dws_sim import answers, discovery, errors, negotiate, podlog, review, writes
from dws_sim.answers import json_answer
from dws_sim.convert import as_sent, from_version
from dws_sim.errors import ApiError
from dws_sim.jsontree import Object, number
from dws_sim.negotiate import Wanted
from dws_sim.past import Past
from dws_sim.podlog import Line
from dws_sim.rbac import User, Users, refusal
from dws_sim.schema.resources import NAMESPACES, Resource, find
from dws_sim.selectors import FieldSelector, LabelSelector
from dws_sim.store import Store
from dws_sim.watch import Watch, parse_version
from dws_sim.writes import dry_run

log = logging.getLogger("dws-sim.http")

MAX_BODY_BYTES = 3 << 20
# Snapshots of unfinished lists that are kept for "continue".
MAX_SNAPSHOTS = 64
# Kinds of which one that is deleted is the answer; of others it is a Status.
_DELETED = ("pods", "services")
BOOKMARK_INTERVAL_S = 10.0
# A watch without a timeout ends after once to twice as long.
WATCH_TIMEOUT_S = 1800.0
Extension = Callable[[web.Request, User], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Target:
    """The object or kind that a URL names; namespace None: all namespaces."""

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
        ApiError: 404, there is no such path.
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


def _flag(request: web.Request, name: str) -> bool:
    return request.query.get(name, "") in ("true", "1", "True")


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
        self.pod_log: Callable[[str, str, str], list[Line]] = lambda *pod: []
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
            response = json_answer(exc.status(), exc.code)
            if exc.has_retry_after:
                response.headers["Retry-After"] = str(exc.retry_after_s)
            return response
        except web.HTTPRequestEntityTooLarge:
            error = ApiError(413, "RequestEntityTooLarge", "the body is too large")
            return json_answer(error.status(), 413)
        except (asyncio.CancelledError, ConnectionError):
            raise
        except Exception:  # the top of a request: it must have an answer
            log.exception("%s %s", request.method, request.path)
            error = ApiError(500, "InternalError", "Internal error occurred")
            return json_answer(error.status(), 500)

    async def _route(self, request: web.Request) -> web.StreamResponse:
        # split first: a name may have a slash in it, encoded
        parts = [unquote(p) for p in request.rel_url.raw_path.split("/") if p]
        if parts and parts[0] in ("healthz", "readyz", "livez"):
            return web.Response(text="ok")
        user = self._user(request)
        if user is None:
            raise errors.unauthorized()
        if not parts:
            return json_answer({"paths": ["/api", "/apis", "/healthz", "/version"]})
        extension = self.extensions.get(parts[0])
        if extension is not None:
            return await extension(request, user)
        if self.intercept is not None:
            await self.intercept(request, user)
        if request.method == "GET":
            document = discovery.document(parts)
            if document is not None:
                return self._document(request, document)
        if request.method == "POST" and parts[1:2] and parts[1] in review.KINDS:
            body = negotiate.body(request.content_type, await request.read(), True)
            answer = review.answer(parts, body, user)
            if answer is not None:
                return json_answer(answer, 201)
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
        # Kubernetes answers a get from etcd: only lists and watches may be behind.
        late = verb in ("list", "watch") and not user.role.is_admin
        past = Past(self.store, target.resource, self.stale_s if late else 0.0)
        return await self._serve(request, target, verb, past, user)

    @staticmethod
    def _document(request: web.Request, document: Object) -> web.Response:
        """A discovery document, always JSON: old clients that request OpenAPI v2 as
        protobuf continue without it, newer ones use v3."""
        if not negotiate.accepts_json(request.headers.get("Accept", "")):
            raise negotiate.not_acceptable(negotiate.JSON)
        return json_answer(document)

    def _user(self, request: web.Request) -> User | None:
        """The user: subject of the client certificate, or owner of the token."""
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
        self, request: web.Request, target: Target, verb: str, past: Past, user: User
    ) -> web.StreamResponse:
        res, namespace = target.resource, target.namespace or ""
        want = negotiate.wanted(request.headers.get("Accept", ""))
        if verb == "watch":
            return await self._watch(request, target, past, want)
        if verb == "list":
            found = self._list(request, target, past)
            return answers.of_list(request, res, found, want)
        if verb == "get":
            self._check_future(request)
            obj = past.get(namespace, target.name)
            if target.subresource == "log":
                container = request.query.get("container", "")
                lines = self.pod_log(namespace, target.name, container)
                data = podlog.served(lines, request.query)
                return web.Response(
                    body=data, content_type="text/plain", charset="utf-8"
                )
            obj = as_sent(res, obj, target.version)
            return answers.of_object(request, res, obj, want)
        raw = await request.read()
        if verb in ("delete", "deletecollection"):
            options = self._delete_options(request, raw)
            if verb == "delete":
                return self._delete(target, options)
            found = self._delete_all(request, target, options)
            return answers.of_list(request, res, found, want)
        obj, is_new, warnings = self._write(request, target, verb, raw, user)
        obj = as_sent(res, obj, target.version)
        answer = answers.of_object(request, res, obj, want, 201 if is_new else 200)
        for text in warnings:
            answer.headers.add("Warning", f"299 - {json.dumps(text)}")
        return answer

    def _write(
        self, request: web.Request, target: Target, verb: str, raw: bytes, user: User
    ) -> tuple[Object, bool, list[str]]:
        """Create, replace or patch: the object, whether it is new, and warnings."""
        res, namespace = target.resource, target.namespace or ""
        sub, name = target.subresource, target.name
        if verb == "patch":
            place = (res, target.version, namespace, name, sub)
            may = user.role.allows(res.group, res.plural, namespace, "create")
            return writes.patch(self.store, request, raw, place, may)
        body = negotiate.body(request.content_type, raw, res.body is None)
        checker = writes.Checker(request, res, target.version)
        checker.check(body)
        body = from_version(res, body, target.version)
        if verb == "create":
            dry = dry_run(request, "CreateOptions")
            obj = self.store.create(res, namespace, body, dry)
            return obj, True, checker.warnings
        dry = dry_run(request, "UpdateOptions")
        obj = self.store.update(res, namespace, name, body, sub, True, dry)
        return obj, False, checker.warnings

    @staticmethod
    def _delete_options(request: web.Request, raw: bytes) -> Object:
        """Delete options, from the body and the query."""
        options: Any = {}
        if raw.strip():
            options = negotiate.body(request.content_type, raw, True)
        if not isinstance(options, dict):
            raise errors.bad_request("delete options must be an object")
        if "propagationPolicy" in request.query:
            options["propagationPolicy"] = request.query["propagationPolicy"]
        options["dryRun"] = dry_run(request, "DeleteOptions", options)
        return options

    def _check_future(self, request: web.Request) -> None:
        """Raises ApiError 504: what is asked for is still to come. The API server
        waits for that a few seconds."""
        text = request.query.get("resourceVersion", "")
        if text.isdigit() and text.isascii():
            version = parse_version(text)
            if version > self.store.version:
                raise errors.too_large_version(version, self.store.version)

    def _delete(self, target: Target, options: Object) -> web.Response:
        res = target.resource
        obj, gone = self.store.delete(res, target.namespace or "", target.name, options)
        if not gone or res.plural in _DELETED:
            return json_answer(as_sent(res, obj, target.version))
        return json_answer(
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
    def _selectors(
        request: web.Request, target: Target
    ) -> tuple[LabelSelector, FieldSelector]:
        return (
            LabelSelector(request.query.get("labelSelector", "")),
            FieldSelector(
                request.query.get("fieldSelector", ""), target.resource.plural
            ),
        )

    def _delete_all(
        self, request: web.Request, target: Target, options: Object
    ) -> Object:
        res, namespace = target.resource, target.namespace
        objects = self.store.find(res, namespace, *self._selectors(request, target))
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
        self._check_future(request)
        limit = self._number(request, "limit")
        token = request.query.get("continue", "")
        if token:
            name, start = self._parse_continue(token)
            version, objects = self._snapshots[name]
        else:
            name, start, version = "", 0, past.version
            objects = past.find(target.namespace, *self._selectors(request, target))
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
        """Forget lists whose remaining parts have not been requested yet."""
        self._snapshots.clear()

    # -- watches ----------------------------------------------------------

    async def _watch(
        self, request: web.Request, target: Target, past: Past, want: Wanted
    ) -> web.StreamResponse:
        labels, fields = self._selectors(request, target)
        # a watch of one namespace, or of one kind that has none
        namespace = target.namespace
        shown = None
        if want.form != "whole":
            shown = answers.Shown(request, target.resource, want.form)
        watch = Watch(
            self.store,
            target.resource,
            target.version,
            namespace,
            labels,
            fields,
            shown,
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
