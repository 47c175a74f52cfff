# Scenarios: presets and YAML files that set the switches before the start.
# SPDX-License-Identifier: LGPL-3.0-only
"""Scenario files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from dws_sim.ctl import parse_command
from dws_sim.faults import (
    SEVERITIES,
    Failure,
    Faults,
    Hold,
    Latency,
    check_state,
    check_timed,
)
from dws_sim.jsontree import Object
from dws_sim.states import FS_TYPES

# Seconds by state, or by state and type of file system; "empty" is a state in which no
# driver has work, "mount" one mount or unmount on one node. On real systems a Lustre
# job takes three quarters of a minute from its allocation to its variables, Proposal
# some seconds, and a few nodes very long to unmount.
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
    # DWS and NNF with simulated drives and file systems, on an idle machine
    "nnf": {
        "empty": 0.06,
        "Proposal": 0.2,
        "Setup": [0.3, 0.5],
        "Setup lustre": 1.1,
        "DataIn": [0.4, 0.5],
        "PreRun": [2.3, 2.5],
        "PreRun raw": 0.7,
        "PreRun lustre": 0.3,
        "PostRun": [1.1, 1.3],
        "PostRun lustre": 0.3,
        "DataOut": [0.25, 0.4],
        "Teardown": [0.3, 0.7],
        "Teardown lustre": 4.4,
    },
    "tuolumne": {
        "Proposal": [2.0, 4.5],
        "Setup": {"median": 25.0, "p95": 60.0},
        "DataIn": [0.1, 0.5],
        "PreRun": {"median": 18.0, "p95": 45.0},
        "PostRun": {"median": 8.0, "p95": 30.0},
        "DataOut": [0.1, 0.5],
        "Teardown": {"median": 12.0, "p95": 45.0},
        "mount": {"median": 0.5, "p95": 3.0},
        "copy": {"median": 60.0, "p95": 900.0},
    },
    "elcap": {
        "Proposal": [2.0, 8.0],
        "Setup": {"median": 45.0, "p95": 180.0},
        "DataIn": [0.1, 1.0],
        "PreRun": {"median": 30.0, "p95": 100.0},
        "PostRun": {"median": 20.0, "p95": 100.0},
        "DataOut": [0.1, 1.0],
        "Teardown": {"median": 30.0, "p95": 180.0},
        "mount": {"median": 1.0, "p95": 10.0},
        "copy": {"median": 120.0, "p95": 1800.0},
    },
}
# Other settings of presets: requests per second of each controller, and the probability
# of transient faults in healthy workflows.
TROUBLE: dict[str, dict[str, float]] = {"nnf": {"requests": 20, "stumble": 0.3}}
# Commands that change nothing.
_QUESTIONS = ("state", "wait-idle", "wait-state")
_FAILURE_KEYS = {
    "state",
    "severity",
    "message",
    "count",
    "workflow",
    "probability",
    "type",
}


def _set_latencies(faults: Faults, values: Any) -> None:
    if not isinstance(values, dict):
        raise ValueError("latency must map states to seconds")
    for state, value in values.items():
        if state == "mount":
            faults.mount_latency = Latency.parse(value)
        elif state == "copy":
            faults.copy_latency = Latency.parse(value)
        else:
            faults.latencies[check_timed(str(state))] = Latency.parse(value)


def _set_requests(faults: Faults, value: Any) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        raise ValueError("requests must be a number for each second, or 0: no limit")
    faults.requests_per_s = float(value)


def _set_stumble(faults: Faults, value: Any) -> None:
    if value is None:
        return
    if not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise ValueError("stumble must be a probability between 0 and 1")
    faults.stumble = float(value)


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
    fs_type = entry.get("type", "")
    if fs_type and fs_type not in FS_TYPES:
        raise ValueError(f"type must be one of {', '.join(FS_TYPES)}")
    return Failure(
        severity,
        str(entry.get("message", "simulated failure")),
        count,
        str(entry.get("workflow", "*")),
        float(probability),
        fs_type,
    )


@dataclass(frozen=True)
class Step:
    """A command to run some time after the start."""

    after_s: float
    command: str
    args: Object


def _hold(faults: Faults, entry: Any) -> None:
    if isinstance(entry, str):
        entry = {"state": entry}
    if not isinstance(entry, dict) or set(entry) - {"state", "workflow", "late"}:
        raise ValueError("hold lists states, or maps of state, workflow and late")
    state = check_state(str(entry.get("state")))
    late = bool(entry.get("late", False))
    hold = Hold(str(entry.get("workflow", "*")), late)
    faults.holds.setdefault(state, []).append(hold)


def _step(entry: Any) -> Step:
    if not isinstance(entry, dict) or set(entry) - {"after", "do"}:
        raise ValueError("a step has the keys after and do")
    after = entry.get("after", 0)
    if not isinstance(after, (int, float)) or after < 0:
        raise ValueError("after must be seconds, not negative")
    command, args = parse_command(str(entry.get("do", "")))
    if command in _QUESTIONS:
        raise ValueError(f"{command} is nothing to do in a scenario")
    return Step(float(after), command, args)


def _list(data: Object, key: str) -> list[Any]:
    value = data.get(key, [])
    if not isinstance(value, list):
        raise ValueError(f"{key} must be a list")
    return value


def load(text: str, faults: Faults) -> list[Step]:
    """Set switches from the text of a scenario file: a map with the keys
    preset, seed, latency, requests, hold, fail, hang-mount, stumble, steps. Returns
    the steps.

    Raises:
        ValueError: it is no scenario.
    """
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as exc:
        raise ValueError(str(exc)) from exc
    known = {
        "preset",
        "seed",
        "latency",
        "requests",
        "hold",
        "fail",
        "hang-mount",
        "stumble",
        "steps",
    }
    if not isinstance(data, dict) or set(data) - known:
        raise ValueError(f"a scenario has the keys {', '.join(sorted(known))}")
    if "preset" in data:
        apply_preset(data["preset"], faults)
    _set_latencies(faults, data.get("latency", {}))
    _set_requests(faults, data.get("requests"))
    for entry in _list(data, "hold"):
        _hold(faults, entry)
    for entry in _list(data, "fail"):
        failure = _failure(entry)
        faults.failures.setdefault(check_state(entry.get("state")), []).append(failure)
    _set_stumble(faults, data.get("stumble"))
    faults.hung_nodes.update(str(n) for n in _list(data, "hang-mount"))
    return [_step(entry) for entry in _list(data, "steps")]


def seed_of(text: str) -> int:
    """The seed in a scenario, or 0.

    Raises:
        ValueError: it is no number, or this is no scenario.
    """
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as exc:
        raise ValueError(str(exc)) from exc
    seed = data.get("seed", 0) if isinstance(data, dict) else 0
    if not isinstance(seed, int):
        raise ValueError("seed must be an integer")
    return seed


def apply_preset(name: Any, faults: Faults) -> None:
    """Raises ValueError for an unknown preset."""
    if name not in PRESETS:
        raise ValueError(f"no such preset: {name!r} (one of {', '.join(PRESETS)})")
    _set_latencies(faults, PRESETS[name])
    trouble = TROUBLE.get(name, {})
    _set_requests(faults, trouble.get("requests"))
    _set_stumble(faults, trouble.get("stumble"))
