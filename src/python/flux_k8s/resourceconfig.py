# SPDX-License-Identifier: LGPL-3.0-only
#
# Builds an R object from the [resource] table of a Flux configuration, for machines
# without a file for R.
"""Resource configuration to R (RFC 20)."""

from __future__ import annotations

import glob
import importlib
import os
from typing import Any


class ConfigError(Exception):
    """The configuration cannot be used; the text names file and key."""


def toml_reader() -> Any:
    """The TOML reader: part of Python since 3.11, and of flux-core for an older one."""
    try:
        return importlib.import_module("tomllib")
    except ImportError:
        return importlib.import_module("flux.utils.tomli")


def merge(into: dict[str, Any], other: dict[str, Any]) -> None:
    for key, value in other.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            merge(into[key], value)
        else:
            into[key] = value


def read(path: str) -> dict[str, Any]:
    """The tables of a TOML file, or of all TOML files in a directory.

    Raises:
        ConfigError: a file cannot be read.
    """
    toml = toml_reader()
    files = sorted(glob.glob(os.path.join(glob.escape(path), "*.toml")))
    tables: dict[str, Any] = {}
    for name in files if os.path.isdir(path) else [path]:
        try:
            with open(name, "rb") as stream:
                merge(tables, toml.load(stream))
        except OSError as exc:
            raise ConfigError(f"{name}: {exc.strerror}") from exc
        except ValueError as exc:
            raise ConfigError(f"{name}: {exc}") from exc
    return tables


def load(path: str) -> dict[str, Any]:
    """The [resource] table of a TOML file, or of all TOML files in a directory.

    Raises:
        ConfigError: a file cannot be read, or the table is missing.
    """
    table = read(path).get("resource") or {}
    if not isinstance(table.get("config"), list):
        raise ConfigError(f"{path}: there is no [[resource.config]]")
    return table


def exclude(table: dict[str, Any]) -> str:
    """The value of resource.exclude, "" if there is none."""
    value = table.get("exclude", "")
    if not isinstance(value, str):
        raise ConfigError("resource.exclude must be a string")
    return value


def build_R(table: dict[str, Any]) -> dict[str, Any]:
    """R for a [resource] table. Ranks follow the order in which hosts first occur.

    An entry may define cores and gpus of new hosts, and add properties to hosts of
    earlier entries.

    Raises:
        ConfigError: with the entry and key at fault.
    """
    from flux.hostlist import Hostlist
    from flux.idset import IDset

    ranks: dict[str, int] = {}
    children: list[dict[str, str]] = []
    properties: dict[str, Any] = {}
    for index, entry in enumerate(table["config"]):
        where = f"resource.config[{index}]"
        if not isinstance(entry, dict):
            raise ConfigError(f"{where}: not a table")
        unknown = set(entry) - {"hosts", "cores", "gpus", "properties"}
        if unknown:
            raise ConfigError(f"{where}: unknown key '{sorted(unknown)[0]}'")
        try:
            hosts = list(Hostlist(entry["hosts"]))
        except KeyError as exc:
            raise ConfigError(f"{where}: 'hosts' is missing") from exc
        except (TypeError, ValueError) as exc:
            raise ConfigError(f"{where}.hosts: not a hostlist") from exc
        names = entry.get("properties", [])
        if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
            raise ConfigError(f"{where}.properties: not an array of strings")
        kinds = {}
        for key, kind in (("cores", "core"), ("gpus", "gpu")):
            if key in entry:
                try:
                    kinds[kind] = str(IDset(entry[key]))
                except (TypeError, ValueError) as exc:
                    raise ConfigError(f"{where}.{key}: not an idset") from exc
        for host in hosts:
            rank = ranks.setdefault(host, len(ranks))
            if rank == len(children):
                children.append({})
            children[rank].update(kinds)
            for name in names:
                properties.setdefault(name, IDset()).set(rank)
    execution = {
        "R_lite": _r_lite(children),
        "starttime": 0,
        "expiration": 0,
        "nodelist": [Hostlist(list(ranks)).encode()],
    }
    if properties:
        execution["properties"] = {k: str(v) for k, v in properties.items()}
    return {"version": 1, "execution": execution}


def _r_lite(children: list[dict[str, str]]) -> list[dict[str, Any]]:
    """R_lite for the children of each rank; equal neighbours share an entry."""
    result: list[dict[str, Any]] = []
    first = 0
    for rank, value in enumerate(children):
        if rank + 1 < len(children) and children[rank + 1] == value:
            continue
        ids = str(first) if first == rank else f"{first}-{rank}"
        result.append({"rank": ids, "children": value})
        first = rank + 1
    return result
