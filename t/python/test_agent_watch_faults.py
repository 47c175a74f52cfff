# Watches of the agent that break, each against a server on a socket: a small one that
# can be made to do anything, and dws-sim.
# SPDX-License-Identifier: LGPL-3.0-only
import json
import os
import socket
import threading
import time
from urllib.parse import parse_qs, urlsplit

import faulty_server
import pytest
from faulty_server import LIMIT_S, Results, answer, at, drip, never, pour, run, status
from flux_k8s import commands, kube, listwatch, transport
from flux_k8s.fields import project
from flux_k8s.kube import Kube
from flux_k8s.listwatch import Sink, Watch
from flux_k8s.objects import name_of
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
        self.got.put((event, name_of(obj)[1]))

    def health(self, plural, error):
        self.got.put("well" if error is None else "ill")

    def went_back(self, plural, why):
        self.got.put(f"went back: {why}")


class Follow:
    """A watch, and its reports."""

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


def event(name, version):
    meta = {"name": name, "resourceVersion": str(version)}
    return {"type": "ADDED", "object": {"kind": "Workflow", "metadata": meta}}


def test_a_watch_that_goes_silent_is_given_up(server, monkeypatch):
    """Half-open connection: the server is gone without closing it."""
    monkeypatch.setattr(listwatch, "WATCH_TIMEOUT_S", (0, 0))
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

    server.http.script = [at(5), silent, at(6), next_stream]
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


def sockets_to(port):
    """Sockets of this process that are connected to that port."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            each = socket.socket(fileno=os.dup(int(name)))
        except OSError:
            continue  # no socket, or closed meanwhile
        try:
            there = each.getpeername()[1:2] == (port,)
        except OSError:
            there = False
        if there:
            found.append(each)
        else:
            each.close()
    return found


def test_dead_peers_are_looked_for(server):
    """By the kernel, on each connection that there is: in half a minute."""

    def open_stream(handler):
        handler.stream(event("a", 6))
        handler.rfile.read(1)

    server.http.script = [at(5), open_stream]
    follow = Follow(server.kube())
    assert [follow.next() for _ in range(2)] == ["listed", ("ADDED", "a")]
    connected = sockets_to(server.port)
    try:
        assert connected
        for each in connected:
            assert each.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            idle, interval, probes, unanswered_ms = (
                each.getsockopt(socket.IPPROTO_TCP, option)
                for option in (
                    socket.TCP_KEEPIDLE,
                    socket.TCP_KEEPINTVL,
                    socket.TCP_KEEPCNT,
                    socket.TCP_USER_TIMEOUT,
                )
            )
            assert idle + probes * interval <= 30
            assert 0 < unanswered_ms <= 30_000
    finally:
        for each in connected:
            each.close()
        follow.end()


@pytest.mark.parametrize("how", ["status", "event"])
def test_410_both_ways(server, how):
    def gone(handler):
        if how == "status":
            answer(410, "Expired", "too old resource version")(handler)
        else:
            error = {"type": "ERROR", "object": status(410, "Expired", "too old")}
            handler.stream(error)
            handler.end_stream()

    def open_stream(handler):
        handler.stream(event("a", 6))
        handler.rfile.read(1)

    server.http.script = [at(5), gone, at(5), open_stream]
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
        listwatch, "backoff_s", lambda n, first, cap: paused.append(n) or 0.001
    )

    def at_once(handler):
        handler.stream(*lines)
        handler.end_stream()

    def open_stream(handler):
        handler.stream(event("a", 6))
        handler.rfile.read(1)

    server.http.script = [*[at(5), at_once] * 5, at(5), open_stream]
    follow = Follow(server.kube())
    assert [follow.next(), follow.next()] == ["listed", ("ADDED", "a")]
    follow.end()
    assert paused == [1, 2, 3, 4]


def test_a_list_that_begins_anew_for_ever_is_trouble(server):
    page = {"items": [], "metadata": {"resourceVersion": "5", "continue": "again"}}

    def open_stream(handler):
        handler.stream(event("a", 6))
        handler.rfile.read(1)

    pages = [lambda h: h.send(200, page)] * 2
    server.http.script = [*pages, at(5), open_stream]
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


def open_stream(*events):
    """A watch with some events, open until the client closes it."""

    def send(handler):
        handler.stream(*events)
        handler.rfile.read(1)
        handler.close_connection = True

    return send


def asked(server):
    """Kinds of the server's requests: "list", "now", or "watch" with its version."""
    for _, path, _ in server.http.seen:
        query = parse_qs(urlsplit(path).query)
        if "watch" in query:
            yield f"watch {query['resourceVersion'][0]}"
        elif "limit" in query:
            yield "now" if query["limit"] == ["1"] else "list"


def test_silence_is_the_end_of_a_watch(server, monkeypatch):
    """A silent watch continues over a new connection, without a report: an API server
    sends no bookmarks of a kind without changes."""
    monkeypatch.setattr(transport, "SILENCE_S", 0.2)
    server.http.script = [at(5), open_stream(event("a", 6)), at(9)]
    server.http.script += [open_stream(event("b", 7))]
    follow = Follow(server.kube())
    assert [follow.next() for _ in range(3)] == [
        "listed",
        ("ADDED", "a"),
        ("ADDED", "b"),
    ]
    follow.end()
    assert [*asked(server)][:4] == ["list", "watch 5", "now", "watch 6"]
    *_, now, after = server.http.connections[:5]
    assert now not in server.http.connections[:3]


def test_a_watch_that_does_not_begin(server, monkeypatch):
    monkeypatch.setattr(transport, "SILENCE_S", 0.2)
    server.http.script = [at(5), never, at(5), open_stream(event("a", 6))]
    follow = Follow(server.kube())
    told = [follow.next() for _ in range(4)]
    assert told == ["listed", "ill", "well", ("ADDED", "a")]
    follow.end()


def test_a_request_that_is_not_answered_makes_a_silent_watch_suspect(
    server, monkeypatch
):
    """A dead server behind an open address fails requests and watches alike."""
    monkeypatch.setattr(kube, "READ_TIMEOUT_S", 1.0)
    server.http.script = [at(5), open_stream(event("a", 6))]
    api = server.kube()
    follow = Follow(api)
    assert [follow.next(), follow.next()] == ["listed", ("ADDED", "a")]
    server.http.script = [never]
    get = {"op": "get", "kind": "workflows", "namespace": "default", "name": "w"}
    pool = commands.CommandQueue(api, follow.loop, 2, lambda report: None)

    def rest(handler):
        """The watch and the command try again, in whatever order."""
        if "watch=true" in handler.path:
            open_stream(event("b", 7))(handler)
        elif "limit=1" in handler.path:
            at(6)(handler)
        else:
            handler.send(200, {"kind": "Workflow", "metadata": {"name": "w"}})

    server.http.script += [rest] * 3
    pool.submit({"seq": 1, **get})
    assert follow.next() == ("ADDED", "b")
    pool.stop()
    follow.end()
    # none of the connections that there were
    assert not {*server.http.connections[:4]} & {*server.http.connections[4:]}


def test_a_watch_that_has_heard_something_meanwhile_is_not_suspect(server):
    server.http.script = [at(5), open_stream(event("a", 6))]
    api = server.kube()
    follow = Follow(api)
    assert [follow.next(), follow.next()] == ["listed", ("ADDED", "a")]
    (stream,) = api._streams
    api._doubt(stream.heard_at)
    assert not stream._over
    server.http.script = [at(6), open_stream(event("b", 7))]
    api._doubt(stream.heard_at + 1)
    assert stream._over
    assert follow.next() == ("ADDED", "b")
    follow.end()


def test_a_position_that_is_refused_is_not_asked_for_for_ever(server):
    refused = answer(500, "", 'resourceVersion: Invalid value: "x"')
    server.http.script = [at("x"), refused]
    server.http.script += [at("x"), refused] * (listwatch.REFUSALS - 1)
    server.http.script += [at(5), open_stream(event("a", 6))]
    follow = Follow(server.kube())
    assert [follow.next(), follow.next()] == ["listed", "ill"]
    assert follow.next().startswith(f"went back: refused {listwatch.REFUSALS} times")
    assert [follow.next() for _ in range(3)] == ["well", "listed", ("ADDED", "a")]
    follow.end()


@pytest.mark.parametrize("body", ["poured", "dripping"])
def test_a_refusal_of_a_watch_that_does_not_end(server, monkeypatch, body):
    monkeypatch.setattr(kube, "READ_TIMEOUT_S", 0.2)

    def refuse(handler):
        pour(200 << 20, 500)(handler) if body == "poured" else drip(handler, 500)

    server.http.script = [at(5), refuse, at(5), open_stream(event("a", 6))]
    follow = Follow(server.kube())
    told = [follow.next() for _ in range(4)]
    assert told == ["listed", "ill", "well", ("ADDED", "a")]
    follow.end()


@pytest.mark.parametrize("op", ["get", "patch"])
@pytest.mark.parametrize("version", [9, 12, 13])
def test_what_is_read_by_name_is_never_older_than_what_was_told(server, op, version):
    """The answer to a patch can be: others have changed the object since."""
    meta = {"name": "w", "namespace": "default", "resourceVersion": str(version)}
    obj = {"kind": "Workflow", "metadata": meta}
    server.http.script = [lambda h: h.send(200, obj)]
    results, back = Results(), []
    pool = commands.CommandQueue(
        server.kube(),
        results.loop,
        1,
        results.put,
        known=lambda *which: 12 if which == ("workflows", ("default", "w")) else 0,
        went_back=lambda *why: back.append(why),
    )
    where = {"kind": "workflows", "namespace": "default", "name": "w"}
    pool.submit({"op": op, "patch": {}, "seq": 1, **where})
    assert results.get()["object"] == project("workflows", obj)
    older = op == "get" and version < 12
    assert back == ([("workflows", "w: version 9 after 12")] if older else [])
    pool.stop()
    results.loop.close()


# The same against the simulator


@pytest.fixture(scope="module")
def sim(tmp_path_factory):
    made = Sim(tmp_path_factory.mktemp("sim"))
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
