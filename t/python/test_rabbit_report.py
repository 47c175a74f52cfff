# flux rabbit report, from records of jobs in job-list and in the KVS.
# SPDX-License-Identifier: LGPL-3.0-only
"""The report of flux rabbit."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
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


@pytest.fixture
def los_angeles(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "America/Los_Angeles")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def at(text: str) -> float:
    return time.mktime(time.strptime(text, "%Y-%m-%d %H:%M:%S"))


def days(begin: str, end: str, over: str) -> list[str]:
    """The days of a report in which that one has a job."""
    job = dataclasses.replace(report.ended(JOB), over=at(over))
    found = report.Report(at(begin), at(end), [job], {1: TIMES}).days()
    assert [day for day, counts in found if counts] == [over[:10]]
    return [day for day, _ in found]


@pytest.mark.usefixtures("los_angeles")
def test_a_day_of_23_hours_is_one() -> None:
    """On the 8th clocks are put forward: a day after 23:30 of the 7th is the 9th."""
    begin, end = "2026-03-07 23:30:00", "2026-03-09 12:00:00"
    wanted = ["2026-03-07", "2026-03-08", "2026-03-09"]
    assert days(begin, end, "2026-03-08 12:00:00") == wanted


@pytest.mark.usefixtures("los_angeles")
def test_a_job_may_end_while_the_report_is_made() -> None:
    begin, end = "2026-05-01 00:00:00", "2026-05-01 23:59:59"
    wanted = ["2026-05-01", "2026-05-02"]
    assert days(begin, end, "2026-05-02 00:00:01") == wanted


def test_all_times_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[float] = []

    def collect(handle: Any, begin: float, end: float) -> report.Report:
        begun.append(begin)
        return report.Report(begin, end, [], {})

    monkeypatch.setattr(report, "collect", collect)
    monkeypatch.setattr(report.rpc, "Handle", lambda: None)
    monkeypatch.setattr(report.rpc, "system_uri", lambda: "")
    assert cli.main(["report", "--since", f"{'9' * 400}d"]) == 0
    assert begun == [0.0]
