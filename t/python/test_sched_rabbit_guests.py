# sched-rabbit lives whatever a job asks for: the job is refused, with a line.
# SPDX-License-Identifier: LGPL-3.0-only
from __future__ import annotations

import errno
import random
from types import SimpleNamespace

import pytest
import sched_support
from flux.idset import IDset
from flux_k8s import dws
from flux_sched_rabbit import bits
from hypothesis import given, settings
from hypothesis import strategies as st
from sched_support import Asked, make_scheduler

NODE = [{"type": "slot", "count": 1, "label": "task", "with": []}]
NODE[0]["with"] = [{"type": "core", "count": 1}]


def ask(scheduler, constraint=None, resources=NODE, **system):
    """The answer to a job, when the scheduler has looked at its queue."""
    asked = Asked()
    if constraint is not None:
        system["constraints"] = constraint
    jobspec = {"resources": resources, "attributes": {"system": system}}
    scheduler.alloc(asked, 1, 16, 1, 1.0, jobspec)
    scheduler.schedule()
    return asked


def nested(depth):
    return sched_support.nested(random.Random(0), depth)


def test_a_job_runs():
    assert ask(make_scheduler(), {"ranks": ["3-4"]}).R is not None


@pytest.mark.parametrize("depth", [37, 330, 480])
def test_a_deep_constraint(depth):
    scheduler = make_scheduler()
    assert "nested too deeply" in ask(scheduler, nested(depth)).note
    assert scheduler.log.errors == []
    assert ask(scheduler).R is not None


def test_deep_resources():
    deep = {"type": "node", "count": 1}
    for _ in range(330):
        deep = {"type": "node", "count": 1, "with": [deep]}
    assert "nested too deeply" in ask(make_scheduler(), resources=[deep]).note


def test_what_is_far_too_long_is_not_parsed():
    many = {"ranks": ["1234567"] * 1_000_000}
    for what, asked in (
        ("constraints", {"constraint": many}),
        ("resources", {"resources": [many]}),
    ):
        note = ask(make_scheduler(), **asked).note
        assert f"{what}: more than {dws.BOUNDS_BYTES} bytes of JSON" in note
    joined = {"and": [{"ranks": ["0-3"]}, {"ranks": ["0"] * 500_000}]}
    assert ask(make_scheduler(), joined).R is not None


def test_a_constraint_that_the_plugin_has_joined_another_to():
    joined = {"or": [{"properties": ["rabbit"]}, {"and": [nested(31), {}]}]}
    assert ask(make_scheduler(), joined).R is not None


@pytest.mark.parametrize(
    "constraint",
    [
        {"ranks": ["0-9999999"]},
        {"ranks": ["[2,7-4294967295]"]},
        {"ranks": ["5,99999999999999999999"]},
        {"hostlist": ["n[0-65535]"]},
        {"hostlist": ["n[2-7]", "zz[0-9999]x"]},
    ],
)
def test_a_long_list_is_cut_to_the_nodes_that_exist(constraint):
    assert ask(make_scheduler(), constraint).R is not None


@pytest.mark.parametrize(
    ("constraint", "text"),
    [
        ({"hostlist": ["n[0-9999999]"]}, "hosts"),
        ({"hostlist": ["n[0-65535]"] * 9}, "hosts"),
        ({"hostlist": ["n" * 5000]}, "is not a hostlist"),
        ({"hostlist": ["n["]}, "is not a hostlist"),
        ({"ranks": ["3-1"]}, "out of order"),
        ({"ranks": ["03"]}, "not a range"),
        ({"ranks": ["x" * 5000]}, "not a range"),
        ({"properties": ["a"] * 2000}, "values"),
        ({"n\u202e\n" * 2000: ["a"]}, "unknown constraint operator"),
        ({"a" * 5000: 1}, "must have a list"),
    ],
)
def test_a_bad_constraint(constraint, text):
    scheduler = make_scheduler()
    assert text in ask(scheduler, constraint).note
    assert scheduler.log.errors == []


@pytest.mark.parametrize("duration", [-1, 1e308, 1e11, "x", [1]])
def test_a_bad_duration(duration):
    assert ask(make_scheduler(), duration=duration).note


def test_times_that_add_up():
    """Each of these jobs waits for the one before."""
    scheduler = make_scheduler()
    whole = [{"type": "node", "count": sched_support.NODES, "exclusive": True}]
    answers = []
    for jobid in range(1, 10):
        answers.append(Asked())
        spec = {
            "resources": whole,
            "attributes": {"system": {"duration": 1e10}},
        }
        scheduler.alloc(answers[-1], jobid, 16, 1, 1.0, spec)
    scheduler.schedule()
    assert answers[0].R is not None
    assert all(a.R is None and a.note is None for a in answers[1:])


def test_slots_of_nodes_without_cores():
    """Counts are such that their products fit into R."""
    slot = {"type": "slot", "count": (1 << 63) - 1, "label": "task", "with": []}
    node = {"type": "node", "count": 2, "with": [slot]}
    assert "more than" in ask(make_scheduler(), resources=[node]).note
    slot["count"] = (1 << 31) - 1
    assert ask(make_scheduler(), resources=[node]).R is not None


# Search for unknown defects


def test_a_defect_refuses_the_job_and_is_logged_once(monkeypatch):
    scheduler = make_scheduler()
    pool = scheduler.resources
    with monkeypatch.context() as patch:
        patch.setattr(pool.machine, "infeasible", lambda wanted: 1 // 0)
        note = ask(scheduler).note
    assert "cannot make sense of this request (ZeroDivisionError" in note
    assert len(scheduler.log.errors) == 1
    assert ask(scheduler).R is not None


@pytest.mark.parametrize("culprit", ["find", "commit"])
def test_a_defect_of_the_plan_refuses_one_job(monkeypatch, culprit):
    scheduler = make_scheduler()
    machine = scheduler.resources.machine
    answers = [Asked() for _ in range(3)]
    for jobid, asked in enumerate(answers, 1):
        spec = {"resources": NODE, "attributes": {"system": {"duration": jobid}}}
        scheduler.alloc(asked, jobid, 16, 1, 1.0, spec)
    real = getattr(machine, culprit)

    def fail(*args):
        bad = args[0] == 2 if culprit == "commit" else args[0].duration_s == 2
        if bad:
            raise RuntimeError("trouble\nwith this")
        return real(*args)

    monkeypatch.setattr(machine, culprit, fail)
    scheduler.schedule()
    scheduler.schedule()
    assert answers[0].R is not None and answers[2].R is not None
    assert "RuntimeError" in answers[1].note
    assert len(scheduler.log.errors) == 1
    assert set(machine.allocations) == {1, 3}


def test_what_was_given_to_a_job_that_is_refused_is_free_again(monkeypatch):
    scheduler = make_scheduler()

    def fail(self, R, annotations):
        raise OSError(errno.EINVAL, "R cannot be written")

    with monkeypatch.context() as patch:
        patch.setattr(Asked, "success", fail)
        assert "R cannot be written" in ask(scheduler).note
    machine = scheduler.resources.machine
    assert machine.idle == machine.all_nodes and machine.allocations == {}


def test_a_defect_of_constraints_that_change(monkeypatch):
    """The nodes of all constraints in the queue are looked up before a plan is made."""
    scheduler = make_scheduler()
    good, bad = Asked(), Asked()
    for jobid, asked in ((1, good), (2, bad)):
        system = {"constraints": {"properties": ["batch"] * jobid}}
        spec = {"resources": NODE, "attributes": {"system": system}}
        scheduler.alloc(asked, jobid, 16, 1, 1.0, spec)
    machine = scheduler.resources.machine
    real = machine.matching

    def fail(wanted, ever=False):
        if wanted.constraint.count("batch") == 2:
            raise RuntimeError("trouble")
        return real(wanted, ever)

    monkeypatch.setattr(machine, "matching", fail)
    scheduler.schedule()
    scheduler.schedule()
    assert good.R is not None
    assert "RuntimeError" in bad.note


def test_nodes_that_are_gone(monkeypatch):
    scheduler = make_scheduler()
    asked = Asked()
    spec = {"resources": NODE, "attributes": {"system": {}}}
    scheduler.resource_update()
    scheduler.alloc(asked, 1, 16, 1, 1.0, spec)
    scheduler.resources.machine.remove([0])
    machine = scheduler.resources.machine
    monkeypatch.setattr(machine, "infeasible", lambda wanted: 1 // 0)
    scheduler.resource_update()
    assert "ZeroDivisionError" in asked.note


@pytest.mark.parametrize(
    ("constraint", "errnum"),
    [
        ({"ranks": ["0"]}, 0),
        ({"ranks": ["100"]}, errno.EOVERFLOW),
        ({"ranks": ["9-1"]}, errno.EINVAL),
        (nested(330), errno.EINVAL),
        ({"hostlist": ["n" * 5000]}, errno.EINVAL),
    ],
)
def test_feasibility(constraint, errnum):
    scheduler = make_scheduler()
    system = {"constraints": constraint}
    spec = {"resources": NODE, "attributes": {"system": system}}
    scheduler._handle_feasibility(SimpleNamespace(payload={"jobspec": spec}))
    assert scheduler.handle.answer[0] == errnum


@pytest.mark.parametrize(
    "payload", [{}, {"rabbit": 3}, {"rabbit": {"mapping": 3}}, {"rabbit": []}]
)
def test_a_configuration_of_another_form(payload):
    scheduler = make_scheduler()
    scheduler.config_reload(SimpleNamespace(payload=payload))
    assert (scheduler.handle.answer[0] == 0) == (payload == {})


# Lists


@given(st.text("0123456789-,[]", max_size=12), st.integers(0, 40))
def test_ids_as_flux_reads_them(text, below):
    try:
        ids = set(IDset(text)) if all(len(n) < 4 for n in text.split("-")) else None
    except ValueError:
        ids = ...
    if ids is None:
        return
    if ids is ...:
        with pytest.raises(ValueError, match=r"."):
            bits.of_ids(text, below)
    else:
        expected = {i for i in ids if i < below}
        assert set(bits.members(bits.of_ids(text, below))) == expected


def test_hosts():
    assert dws.expand_hosts("n[0-2],x") == ["n0", "n1", "n2", "x"]
    for text in ("n[", "n[0-99999]", "n" * 300):
        with pytest.raises(ValueError, match="hostlist|hosts"):
            dws.expand_hosts(text)


# At random


@settings(max_examples=30, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 40))
def test_anything(rng, steps):
    session = sched_support.Session(rng)
    for _ in range(steps):
        session.step()
    session.finish()
