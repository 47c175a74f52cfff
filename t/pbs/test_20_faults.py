# A fault of a node takes that node offline, a fault of a job holds that job. No node
# stays online that rejects job after job.
# SPDX-License-Identifier: LGPL-3.0-only
import pytest
from pbs_cluster import BIN, OTHER, SERVER, USER, on_host, wait


def begin_fails(cluster, methods):
    """A job for the second host: its begin fails once, the node is taken out.
    Returns the job."""
    job = cluster.submit(on_host(OTHER), "true")
    cluster.wait_offline(OTHER, job)
    cluster.wait_told(OTHER, job, methods)
    return job


def get_out(cluster, job):
    """Bring the node online as in the guide. The job then runs by itself."""
    cluster.on(SERVER, f"{BIN}/pbsnodes", "-r", OTHER)
    cluster.schedule()
    cluster.wait_job(job, "F", Exit_status=0)


@pytest.mark.parametrize("status", [201, 500])
def test_another_answer(cluster, status):
    cluster.answer(OTHER, {"method": "POST", "status": status, "body": {"why": "no"}})
    job = begin_fails(cluster, ["POST", "DELETE"])
    assert cluster.said(OTHER, job)[:2] == [
        f"POST: ATOM answered {status}",
        'why: "no"',
    ]
    cluster.answer(OTHER)
    get_out(cluster, job)
    cluster.wait_told(OTHER, job, ["POST", "DELETE"] * 2)


def test_400_for_a_while(cluster):
    cluster.answer(OTHER, {"method": "POST", "status": 400, "times": 2})
    job = cluster.submit(on_host(OTHER), "true")
    cluster.wait_told(OTHER, job, ["POST", "DELETE"] + ["POST"] * 2 + ["DELETE"])
    cluster.wait_job(job, "F", Exit_status=0)


def test_400_for_ever(cluster):
    """The hook gives up long before its alarm, which would kill it without a report."""
    cluster.answer(OTHER, {"method": "POST", "status": 400})
    job = begin_fails(cluster, ["POST", "DELETE"] + ["POST"] * 6 + ["DELETE"])
    assert any("400 to the begin" in line for line in cluster.said(OTHER, job))


@pytest.mark.parametrize(
    "answer",
    [{"delay_s": 3600}, {"drip_s": 0.2}, {"drip_s": 0.2, "body": {"x": "y" * 900}}],
    ids=["none", "header drips", "body drips"],
)
def test_no_whole_answer_within_the_timeout(cluster, configure, answer):
    configure(post_timeout=1.5)
    cluster.answer(OTHER, {"method": "POST", **answer})
    job = begin_fails(cluster, ["POST", "DELETE"])
    assert any("no answer in 1.5 s" in line for line in cluster.said(OTHER, job))


def test_an_end_that_drips(cluster, configure):
    """The job ends, and the node stays."""
    configure(delete_timeout=1.5)
    cluster.answer(OTHER, {"method": "DELETE", "drip_s": 0.2})
    job = cluster.submit(on_host(OTHER), "true")
    cluster.wait_job(job, "F", Exit_status=0)
    wait(
        "the timeout in the log",
        lambda: any("no answer in 1.5 s" in line for line in cluster.said(OTHER, job)),
    )
    cluster.wait_free()


def test_atom_is_down(cluster, configure):
    configure(unix_socket_file="/run/atomd/nobody.sock")
    job = begin_fails(cluster, [])
    assert any("nobody.sock" in line for line in cluster.said(OTHER, job))
    configure()
    get_out(cluster, job)


@pytest.mark.parametrize(
    "text,word",
    [("{", "cray_atom.CF"), ('{"post_timout": 3}', "post_timout")],
    ids=["no JSON", "unknown key"],
)
def test_a_configuration_that_cannot_be_used(cluster, configure, text, word):
    configure(text)
    job = begin_fails(cluster, [])
    assert any(word in line for line in cluster.said(OTHER, job))
    configure()
    get_out(cluster, job)


def test_a_python_that_lacks_a_module(cluster, tmp_path):
    with cluster.over(OTHER, "/usr/lib/python3.11/http", tmp_path):
        job = begin_fails(cluster, [])
        assert "No module named 'http.client'" in cluster.mom_log(OTHER)
    get_out(cluster, job)


def test_packages_that_are_not_pythons_own_are_not_needed(cluster, tmp_path):
    with cluster.over(OTHER, "/usr/lib/python3/dist-packages", tmp_path):
        job = cluster.submit(on_host(OTHER), "true")
        cluster.wait_told(OTHER, job, ["POST", "DELETE"])


def test_a_begin_that_the_alarm_ends(cluster):
    """With the times of the guide the hook gives up before: PBS kills it, so that it
    cannot send the DELETE."""
    cluster.answer(OTHER, {"method": "POST", "delay_s": 3600})
    with cluster.alarm(4):
        job = cluster.submit(on_host(OTHER), "true")
        cluster.wait_offline(OTHER, job)
        assert cluster.methods(OTHER, job) == ["POST"]
    cluster.answer(OTHER)
    get_out(cluster, job)
    cluster.wait_told(OTHER, job, ["POST", "POST", "DELETE"])


@pytest.mark.parametrize("sister", [False, True], ids=["first host", "sister"])
def test_a_user_without_an_account(cluster, tmp_path, sister):
    """The job is held after one attempt, the node stays."""
    with open("/etc/passwd") as stream:
        others = [line for line in stream if not line.startswith(USER + ":")]
    passwd = tmp_path / "passwd"
    passwd.write_text("".join(others))
    passwd.chmod(0o644)
    first = f"1:host={SERVER}+" if sister else ""
    options = f"-l select={first}1:host={OTHER} -l place=scatter"
    with cluster.over(OTHER, "/etc/passwd", passwd):
        job = cluster.submit(options, "true")
        cluster.wait_job(job, "H", Hold_Types="s", run_count=1)
    assert cluster.told(OTHER, job) == []
    assert cluster.said(OTHER, job) == [
        f"user {USER} has no account on this node; the job is held"
    ]
    cluster.wait_free()
    cluster.on(SERVER, f"{BIN}/qrls", "-h", "s", job)
    cluster.wait_job(job, "F", Exit_status=0)


@pytest.mark.parametrize("kill", [False, True], ids=["silent", "dead"])
@pytest.mark.parametrize("place", ["excl", "shared"])
def test_a_server_that_cannot_be_asked(cluster, kill, place):
    """The job's own request decides, and the hook does not block mom for long."""
    with cluster.server_away(OTHER, kill) as away:
        job = cluster.submit(f"{on_host(OTHER)} -l place={place}", "true")
        away()
        wait("a POST", lambda: cluster.told(OTHER, job), 60)
    cluster.wait_told(OTHER, job, ["POST", "DELETE"])
    assert cluster.told(OTHER, job)[0]["exclusive"] is (place == "excl")
    assert any("going by place=" in line for line in cluster.said(OTHER, job))
