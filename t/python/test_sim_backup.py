# dws-sim restores a backup, as an etcd does, and the agent synchronises again.
# SPDX-License-Identifier: LGPL-3.0-only
import json

import pytest
from flux_k8s.kube import Kube
from sim_support import XFS, Api, Job, Sim, workflow
from test_agent_watch_faults import Follow


@pytest.fixture
def sim(tmp_path):
    made = Sim(tmp_path)
    yield made
    made.stop()


def versions(api):
    return {
        item["metadata"]["name"]: item["metadata"]["resourceVersion"]
        for item in api.list("workflows")["items"]
    }


def test_what_has_come_since_is_lost(sim):
    api = Api(sim)
    stays, goes = Job(api, "stays", XFS), Job(api, "goes", XFS)
    for job in (stays, goes):
        job.wait("Proposal")
    then = versions(api)
    version = json.loads(sim.ctl("backup"))["version"]
    Job(api, "new", XFS).wait("Proposal")
    stays.give({"rabbit0": 1}, ["node0"])
    stays.through("PreRun")
    goes.remove()
    before = sim.state()
    assert before["mounts"] == 1 and before["allocated"]["rabbit0"] > 0
    told = json.loads(sim.ctl("restore"))
    assert (told["version"], told["was"]) == (version, before["version"])
    assert versions(api) == then
    after = sim.state()
    assert (after["mounts"], after["allocated"], after["backing"]) == (0, {}, [])
    # and goes on from there
    stays.give({"rabbit0": 1}, ["node0"])
    stays.through("PreRun")
    for job in (stays, goes):
        job.remove()
    sim.ctl("wait-idle", "--timeout", "30")
    assert sim.state()["allocated"] == {}


def test_a_second_restore_undoes_the_first(sim):
    api = Api(sim)
    sim.ctl("backup")
    Job(api, "since", XFS).wait("Proposal")
    then = versions(api)
    sim.ctl("restore")
    assert versions(api) == {}
    sim.ctl("restore")
    assert versions(api) == then


def test_what_was_there_is_there_again(sim):
    api = Api(sim)
    job = Job(api, "job", XFS)
    job.wait("Proposal")
    job.give({"rabbit0": 1}, ["node0"])
    job.through("PreRun")
    then = sim.state()
    sim.ctl("backup")
    job.through("Teardown", "PostRun")
    api.delete("workflows", "job")
    job.wait("gone")
    sim.ctl("restore")
    now = sim.state()
    for what in ("mounts", "allocated", "backing", "workflows", "version"):
        assert now[what] == then[what], what
    job.through("Teardown", "PostRun")
    api.delete("workflows", "job")
    sim.ctl("wait-idle", "--timeout", "30")
    assert sim.state()["backing"] == []


def test_there_has_to_be_a_backup(sim):
    assert "there is no backup" in sim.ctl("restore", check=False)


def test_a_watch_of_the_agent_hears_what_happens_after_that(sim):
    """The watch must not stay silent until the server has as many new changes as the
    restore has lost."""
    api = Api(sim)
    sim.ctl("backup")
    for name in ("a", "b", "c"):
        Job(api, name).wait("Proposal")
    follow = Follow(Kube(str(sim.kubeconfig)))
    assert follow.next() == "listed"
    lost = json.loads(sim.ctl("restore"))
    assert lost["watches"] == 1
    told = follow.next()
    assert told.startswith("went back: resource version ")
    assert told.endswith(f" after {lost['was']}")
    assert follow.next() == "listed"
    api.create("workflows", workflow("d"))
    assert follow.next() == ("ADDED", "d")
    follow.end()
