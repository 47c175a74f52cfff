# Tells systemd that the service is ready and alive (sd_notify protocol).
# SPDX-License-Identifier: LGPL-3.0-only
"""Notifications to the service manager; nothing happens without one."""

from __future__ import annotations

import os
import socket


def notify(state: str) -> None:
    """Send one notification, such as "READY=1", if somebody listens."""
    path = os.environ.get("NOTIFY_SOCKET")
    if not path:
        return
    if path.startswith("@"):
        path = "\0" + path[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(path)
            sock.send(state.encode())
        except OSError:
            # A manager that is restarting must not take the service with it.
            pass


def watchdog_interval_s() -> float | None:
    """How often to send "WATCHDOG=1": half of what systemd allows, or None
    when it does not watch."""
    usec = os.environ.get("WATCHDOG_USEC", "")
    pid = os.environ.get("WATCHDOG_PID")
    if not usec.isdigit() or (pid and pid != str(os.getpid())):
        return None
    return int(usec) / 2e6
