# HTTP by libcurl: a request costs a third of what it does in Python alone, most of
# that outside the interpreter's lock. Whom to trust, who we are and which proxy to
# take is what the kubernetes package has made of the kubeconfig.
# SPDX-License-Identifier: LGPL-3.0-only
"""Requests, and answers that go on and on."""

from __future__ import annotations

import math
import os
import select
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pycurl

CONNECT_TIMEOUT_S = 5.0

# A peer that is gone without a word (power, a firewall that has forgotten the
# connection) is noticed in half a minute, however long a watch may be silent.
KEEPALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 30_000),
]


class NoAnswer(Exception):
    """A request without a whole answer.

    Attributes:
        connected: whether there was a connection at all.
    """

    def __init__(self, message: str, connected: bool) -> None:
        super().__init__(message)
        self.connected = connected


@dataclass(frozen=True)
class Answer:
    """What a server has said."""

    status: int
    data: bytes
    headers: list[bytes]

    def header(self, name: str) -> str | None:
        """The value of a header."""
        start = name.lower().encode() + b":"
        for line in self.headers:
            if line.lower().startswith(start):
                return line[len(start) :].decode("latin-1").strip()
        return None


def _keep_alive(fd: int, _purpose: int) -> int:
    with_options = socket.socket(fileno=fd)
    try:
        for option in KEEPALIVE:
            with_options.setsockopt(*option)
    finally:
        with_options.detach()
    return 0


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


class Transport:
    """Connections to one server. Any thread.

    Args:
        host: the server's address, as the kubeconfig has it.
        pool: the urllib3.PoolManager that the kubernetes package has set up.
        connections: how many are kept open while nothing goes over them.
    """

    def __init__(self, host: str, pool: Any, connections: int) -> None:
        self._host = host.rstrip("/")
        self._connections = connections
        self._options = [*_plain_options(), *_proxy_options(pool)]
        self._own_headers: list[str] = []
        self._options += _tls_options(pool.connection_pool_kw)
        name = pool.connection_pool_kw.get("server_hostname")
        if name:
            self._rename(_text(name))
        self._idle: list[pycurl.Curl] = []

    def _rename(self, name: str) -> None:
        """The server's certificate has another name than its address: ask for
        that, at this address."""
        parts = urlsplit(self._host)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        where = (
            f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        )
        self._options.append((pycurl.CONNECT_TO, [f"{name}:{port}:{where}:{port}"]))
        self._own_headers = [f"Host: {parts.netloc}"]
        self._host = f"{parts.scheme}://{name}:{port}{parts.path}"

    def _prepare(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> pycurl.Curl:
        try:
            curl = self._idle.pop()
        except IndexError:
            curl = pycurl.Curl()
            for option, value in self._options:
                curl.setopt(option, value)
        curl.setopt(pycurl.URL, self._host + path)
        if body is None:
            curl.setopt(pycurl.HTTPGET, 1)
        else:
            curl.setopt(pycurl.POSTFIELDS, body)
        curl.setopt(pycurl.CUSTOMREQUEST, method)
        lines = [f"{name}: {value}" for name, value in headers.items()]
        curl.setopt(pycurl.HTTPHEADER, [*lines, *self._own_headers, "Expect:"])
        return curl

    def request(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | None,
        read_timeout_s: float,
    ) -> Answer:
        """Send a request and wait for its answer.

        Args:
            read_timeout_s: how long the server may be silent.
        Raises:
            NoAnswer: there is none.
        """
        curl = self._prepare(method, path, headers, body)
        curl.setopt(pycurl.LOW_SPEED_LIMIT, 1)
        curl.setopt(pycurl.LOW_SPEED_TIME, max(1, math.ceil(read_timeout_s)))
        data: list[bytes] = []
        lines: list[bytes] = []
        curl.setopt(pycurl.WRITEFUNCTION, data.append)
        curl.setopt(pycurl.HEADERFUNCTION, lines.append)
        try:
            curl.perform()
        except pycurl.error as exc:
            raise _no_answer(curl, *exc.args) from exc
        answer = Answer(curl.getinfo(pycurl.RESPONSE_CODE), b"".join(data), lines)
        if len(self._idle) < self._connections:
            self._idle.append(curl)
        return answer

    def stream(self, path: str, headers: Mapping[str, str], timeout_s: float) -> Stream:
        """Send a request whose answer goes on for at most so long.

        Raises:
            NoAnswer: it does not begin.
        """
        curl = self._prepare("GET", path, headers, None)
        curl.setopt(pycurl.LOW_SPEED_TIME, 0)
        curl.setopt(pycurl.TIMEOUT_MS, int(1000 * timeout_s))
        return Stream(curl)


class Stream:
    """An answer that goes on: iterate over it in one thread."""

    def __init__(self, curl: pycurl.Curl) -> None:
        self._curl = curl
        self._chunks: list[bytes] = []
        self._headers: list[bytes] = []
        self._done = False
        self._closed = False
        self._waker, self._wake = socket.socketpair()
        self._wake.setblocking(False)
        curl.setopt(pycurl.WRITEFUNCTION, self._chunks.append)
        curl.setopt(pycurl.HEADERFUNCTION, self._headers.append)
        self._multi = pycurl.CurlMulti()
        self._multi.add_handle(curl)
        try:
            while not self._done and not self._begun:
                self._turn()
        except NoAnswer:
            self._free()
            raise
        self.status: int = curl.getinfo(pycurl.RESPONSE_CODE)

    @property
    def _begun(self) -> bool:
        """An empty line ends the headers; those of an answer that comes before
        the real one (1xx, or that of a proxy) are passed over."""
        ended = bool(self._headers) and self._headers[-1] in (b"\r\n", b"\n")
        return ended and self._curl.getinfo(pycurl.RESPONSE_CODE) >= 200

    def _turn(self) -> None:
        """Wait for something to happen, and let it."""
        _, active = self._multi.perform()
        if not active:
            self._done = True
            _, _, failed = self._multi.info_read()
            for curl, code, message in failed:
                raise _no_answer(curl, code, message)
            return
        if self._chunks or self._begun and not hasattr(self, "status"):
            return
        readable, writable, odd = self._multi.fdset()
        wait_ms = self._multi.timeout()
        wait_s = None if wait_ms < 0 else wait_ms / 1000
        if not readable and not writable:
            # Nothing to wait for yet: a name is being looked up.
            wait_s = min(0.01 if wait_s is None else wait_s, 0.01)
        select.select([*readable, self._waker], writable, odd, wait_s)

    def __iter__(self) -> Iterator[bytes]:
        """Yield what comes until the server, or close(), ends it.

        Raises:
            NoAnswer: the connection broke.
        """
        try:
            while not self._closed:
                if self._chunks:
                    chunk = b"".join(self._chunks)
                    self._chunks.clear()
                    yield chunk
                elif self._done:
                    return
                else:
                    self._turn()
        finally:
            self._free()

    def answer(self) -> Answer:
        """All of it, of a refusal."""
        data = b"".join(self)
        return Answer(self.status, data, self._headers)

    def _free(self) -> None:
        self._multi.remove_handle(self._curl)
        self._multi.close()
        self._curl.close()

    def close(self) -> None:
        """End it, from any thread, even while another one reads."""
        self._closed = True
        try:
            self._wake.send(b"\0")
        except OSError:
            pass  # it is awake, or has ended


# Errors after which there was no connection, however far it had come.
_NO_CONNECTION = (
    pycurl.E_COULDNT_RESOLVE_PROXY,
    pycurl.E_COULDNT_RESOLVE_HOST,
    pycurl.E_COULDNT_CONNECT,
    pycurl.E_SSL_CONNECT_ERROR,
    pycurl.E_SSL_CERTPROBLEM,
    pycurl.E_SSL_CACERT,
)


def _no_answer(curl: pycurl.Curl, code: int, message: str) -> NoAnswer:
    asked = code not in _NO_CONNECTION and curl.getinfo(pycurl.REQUEST_SIZE) > 0
    turned_away = curl.getinfo(pycurl.HTTP_CONNECTCODE) >= 300
    cause = curl.getinfo(pycurl.OS_ERRNO)
    if cause and code == pycurl.E_COULDNT_CONNECT:
        message = f"{message} ({os.strerror(cause)})"
    return NoAnswer(message, asked and not turned_away)


def _plain_options() -> list[tuple[int, Any]]:
    return [
        (pycurl.NOSIGNAL, 1),
        (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
        (pycurl.DEFAULT_PROTOCOL, "http"),
        # One connection each: sharing one would cost more than it saves.
        (pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1),
        (pycurl.CONNECTTIMEOUT_MS, int(1000 * CONNECT_TIMEOUT_S)),
        (pycurl.SOCKOPTFUNCTION, _keep_alive),
    ]


def _proxy_options(pool: Any) -> list[tuple[int, Any]]:
    """The environment is the kubernetes package's to look at, not libcurl's."""
    proxy = getattr(pool, "proxy_url", None) or pool.proxy
    options: list[tuple[int, Any]] = [
        (pycurl.PROXY, str(proxy) if proxy is not None else ""),
        (pycurl.NOPROXY, ""),
    ]
    headers = getattr(pool, "proxy_headers", None) or {}
    if proxy is not None:
        lines = [f"{name}: {value}" for name, value in headers.items()]
        options += [
            (pycurl.HEADEROPT, pycurl.HEADER_SEPARATE),
            (pycurl.PROXYHEADER, lines),
        ]
    return options


def _tls_options(settings: Mapping[str, Any]) -> list[tuple[int, Any]]:
    options: list[tuple[int, Any]] = [(pycurl.SSLVERSION, pycurl.SSLVERSION_TLSv1_2)]
    verify = settings.get("cert_reqs") != ssl.CERT_NONE
    options.append((pycurl.SSL_VERIFYPEER, int(verify)))
    named = verify and settings.get("assert_hostname") is not False
    options.append((pycurl.SSL_VERIFYHOST, 2 if named else 0))
    default = ssl.get_default_verify_paths()
    ca_file = settings.get("ca_certs") or default.cafile
    files = {
        pycurl.CAINFO: ca_file,
        pycurl.CAPATH: None if settings.get("ca_certs") else default.capath,
        pycurl.SSLCERT: settings.get("cert_file"),
        pycurl.SSLKEY: settings.get("key_file"),
    }
    return options + [(option, _text(file)) for option, file in files.items() if file]
