# SPDX-License-Identifier: LGPL-3.0-only
"""Each field of each table can be printed, and sorted by, for rows that lack it too."""

from __future__ import annotations

import argparse
from types import SimpleNamespace
from typing import Any

import pytest
from flux_rabbit import listing, persistent, profiles, quota, table

RABBIT = {"name": "rabbit1", "state": "Ready", "capacity": 2**40, "free": 2**39}
RABBITS = [
    listing._rabbit_row(RABBIT),
    listing._rabbit_row({**RABBIT, "wear": 3, "foreign": 2**30, "drives": (15, 16)}),
]
JOB = {"id": 1, "userid": 0, "phase": "depend", "waiting": "", "exception": False}
JOBS = [
    listing.job_row(JOB),
    listing.job_row({**JOB, "workflow": {"desired": "Setup", "age": 99.0}}),
]
JOB_ID = table.JobId(1)
RULE: Any = {"value": 2**30, "rule": "all"}
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


@pytest.mark.parametrize("name", ["list", "df", "jobs", "quota"])
def test_a_row_has_all_fields_and_no_other(name: str) -> None:
    shown, rows = ROWS[name]
    fields = {field.partition(".")[0] for field in shown.headings}
    for row in rows:
        assert fields <= set(vars(row))


@pytest.mark.parametrize(
    "shown",
    [
        *(shown for shown, _ in ROWS.values()),
        persistent.LIST,
        *profiles.TABLES.values(),
    ],
)
def test_the_formats_have_known_fields(shown: table.Table) -> None:
    for name in shown.formats:
        args = argparse.Namespace(format=name, no_header=False, sort=None)
        row = SimpleNamespace(**{**dict.fromkeys(shown.headings, ""), "id": JOB_ID})
        assert table.show(shown, args, [[row]]) == 1
