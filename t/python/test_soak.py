# What a seed of scripts/soak stands for.
# SPDX-License-Identifier: LGPL-3.0-only
"""The same seed draws the same, whatever happens meanwhile."""

import pathlib
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "scripts" / "lib"))

from soak.draws import Draws  # noqa: E402 # it is a program, not a package
from soak.jobs import DESTROY, KINDS, Job, verdict  # noqa: E402

FAULTS = [f"fault {n}" for n in range(20)]


def steps(draws, used):
    """So many steps, each of which uses as many numbers more."""
    found = []
    for count in used:
        found.append((*draws.step(FAULTS), draws.rng.random()))
        for _ in range(count):
            draws.rng.random()
    return found


def jobs(draws, count):
    return [
        (kind.name, spec.dumps()) for kind, spec in (draws.job() for _ in range(count))
    ]


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
    assert some.job(DESTROY)[0] is DESTROY
    others.job()
    assert jobs(some, 5) == jobs(others, 5)


def ended(**what):
    """The verdict on a job that should complete, and has failed with this note."""
    note = what.pop("note")
    record = {"state": "INACTIVE", "result": "FAILED", "returncode": 1, "note": note}
    return verdict(Job(1, KINDS[0], **what), record)


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
