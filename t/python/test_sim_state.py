# dws-sim --state: killed and started again, the cluster is as it was.
# SPDX-License-Identifier: LGPL-3.0-only
"""The state file of dws-sim."""

from __future__ import annotations

import pathlib
import stat

import pytest
from sim_support import XFS, Api, Job, Sim, main


def test_killed_with_a_mounted_workflow(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "state"
    sim = Sim(tmp_path, "--state", str(file))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    api = Api(sim)
    job = Job(api, "w", XFS)
    job.wait("Proposal")
    job.give({"rabbit0": 2}, ["node0", "node1"])
    job.through("PreRun")
    before, state = job.get(), sim.state()
    mounts = sorted((sim.root / "mnt" / "nnf").iterdir())
    sim.process.kill()
    sim.process.wait()

    again = Sim(tmp_path, "--state", str(file))
    job.api.sim = again
    # the same users, the same address, the same object of the same version
    assert job.get() == before
    # nothing new gets the uid of something old
    uids = {o["metadata"]["uid"] for o in api.list("storages")["items"]}
    uids.add(api.list("systemconfigurations")["items"][0]["metadata"]["uid"])
    other = [Job(api, f"other{i}", XFS) for i in range(5)]
    assert not uids & {o.created["metadata"]["uid"] for o in other}
    for each in other:
        each.wait("Proposal")
        each.remove()
    after = again.state()
    for key in ("workflows", "mounts", "clientmounts", "allocated", "backing"):
        assert after[key] == state[key]
    assert sorted((sim.root / "mnt" / "nnf").iterdir()) == mounts
    job.through("DataOut", "PostRun")
    job.remove()
    again.ctl("wait-idle", "--timeout", "30")
    assert not any((sim.root / "mnt" / "nnf").iterdir())
    assert not any((sim.root / "backing").iterdir())
    assert again.state()["allocated"] == {}
    assert again.stop() == 0


def test_killed_in_every_state(tmp_path: pathlib.Path) -> None:
    options = ("--state", str(tmp_path / "state"))
    sim = Sim(tmp_path, *options)
    job = Job(Api(sim), "w", XFS)
    job.wait("Proposal")
    job.give({"rabbit0": 1}, ["node0"])
    states = ["Setup", "DataIn", "PreRun", "PostRun", "DataOut", "Teardown"]
    for state in states:
        job.api.patch("workflows", "w", {"spec": {"desiredState": state}})
        sim.process.kill()
        sim.process.wait()
        sim = job.api.sim = Sim(tmp_path, *options)
        job.wait(state)
    job.api.delete("workflows", "w")
    job.wait("gone")
    sim.ctl("wait-idle", "--timeout", "30")
    assert sim.stop() == 0


def test_unusable_file(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "state"
    file.write_text("this is no database, but a text of some length " * 40)
    words = ["--kubeconfig", str(tmp_path / "k"), "--state", str(file)]
    assert main(["run", *words]) == 1
    assert str(file) in capsys.readouterr().err
