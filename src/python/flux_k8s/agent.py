# The agent's reactor side: attaches to the broker module, queues its commands, and
# reports their results and the changes that watches see. main.py runs it.
# SPDX-License-Identifier: LGPL-3.0-only
"""The agent between dws.so and Kubernetes (doc/protocol.md).

The agent has one thread, the reactor's: requests to Kubernetes are coroutines
(flux_k8s.loop). A new attachment needs no state of the old one, as it starts with a
full snapshot.
"""

from __future__ import annotations

import errno
import logging
import math
import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import flux
import flux.constants
from flux.core.inner import ffi, lib

from flux_k8s import configcheck, names, systemd
from flux_k8s.commands import CommandError, check_fields, failure
from flux_k8s.errors import ApiError
from flux_k8s.kube import Kube
from flux_k8s.kubeconfig import ConfigError
from flux_k8s.listwatch import backoff_s
from flux_k8s.loop import Loop
from flux_k8s.objects import parse, to_json
from flux_k8s.release import RELEASE
from flux_k8s.reports import Mailbox
from flux_k8s.session import Session
from flux_k8s.stats import Stats

if TYPE_CHECKING:
    from flux_k8s.metrics import MetricsServer

LOGGER = logging.getLogger(__name__)

# The module chooses the newest version that both speak (doc/protocol.md).
PROTOCOL_NEWEST = 2
PROTOCOL_OLDEST = 2
# Tells systemd not to restart an agent that another agent has replaced.
EXIT_REPLACED = 3
# The size of a request to the module balances the cost per request against the time
# for which one request blocks the module. Further requests are sent while the module
# works on the first, with at least REPORTS_PER_RPC reports: reports of the same object
# merge while they wait.
BYTES_PER_RPC = 16 << 10
RPCS_UNDER_WAY = 3
REPORTS_PER_RPC = 16
# Connections to Kubernetes besides one for each worker: the watches.
SPARE_CONNECTIONS = 4
STATS_INTERVAL_S = 2.0
# Retry an unusable kubeconfig after this multiple of the time that reading it took.
KUBE_RETRY_PART = 20
ATTACH_FIRST_S = 0.05
ATTACH_CAP_S = 5.0
# Cap on the pause between attachments while the API server keeps losing its state.
ANEW_CAP_S = 60.0


def payload(future: Any) -> bytes:
    """The payload of a response. Faster than future.get_str(), whose layers cost more
    than the rest of the work on a message.

    Raises:
        OSError: the response is an error, or missing.
    """
    text = ffi.new("char *[1]")
    if lib.flux_rpc_get(future.pimpl.handle, text) < 0:
        future.get_str()  # raises OSError with the text of the error
    return ffi.string(text[0]) if text[0] != ffi.NULL else b""


@dataclass(frozen=True)
class Overrides:
    """Settings from the command line.

    Attributes:
        kubeconfig: path, None for the one of the configuration.
        workers: concurrent requests to Kubernetes.
        insecure: accept a kubeconfig that does not authenticate the API server.
    """

    kubeconfig: str | None = None
    workers: int = 16
    insecure: bool = False


class Agent:
    """Runs in the reactor thread of a Flux handle until it is replaced.

    Args:
        handle: connection to the broker that runs dws.so.
        overrides: precede the configuration of Flux, which the module sends with each
            attachment.
    """

    def __init__(self, handle: flux.Flux, overrides: Overrides) -> None:
        self._handle = handle
        self._overrides = overrides
        self._config_error: ConfigError | None = None
        # the client of the last readable kubeconfig, and the fault of the present one
        self._kube: Kube | None = None
        self._kube_fault = ""
        self._kube_path: str | None = None
        self._kube_retry_at = 0.0
        self._stats = Stats()
        self._sent_stats: dict[str, Any] | None = None
        self._metrics: MetricsServer | None = None
        # the address to serve metrics at as soon as it is free
        self._metrics_wanted: str | None = None
        self._box = Mailbox()
        self._loop = Loop()
        self._alarm: Any = None  # the timer of the loop
        self._alarm_due = math.inf
        self._session: Session | None = None
        self._under_way = 0
        self._attempts = 0
        # consecutive attachments because Kubernetes has gone back
        self._anew = 0
        self._anew_at = -math.inf
        self._timer: Any = None
        self._stream: Any = None
        self._exit_code = 0

    def run(self) -> int:
        """Serve until replaced by a newer agent or told to end.

        Returns:
            the exit code for the process.
        Raises:
            OSError: the connection to the broker broke.
            ConfigError: the kubeconfig cannot be used.
        """
        requests = self._handle.fd_watcher_create(
            self._loop.fd, self._on_turn, flux.constants.FLUX_POLLIN
        )
        watchdog = None
        interval = systemd.watchdog_interval_s()
        if interval is not None:
            watchdog = self._handle.timer_watcher_create(
                interval, lambda *_: systemd.notify("WATCHDOG=1"), repeat=interval
            )
            watchdog.start()
        sigterm = self._handle.signal_watcher_create(
            signal.SIGTERM, lambda *_: self._handle.reactor_stop()
        )
        stats_timer = self._handle.timer_watcher_create(
            STATS_INTERVAL_S, self._on_stats_timer, repeat=STATS_INTERVAL_S
        )
        try:
            with requests, sigterm, stats_timer:
                self._attach()
                self._handle.reactor_run()
        finally:
            systemd.notify("STOPPING=1")
            self._end_session()
            self._serve_metrics(None)
            if watchdog is not None:
                watchdog.stop()
            self._loop.close()
        if self._config_error is not None:
            raise self._config_error
        return self._exit_code

    def _attach(self) -> None:
        self._stream = self._handle.rpc(
            names.TOPIC_AGENT,
            {
                "version": PROTOCOL_NEWEST,
                "oldest": PROTOCOL_OLDEST,
                "release": RELEASE,
                "batches": True,
            },
            nodeid=0,
            flags=flux.constants.FLUX_RPC_STREAMING,
        )
        self._stream.then(self._on_command)

    def _on_command(self, future: Any) -> None:
        is_old = future is not self._stream
        try:
            command = parse(payload(future))
        except OSError as exc:
            # Between attachments the end of the old one tells the reason: a newer
            # agent, or an unloaded module.
            if not is_old or self._stream is None:
                self._on_detached(exc)
            return
        if is_old:
            future.reset()
            return
        if command.get("op") == "hello":
            self._begin_session(command)
        elif self._session is not None:
            batch = command.get("op") == "batch"
            for one in command["commands"] if batch else (command,):
                if one.get("op") == "kubeconfig":
                    self._check_kubeconfig(one)
                else:
                    self._session.commands.submit(one)
            self._loop.begin()
            self._go_on()
        future.reset()

    def _check_kubeconfig(self, command: dict[str, Any]) -> None:
        """Check a kubeconfig before `flux config reload` accepts it."""
        result = {"type": "result", "seq": command.get("seq"), "ok": True}
        try:
            check_fields(command)
        except CommandError as exc:
            self._box.put({**result, **failure(ApiError(400, "BadRequest", str(exc)))})
            return
        fault = configcheck.kubeconfig_fault(
            self._overrides.kubeconfig or command.get("path"),
            self._overrides.insecure,
        )
        objects = [] if fault is None else [fault]
        self._box.put({**result, "objects": objects})

    def _on_turn(self, *_: Any) -> None:
        self._loop.turn()
        self._go_on()

    def _go_on(self) -> None:
        """Send the reports of a turn of the loop, and set the alarm for the next."""
        self._send()
        due = self._loop.due
        # Leave an early alarm alone: most are postponed, and it sets the next one.
        if due >= self._alarm_due:
            return
        self._alarm_due = due
        if self._alarm is not None:
            self._alarm.stop()
        self._alarm = self._handle.timer_watcher_create(
            max(0.0, due - time.monotonic()), self._on_alarm
        )
        self._alarm.start()

    def _on_alarm(self, *_: Any) -> None:
        self._alarm_due = math.inf
        self._on_turn()

    def _begin_session(self, hello: dict[str, Any]) -> None:
        instance, config = str(hello["instance"]), hello.get("config") or {}
        self._end_session()
        LOGGER.info("attached to instance %s", instance)
        self._attempts = 0
        workers = self._overrides.workers
        self._kube_path = self._overrides.kubeconfig or config.get("kubeconfig")
        kube = self._read_kubeconfig()
        if kube is None:
            self._handle.reactor_stop()
            return
        self._session = Session(
            kube,
            instance,
            self._loop,
            workers,
            self._box,
            hello.get("parts") or ("workflows",),
            self._attach_anew,
        )
        self._on_turn()
        self._serve_metrics(config.get("metrics"))
        systemd.notify("READY=1")

    def _read_kubeconfig(self) -> Kube | None:
        """The client for the configured kubeconfig. If that is unusable a running agent
        keeps its client; a starting one returns None and ends with an error."""
        began = time.monotonic()
        try:
            self._kube = Kube(
                self._kube_path,
                connections=self._overrides.workers + SPARE_CONNECTIONS,
                stats=self._stats,
                insecure=self._overrides.insecure,
                picked=True,
            )
        except ConfigError as exc:
            if self._kube is None:
                self._config_error = exc
            elif str(exc) != self._kube_fault:
                LOGGER.error(
                    "rabbit.kubeconfig: %s: what was read before stays in use", exc
                )
                self._kube_fault = str(exc)
            # A slow exec plugin blocks the reactor, so retry in proportion to its time.
            ended = time.monotonic()
            self._kube_retry_at = ended + KUBE_RETRY_PART * (ended - began)
            return self._kube
        if self._kube_fault:
            LOGGER.warning("kubeconfig %s can be read now", self._kube.path)
            self._kube_fault = ""
        return self._kube

    def _serve_metrics(self, address: str | None) -> None:
        """Serve metrics at an address, None: stop. An address in use is only logged and
        retried, as jobs do not depend on metrics."""
        if self._metrics is not None:
            if self._metrics.address == address:
                return
            self._metrics.close()
            self._metrics = None
        again = address is not None and address == self._metrics_wanted
        self._metrics_wanted = None
        if address is None:
            return
        try:
            # Import late: prometheus_client is needed for metrics only.
            from flux_k8s.metrics import Collector, MetricsServer

            self._metrics = MetricsServer(address, Collector(self._stats))
        except ImportError as exc:
            LOGGER.error("rabbit.metrics: %s", exc)
        except OSError as exc:
            if not again:
                LOGGER.error("rabbit.metrics: %s: %s", address, exc.strerror or exc)
            self._metrics_wanted = address

    def _on_stats_timer(self, *_: Any) -> None:
        if self._metrics_wanted is not None:
            self._serve_metrics(self._metrics_wanted)
        is_due = time.monotonic() >= self._kube_retry_at
        if self._kube_fault and self._session is not None and is_due:
            self._read_kubeconfig()
            if not self._kube_fault:
                self._end_session()
                self._stream = None
                self._attach()
                return
        # While reports wait for the module, add no numbers to them.
        if self._session is None or self._box:
            return
        stats = self._session.summary()
        if stats != self._sent_stats:
            self._sent_stats = stats
            self._box.put({"type": "stats", "stats": stats})
            self._send()

    def _end_session(self) -> None:
        self._sent_stats = None
        if self._session is not None:
            self._session.close()
            self._session = None
        # The next attachment starts with a snapshot.
        self._box.clear()

    def _on_detached(self, error: OSError) -> None:
        self._end_session()
        self._stream = None
        if error.errno == errno.ESTALE:
            LOGGER.warning("replaced by a newer agent, exiting")
            self._exit_code = EXIT_REPLACED
            self._handle.reactor_stop()
            return
        if error.errno == errno.EPERM:
            LOGGER.error("dws.agent: %s", error.strerror or error)
            self._exit_code = 1
            self._handle.reactor_stop()
            return
        self._attempts += 1
        if error.errno == errno.EAGAIN:
            LOGGER.info("dws.agent: %s", error.strerror or error)
        elif self._attempts == 1:
            # EPROTO: the module is too old or too new; another one may be loaded.
            wanted = "another" if error.errno == errno.EPROTO else "the module"
            LOGGER.warning(
                "dws.agent: %s, trying again until %s is there",
                error.strerror or error,
                wanted,
            )
        self._attach_later(backoff_s(self._attempts, ATTACH_FIRST_S, ATTACH_CAP_S))

    def _attach_anew(self, why: str) -> None:
        """Replace our own attachment: the module keeps the newest version that it has
        seen of each object until an agent attaches."""
        LOGGER.warning(
            "Kubernetes has gone back to an earlier state, as after the restore of a"
            " backup (%s): attaching anew",
            why,
        )
        now = time.monotonic()
        self._anew = self._anew + 1 if now - self._anew_at < 2 * ANEW_CAP_S else 1
        self._anew_at = now
        self._end_session()
        self._stream = None
        self._attach_later(backoff_s(self._anew, ATTACH_FIRST_S, ANEW_CAP_S))

    def _attach_later(self, delay_s: float) -> None:
        self._timer = self._handle.timer_watcher_create(
            delay_s, lambda *_: self._attach()
        )
        self._timer.start()

    def _send(self) -> None:
        """Send waiting reports in full requests. Send a partial request only when none
        is under way; until then reports merge."""
        while self._box and self._under_way < RPCS_UNDER_WAY:
            if self._under_way > 0 and len(self._box) < REPORTS_PER_RPC:
                return
            self._send_batch()

    def _send_batch(self) -> None:
        batch: list[bytes] = []
        size = 0
        while self._box and size < BYTES_PER_RPC:
            batch.append(to_json(self._box.take()))
            size += len(batch[-1])
        payload = b'{"reports":[%s]}' % b",".join(batch)
        self._under_way += 1
        self._handle.rpc(names.TOPIC_REPORT, payload, nodeid=0).then(self._on_sent)

    def _on_sent(self, future: Any) -> None:
        self._under_way -= 1
        try:
            payload(future)
        except OSError as exc:
            # The module is going: the next attachment sends a snapshot.
            LOGGER.warning("dws.report: %s", exc.strerror or exc)
        self._send()
