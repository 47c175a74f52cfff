# Refusals injected into dws-sim: their rate, their Retry-After, and whether clients
# respect that.
# SPDX-License-Identifier: LGPL-3.0-only
"""dws-sim ctl api --status, --rate, --retry-after, --away."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
import urllib.error
import urllib.request
from typing import Any

import pytest
import urllib3
from aiohttp.test_utils import make_mocked_request
from dws_sim.errors import ApiError
from dws_sim.refusals import Refusal, Refusals
from sim_support import DWS, LIMIT_S, VERSIONS, Api, Sim


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Caller:
    """Makes requests one at a time."""

    def __init__(self, *refusals: Refusal) -> None:
        self.clock = Clock()
        self.refusals = Refusals(7, self.clock)
        for refusal in refusals:
            self.refusals.add(refusal)

    def passes(self, path: str, body: Any = None) -> bool:
        request = make_mocked_request("POST", path)
        request._read_bytes = json.dumps(body).encode()
        try:
            asyncio.run(self.refusals.meet(request))
        except ApiError:
            return False
        return True


def test_a_rate_strikes_that_part_until_it_is_cleared() -> None:
    caller = Caller(Refusal(429, rate=0.25))
    passed = sum(caller.passes(f"/{n}") for n in range(1000))
    assert 650 < passed < 850
    assert caller.refusals.refused == 1000 - passed
    caller.refusals.clear()
    assert all(caller.passes(f"/{n}") for n in range(1000, 1100))


def test_a_count_and_a_rate_at_the_same_time() -> None:
    caller = Caller(Refusal(500, count=2), Refusal(429, rate=0.0001))
    assert [caller.passes(f"/{n}") for n in range(4)] == [False, False, True, True]


def test_the_same_request_before_its_time_is_early() -> None:
    caller = Caller(Refusal(429, count=4, retry_after_s=10))
    for body in (1, 2, 3, 4):
        assert not caller.passes("/a", body)
    # Others are none of it.
    assert caller.passes("/a", 5) and caller.passes("/b", 1)
    assert caller.refusals.early == 0
    caller.clock.now += 9.0
    assert caller.passes("/a", 1)
    assert caller.refusals.early == 1
    caller.clock.now += 1.0
    assert caller.passes("/a", 2) and caller.passes("/a", 1)
    assert caller.refusals.early == 1


def test_without_retry_after_nobody_is_early() -> None:
    caller = Caller(Refusal(500, count=1, retry_after_s=10))
    assert not caller.passes("/a") and caller.passes("/a")
    assert caller.refusals.early == 0


def ask(sim: Sim) -> tuple[int, str | None]:
    """Status and Retry-After of a single request, without the client's retries."""
    configuration = sim.client("wlm").configuration
    url = f"{configuration.host}/api/v1/namespaces?limit=11"
    bearer = configuration.auth_settings()["BearerToken"]
    request = urllib.request.Request(url, headers={bearer["key"]: bearer["value"]})
    trust = ssl.create_default_context(cafile=str(sim.ca))
    try:
        with urllib.request.urlopen(request, None, LIMIT_S, context=trust) as answer:
            return answer.status, None
    except urllib.error.HTTPError as exc:
        exc.close()
        return exc.code, exc.headers["Retry-After"]
    except OSError:
        return 0, None


def test_clients_are_told_when_to_come_again(sim: Sim) -> None:
    before = sim.state()
    sim.ctl("api", "--status", "429", "--rate", "1", "--retry-after", "600")
    answers = [ask(sim), ask(sim)]
    sim.ctl("api", "--clear")
    ask(sim)
    after = sim.state()
    assert answers == [(429, "600")] * 2
    assert after["refused"] - before["refused"] == 2
    assert after["early"] - before["early"] == 2


def test_a_rate_is_a_part(sim: Sim) -> None:
    text = sim.ctl("api", "--status", "429", "--rate", "1.5", check=False)
    assert "rate must be between 0 and 1" in text


def test_a_server_that_is_away_comes_back_with_all_it_had(sim: Sim) -> None:
    before = sim.state()
    stream = Api(sim).custom.list_cluster_custom_object(
        DWS, VERSIONS[DWS], "storages", watch=True, _preload_content=False
    )
    sim.ctl("api", "--away", "0.5")
    with pytest.raises(urllib3.exceptions.HTTPError):
        for _ in stream.stream():
            pass
    limit = time.monotonic() + LIMIT_S
    while ask(sim)[0] == 0:
        assert time.monotonic() < limit
    assert sim.state()["objects"] == before["objects"]
