# Features that a job can request, and jobs in which every two features meet.
# SPDX-License-Identifier: LGPL-3.0-only
"""A covering array of the features of jobs."""

from __future__ import annotations

import grp
import os
from typing import Any

from allpairspy import AllPairs

from soak.jobs import KEPT, TOKEN, Kind

# Names of presets in the configuration, by the type that they stand for.
PRESETS = {
    "xfs": "scratch-xfs",
    "gfs2": "scratch-gfs2",
    "lustre": "scratch-lustre",
}
COPIES = ("", " in", " out", " both")
# Every value is possible with every value of other parameters; values that exclude each
# other share a parameter. The order of values determines which occur most often.
PARAMETERS: dict[str, list[Any]] = {
    "directives": [
        *(f"{s}{copy}" for s in ("xfs", "gfs2", "lustre", "two") for copy in COPIES),
        *(f"container{copy}" for copy in COPIES),
        "container token",
        *(f"preset {type_}" for type_ in PRESETS),
        "raw",
        "persistent",
    ],
    "data first": [True, False],
    # number of nodes, and how many of them may be waived
    "nodes": [(1, 0), (2, 0), (4, 0), (2, 1), (4, 1)],
    "exclusive": [True, False],
    "place": ["near", "rabbits", ""],
    "group": [True, False],
    "status": [3, 0],
    # short: expires before the tasks end
    "limit": ["short", "long", ""],
    # depends on the data of another job, if there is one with data
    "after": ["", "dws-in", "dws-out"],
    # one chassis, or one for every two nodes
    "chassis": ["one", "", "pairs"],
    # guest: a second user, who is in no group; cc: two copies by flux submit --cc
    "by": ["owner", "guest", "cc"],
}
GIB = {"xfs": 10, "gfs2": 10, "raw": 10, "two": 20, "container": 10}


def _scratch(type_: str, name: str = "scratch") -> str:
    return f"#DW jobdw type={type_} capacity=10GiB name={name}"


def presets() -> str:
    """Lines of the configuration that define the presets."""
    lines = [f"{name} = '{_scratch(type_)}'" for type_, name in PRESETS.items()]
    return "\n".join(["[rabbit.presets]", *lines])


def _directives(storage: str, copy: str) -> tuple[str, tuple[str, ...]]:
    """The text of system.dw, and the variables that the tasks get."""
    if storage == "persistent":
        return f"#DW persistentdw name={KEPT}", (f"DW_PERSISTENT_{KEPT}",)
    if storage == "preset":
        return PRESETS[copy], ("DW_JOB_scratch",)
    lines = [_scratch("gfs2" if storage == "container" else storage)]
    variables: tuple[str, ...] = ("DW_JOB_scratch",)
    if storage == "two":
        lines = [_scratch("xfs"), _scratch("gfs2", "more")]
        variables = ("DW_JOB_scratch", "DW_JOB_more")
    elif storage == "raw":
        variables = ()
    elif storage == "container":
        lines.append(
            "#DW container name=cc profile=example-success "
            "DW_JOB_foo_local_storage=scratch"
        )
        if copy == "token":
            lines[0] += " requires=user-container-auth"
            variables += (TOKEN,)
    if copy in ("in", "both"):
        lines.append("#DW copy_in source=/lus/global/in destination=$DW_JOB_scratch/in")
    if copy in ("out", "both"):
        lines.append(
            "#DW copy_out source=$DW_JOB_scratch/out destination=/lus/global/out"
        )
    return "\n".join(lines), variables


def _kind(asked: dict[str, Any]) -> Kind:
    storage, _, copy = asked["directives"].partition(" ")
    dw, variables = _directives(storage, copy)
    nodes, tolerance = asked["nodes"]
    # solo runs all tasks as one user, who may not read the tokens of others
    guest = asked["by"] == "guest" and copy != "token"
    system: dict[str, Any] = {}
    refused = fatal = ""
    if asked["data first"] and storage not in ("raw", "persistent"):
        system["dw_data_first"] = True
        refused = "dw_data_first" if storage == "container" else ""
    if tolerance:
        system["dw_failure_tolerance"] = tolerance
    if asked["group"] and not guest:
        system["dw_group"] = grp.getgrgid(os.getgid()).gr_name
    if asked["place"] == "rabbits":
        system["dw_rabbits"] = "rabbit[0-2]"
    elif asked["place"] == "near" and not guest:
        system["dw_near"] = KEPT
        # The kept file system lies on one rabbit, which has two nodes.
        fatal = "dw_near" if nodes > 2 else ""
    if storage == "persistent" and guest:
        fatal = "User ID does not match"
    chassis = {"": 0, "one": 1, "pairs": max(nodes // 2, 1)}[asked["chassis"]]
    if chassis and nodes > 2 * chassis:
        chassis = 2  # each has two nodes
    if "dw_data_first" in system:
        chassis = 0  # its data determines the chassis
    type_ = copy if storage == "preset" else storage
    return Kind(
        ", ".join(f"{k} {v}" for k, v in asked.items() if v),
        dw,
        variables,
        status=asked["status"],
        refused=refused,
        fatal=fatal,
        node_gib=GIB.get(type_, 0),
        gib=10 if type_ == "lustre" else 0,
        nodes=nodes,
        exclusive=asked["exclusive"],
        system=tuple(system.items()),
        limit=asked["limit"],
        after=asked["after"],
        chassis=chassis,
        copies=2 if asked["by"] == "cc" else 1,
        guest=guest,
        features=tuple(f"{k}: {v}" for k, v in asked.items()),
    )


def kinds(guests: bool = True) -> list[Kind]:
    """Kinds of jobs in which every two features meet.

    Args:
        guests: the engine runs jobs of other users without their password.
    """
    users = [by for by in PARAMETERS["by"] if guests or by != "guest"]
    rows = AllPairs(list({**PARAMETERS, "by": users}.values()))
    return [_kind(dict(zip(PARAMETERS, row))) for row in rows]
