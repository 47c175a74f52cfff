# Whether the API server of a kubeconfig is authenticated, and whether its connection is
# encrypted.
# SPDX-License-Identifier: LGPL-3.0-only
"""Faults that make a connection to Kubernetes insecure."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def _is_loopback(host: str | None) -> bool:
    if host == "localhost":
        return True
    try:
        return host is not None and ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def insecurity(server: str, verify: bool) -> str:
    """The reason why a connection is insecure, "" if it is secure.

    Args:
        server: address in the kubeconfig; without a scheme it means http.
        verify: whether the server's certificate is verified.
    """
    if not verify:
        return "insecure-skip-tls-verify: anybody may pass for Kubernetes"
    try:
        parts = urlsplit(server if "://" in server else f"http://{server}")
        if parts.scheme == "https" or _is_loopback(parts.hostname):
            return ""
    except ValueError:
        pass  # not an address
    return f"http to {server}: anybody on the way can read and change it"
