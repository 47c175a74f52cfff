# sched-rabbit counts the storage that others hold on rabbits correctly, in whatever
# order the scheduler, the module dws, the mapping and jobs come and go.
# SPDX-License-Identifier: LGPL-3.0-only
from __future__ import annotations

import errno
import json
import logging
import pathlib
import tempfile
from types import SimpleNamespace
from typing import Any

import flux.kvs
import flux.scheduler
import pytest
from flux.job import JobID
from flux_k8s import dws, names
from flux_sched_rabbit import bits, rset
from flux_sched_rabbit.machine import NOBODY, Machine, Node
from flux_sched_rabbit.scheduler import RabbitScheduler
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

GIB = 1 << 30
NODES = 8  # to a rabbit: two
CORES = 16
SSD_GIB = 25


def mapping_of(count: int, gib: int = 100) -> dict[str, Any]:
    """A rabbitmapping file with this many rabbits."""
    return {
        "rabbits": {
            f"r{i}": {"capacity": gib * GIB, "hostlist": f"n[{2 * i}-{2 * i + 1}]"}
            for i in range(count)
        }
    }


def R_lite(ranks: list[int], core: str) -> dict[str, Any]:
    return {
        "version": 1,
        "execution": {
            "R_lite": [
                {"rank": str(rank), "children": {"core": core}} for rank in ranks
            ],
            "starttime": 1.0,
            "expiration": 0.0,
            "nodelist": [f"n{rank}" for rank in ranks],
        },
    }


def vertex(kind: str, number: int, chassis: int, **more: Any) -> dict[str, Any]:
    path = f"/c0/chassis{chassis}/{more.get('name', kind + str(number))}"
    return {
        "id": path,
        "metadata": {
            "type": kind,
            "id": number,
            "paths": {"containment": path},
            **more,
        },
    }


def fluxion_R(rabbit: int, core: int, gib: int) -> dict[str, Any]:
    """R with both nodes and ssds of a rabbit, as Fluxion writes match-format rv1:
    without a size of 1, and without a name that equals type and id."""
    ranks = [2 * rabbit, 2 * rabbit + 1]
    size = {} if gib == 1 else {"size": SSD_GIB}
    return {
        **R_lite(ranks, str(core)),
        "scheduling": {
            "graph": {
                "nodes": [
                    {"id": "0", "metadata": {"type": "cluster"}},
                    *(vertex("node", r, rabbit, name=f"n{r}") for r in ranks),
                    *(vertex("core", core, rabbit) for _ in ranks),
                    *(
                        vertex("ssd", i, rabbit, exclusive=True, **size)
                        for i in range(-(-gib // SSD_GIB))
                    ),
                ],
                "edges": [],
            }
        },
    }


# R


def test_ssds_of_fluxion_are_next_to_a_host():
    assert rset.gib_of_ssds(fluxion_R(1, 0, 60)["scheduling"]) == {"n2": 75}


def test_a_size_that_fluxion_leaves_out_is_one():
    assert rset.gib_of_ssds(fluxion_R(0, 0, 1)["scheduling"]) == {"n0": 1}


def test_a_name_that_fluxion_leaves_out_is_in_the_path():
    R = fluxion_R(0, 0, 25)["scheduling"]
    R["graph"]["nodes"][1:3] = [vertex("node", 7, 0)]
    assert rset.gib_of_ssds(R) == {"node7": 25}


@pytest.mark.parametrize(
    "scheduling",
    [
        None,
        {},
        {"writer": "x", "rabbits": {"r0": 5}},
        {"graph": {}},
        {"graph": {"nodes": [{}]}},
        {"graph": {"nodes": [{"metadata": {"type": "ssd"}}]}},
        {"graph": {"nodes": [vertex("ssd", 0, 0)]}},
        "text",
    ],
)
def test_what_is_no_graph_has_no_ssds(scheduling):
    assert rset.gib_of_ssds(scheduling) == {}


# The mapping


def machine_of(count):
    rabbits = rset.rabbits_of_mapping(mapping_of(count))
    return Machine([Node(i, f"n{i}", 15, 0) for i in range(NODES)], None, rabbits)


def test_a_bad_mapping_changes_nothing():
    machine = machine_of(2)
    machine.hold(7, {"r0": 10})
    with pytest.raises(ValueError, match="n0 belongs to r0 and to r1"):
        machine.set_rabbits({"r0": (1, ["n0"]), "r1": (1, ["n0"])})
    assert {n: r.free_gib for n, r in machine.rabbits.items()} == {"r0": 90, "r1": 100}


def test_what_was_said_of_a_rabbit_holds_when_it_comes_back():
    machine = machine_of(2)
    machine.set_rabbit("r1", False, 50)
    machine.hold(NOBODY, {"r1": 20})
    machine.set_rabbits({})
    assert machine.rabbits == {}
    machine.set_rabbits(rset.rabbits_of_mapping(mapping_of(3)))
    rabbit = machine.rabbits["r1"]
    assert (rabbit.up, rabbit.capacity_gib, rabbit.free_gib) == (False, 50, 30)
    assert machine.rabbits["r2"].free_gib == 100


# Orders of starts


class Answers:
    """Stands for the future of a streaming request: one answer, then the next."""

    def __init__(self, answers: list[dict[str, Any]]) -> None:
        self._answers = answers

    def get(self) -> dict[str, Any]:
        if not self._answers:
            raise OSError(errno.ENODATA, "no more")
        return self._answers[0]

    def reset(self) -> None:
        self._answers = self._answers[1:]


class Handle:
    """The broker of a scheduler that is being loaded."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.refused: list[str] = []

    def conf_get(self, key: str) -> str | None:
        assert key == "rabbit.mapping"
        return self._site.path

    def rpc(self, topic: str, payload: Any, flags: int = 0) -> Answers:
        assert (topic, payload) == ("job-manager.sched-hello", {"partial-ok": True})
        return Answers(
            [
                {"id": jobid, "priority": 16, "userid": 1, "t_submit": 1.0}
                | ({"free": rset.encode_idset(job.freed)} if job.freed else {})
                for jobid, job in self._site.jobs.items()
                if job.has_nodes
            ]
        )

    def respond(self, msg: Any, payload: Any) -> None:
        pass

    def respond_error(self, msg: Any, errnum: int, text: str) -> None:
        self.refused.append(text)


def light_init(self: Any, h: Any, *args: str) -> None:
    """In the place of the base class, which wants a broker."""
    self._h = h
    self._queue = []
    self._pending_args = []
    self._acquire_rpc = None
    self.log = logging.getLogger("sched-rabbit")


class Job:
    """Resources of a job: nodes, and storage on one rabbit."""

    def __init__(self, R: dict[str, Any], rabbit: str, given_gib: int) -> None:
        self.R = R
        self.rabbit = rabbit
        self.given_gib = given_gib  # what the scheduler counts for it
        self.freed: set[int] = set()  # ranks that housekeeping is through with
        self.has_nodes = True
        self.held_gib = 0  # if the job freed its nodes before its Teardown

    @property
    def takes_gib(self) -> int:
        given = self.given_gib if self.has_nodes and not self.freed else 0
        return max(given, self.held_gib)


class Site(RuleBasedStateMachine):
    """An instance. ``self.jobs``, ``outside``, ``health`` and ``bad`` are what is;
    what the scheduler counts is compared with that."""

    def __init__(self) -> None:
        super().__init__()
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(flux.scheduler.Scheduler, "__init__", light_init)
        self._patch.setattr(flux.scheduler, "kvs_get", self.read_R)
        self._patch.setattr(flux.kvs, "get", self.read_kvs)
        self._folder = tempfile.TemporaryDirectory()
        self.file = pathlib.Path(self._folder.name) / "mapping.json"
        self.path: str | None = None  # rabbit.mapping
        self.known: set[str] = set()  # rabbits of the mapping that was read last
        self.kvs: dict[str, Any] = {}
        self.jobs: dict[int, Job] = {}
        self.outside: dict[str, int] = {}
        self.health: dict[str, dict[str, Any]] = {}
        self.bad = ""
        self.dws = False
        self.linked = False  # this dws has sent its whole state to the scheduler
        self.behind = False  # the scheduler has not read dws' latest records
        self.scheduler: Any = None

    def teardown(self) -> None:
        self._patch.undo()
        self._folder.cleanup()

    # Data that the scheduler reads

    def read_R(self, handle: Any, key: str) -> dict[str, Any]:
        jobs = {f"{JobID(jobid).kvs}.R": job for jobid, job in self.jobs.items()}
        return json.loads(json.dumps(jobs[key].R))

    def read_kvs(self, handle: Any, key: str) -> Any:
        if key not in self.kvs:
            raise FileNotFoundError(errno.ENOENT, key)
        return json.loads(json.dumps(self.kvs[key]))

    # Messages of dws

    def holds(self) -> dict[str, dict[str, int]]:
        jobs = {
            str(jobid): {job.rabbit: job.held_gib * GIB}
            for jobid, job in self.jobs.items()
            if job.held_gib
        }
        outside = {name: gib * GIB for name, gib in self.outside.items()}
        return jobs | ({"0": outside} if outside else {})

    def health_request(self) -> dict[str, Any]:
        rabbits = {n: h for n, h in self.health.items() if n in self.known}
        return {"rabbits": rabbits, "properties": {"badrabbit": self.bad}}

    def write(self) -> None:
        self.kvs[names.KEY_HELD] = self.holds()
        self.kvs[names.KEY_HEALTH] = self.health_request()

    def ask(self, method: str, payload: Any) -> None:
        getattr(self.scheduler, method)(SimpleNamespace(payload=payload))
        assert self.scheduler.handle.refused == []

    def tell(self) -> None:
        """dws notices that something has changed."""
        self.write()
        if self.linked:
            self.ask("health", self.health_request())
            self.ask("hold", {"jobs": self.holds(), "complete": True})
        self.behind = self.scheduler is not None and not self.linked

    can_change = precondition(
        lambda self: self.dws and (self.linked or self.scheduler is None)
    )

    # Starts

    @initialize(count=st.integers(1, 4))
    def begin(self, count: int) -> None:
        self.health = {f"r{i}": {"up": True, "capacity": 100 * GIB} for i in range(4)}
        self.file.write_text(json.dumps(mapping_of(count)), encoding="utf-8")

    @precondition(lambda self: self.scheduler is None)
    @rule()
    def load_scheduler(self) -> None:
        scheduler = RabbitScheduler(Handle(self))
        scheduler._resources = scheduler._make_pool(
            R_lite(list(range(NODES)), f"0-{CORES - 1}")
        )
        scheduler._resources.mark_down("all")
        scheduler._resources.mark_up("all")
        self.scheduler = scheduler
        self.behind = False
        scheduler._sched_hello()
        self.known = set(scheduler.resources.machine.rabbits) if self.path else set()

    @precondition(lambda self: self.scheduler is not None)
    @rule()
    def remove_scheduler(self) -> None:
        self.scheduler = None
        self.linked = False

    @precondition(lambda self: not self.dws and self.path)
    @rule(count=st.integers(1, 4))
    def load_dws(self, count: int) -> None:
        """Load the module dws, with a mapping that may differ from the last one."""
        self.file.write_text(json.dumps(mapping_of(count)), encoding="utf-8")
        self.known = {f"r{i}" for i in range(count)}
        self.dws = True
        self.write()
        if self.scheduler is not None:
            self.link()

    @precondition(lambda self: self.dws and self.scheduler is not None)
    @rule()
    def link(self) -> None:
        self.ask("notify", {})
        self.linked = True
        self.tell()

    @precondition(lambda self: self.dws)
    @rule()
    def remove_dws(self) -> None:
        self.dws = self.linked = False

    @rule(count=st.integers(0, 4), gib=st.integers(1, 2))
    def reload_config(self, count: int, gib: int) -> None:
        """Perhaps there is no mapping any more; dws is not loaded without one."""
        if count == 0 and self.dws:
            return
        if count:
            text = json.dumps(mapping_of(count, 100 * gib))
            self.file.write_text(text, encoding="utf-8")
        self.path = str(self.file) if count else None
        self.known = {f"r{i}" for i in range(count)}
        rabbit = {"mapping": self.path} if self.path else {}
        if self.scheduler is not None:
            self.ask("config_reload", {"rabbit": rabbit})
        if self.dws:
            self.tell()

    # Jobs

    def room(self, rabbit: str) -> int:
        taken = sum(j.takes_gib for j in self.jobs.values() if j.rabbit == rabbit)
        return 100 - taken - self.outside.get(rabbit, 0)

    @precondition(lambda self: self.scheduler is None and len(self.jobs) < CORES)
    @rule(rabbit=st.integers(0, 3), gib=st.integers(1, 60))
    def job_of_fluxion(self, rabbit: int, gib: int) -> None:
        given = 1 if gib == 1 else -(-gib // SSD_GIB) * SSD_GIB
        jobid = len(self.jobs) + 1
        if given <= self.room(f"r{rabbit}"):
            R = fluxion_R(rabbit, jobid - 1, gib)
            self.jobs[jobid] = Job(R, f"r{rabbit}", given)

    @precondition(lambda self: len(self.jobs) < CORES)
    @rule(rabbit=st.integers(0, 3), gib=st.integers(1, 60))
    def job_of_sched_rabbit(self, rabbit: int, gib: int) -> None:
        jobid = len(self.jobs) + 1
        name = f"r{rabbit}"
        if gib > self.room(name):
            return
        R = R_lite([2 * rabbit, 2 * rabbit + 1], str(jobid - 1))
        R["scheduling"] = {"writer": rset.WRITER, "rabbits": {name: gib}}
        self.jobs[jobid] = Job(R, name, gib)
        if self.scheduler is not None:
            pool = self.scheduler._make_pool(R)
            self.scheduler.resources.register_alloc(jobid, pool)

    def job(self, data: Any, wanted: Any) -> tuple[int, Job] | None:
        jobs = [item for item in self.jobs.items() if wanted(item[1])]
        return data.draw(st.sampled_from(jobs)) if jobs else None

    @rule(data=st.data(), last=st.booleans())
    def housekeeping_frees(self, data: Any, last: bool) -> None:
        """Housekeeping frees one of two nodes, or the last."""
        found = self.job(data, lambda job: job.has_nodes)
        if not found:
            return
        jobid, job = found
        ranks = [int(entry["rank"]) for entry in job.R["execution"]["R_lite"]]
        left = [rank for rank in ranks if rank not in job.freed]
        now = left if last else left[:1]
        final = now == left
        core = job.R["execution"]["R_lite"][0]["children"]["core"]
        job.freed |= set(now)
        job.has_nodes = not final
        if self.scheduler is not None:
            pool = self.scheduler._make_pool(R_lite(now, core))
            self.scheduler.resources.free(jobid, pool, final)

    @can_change
    @rule(data=st.data())
    def storage_stays(self, data: Any) -> None:
        """The job frees its nodes before its storage is torn down."""
        found = self.job(data, lambda job: job.has_nodes and not job.freed)
        if found:
            found[1].held_gib = found[1].given_gib
            self.tell()

    @can_change
    @rule(data=st.data())
    def storage_is_gone(self, data: Any) -> None:
        found = self.job(data, lambda job: job.held_gib and not job.has_nodes)
        if found:
            found[1].held_gib = 0
            self.tell()

    # Rabbits

    @can_change
    @rule(rabbit=st.integers(0, 3), gib=st.integers(0, 30))
    def others_take(self, rabbit: int, gib: int) -> None:
        self.outside.pop(f"r{rabbit}", None)
        if 0 < gib <= self.room(f"r{rabbit}"):
            self.outside[f"r{rabbit}"] = gib
        self.tell()

    @can_change
    @rule(rabbit=st.integers(0, 3), up=st.booleans(), gib=st.integers(50, 100))
    def rabbit_changes(self, rabbit: int, up: bool, gib: int) -> None:
        self.health[f"r{rabbit}"] = {"up": up, "capacity": gib * GIB}
        self.tell()

    @can_change
    @rule(bad=st.sampled_from(["", "n0", "n[1,3]"]))
    def links_break(self, bad: str) -> None:
        self.bad = bad
        self.tell()

    # What must hold

    @invariant()
    def both_count_the_same(self) -> None:
        if self.scheduler is None:
            return
        machine = self.scheduler.resources.machine
        assert set(machine.rabbits) == self.known
        told = names.KEY_HEALTH in self.kvs and not self.behind
        for name, rabbit in machine.rabbits.items():
            taken = sum(j.takes_gib for j in self.jobs.values() if j.rabbit == name)
            taken += self.outside.get(name, 0)
            assert rabbit.capacity_gib - rabbit.free_gib == taken
            if told and name in self.kvs[names.KEY_HEALTH]["rabbits"]:
                health = self.health[name]
                assert (rabbit.up, rabbit.capacity_gib * GIB) == (
                    health["up"],
                    health["capacity"],
                )
        if told:
            hosts = dws.expand_hosts(self.bad) if self.bad else []
            expected = bits.of(int(host[1:]) for host in hosts)
            assert machine.with_property("badrabbit") == expected


TestSite = Site.TestCase
TestSite.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
