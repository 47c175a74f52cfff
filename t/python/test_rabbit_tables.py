# SPDX-License-Identifier: LGPL-3.0-only
"""Each field of each table can be printed, and sorted by, for rows that lack it too."""

from __future__ import annotations

import argparse
from typing import Any

import pytest
from flux_rabbit import listing, persistent, profiles, quota, table

RABBIT = {"name": "rabbit1", "state": "Ready", "capacity": 2**40, "free": 2**39}
RABBITS = [
    listing.LIST.row(RABBIT),
    listing.LIST.row({**RABBIT, "wear": 3, "foreign": 2**30, "drives": (15, 16)}),
]
JOB = {"id": 1, "userid": 0, "phase": "depend", "waiting": "", "exception": False}
JOBS = [
    listing.job_row(JOB),
    listing.job_row({**JOB, "workflow": {"desired": "Setup", "age": 99.0}}),
]
RULE: Any = {"value": 2**30, "rule": "all"}
SYSTEM = {
    "name": "keep",
    "type": "xfs",
    "state": "Active",
    "user": "ann",
    "userid": 7,
    "users": [{"jobid": 1}, {"workflow": "other"}],
}
SYSTEMS = [
    persistent.row_of(SYSTEM, 200.0),
    persistent.row_of(
        {**SYSTEM, "created": 1.0, "expires": 300.0, "space": {"rabbit0": 1}}, 200.0
    ),
]
PROFILE = {"metadata": {"name": "template"}, "data": {}}
FULL = {
    "metadata": {"name": "other"},
    "data": {
        "default": True,
        "userID": 7,
        "retryLimit": 1,
        "preRunTimeoutSeconds": 60,
        "storages": [{"name": "DW_JOB_a"}, {"name": "DW_JOB_b", "optional": True}],
        "lustreStorage": {"mgtOptions": {"capacity": "1GiB", "count": 1}},
    },
}
PROFILES = (PROFILE, FULL)
ROWS = {
    "list": (listing.LIST, RABBITS),
    "df": (listing.DF, [*RABBITS, listing._sum_row(RABBITS)]),
    "jobs": (listing.JOBS, JOBS),
    "quota": (
        quota.LIST,
        [
            quota._row("total", "you", RULE, quota.NOTHING),
            quota._row("job", "you", None, None),
        ],
    ),
    "persistent": (persistent.LIST, SYSTEMS),
    "storage": (
        profiles.STORAGE,
        [row for profile in PROFILES for row in profiles.storage_rows(profile)],
    ),
    "containers": (
        profiles.CONTAINERS,
        [row for profile in PROFILES for row in profiles.container_rows(profile)],
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_each_field(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown, rows = ROWS[name]
    for field, heading in shown.headings.items():
        for sort in (None, field, f"-{field}"):
            args = argparse.Namespace(
                format=f"{{{field}}}|", no_header=False, sort=sort
            )
            assert table.show(shown, args, [rows]) == len(rows)
            lines = capsys.readouterr().out.splitlines()
            assert lines[0] == f"{heading}|" and len(lines) == len(rows) + 1


@pytest.mark.parametrize("name", ROWS)
def test_the_formats_have_known_fields(name: str) -> None:
    shown, rows = ROWS[name]
    for form in shown.formats:
        args = argparse.Namespace(format=form, no_header=False, sort=None)
        assert table.show(shown, args, [rows]) == len(rows)
