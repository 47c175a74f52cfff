# SPDX-License-Identifier: LGPL-3.0-only
#
# The frobnicator plugin by itself, for engines that have no frobnicator.
"""Tests of flux.job.frobnicator.plugins.rabbit."""

import pytest
from flux.job import JobspecV1
from flux.job.frobnicator.plugins.rabbit import Frobnicator

BATCH = {"properties": ["batch"]}


def frob(config=None, **system):
    jobspec = JobspecV1.from_command(["true"])
    for key, value in system.items():
        jobspec.setattr(f"system.{key}", value)
    plugin = Frobnicator(None)
    plugin.configure(None, config or {})
    plugin.frob(jobspec, 0, 16, 0)
    return jobspec.attributes["system"].get("constraints")


def test_rabbits_are_another_choice():
    result = frob(dw="#DW", allow_rabbits=True, constraints=BATCH)
    assert result == {"or": [BATCH, {"properties": ["rabbit"]}]}


@pytest.mark.parametrize(
    "system",
    [{"dw": "#DW"}, {"dw": "#DW", "allow_rabbits": False}, {"allow_rabbits": True}],
)
def test_others_are_left_alone(system):
    assert frob(constraints=BATCH, **system) == BATCH


def test_without_queues_a_job_may_run_anywhere():
    assert frob(dw="#DW", allow_rabbits=True) is None


def test_with_queues_the_order_of_plugins_matters():
    with pytest.raises(ValueError, match="before 'rabbit'"):
        frob({"queues": {"batch": {}}}, dw="#DW", allow_rabbits=True)
