# A seed of scripts/soak determines the jobs and steps of a run.
# SPDX-License-Identifier: LGPL-3.0-only
"""The same seed draws the same, whatever happens meanwhile."""

import itertools
import pathlib
import sys

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "scripts" / "lib"))

from soak.cut import ddmin, kind_of  # noqa: E402 # it is a program, not a package
from soak.draws import Draws  # noqa: E402
from soak.features import PARAMETERS, kinds  # noqa: E402
from soak.jobs import DESTROY, GIB, KINDS, LENT_S, Job, verdict  # noqa: E402
from soak.rules import TOTAL_GIB, Rules  # noqa: E402

FAULTS = [f"fault {n}" for n in range(20)]


def steps(draws, used):
    """Draw steps, each of which uses 'count' further random numbers."""
    found = []
    for count in used:
        found.append((*draws.step(FAULTS), draws.rng.random()))
        for _ in range(count):
            draws.rng.random()
    return found


def jobs(draws, count):
    drafts = [draws.job() for _ in range(count)]
    return [(draft.kind.name, draft.spec.dumps(), draft.asked) for draft in drafts]


def test_same_seed_draws_the_same():
    some, others = Draws(7), Draws(7)
    assert steps(some, [0] * 50) == steps(others, [3, 0, 1, 8, 0] * 10)
    # no matter how many steps there were
    assert jobs(some, 50) == jobs(others, 50)
    assert jobs(some, 5) == jobs(others, 5)


def test_other_seed_draws_other():
    assert steps(Draws(7), [0] * 50) != steps(Draws(8), [0] * 50)
    assert jobs(Draws(7), 50) != jobs(Draws(8), 50)


def test_a_wanted_kind_counts_as_a_job():
    some, others = Draws(7), Draws(7)
    assert some.job(DESTROY).kind is DESTROY
    others.job()
    assert jobs(some, 5) == jobs(others, 5)


def ended(**what):
    """The verdict on a job that should complete, and has failed with this note."""
    note = what.pop("note")
    record = {"state": "INACTIVE", "result": "FAILED", "returncode": 1, "note": note}
    return verdict(Job(1, what.pop("kind", KINDS[0]), 0, **what), record)


def test_a_job_may_fail_with_its_broker_and_not_otherwise():
    note = "node failure on node4 (rank 4)"
    assert not ended(note=note, node_lost=True)
    assert ended(note=note)
    assert ended(note="no room", node_lost=True)


def test_a_job_may_fail_with_the_instance_and_not_otherwise():
    note = "failed to create guest ns: No such file or directory"
    assert not ended(note=note, restarted=True)
    assert ended(note=note)
    assert ended(note="no room", restarted=True)


def test_who_borrows_may_come_too_late_and_not_miss_what_is_there():
    (kind,) = [kind for kind in KINDS if kind.borrows]
    gone = "there is no persistent file system 'lent1' [fault: user]"
    assert not ended(note=gone, kind=kind, uses="lent1")
    assert ended(note=gone, kind=kind, uses="lent11")
    assert ended(note="", kind=kind, uses="lent1")  # exit code of a task
    early = "workflow error in Setup: User error: PersistentStorage is not active"
    assert not ended(note=early, kind=kind, uses="lent1")
    assert ended(note=early, kind=kind)


def test_a_time_limit_is_reached():
    short = next(kind for kind in kinds() if kind.limit == "short" and not kind.fatal)
    record = {"state": "INACTIVE", "returncode": 1, "note": "", "result": "TIMEOUT"}
    assert not verdict(Job(1, short, 0), record)
    assert verdict(Job(1, KINDS[0], 0), record)
    done = {**record, "result": "COMPLETED", "returncode": 0}
    assert "reached its time limit" in verdict(Job(1, short, 0), done)


def test_who_waits_for_data_may_fail_with_it_and_not_otherwise():
    kind = next(kind for kind in kinds() if kind.after == "dws-in" and not kind.fatal)
    note = "dws-in:f2: the data of job f2 was not staged in"
    awaited = Job(2, KINDS[0], 0)
    assert ended(note=note, kind=kind, awaits=awaited)
    awaited.cancelled = True
    assert not ended(note=note, kind=kind, awaits=awaited)
    assert ended(note="no room", kind=kind, awaits=awaited)


def test_an_exception_that_was_raised_may_end_a_job_and_no_other():
    assert not ended(note="raised by soak", raised=True)
    assert ended(note="raised by soak")
    assert ended(note="no room", raised=True)


def test_a_job_of_a_number_is_the_same_after_others_were_left_out():
    (_, last) = jobs(Draws(7), 40)[-2:]
    draft = Draws(7).number(39)
    assert (draft.kind.name, draft.spec.dumps(), draft.asked) == last


@pytest.mark.parametrize("needed", [{3}, {0, 99}, {10, 11, 60}])
def test_the_fewest_events_that_fail(needed):
    asked = []

    def fails(some):
        asked.append(some)
        return needed <= set(some)

    assert set(ddmin(list(range(100)), fails)) == needed
    assert len(asked) < 100


def test_wrong_things_are_alike_whatever_job_they_are_about():
    text = "fluxjob-12: its nodes were free before Teardown was ready"
    assert kind_of(text) == kind_of(text.replace("12", "345"))
    assert kind_of(text) != kind_of(text.replace("Teardown", "PostRun"))
    left = "jobs are active after 60 s: ƒ2yL (xfs; []), ƒ3B (two; [])"
    assert kind_of(left) == kind_of("jobs are active after 60 s: ƒ9 (raw; [])")
    assert kind_of("12 (xfs, nodes (1, 0)): failed") == kind_of("3 (raw): failed")


class Cluster:
    """Stands for the cluster, with the objects of a test."""

    def __init__(self):
        self.workflows = []
        self.servers = []
        self.persistentstorageinstances = []
        self.now = 0.0
        self.takes = 0.0  # to list a kind

    def list_all(self, plural):
        self.now += self.takes
        return getattr(self, plural), ""


def workflow(number, state, *, ready=False):
    return {
        "metadata": {"name": f"fluxjob-{number}"},
        "spec": {"desiredState": state},
        "status": {"state": state, "ready": ready},
    }


def servers(number, size):
    sets = [{"label": "xfs", "storage": {"rabbit0": {"allocationSize": size}}}]
    return {
        "metadata": {"name": f"fluxjob-{number}-0"},
        "status": {"allocationSets": sets},
    }


def rules(*jobs, completed=True):
    cluster = Cluster()
    by_id = {job.id: job for job in jobs}
    checked = Rules(
        lambda: cluster, by_id, lambda jobid: completed, lambda: cluster.now
    )
    return cluster, checked


def at(now, checked, cluster):
    cluster.now = now
    return checked.check()


def test_more_than_the_limit_is_seen():
    jobs = [Job(n, KINDS[0], TOTAL_GIB * GIB // 2) for n in range(3)]
    cluster, checked = rules(*jobs)
    cluster.workflows = [workflow(0, "Setup"), workflow(1, "Teardown")]
    cluster.servers = [servers(1, GIB)]
    assert checked.check() == []
    cluster.workflows.append(workflow(2, "Proposal"))
    (wrong,) = checked.check()
    assert "fluxjob-0, fluxjob-1, fluxjob-2" in wrong
    cluster.servers = [servers(1, 0)]
    assert checked.check() == []
    cluster.servers = [servers(1, GIB)]
    assert checked.check()
    cluster.workflows[1] = workflow(1, "Teardown", ready=True)
    assert checked.check() == []
    cluster.workflows[1] = workflow(1, "DataOut", ready=True)
    assert checked.check()
    jobs[1].forgotten = True
    assert checked.check() == []


def lend(checked, cluster):
    cluster.persistentstorageinstances = [
        {"metadata": {"name": "lent1", "creationTimestamp": "1970-01-01T00:01:40Z"}}
    ]
    assert at(100, checked, cluster) == []
    cluster.persistentstorageinstances = []


def test_a_file_system_that_goes_too_early_is_seen():
    job = Job(1, KINDS[0], GIB, makes="lent1")
    cluster, checked = rules(job)
    lend(checked, cluster)
    assert at(99 + LENT_S, checked, cluster) == ["lent1 went 1.0 s before its time"]
    assert at(99 + LENT_S, checked, cluster) == []
    lend(checked, cluster)
    assert at(100 + LENT_S, checked, cluster) == []
    lend(checked, cluster)
    cluster.takes = 1.0  # it went while the answers were under way
    assert at(97 + LENT_S, checked, cluster) == []
    cluster.takes = 0.0
    lend(checked, cluster)
    job.struck.append("its workflow was deleted")
    assert at(101, checked, cluster) == []
    cluster, checked = rules(Job(1, KINDS[0], GIB, makes="lent1"), completed=False)
    lend(checked, cluster)
    assert at(101, checked, cluster) == []


def test_every_two_features_meet():
    met = {
        frozenset(pair)
        for kind in kinds()
        for pair in itertools.combinations(kind.features, 2)
    }
    for one, other in itertools.combinations(PARAMETERS, 2):
        for a, b in itertools.product(PARAMETERS[one], PARAMETERS[other]):
            assert frozenset([f"{one}: {a}", f"{other}: {b}"]) in met


def test_a_round_has_each_row_of_the_covering_array():
    drawn = [kind for kind, _, _ in jobs(Draws(7), 2 * len(kinds()))]
    assert {kind.name for kind in kinds()} <= set(drawn)


def test_each_run_has_a_configuration_of_its_own():
    keys = {f"k{n}": ["a", "b"] for n in range(20)}
    drawn = [Draws(seed).configuration(keys) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert all(0 < len(one) < 20 and set(one.values()) == {"a", "b"} for one in drawn)


def test_a_round_of_steps_has_each_disturbance_once():
    draws, many = Draws(3), [str(n) for n in range(40)]
    rounds = [[draws.step(many)[1] for _ in range(80)] for _ in range(2)]
    assert all(sorted(filter(None, one)) == sorted(many) for one in rounds)
    assert rounds[0] != rounds[1]
    assert not any(Draws(3).step([])[1] for _ in range(3))
