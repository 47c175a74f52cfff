# How libcurl connects: trust, client certificate and proxy, as the kubernetes package
# has read them from the kubeconfig. transport.py sets these options on its handles.
# SPDX-License-Identifier: LGPL-3.0-only
"""Options of libcurl."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Mapping
from typing import Any

import pycurl

Options = list[tuple[int, Any]]

CONNECT_TIMEOUT_S = 5.0

# Detect a dead peer (power failure, a firewall that dropped the connection) within half
# a minute, also while a watch is silent.
KEEPALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 30_000),
]


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


def of_pool(pool: Any) -> Options:
    """Args:
    pool: the urllib3.PoolManager of the kubernetes package.
    """
    return [
        *_plain_options(),
        *_proxy_options(pool),
        *_tls_options(pool.connection_pool_kw),
    ]


def server_name(pool: Any) -> str | None:
    """The name in the server's certificate, if it is not that of its address."""
    name = pool.connection_pool_kw.get("server_hostname")
    return _text(name) if name else None


def _plain_options() -> Options:
    return [
        (pycurl.NOSIGNAL, 1),
        # Keep ".." in paths: it may be the name of an object.
        (pycurl.PATH_AS_IS, 1),
        (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
        (pycurl.DEFAULT_PROTOCOL, "http"),
        # HTTP/1.1, a connection per request: multiplexing would cost more than it
        # saves.
        (pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1),
        (pycurl.CONNECTTIMEOUT_MS, int(1000 * CONNECT_TIMEOUT_S)),
        (pycurl.SOCKOPTFUNCTION, _keep_alive),
    ]


def _proxy_options(pool: Any) -> Options:
    """The proxy of the kubernetes package, so that libcurl ignores the environment."""
    proxy = getattr(pool, "proxy_url", None) or pool.proxy
    options: Options = [
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


def _tls_options(settings: Mapping[str, Any]) -> Options:
    options: Options = [(pycurl.SSLVERSION, pycurl.SSLVERSION_TLSv1_2)]
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
    # As bytes: pycurl takes no name beyond ASCII as text.
    names = {option: os.fsencode(file) for option, file in files.items() if file}
    return options + list(names.items())
