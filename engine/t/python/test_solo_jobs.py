# SPDX-License-Identifier: LGPL-3.0-only
"""The job services by their RPCs, where something goes wrong."""

import errno
import time

import flux.job
import pytest
import solo_support
from flux.constants import FLUX_REACTOR_NOWAIT, FLUX_RPC_STREAMING
from flux.job import JobspecV1
from solo_support import Instance

pytestmark = pytest.mark.skipif(
    not solo_support.available() or not solo_support.is_solo(), reason="needs solo"
)


def submit(handle, duration="0.01s", **kwargs):
    spec = JobspecV1.from_command(["true"])
    spec.setattr("system.exec.test.run_duration", duration)
    return flux.job.submit(handle, spec, **kwargs)


@pytest.fixture(scope="module", name="instance")
def fixture_instance():
    with Instance() as instance:
        yield instance
        assert instance.close() == 0


@pytest.fixture(name="handle")
def fixture_handle(instance):
    return instance.open()


def test_every_rejected_job_is_named(handle):
    """Error text is cut to fit, not within a character."""
    jobs = [
        {
            "id": n,
            "userid": 1,
            "urgency": 16,
            "t_submit": time.time(),
            "flags": 0,
            "jobspec": {"attributes": {"system": {"queue": n * "x" + 200 * "é"}}},
        }
        for n in (1, 2)
    ]
    errors = handle.rpc("job-manager.submit", {"jobs": jobs}).get()["errors"]
    assert [jobid for jobid, text in errors] == [1, 2]
    assert all("éé" in text for _, text in errors)


@pytest.mark.parametrize(
    "change", ({"J": 1}, {"flags": "x"}, {"urgency": None}, {"urgency": 99}, {"J": "x"})
)
def test_malformed_submissions_are_refused(handle, change):
    request = {"J": "", "urgency": 16, "flags": 0, **change}
    with pytest.raises(OSError):
        handle.rpc("job-ingest.submit", request).get()
    assert submit(handle)


@pytest.mark.parametrize(
    "text", ("NaN", "1e999", '"\\ud800"', f"1{200 * '0'}", f"{3000 * '['}{3000 * ']'}")
)
def test_a_jobspec_that_no_c_program_reads_fails_alone(handle, text):
    """Jobspecs submitted at the same time become jobs."""
    spec = JobspecV1.from_command(["true"])
    spec.setattr("user.faulty", "HERE")
    specs = [spec.dumps().replace('"HERE"', value) for value in ("1", text, "2")]
    first, faulty, last = [flux.job.submit_async(handle, spec) for spec in specs]
    assert flux.job.submit_get_id(first)
    assert flux.job.submit_get_id(last)
    with pytest.raises(OSError):
        flux.job.submit_get_id(faulty)


def test_nothing_is_promised_without_the_kvs():
    """Requests that wait for a commit fail when the commit does."""
    with Instance() as instance:
        h = instance.open()
        held = submit(h, urgency=0)
        drain = h.rpc("job-manager.drain")
        h.rpc("job-manager.getinfo").get()
        solo_support.remove_module(h, "kvs")
        flux.job.cancel(h, held)
        with pytest.raises(OSError) as exc:
            drain.get()
        assert exc.value.errno == errno.ENOSYS


def test_free_between_hello_and_ready():
    """A scheduler that is starting hears of resources that come back."""
    with Instance() as instance:
        h = instance.open()
        job = submit(h, duration="1h")
        flux.job.event_wait(h, job, "start")
        solo_support.remove_module(h, "sched-rabbit")
        h.service_register("sched").get()
        freed = []
        watcher = h.msg_watcher_create(
            lambda h, w, msg, arg: freed.append(msg.payload["id"]),
            topic_glob="sched.free",
        )
        watcher.start()
        hello = h.rpc("job-manager.sched-hello", flags=FLUX_RPC_STREAMING)
        assert hello.get()["id"] == job
        flux.job.cancel(h, job)
        flux.job.event_wait(h, job, "clean", raiseJobException=False)
        h.reactor_run(flags=FLUX_REACTOR_NOWAIT)
        watcher.stop()
        assert freed == [job]
