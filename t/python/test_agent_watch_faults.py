# Watches of the agent that break, each against a server on a socket: a small one that
# can be made to do anything, and dws-sim.
# SPDX-License-Identifier: LGPL-3.0-only
import json
import socket
import threading
import time

import faulty_server
import pytest
from faulty_server import LIMIT_S, Results, answer, run, status
from flux_k8s import kube, transport, watch
from flux_k8s.kube import Kube
from flux_k8s.watch import Sink, Watch
from sim_support import Sim, workflow

server = pytest.fixture(faulty_server.server)
fast = pytest.fixture(faulty_server.fast, autouse=True)


class Record(Sink):
    def __init__(self):
        self.got = Results()

    async def listing(self, plural):
        pass

    def listed(self, plural, objects, version):
        self.got.put("listed")

    def changed(self, plural, event, obj):
        self.got.put((event, obj["metadata"]["name"]))

    def health(self, plural, error):
        self.got.put("well" if error is None else "ill")


class Follow:
    """A watch, and what it tells."""

    def __init__(self, api):
        self.sink = Record()
        self.watch = Watch(api, "workflows", "", self.sink)
        self.ended = False
        self.loop = self.sink.got.loop
        self.loop.spawn(self.run())

    async def run(self):
        await self.watch.run()
        self.ended = True

    def next(self):
        return self.sink.got.get(timeout=LIMIT_S)

    def end(self):
        self.watch.stop()
        self.loop.turn()
        assert self.ended
        self.loop.close()


LISTED = {"items": [], "metadata": {"resourceVersion": "5"}}


def event(name, version):
    meta = {"name": name, "resourceVersion": str(version)}
    return {"type": "ADDED", "object": {"kind": "Workflow", "metadata": meta}}


def test_a_watch_that_goes_silent_is_given_up(server, monkeypatch):
    """Half-open: the server is there no more and nobody has said so."""
    monkeypatch.setattr(watch, "WATCH_TIMEOUT_S", (0, 0))
    monkeypatch.setattr(kube, "WATCH_SLACK_S", 1.0)
    ended = threading.Event()

    def silent(handler):
        handler.stream(event("a", 6))
        handler.rfile.read(1)
        ended.set()
        handler.close_connection = True

    def next_stream(handler):
        handler.stream(event("b", 7))
        handler.rfile.read(1)

    server.http.script = [lambda h: h.send(200, LISTED), silent, next_stream]
    follow = Follow(server.kube())
    assert [follow.next() for _ in range(5)] == [
        "listed",
        ("ADDED", "a"),
        "ill",
        "well",
        ("ADDED", "b"),
    ]
    assert ended.wait(LIMIT_S)
    follow.end()
    # it went on where it was
    assert "resourceVersion=6" in server.http.seen[-1][1]


def test_dead_peers_are_looked_for():
    options = {(level, name): value for level, name, value in transport.KEEPALIVE}
    assert options[socket.SOL_SOCKET, socket.SO_KEEPALIVE] == 1
    idle = options[socket.IPPROTO_TCP, socket.TCP_KEEPIDLE]
    probes = options[socket.IPPROTO_TCP, socket.TCP_KEEPCNT]
    interval = options[socket.IPPROTO_TCP, socket.TCP_KEEPINTVL]
    assert idle + probes * interval <= 30


@pytest.mark.parametrize("how", ["status", "event"])
def test_410_both_ways(server, how):
    def gone(handler):
        if how == "status":
            answer(410, "Expired", "too old resource version")(handler)
        else:
            error = {"type": "ERROR", "object": status(410, "Expired", "too old")}
            handler.stream(error)
            handler.end_stream()

    def listed(handler):
        handler.send(200, LISTED)

    def open_stream(handler):
        handler.stream(event("a", 6))
        handler.rfile.read(1)

    server.http.script = [listed, gone, listed, open_stream]
    follow = Follow(server.kube())
    assert [follow.next() for _ in range(3)] == ["listed", "listed", ("ADDED", "a")]
    follow.end()


KNOWN = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "5"}}}


@pytest.mark.parametrize("lines", [(), (KNOWN,)], ids=["nothing", "known already"])
def test_who_hears_nothing_new_slows_down(server, monkeypatch, lines):
    """A server or a proxy that ends every watch at once, or each time after a bookmark
    of what is known already."""
    paused = []
    monkeypatch.setattr(
        watch, "backoff_s", lambda n, first, cap: paused.append(n) or 0.001
    )

    def at_once(handler):
        handler.stream(*lines)
        handler.end_stream()

    def open_stream(handler):
        handler.stream(event("a", 6))
        handler.rfile.read(1)

    server.http.script = [lambda h: h.send(200, LISTED), *[at_once] * 5, open_stream]
    follow = Follow(server.kube())
    assert [follow.next(), follow.next()] == ["listed", ("ADDED", "a")]
    follow.end()
    assert paused == [1, 2, 3, 4]


def test_a_list_that_begins_anew_for_ever_is_trouble(server):
    page = {**LISTED, "metadata": {"resourceVersion": "5", "continue": "again"}}

    def open_stream(handler):
        handler.stream(event("a", 6))
        handler.rfile.read(1)

    pages = [lambda h: h.send(200, page)] * 2
    server.http.script = [*pages, lambda h: h.send(200, LISTED), open_stream]
    follow = Follow(server.kube())
    told = [follow.next() for _ in range(4)]
    assert told == ["ill", "well", "listed", ("ADDED", "a")]
    follow.end()


ODD_LISTS = [
    {"items": [], "metadata": ["x"]},
    {"items": {"a": 1}, "metadata": {}},
    {"items": ["x"], "metadata": {}},
    {"items": [{"metadata": {}}], "metadata": {}},
]


@pytest.mark.parametrize("odd", ODD_LISTS)
def test_what_is_no_list_is_trouble(server, odd):
    server.http.script = [lambda h: h.send(200, odd)]
    got, trouble = run(server.kube(), {"op": "list", "selector": ""})
    assert got[0]["ok"] and got[0]["objects"] == []
    assert len(trouble) == 1 and "no list" in trouble[0]["message"]


# The same against the simulator


@pytest.fixture(scope="module")
def sim(tmp_path_factory):
    made = Sim(tmp_path_factory.mktemp("sim"), "--tls")
    yield made
    made.stop()


def test_faults_of_the_simulator_pass(sim):
    api = Kube(str(sim.kubeconfig))
    name = "faulty"
    create = {"op": "create", "name": name, "object": workflow(name)}
    for code in (429, 500, 503, 401):
        sim.ctl("api", "--status", str(code), "--count", "2")
    got, trouble = run(api, create, {"op": "delete", "name": name})
    assert [r["ok"] for r in got] == [True, True]
    assert [t["status"] for t in trouble] == [429, 500, 503, 401]
    assert api.stats.summary()["retries"] == 8


def test_watches_that_the_simulator_drops_or_expires(sim):
    api = Kube(str(sim.kubeconfig))
    follow = Follow(api)
    assert follow.next() == "listed"
    for words in (["--drop-watches"], ["--expire"], ["--drop-watches"]):
        deadline = time.monotonic() + LIMIT_S
        while json.loads(sim.ctl("state"))["watches"] == 0:
            follow.loop.turn()
            assert time.monotonic() < deadline
        sim.ctl("api", *words)
    name = "watched"
    run(api, {"op": "create", "name": name, "object": workflow(name)})
    run(api, {"op": "delete", "name": name})
    while True:
        if follow.next() == ("DELETED", name):
            break
    follow.end()
