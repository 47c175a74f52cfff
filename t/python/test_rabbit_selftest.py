# flux rabbit selftest leaves none of its jobs behind. t/t3003-rabbit-selftest.t tests
# its findings.
# SPDX-License-Identifier: LGPL-3.0-only
"""The jobs of flux rabbit selftest."""

from __future__ import annotations

import argparse
import errno
from typing import Any

import pytest

pytest.importorskip("_flux")

from flux_rabbit import rpc, selftest

IDS = {"xfs": 1 << 40, "gfs2": 2 << 40}


class Handle:
    """Stands for the broker. Job 1 has just ended when selftest cancels it."""

    def __init__(self) -> None:
        self.canceled: list[int] = []

    def call(self, topic: str, request: dict[str, Any]) -> dict[str, Any]:
        assert topic == "job-manager.raise" and request["type"] == "cancel"
        self.canceled.append(request["id"])
        if request["id"] == IDS["xfs"]:
            raise rpc.RpcError(errno.ENOENT, topic, "unknown job")
        return {}


@pytest.fixture
def handle(monkeypatch: pytest.MonkeyPatch) -> Handle:
    monkeypatch.setattr(selftest.Jobs, "_submit", lambda self, kind: IDS[kind])
    monkeypatch.setattr(rpc, "active_job", lambda *_: None)
    return Handle()


def test_an_interrupt_leaves_no_job(
    handle: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(rpc, "job_list_or_none", interrupted)
    jobs = selftest.Jobs(handle, argparse.Namespace(timeout=60.0, requires=None))
    with pytest.raises(KeyboardInterrupt):
        list(jobs.run(list(IDS)))
    assert handle.canceled == list(IDS.values())


def test_a_job_that_ends_at_the_last_moment_ends_no_selftest(
    handle: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rpc, "job_list_or_none", lambda *_: None)
    jobs = selftest.Jobs(handle, argparse.Namespace(timeout=0.0, requires=None))
    verdicts = list(jobs.run(list(IDS)))
    assert [verdict.good for verdict in verdicts] == [False, False]
    assert handle.canceled == list(IDS.values())
