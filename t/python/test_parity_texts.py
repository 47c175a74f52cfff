# dws-sim's messages of workflows must equal those of DWS and NNF, to the letter.
# SPDX-License-Identifier: LGPL-3.0-only
"""Texts of the driver's entries: message while waiting, error as a chain."""

from __future__ import annotations

from typing import Any

import pytest
from parity_nnf import JOBDW, Jobs, Machine
from parity_support import Object, User, unique
from parity_trouble import Trouble

XFS = JOBDW.format("xfs")
UNMET = "storage directive requirements were not satisfied"
MISMATCH = f"Servers resource does not meet storage requirements for directive '{XFS}'"
CREATE = "#DW create_persistent type=xfs capacity=1GiB name={}"
DESTROY = "#DW destroy_persistent name={}"
USE = "#DW persistentdw name={}"
OTHER = {"userID": 4711, "groupID": 4711}


def words(entry: Object) -> tuple[str, str, str]:
    """Status, message and error of a driver's entry."""
    return entry["status"], entry.get("message", ""), entry.get("error", "")


def one(label: str, size: int, rabbit: str, count: int = 1) -> Object:
    """An allocation set."""
    storage = [{"name": rabbit, "allocationCount": count}]
    return {"label": label, "allocationSize": size, "storage": storage}


GIB = 1 << 30
NEED = 20 * GIB


@pytest.mark.observed("C")
@pytest.mark.parametrize(
    ("kind", "sets", "text", "debug"),
    [
        (
            "xfs",
            lambda r: [],
            "Allocation request does not meet directive requirements",
            MISMATCH,
        ),
        (
            "xfs",
            lambda r: [one("xfs", NEED, r), one("more", NEED, r)],
            "Allocation request does not meet directive requirements",
            MISMATCH,
        ),
        (
            "xfs",
            lambda r: [one("ost", NEED, r)],
            UNMET,
            "allocation set xfs not found in Servers resource",
        ),
        (
            "xfs",
            lambda r: [one("xfs", GIB, r)],
            UNMET,
            "allocation set xfs specified insufficient capacity",
        ),
        (
            "lustre",
            lambda r: [one("ost", GIB, r), one("mgtmdt", NEED, r)],
            UNMET,
            "allocation set ost specified insufficient capacity",
        ),
    ],
)
def test_servers_that_are_not_enough(
    jobs: Jobs, machine: Machine, kind: str, sets: Any, text: str, debug: str
) -> None:
    job = jobs.ready(JOBDW.format(kind))
    job.give(sets(machine.names[0]))
    job.go("Setup")
    obj = job.saying("Error", f"DW Directive 0: WLM error: {text}")
    assert words(job.entry(0, obj)) == (
        "Error",
        f"WLM error: {text}",
        "wlm error: invalid Rabbit allocations for servers: "
        f"default/{job.name}-0: {debug}",
    )
    # it heals when that is put right
    job.fill({machine.names[0]: 1})
    job.at("Setup")
    assert words(job.entry()) == ("Completed", "", "")


@pytest.mark.observed("C")
def test_setup_says_what_it_waits_for(
    jobs: Jobs, machine: Machine, trouble: Trouble
) -> None:
    rabbit = machine.names[1]
    job = jobs.ready(XFS)
    job.fill({rabbit: 1})
    trouble.kill(rabbit)
    job.go("Setup")
    obj = job.saying("DriverWait", "DW Directive 0: allocation set not ready")
    assert words(job.entry(0, obj)) == ("Running", "allocation set not ready", "")
    trouble.revive(rabbit)
    job.at("Setup")
    assert words(job.entry()) == ("Completed", "", "")


@pytest.mark.observed("C")
@pytest.mark.parametrize(
    ("directive", "kind", "text"),
    [
        (f"{XFS} profile=nosuch", "User", "Unable to find NnfStorageProfile: nosuch"),
        (
            CREATE.format("nosuch").replace(" capacity=1GiB", ""),
            "User",
            "creating persistent storage requires 'capacity' argument",
        ),
    ],
)
def test_directives_that_make_no_sense(
    jobs: Jobs, directive: str, kind: str, text: str
) -> None:
    job = jobs(directive)
    obj = job.saying("Error", f"DW Directive 0: {kind} error: {text}")
    assert words(job.entry(0, obj)) == (
        "Error",
        f"{kind} error: {text}",
        f"{kind.lower()} error: {text}",
    )


@pytest.mark.observed("C")
@pytest.mark.parametrize(
    ("directives", "text"),
    [
        (
            ["#DW jobdw type=raw capacity=1GiB name=raw"],
            "data movement can not be used with raw allocations",
        ),
        ([], "job storage instance 'raw' not found"),
    ],
)
def test_copies_that_make_no_sense(
    jobs: Jobs, directives: list[str], text: str
) -> None:
    job = jobs(*directives, "#DW copy_in source=$DW_JOB_raw/a destination=/nosuch/b")
    obj = job.saying("Error", f"DW Directive 0: User error: {text}")
    assert words(job.entry(0, obj)) == (
        "Error",
        f"User error: {text}",
        f"user error: Invalid source argument: '$DW_JOB_raw/a': {text}",
    )


@pytest.mark.observed("C")
def test_persistent_storage_of_others_and_in_use(
    jobs: Jobs, machine: Machine, wlm: User
) -> None:
    name = unique("kept")
    maker = jobs.ready(CREATE.format(name))
    maker.fill({machine.names[0]: 1})
    maker.through("Teardown")
    uid = maker.created["spec"]["userID"]
    theirs = f"persistent storage user ID {uid} does not match user ID 4711"
    text = "User error: User ID does not match existing persistent storage"
    for directive in (USE.format(name), CREATE.format(name)):
        job = jobs(directive, **OTHER)
        obj = job.saying("Error", f"DW Directive 0: {text}")
        debug = f"user error: existing {theirs}"
        assert words(job.entry(0, obj)) == ("Error", text, debug)
        # Or it makes the storage anew as soon as that is destroyed.
        job.delete()
    user = jobs.ready(USE.format(name))
    user.to("Setup")
    other = jobs.ready(DESTROY.format(name), **OTHER)
    other.go("Teardown")
    text = "User error: user ID does not match existing persistent storage"
    obj = other.saying("Error", f"DW Directive 0: {text}")
    assert words(other.entry(0, obj)) == (
        "Error",
        text,
        f"user error: Existing {theirs}",
    )
    other.delete()
    destroyer = jobs.ready(DESTROY.format(name))
    destroyer.go("Teardown")
    text = "User error: persistent storage cannot be deleted while in use"
    obj = destroyer.saying("Error", f"DW Directive 0: {text}")
    assert words(destroyer.entry(0, obj)) == (
        "Error",
        text,
        "user error: persistent storage cannot be deleted with 1 consumers: "
        "PersistentStorage cannot be deleted with 1 consumers",
    )
    user.remove()
    destroyer.at("Teardown")
