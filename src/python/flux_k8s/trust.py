# Whether what answers at the address of a kubeconfig has to prove that it is
# Kubernetes, and whether others can read along.
# SPDX-License-Identifier: LGPL-3.0-only
"""What makes a connection to Kubernetes insecure."""

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
    """What is wrong with a server's address, "" if nothing is.

    Args:
        server: as the kubeconfig has it; without a scheme it stands for http.
        verify: whether the server's certificate is looked at.
    """
    if not verify:
        return "insecure-skip-tls-verify: anybody may pass for Kubernetes"
    try:
        parts = urlsplit(server if "://" in server else f"http://{server}")
        if parts.scheme == "https" or _is_loopback(parts.hostname):
            return ""
    except ValueError:
        pass  # no address at all
    return f"http to {server}: anybody on the way can read and change it"
