# SPDX-License-Identifier: LGPL-3.0-only
#
# The mapping file: built from Kubernetes objects, located by rabbit.mapping, and
# searched by rabbit and by compute node.
"""The mapping of compute nodes to rabbits."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Literal

from flux_k8s import dws

Mapping = dict[str, Any]


class MappingError(Exception):
    """The mapping cannot be built, found or used; the text gives the reason."""


def build(
    system_configuration: dict[str, Any],
    storages: Iterable[dict[str, Any]],
    raw: bool = False,
) -> Mapping:
    """Build the mapping.

    The SystemConfiguration lists all rabbits and computes, and does not change.
    Storage objects add the capacity that file systems can use or, with `raw`,
    the sum of the drives. A rabbit that was never up counts as large as the
    largest.

    Raises:
        MappingError: the objects are malformed, or contradict each other.
    """
    try:
        return _build(system_configuration, storages, "raw" if raw else "usable")
    except (KeyError, TypeError, AttributeError, ValueError) as exc:
        raise MappingError(
            f"SystemConfiguration or Storages are malformed: {exc!r}"
        ) from exc


def _build(
    system_configuration: dict[str, Any],
    storages: Iterable[dict[str, Any]],
    kind: Literal["raw", "usable"],
) -> Mapping:
    mapping: Mapping = {"computes": {}, "rabbits": {}}
    computes, rabbits = mapping["computes"], mapping["rabbits"]
    for node in system_configuration["spec"].get("storageNodes") or []:
        rabbit = node["name"]
        hosts = [entry["name"] for entry in node.get("computesAccess") or []]
        for host in hosts:
            if host in computes:
                raise MappingError(
                    f"SystemConfiguration: {host} is connected to "
                    f"{computes[host]} and {rabbit}"
                )
            computes[host] = rabbit
        rabbits[rabbit] = {"hostlist": encode(hosts)}
    capacities = _capacities(storages, mapping, kind)
    largest = max(capacities.values(), default=0)
    for rabbit, entry in rabbits.items():
        entry["capacity"] = capacities.get(rabbit) or largest
    return mapping


def encode(hosts: Iterable[str]) -> str:
    """Hosts as an RFC 29 hostlist, each once."""
    from flux.hostlist import Hostlist

    hostlist = Hostlist()
    for host in hosts:
        hostlist.append(host)
    return str(hostlist.uniq().encode())


def _decode(text: str) -> list[str]:
    """An RFC 29 hostlist as hosts. Raises MappingError."""
    from flux_k8s import dws

    try:
        return dws.expand_hosts(text)
    except ValueError as exc:
        raise MappingError(str(exc)) from exc


def _capacities(
    storages: Iterable[dict[str, Any]],
    mapping: Mapping,
    kind: Literal["raw", "usable"],
) -> dict[str, int]:
    result: dict[str, int] = {}
    for storage in storages:
        rabbit = storage["metadata"]["name"]
        status = storage.get("status") or {}
        if rabbit not in mapping["rabbits"]:
            continue
        for entry in (status.get("access") or {}).get("computes") or []:
            expected = mapping["computes"].get(entry["name"])
            if expected != rabbit:
                raise MappingError(
                    f"Storage {rabbit} has a connection to {entry['name']}, "
                    f"which the SystemConfiguration connects to {expected}"
                )
        result[rabbit] = dws.drives(status)[kind]
    return result


def load(path: str) -> Mapping:
    """Read a mapping file.

    Raises:
        MappingError: with the name of the file and the key at fault.
    """
    try:
        with open(path, encoding="utf8") as stream:
            mapping = json.load(stream)
    except OSError as exc:
        raise MappingError(f"{path}: {exc.strerror}") from exc
    except (ValueError, RecursionError) as exc:
        raise MappingError(f"{path}: not JSON: {exc}") from exc
    for key in ("computes", "rabbits"):
        if not isinstance(mapping, dict) or not isinstance(
            mapping.setdefault(key, {}), dict
        ):
            raise MappingError(f"{path}: '{key}' must be an object")
    for host, rabbit in mapping["computes"].items():
        if not isinstance(rabbit, str):
            raise MappingError(f"{path}: 'computes.{host}' must be a rabbit")
    for rabbit, entry in mapping["rabbits"].items():
        if not isinstance(entry, dict) or not isinstance(
            entry.get("hostlist", ""), str
        ):
            raise MappingError(f"{path}: 'rabbits.{rabbit}' must have a hostlist")
    return dict(mapping)


def configured_path(handle: Any = None) -> str:
    """The value of rabbit.mapping in this instance, or in the system's.

    `handle` is a flux.Flux, or None to open one.

    Raises:
        MappingError: it is set in neither, or there is no instance.
    """
    import flux

    try:
        handle = handle or flux.Flux()
    except OSError as exc:
        raise MappingError(f"no Flux instance to ask: {exc.strerror}") from exc
    path = handle.conf_get("rabbit.mapping")
    if path is None:
        try:
            path = flux.Flux("/").conf_get("rabbit.mapping")
        except OSError:
            pass
    if path is None:
        raise MappingError(
            "the config key 'rabbit.mapping' is set neither in this Flux "
            "instance nor in the system instance"
        )
    return str(path)


def all_rabbits(mapping: Mapping) -> str:
    """The hostlist of all rabbits."""
    return encode(mapping["rabbits"])


def rabbits_of(mapping: Mapping, computes: Iterable[str]) -> list[str]:
    """The rabbits next to the hosts of some hostlists, each once.

    Raises:
        MappingError: a host has no rabbit.
    """
    result: dict[str, None] = {}
    for text in computes:
        for host in _decode(text):
            if host not in mapping["computes"]:
                raise MappingError(f"compute node {host} has no rabbit")
            result[mapping["computes"][host]] = None
    return list(result)


def computes_of(mapping: Mapping, rabbits: Iterable[str]) -> list[str]:
    """The compute nodes on the rabbits of some hostlists, each once.

    Raises:
        MappingError: there is no such rabbit.
    """
    result: dict[str, None] = {}
    for text in rabbits:
        for rabbit in _decode(text):
            if rabbit not in mapping["rabbits"]:
                raise MappingError(f"there is no rabbit {rabbit}")
            hosts = mapping["rabbits"][rabbit].get("hostlist") or ""
            result.update(dict.fromkeys(_decode(hosts)))
    return list(result)
