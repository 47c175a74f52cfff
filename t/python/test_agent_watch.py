# The agent's watch threads and the way of their findings to the reactor.
# SPDX-License-Identifier: LGPL-3.0-only
import queue
import select

from flux_k8s import watch
from flux_k8s.agent import Mailbox
from flux_k8s.crd import newest
from flux_k8s.kube import ApiError
from flux_k8s.stats import Stats
from flux_k8s.watch import Sink, WatchThread

LIMIT_S = 20


def obj(name, version):
    return {"metadata": {"name": name, "resourceVersion": str(version)}}


class Stream(list):
    """Events, then how the stream ends: None, or an ApiError."""

    def __init__(self, events, end=None):
        super().__init__(events)
        self.end = end

    def __iter__(self):
        yield from super().__iter__()
        if self.end is not None:
            raise self.end

    def close(self):
        pass


class ScriptedKube:
    def __init__(self, lists, streams):
        self.lists = list(lists)
        self.streams = list(streams)
        self.watched_from = []
        self.stats = Stats()
        self.thread = None

    def list_all(self, plural, selector):
        answer = self.lists.pop(0)
        if isinstance(answer, ApiError):
            raise answer
        return answer

    def watch(self, plural, version, selector, timeout_s):
        self.watched_from.append(version)
        if not self.streams:
            self.thread.stop()
            return Stream([])
        return self.streams.pop(0)


class Record(Sink):
    def __init__(self):
        self.got = queue.Queue()

    def listed(self, plural, objects):
        self.got.put(("listed", [o["metadata"]["name"] for o in objects]))

    def changed(self, plural, event, obj):
        self.got.put((event, obj["metadata"]["name"]))

    def health(self, plural, error):
        self.got.put(("health", error))


def run(kube, monkeypatch):
    monkeypatch.setattr(watch, "BACKOFF_FIRST_S", 0.001)
    sink = Record()
    thread = WatchThread(kube, "workflows", "", sink)
    kube.thread = thread
    thread.start()
    thread.join(LIMIT_S)
    assert not thread.is_alive()
    return list(sink.got.queue)


def test_list_then_watch_from_its_version(monkeypatch):
    kube = ScriptedKube(
        [([obj("a", 3)], "10")],
        [Stream([("ADDED", obj("b", 11)), ("BOOKMARK", obj("", 15))]), Stream([])],
    )
    assert run(kube, monkeypatch) == [("listed", ["a"]), ("ADDED", "b")]
    assert kube.watched_from == ["10", "15", "15"]


def test_gone_means_list_anew(monkeypatch):
    gone = ApiError(410, "Expired", "too old resource version")
    kube = ScriptedKube(
        [([obj("a", 1)], "10"), ([], "20")],
        [Stream([("MODIFIED", obj("a", 12))], gone)],
    )
    assert run(kube, monkeypatch) == [
        ("listed", ["a"]),
        ("MODIFIED", "a"),
        ("listed", []),
    ]
    assert kube.watched_from == ["10", "20"]


def test_a_broken_stream_resumes_and_tells_of_it(monkeypatch):
    broken = ApiError(0, "Unreachable", "connection reset")
    kube = ScriptedKube(
        [([], "10")],
        [
            Stream([("ADDED", obj("a", 11))], broken),
            Stream([("DELETED", obj("a", 12))]),
        ],
    )
    assert run(kube, monkeypatch) == [
        ("listed", []),
        ("ADDED", "a"),
        ("health", "connection reset"),
        ("health", None),
        ("DELETED", "a"),
    ]
    assert kube.watched_from == ["10", "11", "12"]


def test_a_dead_server_is_asked_until_it_answers(monkeypatch):
    dead = ApiError(503, "ServiceUnavailable", "starting")
    kube = ScriptedKube([dead, dead, ([], "5")], [])
    assert run(kube, monkeypatch) == [
        ("health", "starting"),
        ("health", None),
        ("listed", []),
    ]


def event(kind, name, version):
    return {"type": "workflow", "event": kind, "object": obj(name, version)}


def test_mailbox_wakes_its_reader_and_keeps_order():
    box = Mailbox()
    box.put(event("ADDED", "a", 1))
    box.put({"type": "result", "seq": 1, "ok": True})
    assert select.select([box.fd], [], [], LIMIT_S)[0]
    assert [r["type"] for r in box.take()] == ["workflow", "result"]
    assert not select.select([box.fd], [], [], 0)[0]
    assert box.take() == []
    box.close()


def test_mailbox_keeps_only_the_newest_state_of_an_object():
    box = Mailbox()
    for version in range(1, 5):
        box.put(event("ADDED" if version == 1 else "MODIFIED", "a", version))
    box.put(event("MODIFIED", "b", 5))
    got = box.take()
    assert [(r["event"], r["object"]["metadata"]["resourceVersion"]) for r in got] == [
        ("ADDED", "4"),
        ("MODIFIED", "5"),
    ]
    box.close()


def test_mailbox_does_not_merge_across_deletion_or_snapshot():
    box = Mailbox()
    box.put(event("MODIFIED", "a", 1))
    box.put(event("DELETED", "a", 2))
    box.put(event("ADDED", "a", 3))
    box.put({"type": "snapshot", "workflows": []})
    box.put(event("MODIFIED", "a", 4))
    assert [r.get("event") for r in box.take()] == [
        "MODIFIED",
        "DELETED",
        "ADDED",
        None,
        "MODIFIED",
    ]
    box.close()


def test_newest_version_is_kubernetes_order():
    assert newest(["v1alpha6", "v1alpha10", "v1alpha7"]) == "v1alpha10"
    assert newest(["v1beta1", "v2alpha1", "v1"]) == "v1"
    assert newest(["odd", "v1alpha1"]) == "v1alpha1"
