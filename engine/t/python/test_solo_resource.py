# SPDX-License-Identifier: LGPL-3.0-only
"""The resource module: acquire, drain, exclusion, status, restart."""

import errno
import json

import pytest
import solo_support
from flux.constants import FLUX_RPC_STREAMING
from solo_support import Instance

pytestmark = pytest.mark.skipif(
    not solo_support.available() or not solo_support.is_solo(), reason="needs solo"
)

OPTIONS = ["--scheduler=none"]


@pytest.fixture(name="handle")
def fixture_handle():
    with Instance(*OPTIONS, "--test-gpus=1", size=4) as instance:
        handle = instance.open()
        yield handle
        del handle
        assert instance.close() == 0


def drain(handle, targets, reason=None, mode=None, topic="resource.drain"):
    payload = {"targets": targets}
    if reason:
        payload["reason"] = reason
    if mode:
        payload["mode"] = mode
    handle.rpc(topic, payload).get()


def drained(handle):
    info = handle.rpc("resource.status", nodeid=0).get()["drain"]
    return {ranks: value["reason"] for ranks, value in info.items()}


class Acquire:
    def __init__(self, handle):
        self.future = handle.rpc("resource.acquire", flags=FLUX_RPC_STREAMING)

    def next(self):
        response = self.future.get()
        self.future.reset()
        return response


def test_acquire(handle):
    acquire = Acquire(handle)
    first = acquire.next()
    assert first["up"] == "0-3"
    execution = first["resources"]["execution"]
    assert execution["R_lite"] == [
        {"rank": "0-3", "children": {"core": "0-3", "gpu": "0"}}
    ]
    assert execution["nodelist"] == ["node[0-3]"]
    second = handle.rpc("resource.acquire", flags=FLUX_RPC_STREAMING)
    with pytest.raises(OSError) as exc:
        second.get()
    assert exc.value.errno == errno.EBUSY
    drain(handle, "1,3", "why")
    assert acquire.next() == {"down": "1,3"}
    handle.rpc("resource.monitor-force-down", {"ranks": "1-2"}).get()
    assert acquire.next() == {"down": "2"}
    drain(handle, "1,3", topic="resource.undrain")
    assert acquire.next() == {"up": "3"}
    handle.rpc("config.load", {"resource": {"exclude": "node0"}}).get()
    assert acquire.next() == {"down": "0"}


def test_drain(handle):
    drain(handle, "node[1-2]", "broken")
    assert drained(handle) == {"1-2": "broken"}
    with pytest.raises(FileExistsError, match="rank 2 already drained"):
        drain(handle, "2-3", "other")
    assert drained(handle) == {"1-2": "broken"}
    drain(handle, "2-3", "other", "update")
    assert drained(handle) == {"1-2": "broken", "3": "other"}
    drain(handle, "2", "again", "overwrite")
    assert drained(handle) == {"1": "broken", "2": "again", "3": "other"}
    with pytest.raises(FileExistsError, match="rank 0 not drained"):
        drain(handle, "0-1", topic="resource.undrain")
    drain(handle, "1-3", topic="resource.undrain")
    assert drained(handle) == {}
    for targets, text in (
        ("node9", "invalid hosts: node9"),
        ("4", "out of range"),
        ("", "empty"),
    ):
        with pytest.raises(OSError, match=text):
            drain(handle, targets)
    with pytest.raises(OSError, match="Invalid mode"):
        drain(handle, "1", mode="whatever")


def test_exclude(handle):
    handle.rpc("config.load", {"resource": {"exclude": "1"}}).get()
    with pytest.raises(OSError, match="rank 1 excluded"):
        drain(handle, "1", "x")
    status = handle.rpc("resource.status", nodeid=0).get()
    assert (status["exclude"], status["online"]) == ("1", "0-3")
    first = Acquire(handle).next()
    assert first["up"] == "0,2-3"
    assert first["resources"]["execution"]["nodelist"] == ["node[0,2-3]"]
    with pytest.raises(OSError, match="error updating resource: invalid targets"):
        handle.rpc("config.load", {"resource": {"exclude": "foo"}}).get()


def test_sched_status(handle):
    drain(handle, "3")
    status = handle.rpc("resource.sched-status").get()
    assert status["all"]["execution"]["nodelist"] == ["node[0-3]"]
    assert status["down"]["execution"]["R_lite"] == [
        {"rank": "3", "children": {"core": "0-3", "gpu": "0"}}
    ]
    assert status["allocated"]["execution"]["R_lite"] == []


def test_journal(handle):
    future = handle.rpc("resource.journal", flags=FLUX_RPC_STREAMING)
    names = [event["name"] for event in future.get()["events"]]
    assert names == ["restart", "online", "resource-define"]
    future.reset()
    assert future.get()["events"] == []
    future.reset()
    drain(handle, "0", "x")
    event = future.get()["events"][0]
    assert event["name"] == "drain"
    assert event["context"] == {
        "idset": "0",
        "nodelist": "node0",
        "reason": "x",
        "overwrite": 0,
    }


def test_properties(tmp_path):
    R = {
        "version": 1,
        "execution": {
            "R_lite": [{"rank": "0-2", "children": {"core": "0"}}],
            "nodelist": ["a,b,c"],
            "starttime": 0,
            "expiration": 0,
            "properties": {"big": "1-2"},
        },
        "scheduling": {"x": 1},
    }
    path = tmp_path / "R"
    path.write_text(json.dumps(R))
    with Instance(*OPTIONS, "-R", str(path), "-Stest.x=1") as instance:
        h = instance.open()
        assert h.attr_get("size") == "3"
        assert h.attr_get("hostlist") == "a,b,c"
        assert h.rpc("resource.get").get() == R
        drain(h, "b")
        down = h.rpc("resource.sched-status").get()["down"]
        assert down["execution"]["properties"] == {"big": "1"}
        assert "scheduling" not in down


def test_drains_survive_a_crash(tmp_path):
    options = [*OPTIONS, f"--statedir={tmp_path}"]
    instance = Instance(*options, "--test-hosts=a,b,c", size=3)
    h = instance.open()
    drain(h, "b", "first")
    drain(h, "c")
    drain(h, "a", "x")
    drain(h, "a", topic="resource.undrain")
    instance.kill()
    with Instance(*options, "--test-hosts=b,c,a", size=3) as instance:
        assert drained(instance.open()) == {"0": "first", "1": ""}
