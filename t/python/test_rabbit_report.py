# flux rabbit report, from records of jobs in job-list and in the KVS.
# SPDX-License-Identifier: LGPL-3.0-only
"""The report of flux rabbit."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

pytest.importorskip("_flux")

from flux_rabbit import cli, report

T0 = 1_700_000_000.0
# An hour of nodes: 10 minutes of prologs, 40 of tasks, 10 of epilogs.
JOB: dict[str, Any] = {
    "id": 1,
    "userid": 1000,
    "nnodes": 2,
    "t_submit": T0,
    "t_run": T0 + 60,
    "t_cleanup": T0 + 3060,
    "t_inactive": T0 + 3660,
    "result": 1,
}
# Storage took 2 minutes of these before the job and 3 after; others took the rest.
TIMES = {
    "Setup": 60.0,
    "DataIn": 30.0,
    "PreRun": 30.0,
    "PostRun": 60.0,
    "DataOut": 90.0,
    "Teardown": 30.0,
}


def nodes_time(times: dict[str, float], **changes: Any) -> tuple[float, float, float]:
    job = report.ended(JOB | changes)
    found = report.Report(T0, T0 + 3660, [job], {1: times})
    return found.held, found.before, found.after


def test_epilogs_of_others_are_not_storage() -> None:
    assert nodes_time(TIMES) == (7200.0, 240.0, 360.0)


def test_data_that_is_copied_out_without_the_nodes_does_not_hold_them() -> None:
    assert nodes_time(TIMES | {"DataOut": 9000.0}) == (7200.0, 240.0, 1200.0)


def test_a_job_without_nodes_has_held_none() -> None:
    assert nodes_time({}, t_run=None, nnodes=0) == (0.0, 0.0, 0.0)


def test_a_failure_that_a_user_has_made_up_is_counted_as_that_users() -> None:
    job = JOB | {
        "result": 2,
        "exception_occurred": True,
        "exception_severity": 0,
        "exception_type": "dws-setup",
        "exception_note": "rabbit 3\u202e failed",
    }
    assert report.ended(job).cause == "dws-setup: rabbit #\ufffd failed"
    name = cli.user_name(4711)
    found = report.ended(job, 4711)
    assert found.cause == f"raised by user {name}: dws-setup: rabbit #\ufffd failed"


def test_what_users_write_does_no_harm_in_a_page() -> None:
    job = report.ended(JOB | {"result": 2}, None)
    evil = dataclasses.replace(job, cause="<b>\u202e\u200b")
    page = report.page(report.Report(T0, T0 + 3660, [evil], {1: TIMES}))
    assert "&lt;b&gt;\ufffd\ufffd" in page
