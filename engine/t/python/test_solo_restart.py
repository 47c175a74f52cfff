# SPDX-License-Identifier: LGPL-3.0-only
"""Kill an instance under load and start it again from its state directory."""

import json
import random

import flux
import flux.job
import pytest
import solo_support
from flux.job import JobspecV1
from solo_support import Instance

pytestmark = pytest.mark.skipif(
    not solo_support.available() or not solo_support.is_solo(), reason="needs solo"
)


def jobspec(duration="0.01s"):
    spec = JobspecV1.from_command(["true"], num_tasks=1)
    spec.setattr("system.exec.test.run_duration", duration)
    spec.cwd = "/"
    return spec


def eventlog(handle, jobid):
    payload = {"id": jobid, "keys": ["eventlog"], "flags": 0}
    text = handle.rpc("job-info.lookup", payload).get()["eventlog"]
    assert text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("seed", range(5))
def test_jobs_survive(tmp_path, seed):
    """No job that was acknowledged is lost, none runs out of its order."""
    rng = random.Random(seed)
    options = [f"--statedir={tmp_path}"]
    ids = []
    for _ in range(3):
        instance = Instance(*options, size=2)
        h = instance.open()
        futures = [flux.job.submit_async(h, jobspec()) for _ in range(30)]
        for future in futures[: rng.randrange(1, 30)]:
            ids.append(future.get_id())
        instance.kill()
    instance = Instance(*options, size=2)
    h = instance.open()
    for jobid in ids:
        flux.job.event_wait(h, jobid, "clean")
        names = [event["name"] for event in eventlog(h, jobid)]
        assert names[0] == "submit"
        assert names[-1] == "clean"
        assert names.count("clean") == 1
        assert names.count("alloc") <= 1 or "exception" in names
    del h
    assert instance.close() == 0
