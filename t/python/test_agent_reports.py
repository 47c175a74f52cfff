# What the agent reports to the module, and what it leaves out: snapshots in parts, and
# changes that a result has shown already.
# SPDX-License-Identifier: LGPL-3.0-only

import json
import types

import pytest
from flux_k8s import agent as agents
from flux_k8s.agent import RPCS_UNDER_WAY, Agent, Overrides
from flux_k8s.crd import newest
from flux_k8s.fields import project
from flux_k8s.listwatch import Watchers
from flux_k8s.loop import Loop
from flux_k8s.reports import Mailbox, in_parts
from flux_k8s.session import REPORT_TYPES, Session
from test_agent_watch import ScriptedKube, obj, take


def test_newest_version_is_kubernetes_order():
    assert newest(["v1alpha6", "v1alpha10", "v1alpha7"]) == "v1alpha10"
    assert newest(["v1beta1", "v2alpha1", "v1"]) == "v1"
    assert newest(["odd", "v1alpha1"]) == "v1alpha1"


WORKFLOWS, BOTH = ("workflows",), ("servers", "workflows")


@pytest.mark.parametrize("divided", [WORKFLOWS, BOTH])
def test_a_large_snapshot_comes_in_parts(divided):
    snapshot = {
        "workflows": [obj(str(n), n) for n in range(1, 101)],
        "storages": [obj("r", 1)],
        "servers": [obj(str(n), n) for n in range(1, 301)],
    }
    parts = in_parts(snapshot, divided)
    assert [p.get("more") for p in parts] == [True] * (len(parts) - 1) + [None]
    assert [p for p in parts if "storages" in p] == parts[:1]
    for kind in BOTH:
        assert sum((p.get(kind, []) for p in parts), []) == snapshot[kind]
    # Servers first, one part after the other
    servers = ["servers" in p for p in parts]
    assert servers == sorted(servers, reverse=True)
    assert ("servers" in parts[1]) == (divided == BOTH)


@pytest.mark.parametrize("divided", [WORKFLOWS, BOTH])
def test_a_kind_of_which_there_is_none_is_in_the_snapshot(divided):
    empty = {"workflows": [], "storages": [], "servers": []}
    parts = in_parts(empty, divided)
    assert {k: v for p in parts for k, v in p.items() if k in empty} == empty
    assert in_parts({"storages": []}, divided) == [{"type": "snapshot", "storages": []}]
    assert in_parts({"servers": []}, divided) == [{"type": "snapshot", "servers": []}]


def test_a_kind_that_only_a_newer_module_takes_in_parts_comes_whole():
    snapshot = {"workflows": [], "storages": [obj("r", 1)]}
    first = in_parts(snapshot, ("storages", *BOTH))[0]
    assert first["storages"] == snapshot["storages"]


def test_an_older_module_gets_all_servers_in_one_part(monkeypatch):
    monkeypatch.setattr(Watchers, "start", lambda self, loop: None)
    for divided in (WORKFLOWS, BOTH):
        box = Mailbox()
        session = Session(ScriptedKube([], []), "me", Loop(), 1, box, divided)
        for plural in REPORT_TYPES:
            session.listed(plural, [obj(str(n), n) for n in range(1, 201)], "9")
        parts = [r for r in take(box) if "servers" in r]
        assert (len(parts) == 1) == (divided == WORKFLOWS)
        session.close()


def flat(version, **fields):
    return {"kind": "Workflow", "name": "a", "version": str(version), **fields}


def attached():
    """A session that has sent its snapshot, and its box."""
    box = Mailbox()
    session = Session(ScriptedKube([], []), "me", Loop(), 1, box)
    for plural in REPORT_TYPES:
        session.listed(plural, [], "1")
    assert [report["type"] for report in take(box)] == ["snapshot"]
    return session, box


def told(box):
    return [(r["type"], r.get("event"), r.get("object")) for r in take(box)]


def test_what_a_result_has_shown_is_not_told_again(monkeypatch):
    monkeypatch.setattr(Watchers, "start", lambda self, loop: None)
    session, box = attached()
    setup, datain = {"desired": "Setup"}, {"desired": "DataIn"}
    session._report({"type": "result", "seq": 1, "object": flat(5, **setup)})
    session.changed("workflows", "MODIFIED", flat(4))
    session.changed("workflows", "MODIFIED", flat(5, **setup))
    session.changed("workflows", "MODIFIED", flat(6, **datain))
    session.changed("workflows", "DELETED", flat(7, **datain))
    assert told(box) == [
        ("result", None, flat(5, **setup)),
        ("workflow", "MODIFIED", flat(6, **datain)),
        ("workflow", "DELETED", flat(7, **datain)),
    ]
    session.close()


def test_a_workflow_in_which_nothing_else_has_changed_is_not_told_of(monkeypatch):
    """A new version alone is no change, compared with the last report of any kind.
    After a list the last report is unknown."""
    monkeypatch.setattr(Watchers, "start", lambda self, loop: None)
    session, box = attached()
    setup = {"desired": "Setup"}

    def tells(version, **fields):
        session.changed("workflows", "MODIFIED", flat(version, **fields))
        return bool(take(box))

    assert tells(2)
    assert not tells(3)
    session._report({"type": "result", "seq": 1, "object": flat(4, **setup)})
    session._report({"type": "result", "seq": 2, "object": flat(2)})  # a late one
    take(box)
    assert not tells(5, **setup)
    assert tells(6)
    session.listed("workflows", [flat(7, **setup)], "7")
    assert tells(8)
    session.close()


def test_numbers_do_not_pile_up_for_a_module_that_is_slow():
    class Numbers:
        turn = 0

        def summary(self):
            self.turn += 1
            return {"requests": self.turn}

    agent = Agent(None, Overrides())
    agent._session = Numbers()
    agent._under_way = RPCS_UNDER_WAY
    for _ in range(100):
        agent._on_stats_timer()
    assert len(agent._box) == 1


def test_what_waits_goes_when_an_answer_makes_room(monkeypatch):
    """Also the last, which no other report follows."""
    under_way, got = [], []

    class Handle:
        def rpc(self, topic, payload, nodeid):
            assert len(under_way) < RPCS_UNDER_WAY
            got.extend(report["seq"] for report in json.loads(payload)["reports"])
            return types.SimpleNamespace(then=under_way.append)

    monkeypatch.setattr(agents, "payload", lambda future: None)
    agent = Agent(None, Overrides())
    agent._handle = Handle()
    for seq in range(100):
        agent._box.put({"type": "result", "seq": seq, "text": "x" * 2000})
    agent._send()
    while under_way:
        under_way.pop(0)(None)
    assert got == list(range(100))


def workflow_of(version):
    found = {"kind": "Workflow", **obj("a", version), "spec": {"desiredState": "Setup"}}
    found["metadata"].update(namespace="default")
    return found


@pytest.mark.parametrize("version", [6, 7])
def test_a_snapshot_has_all_of_each_object(monkeypatch, version):
    """Also of one that a result, or a change, shows while it is being made."""
    monkeypatch.setattr(Watchers, "start", lambda self, loop: None)
    box = Mailbox()
    session = Session(ScriptedKube([], []), "me", Loop(), 1, box)
    Loop().run(session.listing("workflows"))
    picked = project("workflows", workflow_of(version))
    result = project("workflows", workflow_of(6))
    session._report({"type": "result", "seq": 1, "object": result})
    session.listed("workflows", [], "5")
    if version == 7:
        session.changed("workflows", "MODIFIED", picked)
    for plural in REPORT_TYPES:
        if plural != "workflows":
            session.listed(plural, [], "1")
    *_, snapshot = take(box)
    assert snapshot["workflows"] == [picked]
    session.close()
