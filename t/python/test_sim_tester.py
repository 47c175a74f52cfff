# DWS's driver for tests in dws-sim, and watches that end by themselves.
# SPDX-License-Identifier: LGPL-3.0-only
"""dws-sim run --tester."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest
from kubernetes import client
from sim_support import DWS, XFS, Api, Job, Sim, error_in, error_of, workflow


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    sim = Sim(
        tmp_path_factory.mktemp("tester"), "--tester", "--min-request-timeout", "0.1"
    )
    yield Api(sim)
    assert sim.stop() == 0


def test_a_driver_for_each_state(api: Api) -> None:
    states = ("Proposal", "Setup", "Teardown")
    job = Job(api, "each", *(f"#DW {state} action=complete" for state in states))
    drivers = job.created["status"]["drivers"]
    assert [(d["driverID"], d["watchState"]) for d in drivers] == [
        ("tester", state) for state in states
    ]
    job.wait("Proposal")
    done = job.to("Setup")["status"]["drivers"]
    assert [d["completed"] for d in done] == [True, True, False]
    job.remove()


def test_an_error_with_its_severity(api: Api) -> None:
    for number, (severity, word) in enumerate(
        (("Major", "TransientCondition"), ("Fatal", "Error"))
    ):
        name = f"error{number}"
        directive = f"#DW Proposal action=error message=no_luck severity={severity}"
        job = Job(api, name, directive)
        assert error_in(api, name, word) == "DW Directive 0: no luck"
        job.remove()


def test_an_action_that_waits_is_left_to_others(api: Api) -> None:
    job = Job(api, "waits", XFS, "#DW PreRun action=wait")
    job.wait("Proposal")
    job.give({"rabbit0": 1}, ["node0"])
    job.through("DataIn")
    job.to("PreRun", ready=False)
    while True:
        drivers = job.get()["status"]["drivers"]
        mine = next(d for d in drivers if d["driverID"] == "tester")
        others = [d for d in drivers if d["watchState"] == "PreRun" and d is not mine]
        if mine["status"] == "Running" and all(d["completed"] for d in others):
            break
    assert not job.get()["status"]["ready"]
    mine.update(status="Completed", completed=True)
    api.patch("workflows", job.name, {"status": {"drivers": drivers}})
    job.wait("PreRun")
    job.remove()


@pytest.mark.parametrize(
    ("directive", "text"),
    [
        ("#DW Setup", "missing required argument '^action$'"),
        ("#DW Setup action=stop", "argument 'action' invalid string 'stop'"),
        (
            "#DW Setup action=error severity=Mild",
            "argument 'severity' invalid string 'Mild'",
        ),
    ],
)
def test_directives_that_are_refused(api: Api, directive: str, text: str) -> None:
    with pytest.raises(client.ApiException) as caught:
        api.create("workflows", workflow("refused", directive))
    assert error_of(caught.value)["message"].endswith(text)


def test_a_watch_without_a_timeout_ends(api: Api) -> None:
    # the timeout that is configured, not one of the client's
    answer = api.custom.list_namespaced_custom_object(
        *(DWS, "v1alpha7", "default", "storages"), watch=True, _preload_content=False
    )
    lines = answer.data.splitlines()
    assert len(lines) == len(api.names("storages"))


def test_others_have_no_such_driver(tmp_path: pathlib.Path) -> None:
    sim = Sim(tmp_path)
    try:
        with pytest.raises(client.ApiException) as caught:
            Api(sim).create("workflows", workflow("none", "#DW Setup action=complete"))
        assert "invalid directive" in error_of(caught.value)["message"]
    finally:
        assert sim.stop() == 0
