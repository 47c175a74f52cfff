# SPDX-License-Identifier: LGPL-3.0-only
#
# libdws as typed Python functions on plain JSON data, without side effects. No other
# file uses the cffi extension.
"""libdws for Python."""

from __future__ import annotations

import errno
import json
import os
import pwd
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from flux_k8s._dws import ffi, lib

if TYPE_CHECKING:  # a submission imports all of this, and needs no more than values
    from flux_k8s.shapes import (
        ConfigKey,
        Directives,
        Drives,
        Limit,
        ServersAllocation,
        Sizes,
    )

Json = Any


class DirectiveError(ValueError):
    """A fault in directives. `line` is its line and `other` the line of a conflicting
    directive, both from 1, 0 without one."""

    def __init__(self, text: str, line: int, other: int) -> None:
        super().__init__(text)
        self.line = line
        self.other = other


class NotReadyError(RuntimeError):
    """NNF has not filled in a DirectiveBreakdown yet; try again later."""


class NoSpaceError(ValueError):
    """The storage cannot be placed on the rabbits of the job."""


# Longer than the JSON text of any value within the bounds of libdws/util/bounds.h.
BOUNDS_BYTES = 8 << 20


class Raw(bytes):
    """JSON text that is passed on unchanged: large files need no decoding."""


def _encode(value: Json) -> Any:
    """Encode an argument; None stays absent."""
    if value is None:
        return ffi.NULL
    if not isinstance(value, Raw):
        return json.dumps(value).encode()
    if 0 in value:
        raise ValueError("not JSON: it has NUL characters")
    return bytes(value)


def _call(
    function: str, a: Json = None, b: Json = None, c: Json = None, fd: int = -1
) -> Json:
    """Call a function of text.h with JSON values; raise on failure."""
    error = ffi.new("struct dws_text_error *")
    text = lib.dws_text_call(
        function.encode(), _encode(a), _encode(b), _encode(c), fd, error
    )
    if text == ffi.NULL:
        message = ffi.string(error.text).decode(errors="replace")
        if error.errnum == errno.ENOMEM:
            raise MemoryError(message)
        if error.errnum == errno.EAGAIN:
            raise NotReadyError(message)
        if error.errnum in (errno.ENOSPC, errno.EHOSTDOWN):
            raise NoSpaceError(message)
        if error.errnum != errno.EINVAL:
            raise OSError(error.errnum, message)
        if function == "directives":
            raise DirectiveError(message, error.line, error.other)
        raise ValueError(message)
    try:
        return json.loads(ffi.string(text))
    finally:
        lib.dws_text_free(text)


def bind_presets(presets: dict[str, Json], values: dict[str, str]) -> dict[str, Json]:
    """Presets with `values` for variables; {"error": TEXT} for a preset that needs
    further variables."""
    return cast("dict[str, Json]", _call("presets", presets, values))


def own_variables() -> dict[str, str]:
    """The variables in presets that depend only on the calling user."""
    userid = os.getuid()
    values = {"UID": str(userid)}
    try:
        values["USER"] = pwd.getpwuid(userid).pw_name
    except KeyError:
        pass
    return values


def parse_directives(
    dw: Json,
    presets: dict[str, Json] | None = None,
    values: dict[str, str] | None = None,
) -> Directives:
    """Parse the text of `attributes.system.dw`. `values` replace variables in presets
    and, for "USER" and "JOBID", in paths.

    Raises DirectiveError with a text for the user that names the word at fault.
    """
    return cast("Directives", _call("directives", dw, presets, values))


def apply_breakdowns(
    resources: list[Json],
    breakdowns: list[Json],
    min_gib: int = 0,
    maximums: dict[str, float] | None = None,
    rabbit_bytes: int = 0,
    anywhere: bool = False,
    total_bytes: int = 0,
    directives: list[str] | None = None,
) -> list[Json]:
    """Return jobspec resources with the storage that the breakdowns request.

    No allocation is smaller than `min_gib`, nor than NNF's own minimum. `maximums` maps
    a file system type to GiB per node, which errors compare with the request in
    `directives`. `rabbit_bytes` is the most that one rabbit can hold of a job (0:
    unknown). With `anywhere`, unbound storage may lie on any rabbits, whose sum is
    `total_bytes` (0: unknown). Raises ValueError, or NotReadyError if a breakdown is
    not ready.
    """
    opts: dict[str, Json] = {
        "min_gib": min_gib,
        "rabbit_bytes": rabbit_bytes,
        "anywhere": anywhere,
        "total_bytes": total_bytes,
    }
    if maximums is not None:
        opts["maximums"] = maximums
    if directives is not None:
        opts["directives"] = directives
    return cast("list[Json]", _call("breakdown_apply", resources, breakdowns, opts))


def sizes(resources: list[Json], directives: list[str]) -> Sizes:
    """Return the bytes that directives request, and the least that NNF allocates."""
    return cast("Sizes", _call("sizes", resources, directives))


def nodes_per_rabbit(R: Json, mapping: Json) -> dict[str, int]:
    """Count the hosts of an R object, or of a hostlist string, by rabbit.

    `mapping` is the content of the rabbitmapping file. Raises ValueError.
    """
    return cast("dict[str, int]", _call("allocation_nodes", R, mapping))


def allocation_sets(
    breakdowns: list[Json],
    nodes: dict[str, int],
    min_gib: int = 0,
    storages: list[Json] | None = None,
    used: dict[str, int] | None = None,
    resources: list[Json] | None = None,
    reserved: dict[str, int] | None = None,
    rivals: list[Json] | None = None,
) -> list[ServersAllocation]:
    """Lay out the storage of the breakdowns over the rabbits in `nodes`.

    `storages` are Storage objects of Kubernetes (None: assume that every rabbit
    is usable), `used` the bytes that others hold on each rabbit, `reserved` the
    bytes that the scheduler has reserved for the job, which are used first; if
    they are empty, `resources` (with ssd) tell the reservation. `rivals` are the
    exclusive keys of others: {"servers": {"name", "namespace"}, "holder": TEXT,
    "rabbits": {RABBIT: {KEY: true}}} for each of them.
    Raises ValueError, NoSpaceError or NotReadyError.
    """
    opts: dict[str, Json] = {"min_gib": min_gib}
    if storages is not None:
        opts["storages"] = storages
    if used is not None:
        opts["used"] = used
    if resources is not None:
        opts["resources"] = resources
    if reserved is not None:
        opts["reserved"] = reserved
    if rivals is not None:
        opts["rivals"] = rivals
    return cast(
        "list[ServersAllocation]",
        _call("allocation_sets", breakdowns, nodes, opts),
    )


def reserved_bytes(R: Json, mapping: Json) -> dict[str, int]:
    """Return the bytes per rabbit that Fluxion has reserved for a job.

    Empty if R has no "scheduling" key. Raises ValueError.
    """
    return cast("dict[str, int]", _call("allocation_reserved", R, mapping))


def daemon_units(
    breakdowns: list[Json], daemons: dict[str, str] | None = None
) -> list[str]:
    """Return the systemd units of the daemons that the breakdowns require.

    `daemons` is the table [rabbit.daemons]; daemons missing there have no unit.
    Raises NotReadyError.
    """
    return cast("list[str]", _call("daemons_units", breakdowns, daemons))


def location_constraint(
    breakdowns: list[Json], servers: list[Json], mapping: Json
) -> Json | None:
    """Return the RFC 31 constraint that places a job next to its storage.

    `servers` are the Servers objects of the job's persistent storage. None if the
    job may run anywhere. Raises ValueError, NoSpaceError if no node satisfies it,
    or NotReadyError.
    """
    return _call("location_constraint", breakdowns, servers, mapping)


def _bounded(what: str, value: Json) -> Raw | None:
    """The JSON text of a value. Raises ValueError for an overlong one, as parsing it
    would take seconds."""
    if value is None:
        return None
    text = value if isinstance(value, Raw) else Raw(json.dumps(value).encode())
    if len(text) > BOUNDS_BYTES:
        raise ValueError(f"{what}: more than {BOUNDS_BYTES} bytes of JSON")
    return text


def check_bounds(resources: Json, constraints: Json) -> None:
    """Raises ValueError, with a text for the user, if a job's resources or constraints
    (or their JSON text, Raw) exceed the bounds on depth and size. The bounds leave room
    for the additions of flux-dws."""
    _call(
        "bounds",
        _bounded("resources", resources),
        _bounded("constraints", constraints),
    )


def expand_hosts(hostlist: str) -> list[str]:
    """The names in a hostlist (RFC 29). Raises ValueError for a malformed one, or one
    with more names than any machine has."""
    return cast("list[str]", _call("hosts", hostlist))


def matching_hosts(status: Json, constraint: Json) -> set[str]:
    """The hosts in an answer to resource.sched-status that satisfy a constraint (RFC
    31). Raises ValueError."""
    return set(_call("pool_nodes", status, constraint))


def need(resources: Json) -> dict[str, Any] | None:
    """The request in the resources of a jobspec (libdws/tell/shortage.h): groups,
    nodes, gib, cores, chassis. None if they request anything but nodes."""
    return cast("dict[str, Any] | None", _call("need", resources))


def shortage(
    status: Json, resources: Json, constraint: Json, rabbits: Json, bad: str = ""
) -> dict[str, Any] | None:
    """Why a queued job has no nodes yet: `text`, a clause, and `places`, its nodes by
    rabbit. `status` is an answer to resource.sched-status, `rabbits` a list of
    dws.status, `bad` a hostlist of nodes that it cannot use. None for a job that
    requests anything but nodes. Raises ValueError."""
    job = {
        "resources": resources,
        "constraint": constraint,
        "rabbits": rabbits,
        "bad": bad,
    }
    return cast("dict[str, Any] | None", _call("shortage", status, job))


def uses_storage(dw: Json) -> bool:
    """Whether a job with this attribute ``dw`` uses storage. A job that only destroys
    persistent storage uses none, and can do so while the rabbits of its nodes are down.
    The plugin refuses directives that cannot be parsed; without it they count."""
    try:
        found = parse_directives(dw)["directives"]
    except DirectiveError:
        return True
    return any(one["command"] != "destroy_persistent" for one in found)


def drives(status: Json) -> Drives:
    """The bytes of a rabbit's drives by its Storage.status."""
    return cast("Drives", _call("drives", status))


def taken(servers: Json) -> dict[str, int]:
    """The bytes that a Servers object allocates on each rabbit."""
    return cast("dict[str, int]", _call("taken", servers))


def is_lustre(label: str) -> bool:
    """Whether an allocation set with this label is a part of a Lustre file system."""
    return cast(bool, _call("is_lustre", label))


def config_faults(table: Json, queues: Json = None) -> tuple[list[str], list[str]]:
    """The faults of the configuration table [rabbit] and of the files that it names,
    and notes on harmless keys, a text for each. `queues` is the table [queues], None if
    unknown."""
    found = _call("config_faults", table, queues)
    return found["faults"], found["notes"]


def config_keys() -> list[ConfigKey]:
    """The keys of the configuration table [rabbit]."""
    return cast("list[ConfigKey]", _call("config_describe"))


def limits_of(
    limits: Json,
    userid: int,
    user: str | None,
    groups: Iterable[str],
    bank: str | None = None,
    queue: str | None = None,
) -> dict[str, Limit]:
    """The limits of [rabbit.limits] on a user's job in a bank and a queue: the keys of
    "allow", "job", "node", "user" and "bank" for which there is a rule.

    `groups` are the user's groups, as names or numbers like those in the rules. Raises
    ValueError.
    """
    subject = {"userid": userid, "groups": dict.fromkeys(groups, True)}
    names = {"user": user, "bank": bank, "queue": queue}
    subject.update({k: v for k, v in names.items() if v is not None})
    return cast("dict[str, Limit]", _call("limits", limits, subject))


def write_jgf(
    R: Json,
    mapping: Json,
    fd: int,
    cluster: str,
    chunks: int | None = None,
    exclude: str | None = None,
    validate: bool = True,
    whole: bool = False,
) -> int:
    """Write the resource graph to a file descriptor; return its vertex count.

    The graph is the value of R's "scheduling" key; with `whole` all of R is
    written, with the graph in it. `chunks` is the number of ssds per rabbit,
    `exclude` an idset or hostlist of nodes to leave out; with `validate` all
    compute nodes of the mapping must be in R. Writes nothing for invalid input.
    Raises ValueError, or OSError if writing fails.
    """
    opts: dict[str, Json] = {
        "cluster": cluster,
        "validate": validate,
        "whole": whole,
    }
    if chunks is not None:
        opts["chunks"] = chunks
    if exclude is not None:
        opts["exclude"] = exclude
    return cast(int, _call("jgf", R, mapping, opts, fd=fd)["vertices"])
