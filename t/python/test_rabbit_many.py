# Commands for many jobs, and the option plugin at every submission, save requests and
# imports without a change of the result.
# SPDX-License-Identifier: LGPL-3.0-only
"""Keys that are asked for together, rows of tables, imports of a submission."""

from __future__ import annotations

import argparse
import errno
import json
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from flux_rabbit import listing, rpc, table


class Answer:
    def __init__(self, value: rpc.Object | rpc.RpcError) -> None:
        self.value = value

    def get(self) -> rpc.Object:
        if isinstance(self.value, rpc.RpcError):
            raise self.value
        return self.value


class FakeHandle:
    """Jobs with their keys, of which all that are asked for have to be there."""

    def __init__(self, jobs: dict[int, dict[str, str]]) -> None:
        self.jobs = jobs
        self.requests = 0

    def rpc(self, topic: str, payload: rpc.Object) -> Answer:
        self.requests += 1
        job = self.jobs.get(payload["id"])
        if job is None:
            return Answer(rpc.RpcError(errno.EPERM, topic, "not yours"))
        if not set(payload["keys"]) <= set(job):
            return Answer(rpc.RpcError(errno.ENOENT, topic, "no such key"))
        return Answer({"id": payload["id"], **{k: job[k] for k in payload["keys"]}})


def lookup(jobs: dict[int, dict[str, str]]) -> tuple[rpc.Lookup, FakeHandle]:
    handle: Any = FakeHandle(jobs)
    return rpc.Lookup(handle), handle


def test_keys_that_are_all_there_are_one_request() -> None:
    asked, handle = lookup({1: {"a": "x", "b": "y"}, 2: {"a": "z", "b": ""}})
    asked.ask_together(1, "a", "b")
    asked.ask_together(2, "a", "b")
    assert [asked.get(2, "b"), asked.get(1, "a"), asked.get(1, "b")] == ["", "x", "y"]
    assert asked.get(2, "a") == "z"
    assert handle.requests == 2


def test_without_one_of_them_the_others_are_found() -> None:
    asked, _ = lookup({1: {"b": "y"}})
    asked.ask_together(1, "a", "b", "c")
    assert [asked.get(1, key) for key in "abc"] == [None, "y", None]


def test_who_may_not_look_is_told() -> None:
    asked, _ = lookup({})
    asked.ask_together(1, "a", "b")
    with pytest.raises(rpc.RpcError) as refused:
        asked.get(1, "a")
    assert refused.value.errno == errno.EPERM


def row(number: int) -> SimpleNamespace:
    job: dict[str, Any] = {
        "id": (number + 1) << 24,
        "userid": number,
        "phase": "pending",
        "waiting": "x\x1b中" * number,
        "exception": False,
        "rabbits": "rabbit[0-19],rabbit7"[:number],
    }
    if number % 2:
        # `since` is of another node's clock
        setup = {"state": "Setup", "desired": "Setup"}
        job["workflow"] = {"since": 4e9 + number, "age": 91.0 - number, **setup}
    return listing.job_row(job)


def test_an_age_is_what_the_module_tells() -> None:
    assert row(1).time == 90.0
    assert row(2).time == ""


@pytest.mark.parametrize(
    "text",
    [
        "default",
        "long",
        "{id.f58!s:>3.3} {id.dec:x} {time!H:>9h} {rabbits:<4h}|{waiting!r:<5.5+}|",
        "in {phase} of Flux, ",
    ],
)
def test_rows_are_as_flux_formats_them(text: str) -> None:
    args = argparse.Namespace(format=text, sort=None)
    form = table._format(listing.JOBS, args)
    to_line = table._row_format(form)
    for one in map(row, range(40)):
        assert to_line(one) == form.format(table._cleaned(one))


def test_a_submission_imports_only_what_it_needs() -> None:
    """The slowest imports belong to options that few jobs use."""
    code = (
        "import sys; from flux_rabbit import request;"
        "import json; print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    loaded = set(json.loads(done.stdout))
    assert not loaded & {
        *("flux_rabbit.rpc", "flux_rabbit.foresee", "flux_k8s.names"),
        *("flux", "dataclasses", "kubernetes", "pycurl"),
    }
