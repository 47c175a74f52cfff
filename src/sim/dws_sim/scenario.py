# Scenarios: presets and YAML files that set the switches before the start.
# SPDX-License-Identifier: LGPL-3.0-only
"""Scenario files."""

from __future__ import annotations

from typing import Any

import yaml

from dws_sim.faults import SEVERITIES, Failure, Faults, Hold, Latency, check_state

# Seconds by state; "mount" is one mount or unmount on one node.
PRESETS: dict[str, dict[str, Any]] = {
    "instant": {},
    "demo": {
        "Proposal": 0.3,
        "Setup": 0.6,
        "DataIn": 0.2,
        "PreRun": 0.5,
        "PostRun": 0.4,
        "DataOut": 0.2,
        "Teardown": 0.5,
    },
    "tuolumne": {
        "Proposal": [2.0, 4.5],
        "Setup": [10.0, 30.0],
        "DataIn": [0.1, 0.5],
        "PreRun": [5.0, 15.0],
        "PostRun": [3.0, 10.0],
        "DataOut": [0.1, 0.5],
        "Teardown": [5.0, 20.0],
        "mount": [0.2, 2.0],
    },
    "elcap": {
        "Proposal": [2.0, 8.0],
        "Setup": [20.0, 90.0],
        "DataIn": [0.1, 1.0],
        "PreRun": [10.0, 60.0],
        "PostRun": [10.0, 60.0],
        "DataOut": [0.1, 1.0],
        "Teardown": [10.0, 120.0],
        "mount": [0.5, 10.0],
    },
}
_FAILURE_KEYS = {"state", "severity", "message", "count", "workflow", "probability"}


def _set_latencies(faults: Faults, values: Any) -> None:
    if not isinstance(values, dict):
        raise ValueError("latency must map states to seconds")
    for state, value in values.items():
        if state == "mount":
            faults.mount_latency = Latency.parse(value)
        elif state == "copy":
            faults.copy_latency = Latency.parse(value)
        else:
            faults.latencies[check_state(state)] = Latency.parse(value)


def _failure(entry: Any) -> Failure:
    if not isinstance(entry, dict) or set(entry) - _FAILURE_KEYS:
        raise ValueError(f"a failure has the keys {', '.join(sorted(_FAILURE_KEYS))}")
    severity = entry.get("severity", "Fatal")
    if severity not in SEVERITIES:
        raise ValueError(f"severity must be one of {', '.join(SEVERITIES)}")
    count, probability = entry.get("count"), entry.get("probability", 1.0)
    if count is not None and not (isinstance(count, int) and count > 0):
        raise ValueError("count must be a positive integer")
    if not isinstance(probability, (int, float)) or not 0 <= probability <= 1:
        raise ValueError("probability must be between 0 and 1")
    return Failure(
        severity,
        str(entry.get("message", "simulated failure")),
        count,
        str(entry.get("workflow", "*")),
        float(probability),
    )


def load(text: str, faults: Faults) -> None:
    """Set switches from the text of a scenario file: a map with the keys
    preset, latency, hold, fail, hang-mount.

    Raises:
        ValueError: it is no scenario.
    """
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as exc:
        raise ValueError(str(exc)) from exc
    known = {"preset", "seed", "latency", "hold", "fail", "hang-mount"}
    if not isinstance(data, dict) or set(data) - known:
        raise ValueError(f"a scenario has the keys {', '.join(sorted(known))}")
    if "preset" in data:
        apply_preset(data["preset"], faults)
    _set_latencies(faults, data.get("latency", {}))
    for state in data.get("hold", []):
        faults.holds.setdefault(check_state(state), []).append(Hold())
    for entry in data.get("fail", []):
        failure = _failure(entry)
        faults.failures.setdefault(check_state(entry.get("state")), []).append(failure)
    faults.hung_nodes.update(str(n) for n in data.get("hang-mount", []))


def seed_of(text: str) -> int:
    """The seed in a scenario, or 0.

    Raises:
        ValueError: it is no number.
    """
    data = yaml.safe_load(text)
    seed = data.get("seed", 0) if isinstance(data, dict) else 0
    if not isinstance(seed, int):
        raise ValueError("seed must be an integer")
    return seed


def apply_preset(name: Any, faults: Faults) -> None:
    """Raises ValueError for an unknown preset."""
    if name not in PRESETS:
        raise ValueError(f"no such preset: {name!r} (one of {', '.join(PRESETS)})")
    _set_latencies(faults, PRESETS[name])
