# SPDX-License-Identifier: LGPL-3.0-only
#
# flux rabbit profiles: the NNF profiles that profile=NAME of a directive can name, with
# their sizes and places of storage, or their limits on containers.
"""Profiles of NNF."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from operator import attrgetter
from typing import Any, NamedTuple

from flux_k8s import names

from flux_rabbit import cli, rpc, table

Object = dict[str, Any]

KINDS = ("storage", "containers")
NODE_TYPES = ("xfs", "gfs2", "raw")
# The targets of Lustre by the key of their options; a site chooses between the
# first two and the third.
APART = (("mgt", "mgtOptions"), ("mdt", "mdtOptions"))
COMBINED = (("mgtmdt", "mgtMdtOptions"),)
OST = ("ost", "ostOptions")


class Allocation(NamedTuple):
    """The allocations of a profile for some types of file systems."""

    profile: Object
    types: str
    set: str
    size: str
    targets: str
    where: str


class Mount(NamedTuple):
    """A file system that containers use; {} if there is none."""

    profile: Object
    storage: Object


def _data(of: Allocation | Mount) -> Object:
    data: Object = of.profile["data"]
    return data


def _needed(mount: Mount) -> str:
    if not mount.storage:
        return ""
    return "no" if mount.storage.get("optional") else "yes"


def _only(mount: Mount) -> str:
    owner = (("user", "userID"), ("group", "groupID"))
    data = _data(mount)
    words = [f"{word} {data[key]}" for word, key in owner if data.get(key) is not None]
    return ", ".join(words)


STORAGE = table.Table(
    "profiles-storage",
    {
        "name": ("STORAGE", lambda a: a.profile["metadata"]["name"]),
        "default": ("DEFAULT", lambda a: "yes" if _data(a).get("default") else ""),
        "types": ("TYPE", attrgetter("types")),
        "set": ("SET", attrgetter("set")),
        "size": ("SIZE", attrgetter("size")),
        "targets": ("TARGETS", attrgetter("targets")),
        "where": ("WHERE", attrgetter("where")),
    },
    {
        "default": (
            "Size and number of what is allocated",
            "+:{name:<8} ?:{default:<7} +:{types:<6} ?+:{set:<3} +:{size:<8} "
            "+:{targets:<7} ?:{where}",
        ),
    },
)
CONTAINERS = table.Table(
    "profiles-containers",
    {
        "name": ("CONTAINER", lambda m: m.profile["metadata"]["name"]),
        "mount": ("FILE SYSTEM", lambda m: m.storage.get("name", "")),
        "needed": ("NEED", _needed),
        "start": ("START", lambda m: _data(m).get("preRunTimeoutSeconds", "")),
        "end": ("END", lambda m: _data(m).get("postRunTimeoutSeconds", "")),
        "retries": ("RETRY", lambda m: _data(m).get("retryLimit", "")),
        "ports": ("PORTS", lambda m: _data(m).get("numPorts", 0)),
        "only": ("ONLY FOR", _only),
        "starts": (
            "CREATED",
            lambda m: "yes" if _data(m).get("createContainer", True) else "no",
        ),
    },
    {
        "default": (
            "The file systems that it uses, and its limits",
            "+:{name:<9} +:{mount:<11} {needed:<4} {start:>5} {end:>4} {retries:>5} "
            "{ports:>5} ?:{only}",
        ),
    },
)
TABLES = {"storage": STORAGE, "containers": CONTAINERS}


def configure(
    parser: argparse.ArgumentParser, command: str
) -> tuple[str, tuple[str, ...]]:
    """Options."""
    parser.add_argument(
        "kind",
        nargs="?",
        choices=KINDS,
        metavar="KIND",
        help=f"only those for {' or '.join(KINDS)}",
    )
    table.configure(parser)
    return (
        "List the profiles that profile=NAME of a directive chooses from, with what "
        "they mean: those for storage, how much is allocated for the capacity of the "
        "directive, and in how many targets; those for containers, which file systems "
        "these use, for how many seconds NNF waits for their start and, after the "
        "job, for their end (0: for ever). They are read from Kubernetes by "
        "flux-coral2-dws, which needs the right to list them.",
        (
            "flux rabbit profiles",
            "flux rabbit profiles containers",
            "flux rabbit profiles storage -no '{name}'",
        ),
    )


def size_of(options: Object) -> str:
    """The allocated size as a formula of the directive's capacity."""
    text = "capacity"
    scaling = str(options.get("capacityScalingFactor") or "1.0")
    if scaling not in ("1", "1.0"):
        text += f"*{scaling}"
    if options.get("allocationPadding"):
        text += f"+{options['allocationPadding']}"
    return text


def where_of(options: Object) -> str:
    """The constraints on the rabbits of an allocation set."""
    words = ["near the nodes"] if options.get("colocateComputes") else []
    words += [f"label {label}" for label in options.get("storageLabels") or []]
    if options.get("exclusive"):
        words.append("alone on its rabbit")
    return ", ".join(words)


def targets_of(options: Object) -> str:
    """How many targets of Lustre there are, "" if the profile leaves it open."""
    if options.get("scale"):
        return f"scale {options['scale']}"
    return str(options.get("count") or "")


def storage_rows(profile: Object) -> Iterator[table.Row]:
    """A row for each distinct allocation of a storage profile."""
    data = profile["data"]
    types: dict[tuple[str, str], list[str]] = {}
    for kind in NODE_TYPES:
        options = data.get(f"{kind}Storage") or {}
        types.setdefault((size_of(options), where_of(options)), []).append(kind)
    for (size, where), found in types.items():
        one = Allocation(profile, ",".join(found), "", size, "1/node", where)
        yield STORAGE.row(one)
    for part in lustre_sets(data.get("lustreStorage") or {}):
        yield STORAGE.row(Allocation(profile, "lustre", *part))


def lustre_sets(lustre: Object) -> Iterator[tuple[str, str, str, str]]:
    """(label, size, targets, where) of each kind of Lustre target."""
    mgt = lustre.get("mgtOptions") or {}
    if mgt.get("standaloneMgtPoolName"):
        pool = f"persistent, of pool {mgt['standaloneMgtPoolName']}"
        yield "mgt", str(mgt.get("capacity", "")), targets_of(mgt), pool
        return
    for label, key in COMBINED if lustre.get("combinedMgtMdt") else APART:
        options = lustre.get(key) or {}
        if label == "mgt" and options.get("externalMgs"):
            yield label, "none", "0", str(options["externalMgs"])
            continue
        size = str(options.get("capacity", ""))
        yield label, size, targets_of(options), where_of(options)
    label, key = OST
    options = lustre.get(key) or {}
    yield label, size_of(options), targets_of(options), where_of(options)


def container_rows(profile: Object) -> Iterator[table.Row]:
    """A row for each file system that the containers use."""
    for storage in profile["data"].get("storages") or [{}]:
        yield CONTAINERS.row(Mount(profile, storage))


ROWS = {"storage": storage_rows, "containers": container_rows}


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    kinds = [args.kind] if args.kind else KINDS
    if not args.kind and (args.format != "default" or args.sort):
        raise cli.Failure(f"--format and --sort need a kind: {' or '.join(KINDS)}")
    handle = rpc.Handle()
    found: dict[str, list[Object]] = {}
    for kind in kinds:
        answer = handle.call(names.TOPIC_PROFILES, {"kind": kind})
        found[kind] = sorted(answer["profiles"], key=lambda p: p["metadata"]["name"])
    if args.json:
        cli.print_json(found)
        return 0
    for kind in kinds:
        if kind != kinds[0]:
            print()
        rows = [row for profile in found[kind] for row in ROWS[kind](profile)]
        table.show(TABLES[kind], args, [rows], nothing=f"no profiles for {kind}")
    return 0
