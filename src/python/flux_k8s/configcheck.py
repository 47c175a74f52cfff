# What flux-coral2-dws --check-config does: every fault of the [rabbit] table
# and of the files that it names, before the broker module refuses the first.
# SPDX-License-Identifier: LGPL-3.0-only
"""Check the configuration without using it."""

from __future__ import annotations

import json
import os
import stat
import sys
from typing import Any

from flux_k8s import brokerconfig, dws, resourceconfig, texts
from flux_k8s.kube import Kube
from flux_k8s.kubeconfig import ConfigError


def _check_mapping(path: str) -> str | None:
    """What is wrong with the rabbitmapping file."""
    try:
        with open(path, "rb") as stream:
            dws.nodes_per_rabbit("", dws.Raw(stream.read()))
    except OSError as exc:
        return f"rabbit.mapping: {path}: {exc.strerror}"
    except ValueError as exc:
        return f"rabbit.mapping: {path}: {exc}"
    return None


def _check_command(command: Any) -> str | None:
    """What is wrong with the program of notice_command, as the module has it."""
    path = command[0] if isinstance(command, list) and command else None
    if not isinstance(path, str) or not path.startswith("/"):
        return None  # which libdws has told of, or there is no command
    try:
        found = os.stat(path)
    except OSError as exc:
        return f"rabbit.notice_command: {path}: {exc.strerror}"
    if not stat.S_ISREG(found.st_mode) or not os.access(path, os.X_OK):
        return f"rabbit.notice_command: {path} is not a program that can be run"
    if found.st_uid not in (0, os.getuid()) or found.st_mode & 0o022:
        return (
            f"rabbit.notice_command: {path} can be written to by others: "
            "chown root, chmod go-w"
        )
    return None


def _check_kubeconfig(path: str | None, insecure: bool) -> str | None:
    try:
        Kube(path, insecure=insecure)
    except ConfigError as exc:
        return f"rabbit.kubeconfig: {exc}"
    return None


def faults(
    table: Any, kubeconfig: str | None = None, insecure: bool = False
) -> list[str]:
    """What is wrong with a [rabbit] table, one text for each fault.

    Args:
        kubeconfig: used instead of the one in the table.
        insecure: it may be insecure.
    """
    # TOML knows dates, which JSON does not: no key has one.
    table = json.loads(json.dumps(table, default=str))
    found = dws.config_faults(table)
    if not isinstance(table, dict):
        return found
    mapping = table.get("mapping")
    path = kubeconfig or table.get("kubeconfig")
    for fault in (
        _check_mapping(mapping) if mapping and isinstance(mapping, str) else None,
        _check_command(table.get("notice_command")),
        _check_kubeconfig(path, insecure)
        if path is None or isinstance(path, str)
        else None,
    ):
        if fault is not None:
            found.append(fault)
    return found


def run(path: str, kubeconfig: str | None = None, insecure: bool = False) -> int:
    """Check a file, a directory, or with "" the running instance.

    Returns:
        the exit code: 0 good, 1 faulty or not to be had.
    """
    try:
        if path:
            tables = resourceconfig.read(path)
            table = tables.get("rabbit")
        else:
            table = brokerconfig.get("rabbit")
    except (resourceconfig.ConfigError, OSError) as exc:
        print(f"flux-coral2-dws: {texts.clean(str(exc))}", file=sys.stderr)
        return 1
    if table is None:
        where = path or "the configuration of the running instance"
        print(f"flux-coral2-dws: {where}: there is no [rabbit]", file=sys.stderr)
        return 1
    found = faults(table, kubeconfig, insecure)
    for fault in found:
        print(texts.clean(fault), file=sys.stderr)
    return 1 if found else 0
