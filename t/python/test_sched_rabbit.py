# The allocator of sched-rabbit: what jobs get, what stays free, what is refused.
# SPDX-License-Identifier: LGPL-3.0-only
import json

import pytest
from flux_sched_rabbit import bits, constraint, request
from flux_sched_rabbit.machine import Allocation, Machine, Node
from flux_sched_rabbit.request import Request
from hypothesis import given, settings
from hypothesis import strategies as st

CORES = 4


def make(
    nodes=8,
    per_rabbit=2,
    gib=100,
    cores=CORES,
    gpus=0,
    properties=None,
    storage_nodes=False,
):
    """Nodes n0.. with a rabbit r0.. for every few; per_rabbit 0: no rabbits. With
    storage_nodes the rabbits have the ranks behind the nodes."""
    rabbits = {}
    if per_rabbit:
        for i in range(0, nodes, per_rabbit):
            hosts = [f"n{k}" for k in range(i, min(i + per_rabbit, nodes))]
            rabbits[f"r{i // per_rabbit}"] = (gib, hosts)
    hosts = [f"n{i}" for i in range(nodes)] + (list(rabbits) if storage_nodes else [])
    return Machine(
        [
            Node(i, host, (1 << cores) - 1, (1 << gpus) - 1)
            for i, host in enumerate(hosts)
        ],
        properties,
        rabbits,
    )


def core(n):
    return {"type": "core", "count": n}


def slot(n, *children, **keys):
    return {"type": "slot", "count": n, "label": "task", "with": [*children], **keys}


def node(n, *children, **keys):
    return {"type": "node", "count": n, "with": [*children], **keys}


def ssd(n):
    return {"type": "ssd", "count": n, "exclusive": True}


def storage_node(n, *children, **keys):
    return {"type": "storage_node", "count": n, "with": list(children), **keys}


def jobspec(*resources, **system):
    return {"resources": [*resources], "attributes": {"system": system}}


def parse(*resources, **system):
    return request.parse(jobspec(*resources, **system))


def rabbit(n, gib, **keys):
    return slot(n, node(1, slot(1, core(1)), **keys), ssd(gib))


# Requests


def test_plain_slots():
    wanted = parse(slot(3, core(2), {"type": "gpu", "count": 1}), duration=60)
    assert (wanted.groups, wanted.nslots, wanted.slot_cores) == (0, 3, 2)
    assert (wanted.slot_gpus, wanted.duration_s) == (1, 60.0)


def test_nodes_with_slots():
    wanted = parse(node(2, slot(3, core(1))))
    assert (wanted.groups, wanted.node_slots, wanted.node_cores) == (2, 3, 3)
    assert not wanted.exclusive and not wanted.needs_rabbits


def test_exclusive_forms():
    assert parse(node(2, slot(1, core(1)), exclusive=True)).exclusive
    assert parse(node(2, slot(1, core(1), exclusive=True))).exclusive
    assert parse(node(2)).exclusive
    wanted = parse(slot(3, core(2), exclusive=True))
    assert (wanted.groups, wanted.node_cores, wanted.exclusive) == (3, 2, True)


def test_rabbit_form():
    wanted = parse(rabbit(2, 10))
    assert (wanted.groups, wanted.group_nodes, wanted.group_gib) == (2, 1, 10)
    assert wanted.needs_rabbits and not wanted.distinct


def test_chassis_form():
    top = slot(2, node(3, slot(1, core(1))), ssd(5)) | {"type": "chassis"}
    wanted = parse(top)
    assert (wanted.groups, wanted.group_nodes, wanted.group_gib) == (2, 3, 5)
    assert wanted.distinct
    assert wanted.nodes == 6


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (4, (4, 4)),
        ({"min": 2, "max": 5}, (2, 5)),
        ({"min": 2}, (2, None)),
        ({"min": 2, "max": 5, "operator": "+", "operand": 1}, (2, 5)),
        ("2-5", (2, 5)),
        ("3", (3, 3)),
        ("2+", (2, None)),
    ],
)
def test_counts(count, expected):
    assert request.parse_count(count, "node") == expected


@pytest.mark.parametrize(
    "count",
    [0, -1, True, None, 1.5, "x", "", "5-2", "1-9:2", [1], {"max": 3}]
    + [{"min": 1, "max": 8, "operator": "*", "operand": 2}],
)
def test_bad_counts(count):
    with pytest.raises(ValueError, match="node"):
        request.parse_count(count, "node")


@pytest.mark.parametrize(
    "resources",
    [
        [],
        [node(1), node(1)],
        [{"type": "rack", "count": 1}],
        [slot(1)],
        [slot(1, {"type": "ssd", "count": 1})],
        [{"type": "chassis", "count": 1}],
        [slot(1, node(1), node(1))],
        [slot(1, node(1), {"type": "tape", "count": 1})],
        [slot(1, node(1), {"type": "ssd", "count": "1-2"})],
        [slot(1, node(1), storage_node(2))],
        [slot(1, node(1), storage_node(1, slot(1, core(1))))],
        [slot(1, node(1), storage_node(1)), storage_node(1)],
        [node(1), storage_node(1), storage_node(1)],
        [storage_node(1)],
        [7],
    ],
)
def test_bad_resources(resources):
    with pytest.raises(ValueError):
        request.parse({"resources": resources})


@pytest.mark.parametrize("spec", [None, [], {}, {"resources": None}])
def test_bad_jobspec(spec):
    with pytest.raises(ValueError):
        request.parse(spec)


# Constraints


def nodes_of(expression, machine=None):
    machine = machine or make(properties={"even": [0, 2, 4, 6], "low": [0, 1]})
    return list(bits.members(constraint.evaluate(expression, machine)))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ({}, [0, 1, 2, 3, 4, 5, 6, 7]),
        ({"and": []}, [0, 1, 2, 3, 4, 5, 6, 7]),
        ({"or": []}, [0, 1, 2, 3, 4, 5, 6, 7]),
        ({"not": []}, []),
        ({"properties": ["even"]}, [0, 2, 4, 6]),
        ({"properties": ["even", "low"]}, [0]),
        ({"properties": ["^even"]}, [1, 3, 5, 7]),
        ({"properties": ["nowhere"]}, []),
        ({"properties": ["^nowhere", "low"]}, [0, 1]),
        ({"hostlist": ["n1,n2", "n7"]}, [1, 2, 7]),
        ({"hostlist": ["elsewhere"]}, []),
        ({"ranks": ["3,4"]}, [3, 4]),
        ({"ranks": ["3,99"]}, [3]),
        ({"not": [{"ranks": ["0"]}]}, [1, 2, 3, 4, 5, 6, 7]),
        ({"or": [{"ranks": ["1"]}, {"properties": ["low"]}]}, [0, 1]),
        ({"and": [{"properties": ["even"]}, {"not": [{"ranks": ["0"]}]}]}, [2, 4, 6]),
        ({"properties": ["even"], "ranks": ["0,1"]}, [0]),
    ],
)
def test_constraints(expression, expected):
    assert nodes_of(expression) == expected


@pytest.mark.parametrize(
    "expression",
    [7, [], "x", {"nor": []}, {"and": {}}, {"properties": [1]}, {"not": [3]}],
)
def test_bad_constraints(expression):
    with pytest.raises(ValueError):
        nodes_of(expression)


# The machine


def test_capacity_is_exact():
    machine = make(nodes=2, per_rabbit=2, gib=100)
    machine.commit(1, machine.find(parse(rabbit(1, 99))))
    assert machine.rabbits["r0"].free_gib == 1
    assert machine.find(parse(rabbit(1, 2))) is None
    machine.commit(2, machine.find(parse(rabbit(1, 1))))
    assert machine.rabbits["r0"].free_gib == 0


def test_storage_is_next_to_its_node():
    machine = make(nodes=8, per_rabbit=2, gib=100)
    machine.commit(1, machine.find(parse(rabbit(1, 60))))
    alloc = machine.find(parse(rabbit(3, 50)))
    for name, gib in alloc.gib.items():
        mine = [r for r in alloc.nodes if machine.rabbit_of[r].name == name]
        assert gib == 50 * len(mine)
    assert "r0" not in alloc.gib


def test_a_group_stays_on_one_rabbit():
    machine = make(nodes=6, per_rabbit=3)
    wanted = parse(slot(2, node(2, slot(1, core(4))), ssd(10)))
    alloc = machine.find(wanted)
    assert sorted(alloc.nodes) == [0, 1, 3, 4]
    assert alloc.gib == {"r0": 10, "r1": 10}


def test_chassis_are_distinct():
    machine = make(nodes=8, per_rabbit=4)
    top = slot(2, node(1, slot(1, core(1))), ssd(1)) | {"type": "chassis"}
    assert sorted(machine.find(parse(top)).nodes) == [0, 4]
    top["count"] = 3
    assert machine.find(parse(top)) is None
    assert "different rabbits" in machine.infeasible(parse(top))


def test_chassis_without_storage():
    machine = make(nodes=8, per_rabbit=4)
    top = slot(2, node(2, slot(1, core(1)))) | {"type": "chassis"}
    alloc = machine.find(parse(top))
    assert sorted(alloc.nodes) == [0, 1, 4, 5]
    assert alloc.gib == {}


def test_a_rabbit_that_is_down_gives_no_storage_but_nodes():
    machine = make(nodes=4)
    machine.rabbits["r0"].up = False
    assert sorted(machine.find(parse(rabbit(2, 1))).nodes) == [2, 3]
    assert 0 in machine.find(parse(node(4, slot(1, core(1))))).nodes
    assert machine.infeasible(parse(rabbit(4, 1))) is None


def test_nodes_without_rabbit_take_ordinary_jobs_only():
    machine = Machine(
        [Node(0, "n0", 15, 0), Node(1, "n1", 15, 0)], None, {"r0": (10, ["n1"])}
    )
    assert list(machine.find(parse(rabbit(1, 1))).nodes) == [1]
    assert machine.find(parse(rabbit(2, 1))) is None
    assert len(machine.find(parse(node(2))).nodes) == 2


def test_two_rabbits_with_one_node_are_refused():
    nodes = [Node(0, "n0", 1, 0)]
    with pytest.raises(ValueError, match="n0 belongs to r0 and to r1"):
        Machine(nodes, None, {"r0": (1, ["n0"]), "r1": (1, ["n0"])})


# As of several brokers on one host. flux-core matches a host name with all its ranks.
def test_nodes_with_one_host_name_are_all_meant():
    nodes = [Node(i, host, 15, 0) for i, host in enumerate(["n0", "n0", "n1"])]
    machine = Machine(nodes, None, {"r0": (10, ["n0"])})
    assert nodes_of({"hostlist": ["n0"]}, machine) == [0, 1]
    assert nodes_of({"not": [{"hostlist": ["n0"]}]}, machine) == [2]
    assert sorted(machine.find(parse(rabbit(2, 5))).nodes) == [0, 1]
    machine.set_property("bad", machine.with_hosts("n0"))
    assert nodes_of({"properties": ["bad"]}, machine) == [0, 1]
    machine.remove([1])
    assert nodes_of({"hostlist": ["n0"]}, machine) == [0]
    machine.remove([0])
    assert nodes_of({"hostlist": ["n0"]}, machine) == []


def test_exclusive_needs_idle_nodes():
    machine = make(nodes=2, per_rabbit=0)
    machine.commit(1, machine.find(parse(slot(1, core(1)))))
    alloc = machine.find(parse(node(1, slot(1, core(1)), exclusive=True)))
    assert alloc.nodes == {1: (15, 0)}
    assert machine.find(parse(node(2, exclusive=True))) is None


def test_small_jobs_fill_nodes_up():
    machine = make(nodes=3, per_rabbit=0)
    for jobid in range(CORES):
        machine.commit(jobid, machine.find(parse(slot(1, core(1)))))
    assert bits.count(machine.idle) == 2


def test_gpus():
    machine = make(nodes=2, per_rabbit=0, gpus=2)
    wanted = parse(node(1, slot(1, core(1), {"type": "gpu", "count": 2})))
    machine.commit(1, machine.find(wanted))
    assert machine.find(wanted).nodes == {1: (1, 3)}
    slots = machine.find(parse(slot(2, core(1), {"type": "gpu", "count": 1})))
    assert slots.nodes == {1: (3, 3)}
    too_many = parse(node(1, slot(1, core(1), {"type": "gpu", "count": 3})))
    assert machine.find(too_many) is None
    assert "3 gpus" in machine.infeasible(too_many)


def test_ranges_take_what_there_is():
    machine = make(nodes=4, per_rabbit=2, gib=10)
    assert len(machine.find(parse(node("2-3", slot(1, core(1))))).nodes) == 3
    assert len(machine.find(parse(node("2+", slot(1, core(1))))).nodes) == 4
    assert machine.find(parse(slot("3-99", core(1)))).nslots == 16
    assert machine.find(parse(node("5-9", slot(1, core(1))))) is None


def test_down_nodes_are_not_used_but_do_not_make_infeasible():
    machine = make(nodes=2, per_rabbit=0)
    machine.set_up(1, False)
    assert list(machine.find(parse(node(1))).nodes) == [1]
    assert machine.find(parse(node(2))) is None
    assert machine.infeasible(parse(node(2))) is None
    machine.set_up(1, True)
    assert machine.find(parse(node(2))) is not None


def test_reasons():
    machine = make(nodes=4, per_rabbit=2, gib=32)
    assert machine.infeasible(parse(rabbit(1, 40))) == (
        "needs 40 GiB per node; no rabbit has more than 32"
    )
    assert "needs 5 nodes with 1 cores; there are 4" in machine.infeasible(
        parse(node(5, slot(1, core(1))))
    )
    assert "meet its constraints" in machine.infeasible(
        parse(node(1), constraints={"properties": ["x"]})
    )
    assert "needs 17 slots of 1 cores; there are 16" in machine.infeasible(
        parse(slot(17, core(1)))
    )
    assert "room for 2" in machine.infeasible(parse(rabbit(3, 20)))
    assert make(per_rabbit=0).infeasible(parse(rabbit(1, 1))) == (
        "needs rabbits; there are none"
    )


def test_storage_nodes_are_no_compute_nodes():
    machine = make(nodes=4, storage_nodes=True)
    assert list(machine.find(parse(node({"min": 1}))).nodes) == [0, 1, 2, 3]
    assert list(machine.find(parse(slot("1+", core(1)))).nodes) == [0, 1, 2, 3]
    assert "there are 4" in machine.infeasible(parse(node(5)))
    assert "there are 16" in machine.infeasible(parse(slot(17, core(1))))
    assert machine.find(parse(node(1), constraints={"hostlist": ["r0"]})) is None
    assert "there are 0" in machine.infeasible(
        parse(node(1), constraints={"hostlist": ["r0"]})
    )


def chassis(n, nodes, *children):
    return slot(n, node(nodes, slot(1, core(1))), *children, type="chassis")


def test_the_storage_node_is_that_of_the_nodes():
    machine = make(nodes=4, storage_nodes=True)
    machine.commit(1, machine.find(parse(chassis(1, 2))))
    alloc = machine.find(parse(chassis(1, 2, storage_node(1, core(3)), ssd(7))))
    assert alloc.gib == {"r0": 7}
    assert alloc.nodes == {0: (2, 0), 1: (2, 0), 4: (7, 0)}
    assert alloc.nslots == 2
    machine.commit(2, alloc)
    # r0 has one core left.
    alloc = machine.find(parse(chassis(1, 2, storage_node(1, core(3)))))
    assert sorted(alloc.nodes) == [2, 3, 5]
    assert machine.find(parse(chassis(2, 2, storage_node(1, core(3))))) is None
    alloc = machine.find(parse(chassis(2, 2, storage_node(1, core(1)))))
    assert alloc.nodes[4] == (8, 0)
    assert alloc.nodes[5] == (1, 0)
    # Without cores, all of it.
    alloc = machine.find(parse(chassis(1, 1, storage_node(1))))
    assert alloc.nodes == {2: (1, 0), 5: (15, 0)}
    machine.set_up(1 << 5, False)
    assert machine.find(parse(chassis(1, 1, storage_node(1)))) is None
    assert machine.infeasible(parse(chassis(1, 1, storage_node(1)))) is None


def test_storage_nodes_beside_the_nodes():
    machine = make(nodes=4, storage_nodes=True)
    alloc = machine.find(parse(node(1), storage_node(2, core(1))))
    assert alloc.nodes == {0: (15, 0), 4: (1, 0), 5: (1, 0)}
    assert machine.find(parse(slot(1, core(1)), storage_node(3, core(1)))) is None


def test_reasons_of_storage_nodes():
    machine = make(nodes=4, storage_nodes=True)
    assert machine.infeasible(parse(node(1), storage_node(3, core(2)))) == (
        "needs 3 storage node(s) with 2 cores; there are 2"
    )
    assert machine.infeasible(parse(chassis(1, 1, storage_node(1, core(5))))) == (
        "needs 1 storage node(s) with 5 cores; there are 0"
    )
    assert "different rabbits and a storage node; there is room for 0" in (
        machine.infeasible(parse(chassis(1, 3, storage_node(1, core(1)))))
    )
    # A constraint is for the storage nodes, too, as it is for Fluxion.
    assert "there are 0 that meet its constraints" in machine.infeasible(
        parse(chassis(1, 1, storage_node(1)), constraints={"ranks": ["0,1,2"]})
    )


def test_partial_release_frees_the_storage_first():
    machine = make(nodes=4)
    machine.commit(1, machine.find(parse(rabbit(2, 10))))
    machine.release(1, [0])
    assert machine.rabbits["r0"].free_gib == 100
    assert machine.nodes[0].free_cores == 15
    assert machine.nodes[1].free_cores != 15
    machine.release(1)
    assert machine.idle == machine.all_nodes
    machine.release(1)
    assert machine.rabbits["r0"].free_gib == 100


def test_recovered_jobs_may_not_overlap():
    machine = make(nodes=2, per_rabbit=2, gib=10)
    machine.commit(1, Allocation({0: (3, 0)}, {"r0": 20, "gone": 5}))
    assert machine.rabbits["r0"].free_gib == -10
    assert machine.find(parse(rabbit(1, 1))) is None
    with pytest.raises(ValueError, match="taken"):
        machine.commit(2, Allocation({1: (1, 0), 0: (2, 0)}))
    assert machine.nodes[1].free_cores == 15
    with pytest.raises(ValueError, match="not there"):
        machine.commit(2, Allocation({9: (1, 0)}))
    with pytest.raises(ValueError, match="already"):
        machine.commit(1, Allocation())
    machine.release(1)
    assert machine.rabbits["r0"].free_gib == 10


def test_removed_nodes_are_gone():
    machine = make(nodes=3, per_rabbit=3)
    machine.commit(1, machine.find(parse(node(3))))
    machine.remove([1])
    machine.release(1)
    assert sorted(machine.find(parse(node(2))).nodes) == [0, 2]
    assert machine.find(parse(rabbit(3, 1))) is None
    assert "there are 2" in machine.infeasible(parse(node(3)))


def test_a_copy_is_independent():
    machine = make()
    machine.commit(7, machine.find(parse(rabbit(1, 10))))
    other = machine.copy()
    other.release(7)
    assert machine.allocations[7].gib == {"r0": 10}
    assert list(machine.allocations[7].nodes) == [0]
    machine.release(7)
    other.commit(1, other.find(parse(rabbit(8, 50))))
    assert machine.idle == machine.all_nodes
    assert machine.find(parse(rabbit(8, 50))) is not None
    assert other.find(parse(rabbit(1, 1))) is None


# Laws

requests = st.one_of(
    st.builds(
        Request,
        nslots=st.integers(1, 12),
        nslots_max=st.just(None) | st.integers(12, 20),
        storage_nodes=st.sampled_from([0, 0, 1, 3]),
        storage_cores=st.integers(0, 3),
        slot_cores=st.integers(1, 5),
        slot_gpus=st.integers(0, 2),
    ),
    st.builds(
        Request,
        groups=st.integers(1, 5),
        groups_max=st.just(None) | st.integers(5, 8),
        group_nodes=st.integers(1, 3),
        group_gib=st.integers(0, 60),
        group_storage=st.booleans(),
        storage_cores=st.integers(0, 3),
        distinct=st.booleans(),
        exclusive=st.booleans(),
        node_cores=st.integers(1, 5),
        node_gpus=st.integers(0, 2),
        constraint=st.sampled_from(["", json.dumps({"not": [{"ranks": ["1"]}]})]),
    ),
)


def check(machine, gib):
    """The books agree with what the jobs have."""
    cores, gpus = {}, {}
    used = dict.fromkeys(machine.rabbits, 0)
    for alloc in machine.allocations.values():
        for rank, (c, g) in alloc.nodes.items():
            assert not cores.get(rank, 0) & c
            assert not gpus.get(rank, 0) & g
            cores[rank] = cores.get(rank, 0) | c
            gpus[rank] = gpus.get(rank, 0) | g
        for name, n in alloc.gib.items():
            used[name] += n
    idle = 0
    for rank, one in machine.nodes.items():
        assert one.free_cores == one.cores & ~cores.get(rank, 0)
        assert one.free_gpus == one.gpus & ~gpus.get(rank, 0)
        if one.free_cores == one.cores and one.free_gpus == one.gpus:
            idle |= 1 << rank
    assert machine.idle == idle
    for name, one in machine.rabbits.items():
        assert one.free_gib == gib - used[name]
        assert 0 <= one.free_gib <= gib


def check_storage_nodes(machine, wanted, alloc):
    """Takes them out, and returns the others."""
    names = {
        rank: machine.nodes[rank].host
        for rank in alloc.nodes
        if machine.nodes[rank].host in machine.rabbits
    }
    others = {rank: have for rank, have in alloc.nodes.items() if rank not in names}
    groups = dict.fromkeys(names.values(), 1)
    if wanted.group_storage:
        groups = {}
        for rank in others:
            name = machine.rabbit_of[rank].name
            groups[name] = groups.get(name, 0) + 1
        groups = {name: n // wanted.group_nodes for name, n in groups.items()}
        assert set(groups) == set(names.values())
    else:
        assert len(names) == wanted.storage_nodes
    for rank, name in names.items():
        cores, gpus = alloc.nodes[rank]
        if wanted.storage_cores:
            assert bits.count(cores) == wanted.storage_cores * groups[name]
            assert gpus == 0
        else:
            assert groups[name] == 1
            assert cores == machine.nodes[rank].cores
    return others


def check_answer(machine, wanted, alloc):
    nodes = check_storage_nodes(machine, wanted, alloc)
    if wanted.groups == 0:
        assert wanted.nslots <= alloc.nslots
        assert wanted.nslots_max is None or alloc.nslots <= wanted.nslots_max
        have = sum(bits.count(c) for c, _ in nodes.values())
        assert have == alloc.nslots * wanted.slot_cores
        return
    groups = len(nodes) // wanted.group_nodes
    assert len(nodes) % wanted.group_nodes == 0
    assert groups >= wanted.groups
    assert wanted.groups_max is None or groups <= wanted.groups_max
    if wanted.constraint:
        assert 1 not in nodes
    for rank, (c, g) in nodes.items():
        if wanted.exclusive:
            assert (c, g) == (machine.nodes[rank].cores, machine.nodes[rank].gpus)
        else:
            assert bits.count(c) == wanted.node_cores
            assert bits.count(g) == wanted.node_gpus
    if wanted.needs_rabbits:
        per_rabbit = {}
        for rank in nodes:
            name = machine.rabbit_of[rank].name
            per_rabbit[name] = per_rabbit.get(name, 0) + 1
        for n in per_rabbit.values():
            assert n % wanted.group_nodes == 0
            assert not wanted.distinct or n == wanted.group_nodes
        if wanted.group_gib:
            assert alloc.gib == {
                name: n // wanted.group_nodes * wanted.group_gib
                for name, n in per_rabbit.items()
            }


@settings(max_examples=200)
@given(st.lists(st.tuples(requests, st.integers(0, 3)), max_size=15))
def test_nothing_is_given_twice(steps):
    machine = make(nodes=7, per_rabbit=3, gib=100, gpus=2, storage_nodes=True)
    for jobid, (wanted, ending) in enumerate(steps):
        alloc = machine.find(wanted)
        if alloc is not None:
            check_answer(machine, wanted, alloc)
            machine.commit(jobid, alloc)
            assert machine.infeasible(wanted) is None
        check(machine, 100)
        if machine.allocations and ending:
            victim = list(machine.allocations)[ending % len(machine.allocations)]
            first = list(machine.allocations[victim].nodes)[:1]
            machine.release(victim, first if ending == 3 else None)
            check(machine, 100)
    for jobid in list(machine.allocations):
        machine.release(jobid)
    check(machine, 100)
    assert machine.idle == machine.all_nodes


@settings(max_examples=300)
@given(requests)
def test_feasible_is_what_an_empty_machine_can_give(wanted):
    machine = make(nodes=7, per_rabbit=3, gib=100, gpus=2, storage_nodes=True)
    assert (machine.infeasible(wanted) is None) == (machine.find(wanted) is not None)


@given(st.sets(st.integers(0, 200)), st.integers(0, 10))
def test_bits(numbers, n):
    mask = bits.of(numbers)
    assert list(bits.members(mask)) == sorted(numbers)
    assert bits.count(mask) == len(numbers)
    assert list(bits.members(bits.lowest(mask, n))) == sorted(numbers)[:n]
