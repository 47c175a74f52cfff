# Faults that healthy workflows pass through, as on real systems: off unless
# asked for, and gone soon.
# SPDX-License-Identifier: LGPL-3.0-only
"""dws-sim ctl stumble."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest
from parity_nnf import JOBDW, Job
from parity_support import Object, User
from sim_support import Sim


@pytest.fixture
def user(sim: Sim) -> Iterator[User]:
    sim.ctl("stumble", "1")
    yield User(pathlib.Path(sim.kubeconfig), "wlm")
    sim.ctl("stumble", "0")


def seen(job: Job, state: str) -> list[tuple[str, str, str]]:
    """Status, message and error on the way through a state."""
    found: list[tuple[str, str, str]] = []

    def done(obj: Object) -> bool:
        status = obj["status"]
        if status.get("state") != state:
            return False
        words = (status["status"], status.get("message", ""))
        entry = job.entry(len(obj["spec"]["dwDirectives"]) - 1, obj)
        # a workflow says it a moment after its driver
        if entry.get("error") and words[1].endswith(entry["message"]):
            found.append((*words, entry["error"]))
        return bool(status["ready"])

    since = job.get()["metadata"]["resourceVersion"]
    body = {"spec": {"desiredState": state}}
    job.user.merge("workflows", job.name, body).expect(200)
    job.user.history("workflows", job.name, since, lambda e: done(e["object"]))
    return found


@pytest.mark.parametrize(
    ("kind", "status", "text", "debug"),
    [
        (
            "xfs",
            "DriverWait",
            "Internal error: could not allocate storage",
            'could not get NnfStorage: default/{0}: NnfStorage.nnf.cray.hpe.com "{0}" '
            "not found",
        ),
        (
            "lustre",
            "TransientCondition",
            "Internal error: no NnfLustreMGT resource found for MGS address: "
            "unknown@tcp",
            "storage resource error: default/{0}: could not get NnfLustreMGT for "
            "address: unknown@tcp: no NnfLustreMGT resource found for MGS address: "
            "unknown@tcp",
        ),
    ],
)
def test_setup(user: User, kind: str, status: str, text: str, debug: str) -> None:
    job = Job(user, JOBDW.format(kind))
    job.at("Proposal")
    job.fill({"rabbit0": 1})
    story = "internal error: " + debug.format(f"{job.name}-0")
    assert set(seen(job, "Setup")) == {(status, f"DW Directive 0: {text}", story)}
    job.remove()


def test_nobody_stumbles_unasked(sim: Sim, user: User) -> None:
    sim.ctl("stumble", "0")
    job = Job(user, JOBDW.format("xfs"))
    job.at("Proposal")
    job.fill({"rabbit0": 1})
    assert seen(job, "Setup") == []
    job.remove()


def test_containers(user: User) -> None:
    container = "#DW container name=mine profile=example-success"
    local = "DW_JOB_foo_local_storage=test"
    job = Job(user, JOBDW.format("gfs2"), f"{container} {local}")
    job.at("Proposal")
    job.fill({"rabbit0": 1})
    job.computes("node0")
    job.through("DataIn")
    found = seen(job, "PreRun")
    assert {words[0] for words in found} == {"TransientCondition"}
    assert all("could not retrieve the NnfAccess" in words[1] for words in found)
    job.remove()


def test_probability_is_checked(sim: Sim) -> None:
    assert "between 0 and 1" in sim.ctl("stumble", "2", check=False)
