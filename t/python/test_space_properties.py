# SPDX-License-Identifier: LGPL-3.0-only
#
# Jobs at random, placed by sched-rabbit, laid out by libdws, made on drives that
# do as NNF's do: none may fail for want of room, or wait while there is much of it,
# and all agree on what is taken.
"""Space on rabbits: scheduler, layout and drives together."""

import copy
import random

import pytest
from dws_sim.controllers.storage import LUSTRE_MINIMUM
from dws_sim.drives import BLOCK, WANTED, Drives, NoRoomError, drive_sizes, usable
from flux_k8s import dws
from flux_sched_rabbit.machine import NOBODY, Machine, Node
from flux_sched_rabbit.request import parse
from hypothesis import given, settings
from hypothesis import strategies as st

GIB = 1 << 30
RAW = 36 << 40
RABBITS, NODES = 4, 4
NAMES = [f"r{i}" for i in range(RABBITS)]
PADDING = 300 << 20
UNIT = WANTED * BLOCK


def hosts(rabbit):
    first = NAMES.index(rabbit) * NODES
    return [f"n{i}" for i in range(first, first + NODES)]


def storage(rabbit):
    devices = [
        {"slot": str(slot), "status": "Ready", "capacity": size}
        for slot, size in drive_sizes(RAW).items()
    ]
    # what was free once means nothing
    status = {"status": "Ready", "capacity": 7, "devices": devices}
    return {"metadata": {"name": rabbit}, "status": status}


STORAGES = [storage(rabbit) for rabbit in NAMES]
MAPPING = {
    "computes": {host: rabbit for rabbit in NAMES for host in hosts(rabbit)},
    "rabbits": {
        rabbit: {"capacity": usable(RAW), "hostlist": ",".join(hosts(rabbit))}
        for rabbit in NAMES
    },
}


def breakdown(name, kind, size):
    def one(label, strategy, least):
        return {
            "label": label,
            "allocationStrategy": f"Allocate{strategy}",
            "minimumCapacity": least,
        }

    if kind == "lustre":
        # as much data as each of the nodes would have of other types
        sets = [
            one("ost", "AcrossServers", size),
            one("mgtmdt", "SingleServer", 5 * GIB),
        ]
    else:
        sets = [one(kind, "PerCompute", size + PADDING)]
    reference = {"name": name, "namespace": "default"}
    filled = {"allocationSets": sets, "reference": reference}
    return {"metadata": {"name": name}, "status": {"ready": True, "storage": filled}}


class Site:
    """Scheduler, module and drives, as far as they count."""

    def __init__(self):
        gib = usable(RAW) // GIB
        self.machine = Machine(
            [Node(i, f"n{i}", 3, 0) for i in range(RABBITS * NODES)],
            None,
            {rabbit: (gib, hosts(rabbit)) for rabbit in NAMES},
        )
        self.drives = {rabbit: Drives(RAW) for rabbit in NAMES}
        self.made = {}  # name: [(rabbit, parts)]
        self.servers = {}
        self.running = {}  # job id: name, is it persistent
        self.kept = []
        self.jobs = 0

    def taken(self, names):
        total = dict.fromkeys(NAMES, 0)
        for name in names:
            for rabbit, size in dws.taken(self.servers[name]).items():
                total[rabbit] += size
        return total

    def start(self, kind, size, nodes, persistent):
        """Whether it was placed."""
        self.jobs += 1
        name = f"w{self.jobs}-0"
        plain = [{"type": "node", "count": nodes, "exclusive": False}]
        plain[0]["with"] = [
            {
                "type": "slot",
                "count": 1,
                "label": "x",
                "with": [{"type": "core", "count": 1}],
            }
        ]
        breakdowns = [breakdown(name, kind, size)]
        resources = dws.apply_breakdowns(plain, breakdowns)
        alloc = self.machine.find(parse({"resources": resources}))
        if alloc is None:
            return False
        self.machine.commit(self.jobs, alloc)
        names = ",".join(self.machine.nodes[rank].host for rank in alloc.nodes)
        (entry,) = dws.allocation_sets(
            breakdowns,
            dws.nodes_per_rabbit(names, MAPPING),
            storages=STORAGES,
            used=self.taken(self.servers),
            resources=resources,
        )
        self.servers[name] = {"spec": {"allocationSets": entry["allocationSets"]}}
        self.hold(self.jobs, dws.taken(self.servers[name]))
        self.make(name, entry["allocationSets"])
        self.running[self.jobs] = (name, persistent)
        return True

    def make(self, name, sets):
        """As NNF does. Raises NoRoomError."""
        made = self.made[name] = []
        for one in sets:
            for place in one["storage"]:
                sizes = [one["allocationSize"]] * place["allocationCount"]
                if one["label"] in ("xfs", "gfs2", "raw"):
                    sizes = [sum(sizes)]
                else:
                    sizes = [max(size, LUSTRE_MINIMUM) for size in sizes]
                for size in sizes:
                    drives = self.drives[place["name"]]
                    made.append((place["name"], drives.take(size)))

    def destroy(self, name):
        for rabbit, parts in self.made.pop(name):
            self.drives[rabbit].give(parts)
        del self.servers[name]

    def end(self, jobid):
        name, persistent = self.running.pop(jobid)
        if persistent:
            self.kept.append(name)
        else:
            self.destroy(name)
        self.tell()
        self.machine.release(jobid)
        self.hold(jobid, {})

    def forget(self, index):
        self.destroy(self.kept.pop(index))
        self.tell()

    def tell(self):
        self.hold(NOBODY, self.taken(self.kept))

    def hold(self, jobid, taken):
        gib = {rabbit: -(-size // GIB) for rabbit, size in taken.items()}
        self.machine.hold(jobid, gib)

    def idle(self, size):
        """Rabbits with a node and more than a tenth to spare that would make it."""
        taken = self.taken(self.servers)
        found = []
        for rabbit in NAMES:
            ranks = range(
                NAMES.index(rabbit) * NODES, (NAMES.index(rabbit) + 1) * NODES
            )
            if taken[rabbit] > usable(RAW) * 9 // 10 or not any(
                self.machine.nodes[rank].free_cores for rank in ranks
            ):
                continue
            try:
                copy.deepcopy(self.drives[rabbit]).take(size + PADDING)
            except NoRoomError:
                continue
            found.append(rabbit)
        return found

    def check(self):
        taken = self.taken(self.servers)
        for rabbit in NAMES:
            assert RAW - taken[rabbit] == self.drives[rabbit].free


def sizes(draw, site, most):
    """From small ones to all that there is, or that is left, in bytes."""
    if draw.random() < 0.3:
        rabbit = site.machine.rabbits[draw.choice(NAMES)]
        left = rabbit.free_gib * GIB // draw.randint(1, NODES)
        return max(1, min(left - PADDING, int(most)))
    scale = draw.choice([1, 8, 64, 1024])
    return max(1, int(most / scale * draw.random()))


def run(seed, steps, kinds):
    draw, site = random.Random(seed), Site()
    placed = 0
    for _ in range(steps):
        action = draw.random()
        if action < 0.55:
            nodes = draw.randint(1, 8)
            persistent = draw.random() < 0.15
            kind = draw.choice(kinds)
            most = usable(RAW) - PADDING
            if kind == "lustre":
                most *= nodes
            size = sizes(draw, site, most)
            if site.start(kind, size, nodes, persistent):
                placed += 1
            elif nodes == 1 and kind != "lustre":
                assert site.idle(size) == []
        elif action < 0.95 and site.running:
            site.end(draw.choice(list(site.running)))
        elif site.kept:
            site.forget(draw.randrange(len(site.kept)))
        site.check()
    return placed


@settings(max_examples=20)
@given(st.integers(0, 1 << 32))
def test_what_is_promised_is_made(seed):
    assert run(seed, 60, ["xfs", "gfs2", "raw"]) > 0


@settings(max_examples=20)
@given(st.integers(0, 1 << 32))
def test_what_is_promised_is_made_with_lustre(seed):
    assert run(seed, 60, ["xfs", "gfs2", "raw", "lustre"]) > 0


def test_an_empty_rabbit_can_be_filled():
    """Allocations fit up to the last GiB of the mapping's capacity, and no further."""
    site = Site()
    whole = usable(RAW)
    assert whole == 32 << 40
    assert site.start("xfs", whole - PADDING, 1, False)
    site.check()
    assert site.drives["r0"].free <= 4 << 40
    with pytest.raises(NoRoomError):
        site.drives["r0"].take(UNIT * (1 << 20) * 33)
    assert not Site().start("xfs", whole - PADDING + 1, 1, False)


def test_persistent_storage_is_not_promised_again():
    site = Site()
    half = usable(RAW) // 2
    assert all(site.start("xfs", half - PADDING, 1, True) for _ in range(RABBITS * 2))
    assert not site.start("xfs", GIB, 1, False)
    for jobid in list(site.running):
        site.end(jobid)
    assert len(site.kept) == RABBITS * 2
    assert not site.start("xfs", GIB, 1, False)
    site.forget(0)
    assert site.start("xfs", half - PADDING, 1, False)
    site.check()
