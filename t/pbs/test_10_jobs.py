# Jobs of each kind: the hook notifies ATOM of each begin and of its end.
# SPDX-License-Identifier: LGPL-3.0-only
from pbs_cluster import BIN, HOSTS, OTHER, SERVER, USER_ID, on_host, wait

PAIR = ["POST", "DELETE"]


def test_two_hosts_are_told_the_same(cluster):
    job = cluster.submit("-l select=2:ncpus=1 -l place=scatter", "true")
    for host in HOSTS:
        cluster.wait_told(host, job, PAIR)
        assert cluster.told(host, job)[0] == {
            "jobid": job,
            "uid": USER_ID,
            "exclusive": False,
        }


def test_each_job_of_an_array(cluster):
    array = cluster.submit(f"-J 1-3 {on_host(OTHER)}", "true")
    for index in (1, 2, 3):
        cluster.wait_told(OTHER, array.replace("[]", f"[{index}]"), PAIR)


def test_a_job_that_is_deleted(cluster):
    job = cluster.submit(on_host(OTHER))
    cluster.started(job)
    cluster.on(SERVER, f"{BIN}/qdel", job)
    cluster.wait_told(OTHER, job, PAIR)


def test_a_job_that_is_deleted_by_force(cluster):
    job = cluster.submit(on_host(OTHER))
    cluster.started(job)
    cluster.on(SERVER, f"{BIN}/qdel", "-W", "force", job)
    cluster.wait_told(OTHER, job, PAIR)


def test_a_job_that_is_run_again(cluster):
    job = cluster.submit(on_host(OTHER))
    cluster.started(job)
    cluster.on(SERVER, f"{BIN}/qrerun", job)
    wait("the first run's end", lambda: cluster.methods(OTHER, job)[:2] == PAIR)
    cluster.release(job)
    cluster.schedule()
    cluster.release(job)
    cluster.wait_told(OTHER, job, PAIR * 2)


def test_lines_in_the_log_carry_the_job(cluster):
    """The mom's log has ATOM's answers at the default level."""
    answer = {"status": 200, "body": {"node": "ready", "took": 3}}
    cluster.answer(OTHER, {"method": "POST", **answer})
    job = cluster.submit(on_host(OTHER), "true")
    cluster.wait_told(OTHER, job, PAIR)
    wait("the end's line", lambda: len(cluster.said(OTHER, job)) == 4)
    assert cluster.said(OTHER, job) == [
        "POST: ATOM answered 200",
        'node: "ready"',
        "took: 3",
        "DELETE: ATOM answered 204",
    ]


def test_a_begin_that_fails_on_the_second_host_ends_it_on_the_first(cluster):
    cluster.answer(OTHER, {"method": "POST", "status": 500})
    job = cluster.submit(f"-l select=1:host={SERVER}+1:host={OTHER} -l place=scatter")
    cluster.wait_offline(OTHER, job)
    for host in HOSTS:
        cluster.wait_told(host, job, PAIR)
    assert cluster.nodes()[SERVER]["state"] == "free"


def test_a_mom_that_is_restarted_and_keeps_its_job(cluster):
    job = cluster.submit(on_host(OTHER))
    cluster.started(job)
    cluster.restart_mom(OTHER, "-p", signal="KILL")
    assert cluster.methods(OTHER, job) == ["POST"]
    cluster.release(job)
    cluster.wait_told(OTHER, job, PAIR)
