# SPDX-License-Identifier: LGPL-3.0-only
"""The table [exec] of the configuration, for job-exec."""

import re
import signal
from typing import Any

UNITS = {"": 1.0, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
NUMBER = (int, float)
KEYS: dict[str, tuple] = {
    "max-start-delay-percent": (NUMBER, 25.0),
    "kill-timeout": (str, "5s"),
    "term-signal": (str, "SIGTERM"),
    "kill-signal": (str, "SIGKILL"),
    "max-kill-count": (int, 8),
    "job-shell": (str, ""),
}


def parse_duration(text: str) -> float:
    """Seconds, as "1.5s", "10m", "2h", "100ms", or without a unit."""
    found = re.fullmatch(r"([0-9.]+(?:[eE][-+]?[0-9]+)?)([a-z]*)", text)
    if not found or found[2] not in UNITS:
        raise ValueError(text)
    return float(found[1]) * UNITS[found[2]]


class Config:
    def __init__(self, conf: dict) -> None:
        self.table: Any = conf.get("exec", {})
        if not isinstance(self.table, dict):
            raise ValueError("[exec] is not a table")
        self.max_start_delay_percent = float(self.get("max-start-delay-percent"))
        text = self.get("kill-timeout")
        try:
            self.kill_timeout = parse_duration(text)
        except ValueError:
            self.kill_timeout = 0.0
        if self.kill_timeout == 0.0:
            raise ValueError(f"[exec] invalid kill-timeout: {text}")
        self.term_signal = self.signal("term-signal")
        self.kill_signal = self.signal("kill-signal")
        self.max_kill_count = self.get("max-kill-count")
        if self.max_kill_count <= 0:
            text = f"max-kill-count={self.max_kill_count}: no such number"
            raise ValueError(f"[exec] {text}")
        self.job_shell = self.get("job-shell")

    def get(self, key: str) -> Any:
        kind, default = KEYS[key]
        value = self.table.get(key, default)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ValueError(f"[exec] {key} has a value of the wrong type")
        return value

    def signal(self, key: str) -> int:
        """By name, with or without SIG, or by number."""
        text = self.get(key)
        for sig in signal.Signals:
            if text in (sig.name, sig.name[3:], str(int(sig))):
                return int(sig)
        raise ValueError(f"[exec] invalid {key}: {text}")
