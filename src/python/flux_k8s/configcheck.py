# flux-coral2-dws --check-config: reports every fault of the [rabbit] table and of the
# files that it names. The broker module would report only the first.
# SPDX-License-Identifier: LGPL-3.0-only
"""Check the configuration without using it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

from flux_k8s import brokerconfig, dws, program, resourceconfig, texts
from flux_k8s.kube import Kube
from flux_k8s.kubeconfig import ConfigError


def kubeconfig_fault(path: str | None, insecure: bool) -> str | None:
    """The fault of a kubeconfig in one line, or None."""
    try:
        Kube(path, insecure=insecure)
    except ConfigError as exc:
        return texts.clean(f"rabbit.kubeconfig: {exc}")
    return None


def faults(
    tables: dict[str, Any], kubeconfig: str | None = None, insecure: bool = False
) -> tuple[list[str], list[str]]:
    """The faults of a [rabbit] table and notes on it, a text for each.

    Args:
        tables: the whole configuration. Names of queues are not checked without
            [queues].
        kubeconfig: used instead of the one in the table.
        insecure: accept an insecure kubeconfig.
    """
    # Turn TOML dates into strings, as JSON has none and no key takes one.
    table = json.loads(json.dumps(tables.get("rabbit"), default=str))
    unread: list[str] = []
    if isinstance(table, dict):
        bad = {key: list(_no_numbers(table[key], f"rabbit.{key}")) for key in table}
        unread = [fault for key in bad for fault in bad[key]]
        table = {key: value for key, value in table.items() if not bad[key]}
    try:
        found, notes = dws.config_faults(table, tables.get("queues"))
    except ValueError as exc:
        found, notes = [str(exc)], []  # such as a NUL, which JSON of Flux has not
    found[:0] = unread
    path = table.get("kubeconfig") if isinstance(table, dict) else None
    if kubeconfig is not None or not any(map(_is_of_kubeconfig, found)):
        fault = kubeconfig_fault(kubeconfig or path, insecure)
        if fault is not None:
            found.append(fault)
    return found, notes


def _no_numbers(value: Any, key: str) -> Iterator[str]:
    """The faults of numbers that TOML has and JSON has not: nan, inf, and integers of
    more than 64 bits."""
    if isinstance(value, dict):
        for name, entry in value.items():
            yield from _no_numbers(entry, f"{key}.{name}")
    elif isinstance(value, list):
        for index, entry in enumerate(value):
            yield from _no_numbers(entry, f"{key}[{index}]")
    elif isinstance(value, (int, float)) and not -(2**63) <= value < 2**63:
        yield f"{key}: {value} is no number that Flux can read"


def _is_of_kubeconfig(fault: str) -> bool:
    return fault.startswith("rabbit.kubeconfig: ")


def run(path: str, kubeconfig: str | None = None, insecure: bool = False) -> int:
    """Check a file, a directory, or with "" the running instance.

    Returns:
        the exit code: 0 without faults, 1 with faults or if it cannot be read.
    """
    try:
        tables = resourceconfig.read(path) if path else brokerconfig.fetch()
    except (resourceconfig.ConfigError, OSError) as exc:
        print(f"flux-coral2-dws: {program.error_text(exc)}", file=sys.stderr)
        return 1
    if tables.get("rabbit") is None:
        where = path or "the configuration of the running instance"
        print(f"flux-coral2-dws: {where}: there is no [rabbit]", file=sys.stderr)
        return 1
    if not path or os.path.isdir(path):
        tables.setdefault("queues", {})  # this is all of the configuration
    found, notes = faults(tables, kubeconfig, insecure)
    for text in (*found, *notes):
        print(texts.clean(text), file=sys.stderr)
    return 1 if found else 0
