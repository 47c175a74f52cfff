# The PBS hook against a stand-in ATOM: each thing that its specification says.
# SPDX-License-Identifier: LGPL-3.0-only
import ast
import getpass
import json
import os
import socket

import pytest
from atom_support import HOOK, SRC, atom, fake_pbs, load, run_hook

client = load(HOOK, "atom_client")
USER = getpass.getuser()


@pytest.fixture
def sock(tmp_path):
    return tmp_path / "atomd.sock"


@pytest.fixture
def config(tmp_path, sock):
    def write(**keys):
        path = tmp_path / "hook.CF"
        path.write_text(json.dumps({"unix_socket_file": str(sock), **keys}))
        return str(path)

    return write


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.delenv("PBS_HOOK_CONFIG_FILE", raising=False)


def log_of(pbs):
    return "\n".join(text for _, text in pbs.log)


def test_begin_posts_job_user_and_exclusive(sock, config):
    pbs = fake_pbs("begin", USER, config=config())
    with atom(sock) as server:
        assert run_hook(pbs) == "accept"
    body = {"jobid": "12.server", "uid": os.getuid(), "exclusive": False}
    assert server.requests == [{"method": "POST", "path": "/rm/v1/jobs", "body": body}]


def test_end_deletes_the_job(sock, config):
    pbs = fake_pbs("end", USER, config=config())
    with atom(sock) as server:
        assert run_hook(pbs) == "accept"
    assert server.requests == [
        {"method": "DELETE", "path": "/rm/v1/jobs/12.server", "body": None}
    ]


def test_begin_is_repeated_after_400(sock, config):
    answers = [{"status": 400}, {"status": 400}, {"status": 200}]
    pbs = fake_pbs("begin", USER, config=config())
    with atom(sock, answers) as server:
        assert run_hook(pbs) == "accept"
    assert len(server.requests) == 3


def test_400_for_ever_ends_with_the_alarm(sock):
    class Alarm(BaseException):
        pass

    pauses = []

    def sleep(seconds):
        pauses.append(seconds)
        if len(pauses) == 7:
            raise Alarm

    conf = client.check_config({"unix_socket_file": str(sock)}, "test")
    with atom(sock, [{"status": 400}]) as server, pytest.raises(Alarm):
        client.Atom(conf, lambda text: None, sleep).begin("1", 2, False)
    assert pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0]
    assert len(server.requests) == 7


@pytest.mark.parametrize("status", [201, 204, 302, 401, 404, 409, 500, 503])
def test_begin_with_any_other_answer_offlines(sock, config, status):
    answer = {"status": status, "body": {"reason": "no", "code": 7}}
    pbs = fake_pbs("begin", USER, config=config())
    with atom(sock, [answer]) as server:
        ended = run_hook(pbs)
    assert isinstance(ended, Exception) and str(status) in str(ended)
    assert len(server.requests) == 1
    assert f"answered {status}" in log_of(pbs)
    if status != 204:  # which has no body
        assert 'reason: "no"' in log_of(pbs) and "code: 7" in log_of(pbs)


@pytest.mark.parametrize("status", [200, 400, 404, 500])
def test_end_with_any_other_answer_only_rejects(sock, config, status):
    pbs = fake_pbs("end", USER, config=config())
    with atom(sock, [{"status": status}]) as server:
        assert run_hook(pbs).startswith("reject: ")
    assert len(server.requests) == 1


def test_begin_timeout_offlines_end_timeout_rejects(sock, config):
    path = config(post_timeout=0.05, delete_timeout=0.05)
    with atom(sock, [{"delay_s": 30}]):
        ended = run_hook(fake_pbs("begin", USER, config=path))
        assert isinstance(ended, Exception) and "no answer in 0.05 s" in str(ended)
        ended = run_hook(fake_pbs("end", USER, config=path))
        assert ended.startswith("reject: ") and "no answer" in ended


def test_a_clock_that_is_set_is_no_timeout(sock, config, monkeypatch):
    """Nodes set theirs when they have just come up."""
    clock = iter(range(0, 1 << 40, 3600))
    monkeypatch.setattr(client.time, "time", lambda: float(next(clock)))
    with atom(sock, [{"status": 200, "body": {"ok": True}}]):
        assert run_hook(fake_pbs("begin", USER, config=config())) == "accept"


def prepare_missing(path):
    pass


def prepare_not_a_socket(path):
    path.write_text("")


def prepare_dead_socket(path):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(path))


@pytest.mark.parametrize(
    "prepare", [prepare_missing, prepare_not_a_socket, prepare_dead_socket]
)
def test_nobody_on_the_socket(sock, config, prepare):
    prepare(sock)
    ended = run_hook(fake_pbs("begin", USER, config=config()))
    assert isinstance(ended, Exception) and "atomd.sock" in str(ended)
    assert run_hook(fake_pbs("end", USER, config=config())).startswith("reject: ")


@pytest.mark.skipif(os.getuid() == 0, reason="root may open every socket")
def test_permission_denied_on_the_socket(sock, config):
    with atom(sock):
        sock.chmod(0)
        ended = run_hook(fake_pbs("begin", USER, config=config()))
    assert isinstance(ended, Exception) and "Permission denied" in str(ended)


def test_connection_closed_without_an_answer(sock, config):
    with atom(sock, [{"status": 0}]):
        ended = run_hook(fake_pbs("begin", USER, config=config()))
    assert isinstance(ended, Exception)


@pytest.mark.parametrize(
    "answer,logged",
    [({"raw": "<html>{"}, "<html>"), ({"raw": "[1, 2]"}, "[1, 2]"), ({}, "200")],
)
def test_a_broken_body_does_not_matter(sock, config, answer, logged):
    pbs = fake_pbs("begin", USER, config=config())
    with atom(sock, [{"status": 200, **answer}]):
        assert run_hook(pbs) == "accept"
    assert logged in log_of(pbs)


def test_a_huge_body_is_not_read_whole(sock, config):
    pbs = fake_pbs("begin", USER, config=config())
    with atom(sock, [{"status": 200, "size": 50_000_000}]):
        assert run_hook(pbs) == "accept"
    assert len(log_of(pbs)) < 4096


def open_to(path):
    """How many sockets of this process are connected to a socket's path."""
    count = 0
    for fd in os.listdir("/proc/self/fd"):
        try:
            with socket.socket(fileno=os.dup(int(fd))) as sock:
                count += sock.getpeername() == str(path)
        except OSError:
            pass
    return count


def test_nothing_is_left_open(sock, config):
    with atom(sock, [{"status": 500}]):
        with socket.socket(socket.AF_UNIX) as seen:
            seen.connect(str(sock))
            assert open_to(sock) == 1
        run_hook(fake_pbs("begin", USER, config=config()))
        run_hook(fake_pbs("end", USER, config=config()))
        assert open_to(sock) == 0


def test_a_user_without_an_account_offlines(sock, config):
    with atom(sock) as server:
        ended = run_hook(fake_pbs("begin", "no-such-user-here", config=config()))
    assert isinstance(ended, Exception) and "no-such-user-here" in str(ended)
    assert server.requests == []


@pytest.mark.parametrize(
    "text,word",
    [
        ('{"post_timout": 3}', "post_timout"),
        ('{"version_uri": "/rm/v2"}', "version_uri"),
        ('{"post_timeout": "ten"}', "post_timeout"),
        ('{"delete_timeout": 0}', "delete_timeout"),
        ('{"delete_timeout": true}', "delete_timeout"),
        ('{"unix_socket_file": "atomd.sock"}', "unix_socket_file"),
        ("[]", "table"),
        ("{", "hook.CF"),
    ],
)
@pytest.mark.parametrize("kind", ["begin", "end"])
def test_bad_configuration_is_refused_by_name(tmp_path, text, word, kind):
    path = tmp_path / "hook.CF"
    path.write_text(text)
    ended = run_hook(fake_pbs(kind, USER, config=str(path)))
    assert ended.startswith("reject: ") and word in ended


def test_a_missing_module_is_a_message_and_a_reject(config, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "requests_unixsocket", None)
    pbs = fake_pbs("begin", USER, config=config())
    ended = run_hook(pbs)
    assert ended.startswith("reject: ") and "requests-unixsocket" in ended
    assert "requests-unixsocket" in log_of(pbs)


def test_the_socket_path_is_percent_encoded():
    conf = client.check_config({"unix_socket_file": "/run/a b/s%.sock"}, "test")
    assert (
        client.Atom(conf, print).url("jobs", "1[2].x/y")
        == "http+unix://%2Frun%2Fa%20b%2Fs%25.sock/rm/v1/jobs/1%5B2%5D.x%2Fy"
    )


# Rows: sharing of the vnode; columns: place= unset, shared, excl, exclhost.
# T where the documentation of `sharing` says that the job has the vnode alone.
RULE = {
    "unset": "FFTT",
    "default_shared": "FFTT",
    "default_excl": "TFTT",
    "default_exclhost": "TFTT",
    "ignore_excl": "FFFF",
    "force_excl": "TTTT",
    "force_exclhost": "TTTT",
}
PLACES = ["scatter", "free:shared", "excl", "pack:exclhost:group=host"]


@pytest.mark.parametrize("sharing", RULE)
@pytest.mark.parametrize("column", range(4))
def test_exclusive_is_the_schedulers_rule(sock, config, sharing, column):
    pbs = fake_pbs(
        "begin", USER, place=PLACES[column], sharing=[sharing], config=config()
    )
    with atom(sock) as server:
        assert run_hook(pbs) == "accept"
    assert server.requests[0]["body"]["exclusive"] is (RULE[sharing][column] == "T")


def test_one_shared_vnode_makes_the_node_shared(sock, config):
    pbs = fake_pbs(
        "begin", USER, sharing=["force_excl", "ignore_excl"], config=config()
    )
    with atom(sock) as server:
        assert run_hook(pbs) == "accept"
    assert server.requests[0]["body"]["exclusive"] is False


def test_the_attributes_are_the_specified_ones():
    lines = (SRC / "pbs" / "PBS_cray_atom.HK").read_text().splitlines()
    assert lines == [
        "type=pbs",
        "enabled=false",
        "user=pbsadmin",
        "event=execjob_begin,execjob_end",
        "order=100",
        "alarm=300",
        "fail_action=offline_vnodes",
    ]


def test_the_shipped_configuration_is_the_default():
    given = client.read_config(str(SRC / "pbs" / "PBS_cray_atom.CF"))
    assert given == client.DEFAULTS


def test_the_hook_is_python_3_6():
    ast.parse(HOOK.read_text(), feature_version=(3, 6))
