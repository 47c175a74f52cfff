# The backfill of sched-rabbit: jobs that may start ahead of others.
# SPDX-License-Identifier: LGPL-3.0-only
import json
from types import SimpleNamespace

import pytest
from flux.scheduler import PendingJob
from flux_sched_rabbit import bits
from flux_sched_rabbit.machine import NOBODY, Machine, Node
from flux_sched_rabbit.plan import DOWN, HELD, OUTSIDE, YEAR_S, Decision, Pass, parts
from flux_sched_rabbit.request import Request
from flux_sched_rabbit.scheduler import RabbitScheduler
from hypothesis import given, settings
from hypothesis import strategies as st

NOW = 1000.0


def make(nodes=4, gib=100):
    """Nodes with 4 cores, two to a rabbit."""
    return Machine(
        [Node(i, f"n{i}", 15, 0) for i in range(nodes)],
        None,
        {
            f"r{i // 2}": (gib, [f"n{k}" for k in range(i, min(i + 2, nodes))])
            for i in range(0, nodes, 2)
        },
    )


def want(nodes, duration_s=0.0, gib=0, ranks=None):
    return Request(
        groups=nodes,
        groups_max=nodes,
        group_gib=gib,
        exclusive=gib == 0,
        node_cores=1,
        duration_s=duration_s,
        constraint=json.dumps({"ranks": [ranks]}) if ranks else "",
    )


class Queue:
    """Runs passes on a machine; jobs are numbered as they come."""

    def __init__(self, machine, depth=8):
        self.machine = machine
        self.depth = depth
        self.waiting = []
        self.started = {}
        self.estimates = {}
        self.jobs = 0

    def add(self, *requests):
        for request in requests:
            self.waiting.append((self.jobs, request))
            self.jobs += 1

    def run(self, now=NOW):
        planned = Pass(self.machine, now, self.depth, (r for _, r in self.waiting))
        waiting, self.estimates, self.reasons = [], {}, {}
        for jobid, request in self.waiting:
            decision = planned.consider(request)
            if decision.alloc is None:
                waiting.append((jobid, request))
                if decision.reason:
                    assert decision.t_start is None
                    self.reasons[jobid] = decision.reason
                self.estimates[jobid] = decision.t_start
                continue
            decision.alloc.t_end = now + request.duration_s if request.duration_s else 0
            self.machine.commit(jobid, decision.alloc)
            self.started[jobid] = now
        self.waiting = waiting
        return sorted(self.started)


def test_in_order_while_there_is_room():
    queue = Queue(make())
    queue.add(want(1, 10), want(2, 10), want(1, 10))
    assert queue.run() == [0, 1, 2]


def test_without_backfill_the_first_holds_up_all():
    queue = Queue(make(), depth=0)
    queue.add(want(3, 100), want(2, 10), want(1, 1))
    assert queue.run() == [0]
    assert queue.estimates == {1: None, 2: None}


def test_a_short_job_goes_ahead_a_long_one_waits():
    queue = Queue(make())
    queue.add(want(3, 100), want(4, 10), want(1, 101), want(1, 100))
    assert queue.run() == [0, 3]
    assert queue.estimates[1] == NOW + 100


def test_a_long_job_goes_ahead_on_nodes_that_nobody_waits_for():
    queue = Queue(make())
    queue.add(want(2, 100), want(3, 10), want(1, 9999), want(1, 9999))
    # Two of the four nodes are free. The second job will have n0 to n2.
    assert queue.run() == [0, 2]
    assert list(queue.machine.allocations[2].nodes) == [3]


def test_reserved_storage_is_left_alone():
    queue = Queue(make(nodes=2, gib=100))
    queue.add(want(1, 100, gib=60), want(1, 10, gib=70))
    assert queue.run() == [0]
    assert queue.estimates[1] == NOW + 100
    # At that time 30 GiB are spare; now 40 are free.
    queue.add(want(1, 9999, gib=31), want(1, 100, gib=10), want(1, 9999, gib=30))
    assert queue.run() == [0, 3, 4]
    assert queue.machine.rabbits["r0"].free_gib == 0


def test_estimates_follow_each_other():
    queue = Queue(make())
    queue.add(want(4, 100), want(4, 50), want(4, 20), want(1, 5))
    assert queue.run() == [0]
    assert queue.estimates == {
        1: NOW + 100,
        2: NOW + 150,
        3: NOW + 170,
    }


def test_only_the_first_few_have_reservations():
    queue = Queue(make(), depth=1)
    queue.add(want(4, 100), want(4, 50), want(4, 20))
    queue.run()
    assert queue.estimates == {1: NOW + 100, 2: None}


def test_no_time_limit_counts_as_a_year():
    queue = Queue(make())
    queue.add(want(4), want(4, 50))
    queue.run()
    assert queue.estimates == {1: NOW + YEAR_S}


def test_a_job_that_waits_for_down_nodes_reserves_nothing():
    machine = make()
    machine.set_up(1, False)
    queue = Queue(machine)
    queue.add(want(4, 10), want(3, 9999))
    assert queue.run() == [1]
    assert queue.estimates == {0: None}
    assert queue.reasons == {0: DOWN}


def test_nor_does_it_cost_those_behind_it_their_reservations():
    machine = make()
    machine.set_up(1, False)
    queue = Queue(machine)
    queue.add(want(1, 100), want(4, 10), want(3, 10), want(1, 500), want(1, 50))
    # Without the reservation of 2, 3 would start and put it off.
    assert queue.run() == [0, 4]
    assert queue.estimates == {1: None, 2: NOW + 100, 3: NOW + 110}


def test_estimates_reckon_with_what_has_just_gone_ahead():
    queue = Queue(make())
    queue.add(want(2, 100), want(3, 10), want(1, 1000), want(4, 10))
    assert queue.run() == [0, 2]
    assert queue.estimates == {1: NOW + 100, 3: NOW + 1000}


def test_who_waits_for_storage_of_jobs_that_are_over_keeps_gib_and_no_nodes():
    machine = make()
    machine.hold(99, {"r0": 100, "r1": 70})
    queue = Queue(machine)
    # Job 1 would fit on r1, but job 0 will need that room; job 2 needs nodes only.
    queue.add(want(4, 10, gib=45), want(1, 1000, gib=20), want(1, 1000))
    assert queue.run() == [2]
    assert queue.reasons == {0: HELD, 1: HELD}
    machine.hold(99, {})
    assert queue.run(NOW + 5) == [2]
    assert queue.estimates == {0: NOW + 1000, 1: NOW + 1010}


def test_storage_of_a_job_that_runs_is_not_counted_twice():
    machine = make(nodes=2)
    queue = Queue(machine)
    queue.add(want(1, 50, gib=60))
    assert queue.run() == [0]
    machine.hold(0, {"r0": 60})  # job 0 is about to free its node
    machine.hold(99, {"r0": 30})
    queue.add(want(1, 10, gib=80), want(1, 1000, gib=10))
    assert queue.run() == [0]
    assert queue.reasons == {1: HELD, 2: HELD}


def test_storage_that_takes_more_than_was_given_counts_at_once():
    machine = make(nodes=2)
    queue = Queue(machine)
    queue.add(want(1, 50, gib=60))
    assert queue.run() == [0]
    for held, free in (({"r0": 65}, 35), ({"r0": 50}, 40), ({"r0": 65}, 35)):
        machine.hold(0, held)
        assert machine.rabbits["r0"].free_gib == free
    machine.release(0)
    assert machine.rabbits["r0"].free_gib == 35
    machine.hold(0, {})
    assert machine.rabbits["r0"].free_gib == 100


def test_what_no_job_has_is_waited_for_without_a_reservation():
    """Storage without a job may stay for ever, so no reservation blocks small jobs."""
    machine = make()
    machine.hold(NOBODY, {"r0": 100, "r1": 70})
    queue = Queue(machine)
    queue.add(want(1, 10, gib=45), want(1, 1000, gib=20), want(2, 1000))
    assert queue.run() == [1, 2]
    assert queue.reasons == {0: OUTSIDE}
    assert machine.infeasible(want(1, 10, gib=45)) is None
    # of a job that is over it is another matter
    machine = make()
    machine.hold(NOBODY, {"r0": 100})
    machine.hold(99, {"r1": 60})
    queue = Queue(machine)
    queue.add(want(1, 10, gib=45))
    assert queue.run() == []
    assert queue.reasons == {0: HELD}


def test_who_has_room_beside_that_storage_has_an_estimate():
    machine = make()
    machine.hold(99, {"r0": 100})
    queue = Queue(machine)
    queue.add(want(4, 50), want(1, 10, gib=60), want(4, 10, gib=10))
    assert queue.run() == [0]
    assert queue.reasons == {2: HELD}
    assert queue.estimates[1] == NOW + 50


@pytest.mark.parametrize("ends", [1, 2, 3, 5, 8, 13])
def test_estimates_are_exact_however_many_jobs_end_before(ends):
    """Long and short jobs in turn, so that steps are gone back."""
    machine = make(nodes=16, gib=1000)
    queue = Queue(machine)
    queue.add(*[want(1, 10.0 + i) for i in range(16)], want(ends, 10))
    queue.run()
    assert queue.estimates == {16: NOW + 10 + ends - 1}


def test_queues_with_nodes_of_their_own_do_not_wait_for_each_other():
    """Each has its reservations, as if the other were not there."""
    a, b = "0,1", "2,3"
    queue = Queue(make(), depth=1)
    queue.add(want(2, 500, 0, a), want(1, 100, 0, b), want(2, 10, 0, a))
    queue.add(want(2, 10, 0, b), want(1, 200, 0, b), want(1, 50, 0, b))
    assert queue.run() == [0, 1, 5]
    assert queue.estimates == {2: NOW + 500, 3: NOW + 100, 4: None}
    queue = Queue(make(), depth=0)
    queue.add(want(2, 500, 0, a), want(1, 10, 0, a), want(1, 100, 0, b))
    assert queue.run() == [0, 2]


def test_what_shares_a_rabbit_is_of_one_part():
    machine = make(nodes=6)

    def together(*ranks):
        requests = [want(1, ranks=r) for r in ranks]
        got = parts(machine, requests)
        return [got[r.where] == got[requests[0].where] for r in requests]

    assert together("0", "1", "2") == [True, True, False]
    assert together("0", "2", "4", "1,5") == [True, False, True, True]
    assert together("0", "4", "1,3,5", "2") == [True] * 4
    assert together("0", "2", "") == [True] * 3
    assert together("0", "77") == [True, False]


def test_late_jobs_end_now():
    queue = Queue(make())
    queue.add(want(4, 10), want(4, 10))
    queue.run()
    queue.run(NOW + 500)
    assert queue.estimates == {1: NOW + 500}


def test_the_machine_is_not_touched_by_looking_ahead():
    machine = make()
    queue = Queue(machine)
    queue.add(want(3, 100, gib=10), want(4, 10, gib=50))
    queue.run()
    assert len(machine.allocations[0].nodes) == 3
    assert sum(machine.allocations[0].gib.values()) == 30


shapes = st.builds(
    want,
    st.integers(1, 4),
    st.sampled_from([10.0, 20.0, 50.0, 100.0]),
    st.sampled_from([0, 0, 10, 40, 50]),
)


@settings(max_examples=150)
@given(
    st.lists(shapes, min_size=1, max_size=14),
    st.sampled_from([1, 2, 8]),
    st.lists(st.sampled_from([0.5, 1.0]), min_size=14, max_size=14),
)
def test_the_first_in_line_is_never_put_off(requests, depth, lengths):
    """Jobs use all or half of their time. The first waiting job starts no later than
    its estimate, whatever jobs start ahead of it."""
    machine = make(nodes=6)
    queue = Queue(machine, depth)
    queue.add(*requests)
    promised = {}
    ends = {}
    now = NOW
    while True:
        queue.run(now)
        for jobid, alloc in machine.allocations.items():
            if jobid not in ends:
                length = alloc.t_end - queue.started[jobid]
                ends[jobid] = queue.started[jobid] + length * lengths[jobid]
        if queue.waiting:
            first = queue.waiting[0][0]
            estimate = queue.estimates[first]
            assert estimate is not None
            assert estimate <= promised.setdefault(first, estimate)
        running = [ends[jobid] for jobid in machine.allocations]
        if not running:
            break
        now = min(running)
        for jobid in [j for j in machine.allocations if ends[j] == now]:
            machine.release(jobid)
    assert not queue.waiting
    for jobid, t_start in promised.items():
        assert queue.started[jobid] <= t_start
    assert machine.idle == machine.all_nodes


@settings(max_examples=150)
@given(
    st.lists(shapes, min_size=1, max_size=14),
    st.sampled_from([0, 1, 2, 8]),
    st.sets(st.integers(0, 5), max_size=2),
)
def test_what_has_gone_ahead_puts_off_nobody(requests, depth, down):
    """Going over the queue again at once changes nothing: what has started
    since an estimate was made is in its way neither before nor after."""
    machine = make(nodes=6)
    for rank in down:
        machine.set_up(1 << rank, False)
    queue = Queue(machine, depth)
    queue.add(*[r for r in requests if machine.infeasible(r) is None])
    started = queue.run()
    estimates = dict(queue.estimates)
    assert queue.run() == started
    assert queue.estimates == estimates
    for rabbit in machine.rabbits.values():
        assert rabbit.free_gib >= 0


@pytest.mark.parametrize("depth", [0, 1, 8])
def test_a_pass_over_a_large_machine(depth):
    """Sizes only: that it works at scale; bench measures."""
    machine = make(nodes=2000, gib=1000)
    queue = Queue(machine, depth)
    for i in range(1000):
        queue.add(want(1 + i % 64, 100.0 * (1 + i % 7), (i % 3) * 100))
    queue.run()
    assert bits.count(machine.idle) < 2000
    assert all(r.free_gib >= 0 for r in machine.rabbits.values())


class Recorder:
    """Stands for an AllocRequest."""

    def __init__(self):
        self.said = []

    def deny(self, note):
        self.said.append(note)

    def annotate(self, annotations):
        self.said.append(annotations["sched"])


def test_jobs_for_which_too_few_nodes_are_left_are_refused():
    scheduler = object.__new__(RabbitScheduler)
    machine = make()
    scheduler._resources = SimpleNamespace(machine=machine)
    scheduler._nodes = 0
    scheduler._queue = [PendingJob(n, 16, 0.0, Recorder(), want(n)) for n in (2, 3, 4)]
    requests = [job.request for job in scheduler._queue]
    scheduler.resource_update()
    assert len(scheduler._queue) == 3
    machine.remove([1])
    scheduler.resource_update()
    assert [job.jobid for job in scheduler._queue] == [2, 3]
    assert [len(request.said) for request in requests] == [0, 0, 1]
    assert "needs 4 nodes" in requests[2].said[0]


def test_annotations_say_what_has_changed():
    job = PendingJob(1, 16, 0.0, Recorder(), want(1))
    for decision in (
        Decision(t_start=10.2),
        Decision(t_start=9.9),
        Decision(reason=DOWN),
        Decision(reason=DOWN),
        Decision(t_start=12.0),
        Decision(),
    ):
        RabbitScheduler._annotate(job, decision)
    assert job.request.said == [
        {"t_estimate": 10.0},
        {"t_estimate": None, "reason_pending": DOWN},
        {"reason_pending": None, "t_estimate": 12.0},
        {"t_estimate": None},
    ]
