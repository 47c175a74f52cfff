# The times and the passing troubles of NNF in dws-sim: what is drawn for each
# state, and when each request may be made, by a clock of the test's own.
# SPDX-License-Identifier: LGPL-3.0-only
"""Preset nnf."""

from __future__ import annotations

import asyncio
import pathlib
from typing import Any

import pytest
from dws_sim import scenario
from dws_sim.controllers import pace
from dws_sim.controllers.cluster import LocalCluster
from dws_sim.controllers.pace import RESERVE, Bucket, Paced
from dws_sim.faults import Faults
from dws_sim.schema.resources import RESOURCES
from dws_sim.store import Store
from parity_nnf import JOBDW, Job, Machine
from parity_support import STATES, User
from sim_support import Sim

XFS, LUSTRE = (JOBDW.format(kind) for kind in ("xfs", "lustre"))


def workflow(name: str, *directives: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "uid": f"uid of {name}"},
        "spec": {"dwDirectives": list(directives)},
    }


@pytest.fixture
def nnf() -> Faults:
    faults = Faults()
    scenario.apply_preset("nnf", faults)
    return faults


@pytest.mark.parametrize(
    ("state", "kind", "low", "high"),
    [
        ("Proposal", "xfs", 0.2, 0.2),
        ("Setup", "gfs2", 0.3, 0.5),
        ("Setup", "lustre", 1.1, 1.1),
        ("PreRun", "xfs", 2.3, 2.5),
        ("PreRun", "raw", 0.7, 0.7),
        ("PreRun", "lustre", 0.3, 0.3),
        ("PostRun", "raw", 1.1, 1.3),
        ("PostRun", "lustre", 0.3, 0.3),
        ("Teardown", "xfs", 0.3, 0.7),
        ("Teardown", "lustre", 4.4, 4.4),
    ],
)
def test_times_by_type(
    nnf: Faults, state: str, kind: str, low: float, high: float
) -> None:
    for i in range(20):
        delay = nnf.delay_left(state, workflow(f"w{i}", JOBDW.format(kind)), 0.0)
        assert low <= delay <= high


def test_the_slowest_file_system_counts(nnf: Faults) -> None:
    both = workflow("both", XFS, LUSTRE)
    assert nnf.delay_left("Teardown", both, 0.0) == 4.4
    assert 2.3 <= nnf.delay_left("PreRun", both, 0.0) <= 2.5


def test_a_state_without_work(nnf: Faults) -> None:
    assert nnf.delay_left("DataIn", workflow("a", XFS), 0.0, empty=True) == 0.06
    assert nnf.delay_left("PreRun", workflow("b"), 0.0, empty=True) == 0.06
    # without a setting, the same as without a driver
    other = Faults()
    scenario.apply_preset("demo", other)
    assert other.delay_left("DataIn", workflow("a", XFS), 0.0, empty=True) == 0.2


def test_some_pass_through_trouble_once(nnf: Faults) -> None:
    struck = 0
    for i in range(200):
        obj = workflow(f"w{i}", XFS)
        if not nnf.stumbles("Setup", obj, 100.0):
            continue
        struck += 1
        assert nnf.stumbles("Setup", obj, 100.05)
        assert not nnf.stumbles("Setup", obj, 100.21)
        assert not nnf.stumbles("Setup", obj, 101.0)
    assert 20 < struck < 100


# -- requests ------------------------------------------------------------------


def test_so_many_requests_a_second() -> None:
    bucket = Bucket()
    waits = [bucket.wait_s(1000.0, 20) for _ in range(RESERVE + 20)]
    assert waits[:RESERVE] == [0.0] * RESERVE
    assert waits[RESERVE:] == pytest.approx([(i + 1) / 20 for i in range(20)])
    # waiting requests keep their order
    assert bucket.wait_s(1000.5, 20) == pytest.approx(21 / 20 - 0.5)
    # after a while without requests there is a reserve again, and no more
    waits = [bucket.wait_s(2000.0, 20) for _ in range(RESERVE + 1)]
    assert waits[:RESERVE] == [0.0] * RESERVE
    assert waits[RESERVE] == pytest.approx(1 / 20)


class Clock:
    """Stands in for asyncio: time stands still, and sleep is written down."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def get_running_loop(self) -> Clock:
        return self

    def time(self) -> float:
        return 50.0

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def test_reading_is_free_and_writing_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(pace, "asyncio", clock)
    faults = Faults(requests_per_s=20)
    store = Store()
    store.create(RESOURCES["namespaces"], "", {"metadata": {"name": "default"}})
    cluster = Paced(LocalCluster(store), faults)

    async def work() -> None:
        for i in range(RESERVE):
            meta = {"name": f"s{i}", "namespace": "default"}
            await cluster.create("services", {"metadata": meta, "spec": {}})
        assert clock.slept == []
        for i in range(RESERVE):
            # the object exists
            meta = {"name": f"s{i}", "namespace": "default"}
            await cluster.create("services", {"metadata": meta, "spec": {}})
            assert await cluster.get("services", "default", f"s{i}") is not None
        assert len(await cluster.find("services")) == RESERVE
        assert clock.slept == []
        assert await cluster.delete("services", "default", "s0")
        faults.requests_per_s = 0
        assert await cluster.delete("services", "default", "s1")

    asyncio.run(work())
    assert clock.slept == pytest.approx([0.05])


def test_workflows_get_through(tmp_path: pathlib.Path) -> None:
    sim = Sim(tmp_path, "--preset", "nnf")
    user = User(sim.kubeconfig, "wlm")
    machine = Machine.of(user)
    rabbit = machine.names[0]
    # more than the reserve of requests is for
    jobs = [Job(user, XFS) for _ in range(8)] + [Job(user, LUSTRE)]
    for job in jobs:
        job.at("Proposal")
        job.fill({rabbit: 1})
    jobs[0].computes(machine.rabbits[rabbit][0])
    for state in STATES[1:]:
        for job in jobs:
            job.user.merge("workflows", job.name, {"spec": {"desiredState": state}})
        for job in jobs:
            job.at(state)
    for job in jobs:
        job.delete()
    assert sim.stop() == 0
