# The agent's watch threads and the way of their findings to the reactor.
# SPDX-License-Identifier: LGPL-3.0-only

from types import SimpleNamespace

import pytest
from flux_k8s import listwatch
from flux_k8s.errors import UNREACHABLE, ApiError
from flux_k8s.fields import project
from flux_k8s.listwatch import Sink, Watch, Watchers
from flux_k8s.loop import Loop
from flux_k8s.names import INSTANCE_LABEL
from flux_k8s.objects import Object, name_of
from flux_k8s.outage import Outage
from flux_k8s.reports import Mailbox
from flux_k8s.session import REPORT_TYPES, Session
from flux_k8s.stats import Stats


def obj(name, version):
    return Object({"metadata": {"name": name, "resourceVersion": str(version)}})


class Stream(list):
    """Events, then how the stream ends: None, or an ApiError."""

    def __init__(self, events, end=None):
        super().__init__(events)
        self.end = end

        self.told = False

    async def next(self):
        if self.told:
            return None
        self.told = True
        return self.events()

    def events(self):
        yield from self
        if self.end is not None:
            raise self.end

    def close(self):
        pass


class ScriptedKube:
    def __init__(self, lists, streams):
        self.lists = list(lists)
        self.streams = list(streams)
        self.strays = []  # objects without our label
        self.asked = []  # selectors of lists, and whether they may be a little old
        self.watched_from = []
        self.now = []  # versions that are told before a watch goes on; "" after them
        self.stats = Stats()
        self.outage = Outage()
        self.following = None

    async def apick_all(self, plural, selector, recent=False):
        self.asked.append((selector, recent))
        if "!=" in selector:
            return list(self.strays), "1"
        answer = self.lists.pop(0)
        if isinstance(answer, ApiError):
            raise answer
        return answer

    async def anow(self, plural):
        return self.now.pop(0) if self.now else ""

    async def awatch(self, plural, version, selector, timeout_s, picked):
        self.watched_from.append(version)
        if not self.streams:
            self.following.stop()
            return Stream([])
        return self.streams.pop(0)


class Record(Sink):
    def __init__(self):
        self.got = []

    async def listing(self, plural):
        pass

    def listed(self, plural, objects, version):
        self.got.append(("listed", [name_of(o)[1] for o in objects]))

    def changed(self, plural, event, obj):
        self.got.append((event, name_of(obj)[1]))

    def health(self, plural, error):
        self.got.append(("health", error))

    def went_back(self, plural, why):
        self.got.append(("went back", why))


def run(kube, monkeypatch):
    monkeypatch.setattr(listwatch, "BACKOFF_FIRST_S", 0.001)
    sink = Record()
    kube.following = Watch(kube, "workflows", "", sink)
    Loop().run(kube.following.run())
    return sink.got


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


def test_a_server_that_is_not_as_far_as_it_was(monkeypatch):
    """A server behind the requested version accepts a watch, and sends nothing until it
    has reached that version."""
    kube = ScriptedKube(
        [([obj("a", 1)], "1979"), ([obj("a", 1), obj("b", 900)], "924")],
        [Stream([]), Stream([("MODIFIED", obj("a", 925))])],
    )
    kube.now = ["924"]
    assert run(kube, monkeypatch) == [
        ("listed", ["a"]),
        ("went back", "resource version 924 after 1979"),
        ("listed", ["a", "b"]),
        ("MODIFIED", "a"),
    ]
    assert kube.watched_from == ["1979", "924", "925"]


@pytest.mark.parametrize("now", ["10", "11", "new", ""])
def test_a_server_that_is_as_far_goes_on(monkeypatch, now):
    kube = ScriptedKube([([], "10")], [Stream([]), Stream([("ADDED", obj("a", 11))])])
    kube.now = [now]
    assert run(kube, monkeypatch) == [("listed", []), ("ADDED", "a")]
    assert kube.watched_from == ["10", "10", "11"]


def test_a_list_that_has_an_object_of_before(monkeypatch):
    """Versions go on from far above after such a restore: what was there then has the
    versions of then all the same."""
    gone = ApiError(410, "Expired", "too old resource version")
    kube = ScriptedKube(
        [([obj("a", 3)], "10"), ([obj("a", 9)], "2000")] + [([obj("a", 9)], "2000")],
        [Stream([("MODIFIED", obj("a", 12))], gone)],
    )
    assert run(kube, monkeypatch) == [
        ("listed", ["a"]),
        ("MODIFIED", "a"),
        ("went back", "a: version 9 after 12"),
        ("listed", ["a"]),
    ]


@pytest.mark.parametrize("status", [400, 422, 500])
def test_a_position_that_is_refused_for_good(monkeypatch, status):
    text = 'resourceVersion: Invalid value: "abc"'
    refused = ApiError(status, "", text)
    last = Stream([("ADDED", obj("a", 11))])
    kube = ScriptedKube(
        [([], "abc"), ([], "10")],
        [*[Stream([], refused) for _ in range(listwatch.REFUSALS)], last],
    )
    tried = ("health", text), ("health", None)
    assert run(kube, monkeypatch) == [
        ("listed", []),
        *tried * (listwatch.REFUSALS - 1),
        ("went back", f"refused {listwatch.REFUSALS} times: {text}"),
        ("listed", []),
        ("ADDED", "a"),
    ]
    assert kube.watched_from == [*["abc"] * listwatch.REFUSALS, "10", "11"]


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500])
def test_a_refusal_that_is_not_of_the_position(monkeypatch, status):
    ends = [Stream([], ApiError(status, "", "no")) for _ in range(5)]
    kube = ScriptedKube([([], "10")], ends)
    assert {what for what, _ in run(kube, monkeypatch)} == {"listed", "health"}
    assert kube.watched_from == ["10"] * 6


@pytest.mark.parametrize("odd", ["abc", "-1", "", "9", "1" * 30])
def test_a_bookmark_that_is_no_position(monkeypatch, odd):
    kube = ScriptedKube([([], "10")], [Stream([("BOOKMARK", obj("", odd))])])
    assert run(kube, monkeypatch) == [("listed", [])]
    assert kube.watched_from == ["10", "10"]


@pytest.mark.parametrize(
    "told, short_s, turns",
    [(False, 60.0, [1, 2]), (True, 60.0, []), (False, 0.0, [])],
)
def test_watches_that_end_at_once_are_not_made_again_at_once(
    monkeypatch, told, short_s, turns
):
    """But for the first: and one that has told something, or lasted, is made anew."""
    waited = []
    monkeypatch.setattr(listwatch, "SHORT_WATCH_S", short_s)
    monkeypatch.setattr(listwatch, "backoff_s", lambda n, *_: waited.append(n) or 0.0)
    streams = [Stream([("ADDED", obj("a", 11 + i))] if told else []) for i in range(3)]
    run(ScriptedKube([([], "10")], streams), monkeypatch)
    assert waited == turns


def test_after_a_defect_of_ours_nothing_is_gone_on_from(monkeypatch):
    """Also if the list that follows is refused at first."""

    class Defect(Record):
        def changed(self, plural, event, obj):
            super().changed(plural, event, obj)
            if len(self.got) == 2:
                raise ValueError("a defect")

    monkeypatch.setattr(listwatch, "BACKOFF_FIRST_S", 0.001)
    refused = ApiError(500, "InternalError", "not now")
    kube = ScriptedKube(
        [([], "10"), refused, ([obj("a", 12)], "20")],
        [Stream([("ADDED", obj("a", 11)), ("MODIFIED", obj("a", 12))])],
    )
    sink = Defect()
    kube.following = Watch(kube, "workflows", "", sink)
    Loop().run(kube.following.run())
    assert kube.watched_from == ["10", "20"]
    assert sink.got[-1] == ("listed", ["a"])


def test_positions_of_a_server_that_has_no_numbers(monkeypatch):
    kube = ScriptedKube([([], "x")], [Stream([("BOOKMARK", obj("", "y"))])])
    run(kube, monkeypatch)
    assert kube.watched_from == ["x", "y"]


def test_no_older_version_of_an_object_is_told(monkeypatch):
    events = [
        ("MODIFIED", obj("a", 12)),
        ("MODIFIED", obj("a", 11)),
        ("ADDED", obj("b", 11)),
        ("DELETED", obj("a", 11)),
        ("DELETED", obj("a", 13)),
        ("MODIFIED", obj("a", 12)),
        ("ADDED", obj("a", 14)),
        ("MODIFIED", obj("c", 4)),
    ]
    lists = [([obj("a", 3), obj("c", 5)], "10")]
    kube = ScriptedKube(lists, [Stream(events)])
    assert run(kube, monkeypatch) == [
        ("listed", ["a", "c"]),
        ("MODIFIED", "a"),
        ("ADDED", "b"),
        ("DELETED", "a"),
        ("ADDED", "a"),
    ]
    assert kube.watched_from == ["10", "14"]


def event(kind, name, version):
    return {"type": "workflow", "event": kind, "object": obj(name, version)}


def test_a_watch_that_waits_tries_again_when_somebody_gets_through(monkeypatch):
    """After a moment: not all at once."""
    moments = []
    monkeypatch.setattr(listwatch, "pause_s", lambda *args: 3600.0)
    monkeypatch.setattr(listwatch, "backoff_s", lambda *args: moments.append(args) or 0)
    kube = ScriptedKube([ApiError(0, UNREACHABLE, "refused"), ([], "5")], [])
    sink, back, loop = Record(), [], Loop()
    kube.outage.listen(lambda: back.append(True))
    kube.following = Watch(kube, "workflows", "", sink)
    loop.call_soon(kube.outage.ended)
    loop.run(kube.following.run())
    assert sink.got == [
        ("health", "refused"),
        ("health", None),
        ("listed", []),
    ]
    # and others hear of its success
    assert len(back) == 2
    assert moments == [(1, listwatch.BACKOFF_FIRST_S, listwatch.PROBE_CAP_S)]


def test_a_pause_that_the_server_asks_for_is_not_cut_short(monkeypatch):
    now, pauses = [0.0], []

    class Passed:
        """A Pause that is over at once."""

        def __init__(self, seconds):
            pauses.append(seconds)
            now[0] += seconds

        def __await__(self):
            return iter(())

    clock = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr(listwatch, "Pause", Passed)
    monkeypatch.setattr(listwatch, "time", clock)
    watch = Watch(ScriptedKube([], []), "workflows", "", Record())
    watch._wake()  # somebody gets through
    Loop().run(watch._wait(3.0))
    assert pauses == []
    Loop().run(watch._wait(3.0, False))
    assert pauses == [3.0]


def take(box):
    return [box.take() for _ in range(len(box))]


def test_mailbox_keeps_order():
    box = Mailbox()
    box.put(event("ADDED", "a", 1))
    box.put({"type": "result", "seq": 1, "ok": True})
    assert [r["type"] for r in take(box)] == ["workflow", "result"]
    assert take(box) == []


def test_mailbox_keeps_only_the_newest_state_of_an_object():
    box = Mailbox()
    for version in range(1, 5):
        box.put(event("ADDED" if version == 1 else "MODIFIED", "a", version))
    box.put(event("MODIFIED", "b", 5))
    got = take(box)
    assert [(r["event"], r["object"]["metadata"]["resourceVersion"]) for r in got] == [
        ("ADDED", "4"),
        ("MODIFIED", "5"),
    ]


def test_mailbox_merges_across_results():
    """The module never goes back to an older version than a result has shown."""
    box = Mailbox()
    box.put(event("MODIFIED", "a", 1))
    box.put({"type": "result", "seq": 1, "ok": True})
    box.put(event("MODIFIED", "a", 2))
    assert take(box) == [
        event("MODIFIED", "a", 2),
        {"type": "result", "seq": 1, "ok": True},
    ]


def test_mailbox_does_not_merge_with_what_has_been_sent():
    box = Mailbox()
    box.put(event("ADDED", "a", 1))
    sent = box.take()
    box.put(event("MODIFIED", "a", 2))
    assert sent == event("ADDED", "a", 1)
    assert take(box) == [event("MODIFIED", "a", 2)]


def test_mailbox_does_not_merge_across_deletion_or_snapshot():
    box = Mailbox()
    box.put(event("MODIFIED", "a", 1))
    box.put(event("DELETED", "a", 2))
    box.put(event("ADDED", "a", 3))
    box.put({"type": "snapshot", "workflows": []})
    box.put(event("MODIFIED", "a", 4))
    assert [r.get("event") for r in take(box)] == [
        "MODIFIED",
        "DELETED",
        "ADDED",
        None,
        "MODIFIED",
    ]


def test_a_list_does_not_take_back_what_was_made_meanwhile(monkeypatch):
    monkeypatch.setattr(Watchers, "start", lambda self, loop: None)

    def workflow(name, version):
        return Object({"kind": "Workflow", **obj(name, version)})

    def result(found):
        return {"type": "result", "seq": 1, "ok": True, "object": found}

    class Meanwhile(ScriptedKube):
        async def apick_all(self, plural, selector, recent=False):
            for found in during if "!=" not in selector else ():
                session._report(result(found))
            return await super().apick_all(plural, selector, recent)

    during = []
    kube = Meanwhile([([workflow("a", 1)], "3"), ([workflow("a", 4)], "10")], [])
    box = Mailbox()
    session = Session(kube, "me", Loop(), 1, box)
    for plural in REPORT_TYPES:
        if plural != "workflows":
            session.listed(plural, [], "1")
    follow = Watch(kube, "workflows", "", session)
    assert Loop().run(follow._list()) == "3"
    # one is patched, one is made, one had gone before the list began
    during += [workflow("a", 11), workflow("new", 12), workflow("gone", 9)]
    assert Loop().run(follow._list()) == "10"
    *_, snapshot = take(box)
    assert snapshot["workflows"] == [workflow("a", 4), workflow("new", 12)]
    # the watch from there on shows it once more
    newest = project("workflows", workflow("new", 13))
    session.changed("workflows", "ADDED", project("workflows", workflow("new", 12)))
    session.changed("workflows", "MODIFIED", newest)
    assert [r["object"] for r in take(box)] == [newest]
    session.close()


def test_a_closed_session_reports_nothing(monkeypatch):
    monkeypatch.setattr(Watchers, "start", lambda self, loop: None)
    box = Mailbox()
    session = Session(ScriptedKube([], []), "me", Loop(), 1, box)
    for plural in REPORT_TYPES:
        session.listed(plural, [], "1")
    assert len(take(box)) == 1
    session.close()
    session.listed("workflows", [obj("a", 1)], "2")
    session.changed("workflows", "ADDED", obj("b", 3))
    session.health("workflows", "no answer")
    session._report({"type": "result", "seq": 1, "ok": True})
    assert take(box) == []


def test_workflows_without_a_label_are_in_each_list(monkeypatch):
    monkeypatch.setattr(Watchers, "start", lambda self, loop: None)
    lists = [([obj("a", 1)], "3"), ([obj("a", 1), obj("b", 5)], "6")]
    kube = ScriptedKube(lists, [])
    kube.strays = [obj("b", 2), obj("c", 2)]
    box = Mailbox()
    session = Session(kube, "me", Loop(), 1, box)
    for plural in REPORT_TYPES:
        if plural != "workflows":
            session.listed(plural, [], "1")
    follow = Watch(kube, "workflows", "instance=me", session)
    Loop().run(follow._list())
    (first,) = take(box)
    assert first["workflows"] == [obj("a", 1), obj("b", 2), obj("c", 2)]
    assert kube.asked == [(f"{INSTANCE_LABEL}!=me", True), ("instance=me", False)]
    # one has got its label between the two questions
    Loop().run(follow._list())
    (second,) = take(box)
    assert second["workflows"] == [obj("a", 1), obj("b", 5), obj("c", 2)]
    session.close()


def test_workflows_that_have_lost_our_label_are_in_each_list(monkeypatch):
    monkeypatch.setattr(Watchers, "start", lambda self, loop: None)

    def workflow(name, label, maker):
        found = obj(name, 2)
        if label is not None:
            found["label"] = label
        if maker is not None:
            found["maker"] = maker
        return found

    kube = ScriptedKube([([], "3")], [])
    ours = [workflow("a", None, "me"), workflow("b", "other", "me")]
    others = [
        workflow("c", "other", None),
        workflow("d", None, "other"),
        workflow("e", "other", "other"),
    ]
    kube.strays = [*others, *ours]
    box = Mailbox()
    session = Session(kube, "me", Loop(), 1, box)
    for plural in REPORT_TYPES:
        if plural != "workflows":
            session.listed(plural, [], "1")
    Loop().run(Watch(kube, "workflows", "instance=me", session)._list())
    (first,) = take(box)
    assert first["workflows"] == ours
    session.close()


def in_namespace(namespace, version):
    found = obj("a", version)
    found["metadata"]["namespace"] = namespace
    return found


def test_objects_of_one_name_in_two_namespaces_are_two(monkeypatch):
    monkeypatch.setattr(Watchers, "start", lambda self, loop: None)
    box = Mailbox()
    session = Session(ScriptedKube([], []), "me", Loop(), 1, box)
    kind = "persistentstorageinstances"
    session.listed(kind, [in_namespace("x", 1), in_namespace("y", 2)], "2")
    session.changed(kind, "MODIFIED", in_namespace("x", 3))
    for plural in REPORT_TYPES:
        if plural != kind:
            session.listed(plural, [], "1")
    session.changed(kind, "MODIFIED", in_namespace("x", 4))
    session.changed(kind, "MODIFIED", in_namespace("y", 5))
    snapshot, *changes = take(box)
    assert snapshot[kind] == [in_namespace("y", 2), in_namespace("x", 3)]
    assert [c["object"] for c in changes] == [
        in_namespace("x", 4),
        in_namespace("y", 5),
    ]
    session.close()


@pytest.mark.parametrize("version", ["", "new", "9" * 5000, None])
def test_a_change_of_no_version_is_told(monkeypatch, version):
    """Without a version a change may be new, so it is reported."""
    monkeypatch.setattr(Watchers, "start", lambda self, loop: None)
    box = Mailbox()
    session = Session(ScriptedKube([], []), "me", Loop(), 1, box)
    for plural in REPORT_TYPES:
        session.listed(plural, [], "1")
    take(box)
    odd = project("workflows", {"metadata": {"name": "a", "resourceVersion": version}})
    session.changed("workflows", "MODIFIED", odd)
    assert [r["object"] for r in take(box)] == [odd]
    session.close()
