# sched-rabbit and what breaks: properties of nodes; rabbits that shrink or are down.
# SPDX-License-Identifier: LGPL-3.0-only
import pytest
from flux_sched_rabbit import bits, plan
from test_sched_rabbit import make, node, parse, rabbit, storage_node

NEW = "#DW jobdw type=xfs capacity=1GiB name=old"
OLD = "#DW persistentdw name=old"
GONE = "#DW destroy_persistent name=old"


def test_properties_can_change():
    machine = make(properties={"fast": [0]})
    wanted = parse(node(1), constraints={"properties": ["fast"]})
    assert list(machine.find(wanted).nodes) == [0]
    machine.set_property("fast", bits.of([3, 99]))
    assert list(machine.find(wanted).nodes) == [3]


def test_a_job_waits_for_what_will_be_mended():
    machine = make()
    wanted = parse(node(8), constraints={"not": [{"properties": ["badrabbit"]}]})
    machine.set_property("badrabbit", bits.of([1]))
    assert machine.find(wanted) is None
    assert machine.infeasible(wanted) is None
    machine.set_property("badrabbit", 0)
    assert machine.find(wanted) is not None


def test_a_rabbit_can_shrink_and_grow():
    machine = make(nodes=2, gib=100)
    machine.commit(1, machine.find(parse(rabbit(1, 60))))
    machine.set_rabbit("r0", None, 50)
    assert machine.find(parse(rabbit(1, 1))) is None
    assert "no rabbit has more than 50" in machine.infeasible(parse(rabbit(1, 51)))
    machine.set_rabbit("r0", None, 70)
    assert machine.find(parse(rabbit(1, 10))).gib == {"r0": 10}
    assert machine.find(parse(rabbit(1, 11))) is None
    machine.set_rabbit("r0", False, None)
    assert machine.find(parse(rabbit(1, 10))) is None
    machine.release(1)
    machine.set_rabbit("r0", True, None)
    assert machine.find(parse(rabbit(1, 70))) is not None


@pytest.mark.parametrize(
    "dw", [NEW, OLD, [NEW], f"{GONE}\n{NEW}", "a preset that nobody has expanded", 5]
)
def test_jobs_with_storage_avoid_nodes_without_a_working_rabbit(dw):
    machine = make(nodes=4)
    machine.set_property("badrabbit", bits.of([0, 2]))
    assert list(machine.find(parse(node(2), dw=dw)).nodes) == [1, 3]
    assert machine.find(parse(node(3), dw=dw)) is None
    assert machine.infeasible(parse(node(4), dw=dw)) is None
    machine.set_property("badrabbit", 0)
    assert machine.find(parse(node(4), dw=dw)) is not None


@pytest.mark.parametrize("dw", [None, "", [], GONE])
def test_jobs_that_use_no_storage_do_not(dw):
    machine = make(nodes=4)
    machine.set_property("badrabbit", bits.of([0, 2]))
    assert len(machine.find(parse(node(4), dw=dw)).nodes) == 4


def test_both_the_constraint_of_the_job_and_this_hold():
    machine = make(nodes=4)
    machine.set_property("badrabbit", bits.of([0, 2]))
    wanted = parse(node(1), dw=NEW, constraints={"ranks": ["2-3"]})
    assert list(machine.find(wanted).nodes) == [3]
    # Releases before have written it into the jobspec.
    before = {"and": [{"ranks": ["0-2"]}, {"not": [{"properties": ["badrabbit"]}]}]}
    assert list(machine.find(parse(node(1), dw=NEW, constraints=before)).nodes) == [1]


def test_what_is_impossible_is_said_without_constraints_of_nobody():
    machine = make(nodes=4)
    assert "constraints" not in machine.infeasible(parse(node(5), dw=NEW))


def test_storage_nodes_are_no_nodes_next_to_a_rabbit():
    machine = make(nodes=2, storage_nodes=True)
    machine.set_property("badrabbit", bits.of([0]))
    wanted = parse(node(1), storage_node(1), dw=NEW)
    assert sorted(machine.find(wanted).nodes) == [1, 2]


def test_a_job_that_waits_for_a_working_rabbit_delays_no_other():
    machine = make(nodes=4)
    machine.set_property("badrabbit", bits.of([0]))
    jobs = [parse(rabbit(4, 1), dw=NEW), parse(node(4))]
    planned = plan.Pass(machine, 0.0, 8, jobs)
    assert planned.consider(jobs[0]).reason == plan.DOWN
    assert planned.consider(jobs[1]).alloc is not None


def test_jobs_with_and_without_storage_compete_for_the_other_nodes():
    machine = make(nodes=4)
    machine.set_property("badrabbit", bits.of([0]))
    machine.commit(1, machine.find(parse(node(1), constraints={"ranks": ["1"]})))
    machine.allocations[1].t_end = 100.0
    jobs = [parse(rabbit(3, 1), dw=NEW), parse(node(2), duration=200)]
    planned = plan.Pass(machine, 0.0, 8, jobs)
    assert planned.consider(jobs[0]).t_start == 100.0
    assert planned.consider(jobs[1]).alloc is None
