# dws-sim's controllers as a process of their own, by list, watch and writes.
# SPDX-License-Identifier: LGPL-3.0-only
"""dws-sim controllers."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import parity_nnf
import pytest
from parity_support import User
from sim_support import LIMIT_S, SOURCE, XFS, Api, Job, Sim, error_in


class Attached(Sim):
    """An API server, and controllers that are its clients."""

    def __init__(self, directory: pathlib.Path, *options: str) -> None:
        super().__init__(directory, "--no-controllers")
        self.attach(*options)

    def attach(self, *options: str) -> None:
        reader, writer = os.pipe()
        command = [sys.executable, "-m", "dws_sim", "controllers"]
        command += ["--kubeconfig", str(self.kubeconfig), "--context", "admin"]
        command += ["--root", str(self.root), "--ready-fd", str(writer)]
        self.controllers = subprocess.Popen(
            [*command, *options],
            pass_fds=[writer],
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
        )
        os.close(writer)
        with os.fdopen(reader) as ready:
            assert ready.read() == "ready\n"

    def stop(self) -> int:
        self.controllers.terminate()
        assert self.controllers.wait(LIMIT_S) == 0
        return super().stop()


@pytest.fixture(scope="module")
def sim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attached]:
    made = Attached(tmp_path_factory.mktemp("attached"))
    yield made
    assert made.stop() == 0


def test_a_workflow_goes_through_all_states(sim: Attached) -> None:
    job = Job(Api(sim), "whole", XFS)
    job.wait("Proposal")
    job.give({"rabbit0": 1}, ["node0"])
    ready = job.through("PreRun")
    assert pathlib.Path(ready["status"]["env"]["DW_JOB_scratch"]).is_dir()
    job.through("Teardown", "PostRun")
    job.api.delete("workflows", job.name)
    job.wait("gone")
    # the garbage collector takes it, when the breakdown is gone
    parity_nnf.gone(User(sim.kubeconfig, "admin"), "servers", "whole-0")


def test_workflows_of_every_kind(sim: Attached) -> None:
    api = Api(sim)
    make = "#DW create_persistent type=xfs capacity=1GiB name=kept"
    for name, text in (("make", make), ("end", "#DW destroy_persistent name=kept")):
        job = Job(api, name, text)
        job.wait("Proposal")
        if name == "make":
            job.give({"rabbit0": 1}, [])
        job.through("Teardown")
        api.delete("workflows", name)
        job.wait("gone")
    assert api.names("persistentstorageinstances") == []


def test_dropped_watches_lose_nothing(sim: Attached) -> None:
    job = Job(Api(sim), "dropped", XFS)
    job.wait("Proposal")
    for word in ("--drop-watches", "--expire"):
        sim.ctl("api", word)
    job.give({"rabbit0": 1}, ["node0"])
    job.through("PreRun")
    job.remove()


def test_new_controllers_find_what_the_old_ones_left(sim: Attached) -> None:
    job = Job(Api(sim), "left", XFS)
    job.wait("Proposal")
    sim.controllers.kill()
    sim.controllers.wait()
    job.give({"rabbit0": 1}, ["node0"])
    job.api.patch("workflows", job.name, {"spec": {"desiredState": "Setup"}})
    sim.attach()
    job.wait("Setup")
    job.remove()


def test_steps_of_a_scenario(tmp_path: pathlib.Path) -> None:
    scenario = tmp_path / "scenario.yaml"
    step = "fail Proposal --message by_a_step"
    scenario.write_text(f"steps: [{{after: 0, do: {step!r}}}]\n")
    sim = Attached(tmp_path, "--scenario", str(scenario))
    try:
        Job(Api(sim), "struck", XFS)
        assert "by_a_step" in error_in(Api(sim), "struck")
    finally:
        assert sim.stop() == 0


def test_a_step_for_the_api_server_is_refused(
    sim: Attached, tmp_path: pathlib.Path
) -> None:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text("steps: [{after: 0, do: 'api --expire'}]\n")
    result = subprocess.run(
        [
            *(sys.executable, "-m", "dws_sim", "controllers", "--context", "admin"),
            *("--kubeconfig", str(sim.kubeconfig), "--scenario", str(scenario)),
        ],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert result.returncode == 1
    assert "the step 'api' is for dws-sim run" in result.stderr


def test_what_cannot_be_reached_is_an_error(tmp_path: pathlib.Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "dws_sim", "controllers", "--kubeconfig", "nowhere"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert result.returncode == 1
    assert result.stderr.startswith("dws-sim: ")
    assert "nowhere" in result.stderr
