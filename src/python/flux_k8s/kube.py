# A thin client for the Kubernetes API: paths, versions, errors. kubeconfig.py reads
# authentication, trust and proxies by the kubernetes package; transport.py owns the
# connections.
# SPDX-License-Identifier: LGPL-3.0-only
"""Kubernetes requests for the agent."""

from __future__ import annotations

import functools
import logging
import os
import time
import weakref
from typing import Any, Callable
from urllib.parse import quote, urlencode

import kubernetes.client

from flux_k8s import kubeconfig, lists
from flux_k8s.crd import RESOURCES, Resource, newest
from flux_k8s.errors import BROKEN, TOO_LARGE, UNREACHABLE, ApiError
from flux_k8s.events import WatchStream
from flux_k8s.fields import FieldError, Reader, project
from flux_k8s.kubeconfig import ConfigError, InsecureError
from flux_k8s.loop import Loop, Task
from flux_k8s.objects import Object, is_object, to_json
from flux_k8s.outage import Outage
from flux_k8s.stats import Stats
from flux_k8s.transport import Answer, NoAnswer, Request, Stream, Transport
from flux_k8s.trust import insecurity

LOGGER = logging.getLogger(__name__)

READ_TIMEOUT_S = 60.0
# A watch that has not ended this long after its time has a dead connection.
WATCH_SLACK_S = 10.0
# The least time between reads of a kubeconfig: many workers may be refused at once.
RELOAD_INTERVAL_S = 1.0
# The time for which the headers of requests, with their token, are cached.
AUTH_S = 1.0

# Marks the refusal of a webhook, which is permanent also while the server starts.
WEBHOOK = "admission webhook"
# The user whom the API server sees in a request without credentials.
ANONYMOUS = 'User "system:anonymous"'
NOT_SERVED = "could not find the requested resource"


# A name as part of a path: that of a workflow is in eight requests.
_quoted = functools.lru_cache(maxsize=1024)(functools.partial(quote, safe=""))

METHODS = {"get": "GET", "create": "POST", "patch": "PATCH", "delete": "DELETE"}


class Kube:
    """Requests to one API server, for one thread.

    Methods whose names begin with "a" are coroutines for a loop of the caller; the
    methods without the "a" wait for the answer.
    """

    def __init__(
        self,
        path: str | None = None,
        connections: int = 32,
        stats: Stats | None = None,
        insecure: bool = False,
        picked: bool = False,
    ) -> None:
        """Read the kubeconfig.

        Args:
            path: of the kubeconfig, or None for the default one.
            connections: the number of connections kept open.
            stats: counts the requests.
            insecure: --allow-insecure-kubernetes of the agent.
            picked: reduce written objects to the fields that the module reads (Picked)
                while they are decoded, if possible.
        Raises:
            ConfigError: the file cannot be used.
        """
        self._given = path
        self.path = path or kubeconfig.default()
        self.stats = stats or Stats()
        self.outage = Outage()
        self._connections = connections
        self._picked = picked
        self._readers: dict[str, Reader] = {}
        self._insecure = insecure
        self._warned = ""
        self._loaded_at = 0.0
        # cached headers by content type, and the end of their validity
        self._headers: dict[str, tuple[str, ...]] = {}
        self._headers_until = 0.0
        self._versions: dict[str, str] = {}
        # paths of kinds in namespaces, which contain these versions
        self._roots: dict[tuple[str, str], str] = {}
        # the fault of the kubeconfig while its last good content stays in use
        self._fault = ""
        # of open watches
        self._streams: weakref.WeakSet[Stream] = weakref.WeakSet()
        self._waiting = Loop()
        self._load()

    def files(self) -> list[str]:
        """The existing files of the kubeconfig."""
        return [f for f in kubeconfig.files(self._given) if os.path.exists(f)]

    @property
    def server(self) -> str:
        """The address of the API server in the kubeconfig."""
        return str(self._configuration.host)

    def _load(self) -> None:
        configuration = kubernetes.client.Configuration()
        configuration.connection_pool_maxsize = self._connections
        client = kubeconfig.read(self._given, configuration)
        self._judge(insecurity(configuration.host, configuration.verify_ssl))
        self._configuration: Any = configuration
        pool = client.rest_client.pool_manager
        self._transport = Transport(configuration.host, pool, self._connections)
        self._headers_until = 0.0
        self._loaded_at = time.monotonic()
        if self._fault:
            LOGGER.warning("kubeconfig %s can be read again", self.path)
            self._fault = ""

    def _judge(self, fault: str) -> None:
        """Reject an insecure server, or log once that it is allowed."""
        option = "--allow-insecure-kubernetes"
        if fault and not self._insecure:
            text = f"kubeconfig {self.path}: {fault}; only {option} allows that"
            raise InsecureError(text)
        if fault and fault != self._warned:
            text = "kubeconfig %s: %s; %s allows that"
            LOGGER.warning(text, self.path, fault, option)
        self._warned = fault

    def _reload(self) -> None:
        """Read the kubeconfig again: its token or certificate may be new."""
        if time.monotonic() - self._loaded_at < RELOAD_INTERVAL_S:
            return
        self._loaded_at = time.monotonic()
        self._load()

    def _header_lines(self, content_type: str = "") -> tuple[str, ...]:
        """The headers of a request, cached: auth_settings() may renew the token and
        reads the environment, which is most of a request's own cost."""
        now = time.monotonic()
        if now >= self._headers_until:
            self._headers.clear()
            self._headers_until = now + AUTH_S
        lines = self._headers.get(content_type)
        if lines is None:
            headers = {"Accept": "application/json"}
            for auth in self._configuration.auth_settings().values():
                if auth.get("in") == "header" and auth.get("value"):
                    headers[auth["key"]] = auth["value"]
            if content_type:
                headers["Content-Type"] = content_type
            lines = tuple(f"{name}: {value}" for name, value in headers.items())
            self._headers[content_type] = lines
        return lines

    async def _send(
        self,
        what: tuple[str, str],
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "application/json",
    ) -> bytes:
        """Send a request once; returns the body of the answer. The command queue
        decides on retries."""
        data = None if body is None else to_json(body)
        headers = self._header_lines("" if body is None else content_type)
        began = time.monotonic()
        status = 0
        try:
            answer = await Request(
                self._transport, method, path, headers, data, READ_TIMEOUT_S
            )
            status = answer.status
        except NoAnswer as exc:
            raise self._no_answer(exc, began) from exc
        finally:
            self.stats.request(*what, status, time.monotonic() - began)
        if status >= 300:
            raise self._refusal(answer)
        return answer.data

    async def _open(self, what: tuple[str, str], path: str, timeout_s: float) -> Stream:
        """Open a streaming answer that lasts at most `timeout_s`."""
        began = time.monotonic()
        stream = self._transport.stream(path, self._header_lines(), timeout_s)
        self._streams.add(stream)
        try:
            await stream.open()
        except NoAnswer as exc:
            raise self._no_answer(exc, began) from exc
        finally:
            self.stats.request(*what, stream.status, time.monotonic() - began)
        if stream.status < 300:
            return stream
        try:
            answer = await stream.answer(READ_TIMEOUT_S)
        except NoAnswer as exc:
            raise ApiError(0, BROKEN, str(exc)) from exc
        finally:
            stream.close()
        raise self._refusal(answer)

    def _no_answer(self, error: NoAnswer, began: float) -> ApiError:
        """Args:
        began: when the request was sent.
        """
        if error.too_large:
            return ApiError(0, TOO_LARGE, str(error))
        self._try_reload()
        self.outage.lost()
        if error.timed_out:
            self._doubt(began)
        return ApiError(0, BROKEN if error.connected else UNREACHABLE, str(error))

    def _doubt(self, since: float) -> None:
        """After a timeout, suspect all connections of ending at a dead server: use new
        ones for further requests, and reopen the watches that have been silent since
        `since`."""
        self._transport.renew()
        for stream in list(self._streams):
            if stream.heard_at < since:
                stream.give_up()

    def _refusal(self, answer: Answer) -> ApiError:
        error = ApiError.from_response(
            answer.status, answer.data, answer.header("Retry-After")
        )
        if error.status == 403 and ANONYMOUS in error.message:
            # The kubeconfig was read while its token was missing, say while the file of
            # the token was written anew.
            text = f"kubeconfig {self.path}: no credentials: {error.message}"
            error = ApiError(401, "Unauthorized", text)
        if error.status == 401:
            self._try_reload()
            if self._fault:
                text = f"{error.message}; {self._fault}"
                error = ApiError(401, error.reason, text)
        if (
            error.status == 403
            and WEBHOOK not in error.message
            and self.outage.settling
        ):
            # A starting server has not read its rules yet: transient.
            return ApiError(0, BROKEN, error.message)
        if error.status >= 500:
            self.outage.lost()
        unknown = error.reason in ("", BROKEN) or NOT_SERVED in error.message
        if error.status == 404 and unknown:
            # The server does not serve this version now, whether the object exists or
            # not. Determine the versions anew.
            self._versions.clear()
            self._roots.clear()
            return ApiError(0, BROKEN, f"not served: {error.message}")
        if error.reason == BROKEN and not error.transient:
            # Not an answer of the API server but of a proxy, say: transient.
            text = f"HTTP status {error.status}: {error.message}"
            return ApiError(0, BROKEN, text)
        return error

    def _try_reload(self) -> None:
        """Read the kubeconfig again. While the file is missing or partly written keep
        its last good content, and log the fault once."""
        try:
            self._reload()
        except ConfigError as exc:
            fault = str(exc)
            if fault != self._fault:
                LOGGER.warning("%s: what was read before stays", fault)
            self._fault = fault

    async def _request(
        self, what: tuple[str, str], method: str, path: str, *args: Any
    ) -> Object:
        """Args:
        what: verb and plural name of the kind, for the statistics.
        """
        data = await self._send(what, method, path, *args)
        return lists.decoded(data, f"{method} {path}")

    async def _one(
        self,
        verb: str,
        where: tuple[str, str, str],
        body: Any = None,
        content_type: str = "application/json",
    ) -> Object:
        """Write one object; returns the object in the answer.

        Args:
        where: plural name of the kind, namespace, and name or "".
        """
        plural, namespace, name = where
        path = await self._path(RESOURCES[plural], namespace, name)
        method = METHODS[verb]
        data = await self._send((verb, plural), method, path, body, content_type)
        if self._picked:
            if plural not in self._readers:
                self._readers[plural] = Reader(plural)
            try:
                return self._readers[plural].object(data)
            except ValueError:
                pass  # not an object, or project() names the fault
        return lists.decoded(data, f"{method} {path}")

    async def aversion(self, group: str) -> str:
        """The newest version of an API group that the server offers.

        Raises:
            ApiError: the group does not exist, or the server cannot be asked.
        """
        if not group:
            return "v1"
        version = self._versions.get(group)
        if version is None:
            try:
                what = ("get", "apis")
                answer = await self._request(what, "GET", f"/apis/{quote(group)}")
            except ApiError as exc:
                if exc.status != 404:
                    raise
                # Not 404, which would mean that a requested object is missing.
                raise ApiError(0, BROKEN, f"API group {group}: {exc.message}") from exc
            try:
                version = newest(v["version"] for v in answer["versions"])
                version = _quoted(version)
            except (KeyError, TypeError, ValueError) as exc:
                raise ApiError(
                    0, BROKEN, f"API group {group} lists no versions"
                ) from exc
            self._versions[group] = version
        return version

    async def _path(self, res: Resource, namespace: str = "", name: str = "") -> str:
        root = self._roots.get((res.plural, namespace))
        if root is None:
            version = await self.aversion(res.group)
            root = f"/apis/{res.group}/{version}" if res.group else f"/api/{version}"
            if namespace:
                root += f"/namespaces/{_quoted(namespace)}"
            root += f"/{res.plural}"
            self._roots[res.plural, namespace] = root
        return f"{root}/{_quoted(name)}" if name else root

    async def amay(
        self, res: Resource, verb: str, namespace: str = "", subresource: str = ""
    ) -> bool:
        """Whether the API server permits us `verb` on a kind; namespace "" means
        all."""
        review = await self._request(
            ("create", "selfsubjectaccessreviews"),
            "POST",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {
                    "resourceAttributes": {
                        "group": res.group,
                        "resource": res.plural,
                        "subresource": subresource,
                        "verb": verb,
                        "namespace": namespace,
                    }
                },
            },
        )
        return bool((review.get("status") or {}).get("allowed"))

    async def aget(self, plural: str, namespace: str, name: str) -> Object:
        """Read one object."""
        path = await self._path(RESOURCES[plural], namespace, name)
        obj = await self._request(("get", plural), "GET", path)
        if not is_object(obj):
            raise ApiError(0, BROKEN, f"GET {path}: the answer is no object")
        return obj

    async def acreate(self, plural: str, namespace: str, obj: Object) -> Object:
        """Create an object. Sets apiVersion and kind, and the apiVersion of its owners,
        which are assumed to be of the same group."""
        res = RESOURCES[plural]
        version = await self.aversion(res.group)
        body = dict(obj)
        body["apiVersion"] = f"{res.group}/{version}" if res.group else version
        body["kind"] = res.kind
        owners = body.get("metadata", {}).get("ownerReferences", [])
        for owner in owners:
            owner.setdefault("apiVersion", body["apiVersion"])
        return await self._one("create", (plural, namespace, ""), body)

    def apatch(
        self, plural: str, namespace: str, name: str, patch: dict[str, Any]
    ) -> Task[Object]:
        """Apply a JSON merge patch (RFC 7396)."""
        where = plural, namespace, name
        return self._one("patch", where, patch, "application/merge-patch+json")

    def apatch_json(
        self, plural: str, namespace: str, name: str, operations: list[dict[str, Any]]
    ) -> Task[Object]:
        """Apply a JSON patch (RFC 6902): all of its operations, or none (422)."""
        where = plural, namespace, name
        return self._one("patch", where, operations, "application/json-patch+json")

    def adelete(self, plural: str, namespace: str, name: str) -> Task[Object]:
        """Delete an object; one with finalizers stays until they are removed."""
        # Send empty DeleteOptions: libcurl does not resend a request with a body.
        return self._one("delete", (plural, namespace, name), {})

    async def alist_all(
        self, plural: str, selector: str = "", limit: int = lists.LIST_PART
    ) -> tuple[list[Object], str]:
        """List the objects of a kind in every namespace.

        Starts again if the server forgets the beginning (410) before the last part.

        Args:
            selector: label selector, or "" for all.
            limit: objects per request.
        Returns:
            The objects and the resource version to watch from.
        """
        return await self._list_whole(lists.as_they_are, plural, selector, limit)

    async def apick_all(
        self, plural: str, selector: str, recent: bool = False
    ) -> tuple[list[Object], str]:
        """List the objects of a kind, reduced to the fields that the module reads.
        Malformed objects are logged and left out.

        Args:
            recent: accept objects that are some seconds old, from the server's cache:
                it then selects few objects without reading all from etcd.
        """

        def pick(objects: list[Object]) -> list[Object]:
            picked = []
            for obj in objects:
                try:
                    picked.append(project(plural, obj, listed=True))
                except FieldError as exc:
                    self._refuse(plural, exc)
            return picked

        return await self._list_whole(pick, plural, selector, lists.LIST_PART, recent)

    def _refuse(self, plural: str, error: FieldError) -> None:
        LOGGER.error("%s", error)
        self.stats.refuse(plural)

    async def anow(self, plural: str) -> str:
        """The resource version of a list of a kind now. An older version than the
        server has shown before means that the server has lost data."""
        url = f"{await self._path(RESOURCES[plural])}?limit=1"
        data = await self._send(("list", plural), "GET", url)
        return lists.decoded_part(data, f"GET {url}")[1]

    async def alist_in(
        self, plural: str, namespace: str, selector: str
    ) -> list[Object]:
        """The objects of a kind in one namespace that match a label selector."""
        path = await self._path(RESOURCES[plural], namespace)
        listed = lists.read(self._list_of(plural), path, lists.as_they_are, selector)
        return (await listed)[0]

    async def apod_log(
        self,
        namespace: str,
        name: str,
        container: str,
        lines: int,
        limit_bytes: int,
        since_s: int | None = None,
    ) -> bytes:
        """The last lines of a container's log, truncated at their end to `limit_bytes`.
        With `since_s` each line begins with a timestamp; a value above 0 selects the
        lines of the last `since_s` seconds."""
        query = {
            "container": container,
            "tailLines": str(lines),
            "limitBytes": str(limit_bytes),
        }
        if since_s is not None:
            query["timestamps"] = "true"
        if since_s:
            query["sinceSeconds"] = str(since_s)
        path = await self._path(RESOURCES["pods"], namespace, name)
        return await self._send(
            ("get", "pods"), "GET", f"{path}/log?{urlencode(query)}"
        )

    async def _list_whole(
        self,
        pick: lists.Pick,
        plural: str,
        selector: str,
        limit: int,
        recent: bool = False,
    ) -> tuple[list[Object], str]:
        for _ in range(lists.LIST_TRIES):
            path = await self._path(RESOURCES[plural])
            try:
                return await lists.read(
                    self._list_of(plural), path, pick, selector, limit, recent
                )
            except ApiError as exc:
                if exc.status != 410:
                    raise
                expired = exc
        raise ApiError(0, BROKEN, expired.message) from expired

    def _list_of(self, plural: str) -> Callable[[str], Task[bytes]]:
        return lambda path: self._send(("list", plural), "GET", path)

    async def awatch(
        self,
        plural: str,
        resource_version: str,
        selector: str,
        timeout_s: int,
        picked: bool = False,
    ) -> WatchStream:
        """Open a watch of a kind in every namespace, with bookmarks.

        Args:
            picked: reduce objects to the fields that the module reads, and of an
                object's events that arrive together yield the last.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(timeout_s),
        }
        if selector:
            query["labelSelector"] = selector
        path = f"{await self._path(RESOURCES[plural])}?{urlencode(query)}"
        # The server closes the stream after timeout_s: a stream that is open much
        # longer has a dead connection.
        stream = await self._open(("watch", plural), path, timeout_s + WATCH_SLACK_S)
        return WatchStream(
            stream,
            plural if picked else "",
            left_out=lambda count: self.stats.event(plural, count),
            broken=self.outage.lost,
            refused=lambda error: self._refuse(plural, error),
        )

    # Blocking calls

    def version(self, group: str) -> str:
        return self._waiting.run(self.aversion(group))

    def may(
        self, res: Resource, verb: str, namespace: str = "", subresource: str = ""
    ) -> bool:
        return self._waiting.run(self.amay(res, verb, namespace, subresource))

    def get(self, plural: str, namespace: str, name: str) -> Object:
        return self._waiting.run(self.aget(plural, namespace, name))

    def create(self, plural: str, namespace: str, obj: Object) -> Object:
        return self._waiting.run(self.acreate(plural, namespace, obj))

    def patch(
        self, plural: str, namespace: str, name: str, patch: dict[str, Any]
    ) -> Object:
        return self._waiting.run(self.apatch(plural, namespace, name, patch))

    def delete(self, plural: str, namespace: str, name: str) -> Object:
        return self._waiting.run(self.adelete(plural, namespace, name))

    def list_all(
        self, plural: str, selector: str = "", limit: int = lists.LIST_PART
    ) -> tuple[list[Object], str]:
        return self._waiting.run(self.alist_all(plural, selector, limit))

    def watch(
        self, plural: str, resource_version: str, selector: str, timeout_s: int
    ) -> WatchStream:
        return self._waiting.run(
            self.awatch(plural, resource_version, selector, timeout_s)
        )
