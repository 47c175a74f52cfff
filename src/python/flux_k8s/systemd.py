# Notifies systemd that the service is ready and alive (sd_notify protocol).
# SPDX-License-Identifier: LGPL-3.0-only
"""Notifications to the service manager, if there is one."""

from __future__ import annotations

import os
import socket


def notify(state: str) -> None:
    """Send one notification, such as "READY=1", if systemd expects any."""
    path = os.environ.get("NOTIFY_SOCKET")
    if not path:
        return
    if path.startswith("@"):
        path = "\0" + path[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.connect(path)
            sock.send(state.encode())
    except OSError:
        # A restart of systemd, or the lack of file descriptors, must not end the
        # service.
        pass


def watchdog_interval_s() -> float | None:
    """The interval for "WATCHDOG=1" in seconds, half of systemd's limit; None without a
    watchdog."""
    usec = os.environ.get("WATCHDOG_USEC", "")
    pid = os.environ.get("WATCHDOG_PID")
    if not usec.isdigit() or (pid and pid != str(os.getpid())):
        return None
    return int(usec) / 2e6
