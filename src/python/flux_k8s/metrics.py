# Serves the counters of module and agent to Prometheus, from a thread of its own: on a
# loopback port, or on a socket for the instance owner. doc/metrics.md lists them.
# SPDX-License-Identifier: LGPL-3.0-only
"""Metrics for Prometheus (rabbit.metrics)."""

from __future__ import annotations

import logging
import os
import socket
import socketserver
import stat
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any, Callable

import flux
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector as BaseCollector
from prometheus_client.registry import CollectorRegistry

from flux_k8s import names
from flux_k8s.stats import BOUNDS_S, Stats

LOGGER = logging.getLogger(__name__)

MODULE_TIMEOUT_S = 5.0
# Time limit of a scrape, after which the connection is closed.
CLIENT_TIMEOUT_S = 10.0
# Limit on concurrent scrapes, with a thread for each: any user of the node can connect
# to the port.
CONNECTIONS = 8
UNIX = "unix:"


def module_status() -> dict[str, Any] | None:
    """The module's answer to dws.status, None without one. Opens a handle of its own,
    as a handle belongs to one thread."""
    try:
        handle = flux.Flux()
        answer = handle.rpc(names.TOPIC_STATUS, {}, nodeid=0)
        answer.wait_for(MODULE_TIMEOUT_S)
        status: dict[str, Any] = answer.get()
        return status
    except OSError:
        return None


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _by(
    family: type[CounterMetricFamily] | type[GaugeMetricFamily],
    name: str,
    text: str,
    label: str,
    values: dict[str, float],
) -> Metric:
    metric = family(name, text, labels=[label])
    for key, value in values.items():
        metric.add_metric([key], value)
    return metric


class Collector(BaseCollector):
    """Collects all metrics at the time of a scrape.

    Args:
        stats: the agent's counters.
        status: requests those of the module.
    """

    def __init__(
        self,
        stats: Stats,
        status: Callable[[], dict[str, Any] | None] = module_status,
    ) -> None:
        self._stats = stats
        self._status = status

    def collect(self) -> Iterator[Metric]:
        yield from self._module()
        yield from self._requests()

    def _module(self) -> Iterator[Metric]:
        status = self._status()
        text = "Whether the broker module dws answers (1) or not (0)."
        yield _gauge("flux_dws_up", text, status is not None)
        if status is None:
            return
        agent = status.get("agent") or {}
        yield _gauge(
            "flux_dws_synced",
            "Whether the module knows all jobs and workflows (1).",
            bool(status.get("synced")) and bool(agent.get("synced")),
        )
        yield _gauge(
            "flux_dws_kubernetes_up",
            "Whether the agent reaches the Kubernetes API server (1).",
            bool(agent.get("reachable")),
        )
        yield _by(
            GaugeMetricFamily,
            "flux_dws_jobs",
            "Rabbit jobs that are active, by phase.",
            "phase",
            status.get("phases") or {},
        )
        yield _by(
            GaugeMetricFamily,
            "flux_dws_workflows",
            "Workflows of this instance, by state.",
            "state",
            status.get("states") or {},
        )
        yield _gauge(
            "flux_dws_commands",
            "Commands of the module that have no result yet.",
            agent.get("commands") or 0,
        )
        yield _by(
            GaugeMetricFamily,
            "flux_dws_agent_commands",
            "Commands in the agent: running, waiting to be repeated, queued.",
            "doing",
            (agent.get("api") or {}).get("queue") or {},
        )
        losses = status.get("losses") or {}
        yield _gauge(
            "flux_dws_losses",
            "Jobs whose failed stage-out nobody has acknowledged.",
            losses.get("listed") or 0,
        )
        yield CounterMetricFamily(
            "flux_dws_failed_stageouts",
            "Jobs whose data was not staged out after their end.",
            value=losses.get("total") or 0,
        )
        yield CounterMetricFamily(
            "flux_dws_remade_workflows",
            "Workflows that were made anew, as NNF had failed them by its own race.",
            value=status.get("remade") or 0,
        )
        yield from self._rabbits(status.get("rabbits") or {})

    def _rabbits(self, totals: dict[str, Any]) -> Iterator[Metric]:
        yield _gauge(
            "flux_dws_rabbit_capacity_bytes",
            "Storage of all rabbits.",
            totals.get("capacity") or 0,
        )
        yield _gauge(
            "flux_dws_rabbit_used_bytes",
            "Storage that jobs of this instance hold.",
            totals.get("used") or 0,
        )
        yield _gauge(
            "flux_dws_rabbit_foreign_bytes",
            "Storage that no job holds: persistent, or of other clients.",
            totals.get("foreign") or 0,
        )
        yield _by(
            GaugeMetricFamily,
            "flux_dws_rabbits",
            "Rabbits by the status that Kubernetes shows.",
            "status",
            totals.get("states") or {},
        )

    def _requests(self) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "flux_dws_api_requests",
            "Requests to Kubernetes, by HTTP status (0: no answer).",
            labels=["verb", "kind", "code"],
        )
        seconds = HistogramMetricFamily(
            "flux_dws_api_request_seconds",
            "How long requests to Kubernetes took until the answer began.",
            labels=["verb"],
        )
        with self._stats.lock:
            for (verb, kind, status), count in self._stats.requests.items():
                requests.add_metric([verb, kind, str(status)], count)
            for verb, latency in self._stats.latency.items():
                total, buckets = 0, []
                for bound, count in zip((*BOUNDS_S, "+Inf"), latency.buckets):
                    total += count
                    buckets.append((str(bound), float(total)))
                seconds.add_metric([verb], buckets, latency.total_s)
            retries = {str(s): float(n) for s, n in self._stats.retries.items()}
            events = {kind: float(n) for kind, n in self._stats.events.items()}
            lists = {kind: float(n) for kind, n in self._stats.lists.items()}
            refused = {kind: float(n) for kind, n in self._stats.refused.items()}
        yield requests
        yield seconds
        yield _by(
            CounterMetricFamily,
            "flux_dws_api_retries",
            "Commands that had to be repeated, by HTTP status (0: no answer).",
            "code",
            retries,
        )
        yield _by(
            CounterMetricFamily,
            "flux_dws_watch_events",
            "Changes that watches have told of.",
            "kind",
            events,
        )
        yield _by(
            CounterMetricFamily,
            "flux_dws_watch_lists",
            "How often a kind was listed whole.",
            "kind",
            lists,
        )
        yield _by(
            CounterMetricFamily,
            "flux_dws_refused",
            "Objects with a field of another type than it has to be: not passed on.",
            "kind",
            refused,
        )


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def setup(self) -> None:
        self.request.settimeout(CLIENT_TIMEOUT_S)
        super().setup()

    def do_GET(self) -> None:  # the name is the base class's
        if self.path.split("?")[0] not in ("/metrics", "/"):
            self.send_error(404)
            return
        encode, kind = choose_encoder(self.headers.get("Accept", ""))
        body = encode(self.server.registry)
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        return "local"

    def log_message(self, format: str, *args: Any) -> None:
        LOGGER.debug("metrics: " + format, *args)


class _Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    allow_reuse_address = True
    daemon_threads = True
    registry: CollectorRegistry

    def __init__(self, *args: Any) -> None:
        self._open: dict[socket.socket, float] = {}  # when each was accepted
        self._full = False
        self._lock = threading.Lock()
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            if len(self._open) < CONNECTIONS:
                self._open[request] = time.monotonic()
                self._full = False
                full, news = False, False
            else:
                full, news, self._full = True, not self._full, True
        if not full:
            super().process_request(request, client_address)
            return
        if news:
            text = "metrics: %d scrapers at the same time: more are hung up on"
            LOGGER.warning(text, CONNECTIONS)
        super().shutdown_request(request)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Close connections that exceed their time; called every half second."""
        oldest = time.monotonic() - CLIENT_TIMEOUT_S
        with self._lock:
            for request, accepted in self._open.items():
                if accepted < oldest:
                    try:
                        request.shutdown(socket.SHUT_RDWR)
                    except OSError:
                        pass  # gone already

    def handle_error(self, request: Any, client_address: Any) -> None:
        LOGGER.debug("metrics: a scraper has gone")


class _Server6(_Server):
    address_family = socket.AF_INET6


class _UnixServer(_Server):
    address_family = socket.AF_UNIX
    allow_reuse_address = False
    # device and inode of our socket file
    made: tuple[int, int] | None = None

    def server_bind(self) -> None:
        path = str(self.server_address)
        # Remove the socket of a killed agent; bind() fails for any other file.
        try:
            if stat.S_ISSOCK(os.lstat(path).st_mode):
                os.unlink(path)
        except FileNotFoundError:
            pass
        self.socket.bind(path)
        self.made = self._file(path)
        # Restrict access before listen(), which lets clients connect.
        os.chmod(path, 0o600)

    def server_close(self) -> None:
        super().server_close()
        path = str(self.server_address)
        try:
            # A newer agent may have replaced our file by its own.
            if self.made is not None and self._file(path) == self.made:
                os.unlink(path)
        except FileNotFoundError:
            pass
        self.made = None

    @staticmethod
    def _file(path: str) -> tuple[int, int]:
        found = os.lstat(path)
        return found.st_dev, found.st_ino


class MetricsServer:
    """Serves a collector's metrics until closed.

    Raises:
        OSError: the address cannot be used.
    """

    def __init__(self, address: str, collector: BaseCollector) -> None:
        self.address = address
        registry = CollectorRegistry(auto_describe=False)
        registry.register(collector)
        self._server = self._open(address)
        self._server.registry = registry
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="metrics", daemon=True
        )
        self._thread.start()

    @staticmethod
    def _open(address: str) -> _Server:
        if address.startswith(UNIX):
            path: Any = address[len(UNIX) :]
            return _UnixServer(path, _Handler)
        host, _, port = address.rpartition(":")
        if host == "[::1]":
            return _Server6(("::1", int(port)), _Handler)
        return _Server(("127.0.0.1", int(port)), _Handler)

    @property
    def port(self) -> int:
        """The port of a TCP server; for port 0 the one that was assigned."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Stop serving, and remove the file of a socket."""
        self._server.shutdown()
        self._server.server_close()
