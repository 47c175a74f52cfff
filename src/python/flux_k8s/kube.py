# A thin, thread-safe client for the Kubernetes API: paths, versions, errors.
# Authentication, TLS and proxies are the kubernetes package's; requests carry
# JSON as it is, without that package's model classes.
# SPDX-License-Identifier: LGPL-3.0-only
"""Kubernetes requests for the agent."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import kubernetes.client
import kubernetes.config
import urllib3
from kubernetes.config.config_exception import ConfigException

from flux_k8s.crd import RESOURCES, Resource, newest

Object = dict[str, Any]

CONNECT_TIMEOUT_S = 5.0
READ_TIMEOUT_S = 60.0
# A kubeconfig is not read again more often than this, however many workers
# are refused at once.
RELOAD_INTERVAL_S = 1.0


class ApiError(Exception):
    """A request that did not succeed.

    Attributes:
        status: HTTP status, or 0 when there was no answer at all.
        reason: the API server's reason word, such as "AlreadyExists".
        message: the API server's own text, or what went wrong on the way.
        retry_after_s: what the server asked for with 429 or 503, else None.
    """

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s

    @property
    def transient(self) -> bool:
        """True when the same request may well succeed later."""
        return self.status in (0, 401, 408, 429) or self.status >= 500

    @classmethod
    def from_response(
        cls, status: int, body: bytes, retry_after: str | None = None
    ) -> ApiError:
        """Read the Status object of an answer (spec/dws-api.md section 10)."""
        reason, message = "", ""
        try:
            answer = json.loads(body)
            reason = str(answer.get("reason") or "")
            message = str(answer.get("message") or "")
        except (ValueError, AttributeError):
            message = body[:512].decode("utf-8", errors="replace").strip()
        delay = None
        if retry_after is not None and retry_after.isdigit():
            delay = float(retry_after)
        return cls(status, reason, message or f"HTTP status {status}", delay)


class ConfigError(Exception):
    """There is no usable kubeconfig; the text names the file."""


def default_kubeconfig() -> str:
    """The kubeconfig used when none is configured: $KUBECONFIG, then the
    home directory of the user that the agent runs as."""
    return os.environ.get("KUBECONFIG") or os.path.expanduser("~/.kube/config")


class Kube:
    """Requests to one API server. May be used by any number of threads."""

    def __init__(self, kubeconfig: str | None = None, connections: int = 32) -> None:
        """Read the kubeconfig.

        Args:
            kubeconfig: path, or None for the default one.
            connections: how many connections are kept open.
        Raises:
            ConfigError: the file cannot be used.
        """
        self.path = kubeconfig or default_kubeconfig()
        self._connections = connections
        self._lock = threading.Lock()
        self._loaded_at = 0.0
        self._versions: dict[str, str] = {}
        self._load()

    def _load(self) -> None:
        configuration = kubernetes.client.Configuration()
        configuration.connection_pool_maxsize = self._connections
        try:
            kubernetes.config.load_kube_config(
                config_file=self.path, client_configuration=configuration
            )
        except (ConfigException, OSError, ValueError) as exc:
            raise ConfigError(f"kubeconfig {self.path}: {exc}") from exc
        self._configuration: Any = configuration
        self._pool = kubernetes.client.ApiClient(configuration).rest_client.pool_manager
        self._loaded_at = time.monotonic()

    def _reload(self) -> None:
        """Read the kubeconfig again: its token or certificate may be new."""
        with self._lock:
            if time.monotonic() - self._loaded_at < RELOAD_INTERVAL_S:
                return
            self._loaded_at = time.monotonic()
            self._load()

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json"}
        for auth in self._configuration.auth_settings().values():
            if auth.get("in") == "header" and auth.get("value"):
                headers[auth["key"]] = auth["value"]
        return headers

    def _open(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "application/json",
        stream: bool = False,
        read_timeout_s: float = READ_TIMEOUT_S,
    ) -> urllib3.BaseHTTPResponse:
        headers = self._headers()
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = content_type
        try:
            response: urllib3.BaseHTTPResponse = self._pool.request(
                method,
                self._configuration.host.rstrip("/") + path,
                body=data,
                headers=headers,
                preload_content=not stream,
                timeout=urllib3.Timeout(connect=CONNECT_TIMEOUT_S, read=read_timeout_s),
                # Repeating is the command queue's business, which knows what
                # may be repeated and when.
                retries=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as exc:
            self._try_reload()
            raise ApiError(0, "Unreachable", str(exc)) from exc
        if response.status >= 300:
            error = ApiError.from_response(
                response.status, response.data, response.headers.get("Retry-After")
            )
            response.release_conn()
            if error.status == 401:
                self._try_reload()
            raise error
        return response

    def _try_reload(self) -> None:
        try:
            self._reload()
        except ConfigError:
            # The file is being written, or gone: go on with what we have.
            pass

    def _request(self, method: str, path: str, *args: Any) -> Object:
        data = self._open(method, path, *args).data
        try:
            answer = json.loads(data)
        except ValueError as exc:
            raise ApiError(0, "BadAnswer", f"{method} {path}: {exc}") from exc
        if not isinstance(answer, dict):
            raise ApiError(0, "BadAnswer", f"{method} {path}: not a JSON object")
        return answer

    def version(self, group: str) -> str:
        """The newest version of an API group that the server offers.

        Raises:
            ApiError: the group is not there, or the server cannot be asked.
        """
        if not group:
            return "v1"
        version = self._versions.get(group)
        if version is None:
            answer = self._request("GET", f"/apis/{quote(group)}")
            try:
                version = newest(v["version"] for v in answer["versions"])
            except (KeyError, TypeError, ValueError) as exc:
                raise ApiError(
                    0, "BadAnswer", f"API group {group} lists no versions"
                ) from exc
            self._versions[group] = version
        return version

    def _path(self, res: Resource, namespace: str = "", name: str = "") -> str:
        version = self.version(res.group)
        root = f"/apis/{res.group}/{version}" if res.group else f"/api/{version}"
        if namespace:
            root += f"/namespaces/{quote(namespace, safe='')}"
        root += f"/{res.plural}"
        return root + f"/{quote(name, safe='')}" if name else root

    def may(self, res: Resource, verb: str, namespace: str = "") -> bool:
        """Whether we may do that, as the API server says; "" is everywhere."""
        review = self._request(
            "POST",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {
                    "resourceAttributes": {
                        "group": res.group,
                        "resource": res.plural,
                        "verb": verb,
                        "namespace": namespace,
                    }
                },
            },
        )
        return bool((review.get("status") or {}).get("allowed"))

    def get(self, plural: str, namespace: str, name: str) -> Object:
        """Read one object."""
        return self._request("GET", self._path(RESOURCES[plural], namespace, name))

    def create(self, plural: str, namespace: str, obj: Object) -> Object:
        """Create an object; apiVersion and kind are filled in."""
        res = RESOURCES[plural]
        version = self.version(res.group)
        body = dict(obj)
        body["apiVersion"] = f"{res.group}/{version}" if res.group else version
        body["kind"] = res.kind
        return self._request("POST", self._path(res, namespace), body)

    def patch(self, plural: str, namespace: str, name: str, patch: Object) -> Object:
        """Apply a JSON merge patch (RFC 7396)."""
        return self._request(
            "PATCH",
            self._path(RESOURCES[plural], namespace, name),
            patch,
            "application/merge-patch+json",
        )

    def delete(self, plural: str, namespace: str, name: str) -> Object:
        """Delete an object; with finalizers it stays until they are gone."""
        return self._request("DELETE", self._path(RESOURCES[plural], namespace, name))

    def list_all(
        self, plural: str, selector: str = "", limit: int = 500
    ) -> tuple[list[Object], str]:
        """All objects of a kind in every namespace.

        Args:
            selector: label selector, or "" for all.
            limit: objects per request.
        Returns:
            The objects and the resource version to watch from.
        """
        path = self._path(RESOURCES[plural])
        objects: list[Object] = []
        token = ""
        while True:
            query = {"limit": str(limit)}
            if selector:
                query["labelSelector"] = selector
            if token:
                query["continue"] = token
            answer = self._request("GET", f"{path}?{urlencode(query)}")
            objects.extend(answer.get("items") or [])
            metadata = answer.get("metadata") or {}
            token = metadata.get("continue") or ""
            if not token:
                return objects, str(metadata.get("resourceVersion") or "")

    def watch(
        self, plural: str, resource_version: str, selector: str, timeout_s: int
    ) -> WatchStream:
        """Open a watch of a kind in every namespace, with bookmarks."""
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(timeout_s),
        }
        if selector:
            query["labelSelector"] = selector
        path = f"{self._path(RESOURCES[plural])}?{urlencode(query)}"
        # The server closes the stream after timeout_s: silence much beyond
        # that is a connection that died without a word.
        return WatchStream(
            self._open("GET", path, stream=True, read_timeout_s=timeout_s + 10.0)
        )


class WatchStream:
    """The events of one watch request, as (type, object) pairs."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self._response = response

    def __iter__(self) -> Iterator[tuple[str, Object]]:
        """Yield events until the server ends the stream.

        Raises:
            ApiError: the stream broke, or carried an ERROR event.
        """
        pending = b""
        try:
            for chunk in self._response.stream(None, decode_content=True):
                *lines, pending = (pending + chunk).split(b"\n")
                for line in lines:
                    if line.strip():
                        yield self._event(line)
        except (urllib3.exceptions.HTTPError, OSError, AttributeError) as exc:
            # urllib3 raises AttributeError when close () comes while it reads
            raise ApiError(0, "Unreachable", f"watch ended: {exc}") from exc

    @staticmethod
    def _event(line: bytes) -> tuple[str, Object]:
        try:
            event = json.loads(line)
            kind, obj = event["type"], event["object"]
        except (ValueError, KeyError, TypeError) as exc:
            raise ApiError(0, "BadAnswer", f"watch event: {exc}") from exc
        if kind == "ERROR":
            raise ApiError(
                int(obj.get("code") or 0),
                str(obj.get("reason") or ""),
                str(obj.get("message") or "watch error"),
            )
        return kind, obj

    def close(self) -> None:
        """End the stream, from any thread, even while another one reads."""
        shutdown = getattr(self._response, "shutdown", None)
        if shutdown is not None:  # urllib3 2.3 and newer
            try:
                shutdown()
            except (ValueError, OSError, RuntimeError):
                pass
            return
        self._response.close()
