# The PBS hook with a stand-in ATOM: each requirement of ATOM's specification.
# SPDX-License-Identifier: LGPL-3.0-only
import ast
import errno
import getpass
import json
import os
import pwd
import socket
import sys
import time

import pytest
from atom_support import HOOK, SRC, atom, dripping, fake_pbs, load, log_of, run_hook

client = load(HOOK, "atom_client")
pytestmark = pytest.mark.usefixtures("no_hook_config")
USER = getpass.getuser()


def methods(server):
    return [request["method"] for request in server.requests]


def test_begin_posts_job_user_and_exclusive(sock, config):
    other = next(user for user in pwd.getpwall() if user.pw_uid != os.getuid())
    pbs = fake_pbs("begin", other.pw_name, config=config())
    with atom(sock) as server:
        assert run_hook(pbs) == "accept"
    body = {"jobid": "12.server", "uid": other.pw_uid, "exclusive": False}
    assert server.requests == [{"method": "POST", "path": "/rm/v1/jobs", "body": body}]


def test_end_deletes_the_job(sock, config):
    pbs = fake_pbs("end", USER, config=config())
    with atom(sock) as server:
        assert run_hook(pbs) == "accept"
    assert server.requests == [
        {"method": "DELETE", "path": "/rm/v1/jobs/12.server", "body": None}
    ]


def test_begin_is_repeated_after_400(sock, config):
    answers = [{"method": "POST", "status": status} for status in (400, 400, 200)]
    pbs = fake_pbs("begin", USER, config=config())
    with atom(sock, answers, jobs=set()) as server:
        assert run_hook(pbs) == "accept"
    # one end is enough: ATOM said that it does not have the job
    assert methods(server) == ["POST", "DELETE", "POST", "POST"]


def test_a_job_that_is_known_from_an_earlier_run_begins(sock, config):
    """Its end was told, too late or in vain; ATOM knows the id."""
    pbs = fake_pbs("begin", USER, config=config())
    with atom(sock, jobs={"12.server", "13.server"}) as server:
        assert run_hook(pbs) == "accept"
    assert methods(server) == ["POST", "DELETE", "POST"]
    assert server.requests[0] == server.requests[2]
    assert server.requests[1]["path"] == "/rm/v1/jobs/12.server"
    assert server.jobs == {"12.server", "13.server"}
    assert "it may know 12.server" in log_of(pbs)


def test_a_job_whose_begin_was_not_answered_in_time_begins_later(sock, config):
    """ATOM has the job from then on; also the end that follows is not heard."""
    path = config(post_timeout=0.05, delete_timeout=0.05)
    answers = [{"delay_s": 30}, {"status": 500, "delay_s": 30}, {}]
    with atom(sock, answers, jobs=set()) as server:
        assert "no answer" in str(run_hook(fake_pbs("begin", USER, config=path)))
        assert server.jobs == {"12.server"}
        pbs = fake_pbs("begin", USER, config=config())
        assert run_hook(pbs) == "accept"
        assert server.jobs == {"12.server"}
    assert methods(server) == ["POST", "DELETE"] + ["POST", "DELETE", "POST"]


def test_an_end_that_fails_is_told_again_with_the_next_begin(sock, config):
    answers = [{"method": "DELETE", "status": 500}, {"method": "DELETE"}]
    pbs = fake_pbs("begin", USER, config=config())
    with atom(sock, answers, jobs={"12.server"}) as server:
        assert run_hook(pbs) == "accept"
    assert methods(server) == ["POST", "DELETE"] * 2 + ["POST"]


def test_an_end_without_an_answer_does_not_use_up_the_alarm(sock):
    """In between, it has no more time than there is for the begin."""
    conf = client.check_config(
        {"unix_socket_file": str(sock), "delete_timeout": 3600}, "test"
    )
    answers = [{"method": "POST", "status": 400}, {"method": "DELETE", "delay_s": 600}]
    with atom(sock, answers) as server:
        began = time.monotonic()
        with pytest.raises(client.AtomError, match="400 to the begin of 1 1 times"):
            client.Atom(conf, lambda text: None, 2).begin("1", 2, False)
        assert time.monotonic() - began < 2
    # and there is time left for the one that is told when all was in vain
    assert methods(server) == ["POST", "DELETE", "DELETE"]


class Clock:
    """A clock for the retries, which advances only while the client sleeps."""

    def __init__(self, monkeypatch):
        self.now = 1000.0
        self.pauses = []
        monkeypatch.setattr(client.time, "monotonic", lambda: self.now)

    def sleep(self, seconds):
        self.pauses.append(seconds)
        self.now += seconds


def test_400_for_ever_ends_long_before_the_alarm(sock, monkeypatch):
    clock = Clock(monkeypatch)
    conf = client.check_config({"unix_socket_file": str(sock)}, "test")
    answers = [{"method": "POST", "status": 400}]
    with atom(sock, answers) as server, pytest.raises(client.AtomError, match="400"):
        client.Atom(conf, lambda text: None, sleep=clock.sleep).begin("1", 2, False)
    assert clock.pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0]
    assert methods(server) == ["POST", "DELETE"] + ["POST"] * 6 + ["DELETE"]


def test_a_short_alarm_ends_it_sooner(sock, monkeypatch):
    clock = Clock(monkeypatch)
    conf = client.check_config({"unix_socket_file": str(sock)}, "test")
    answers = [{"method": "POST", "status": 400}]
    with atom(sock, answers) as server, pytest.raises(client.AtomError, match="400"):
        told = client.Atom(conf, lambda text: None, 5, clock.sleep)
        told.begin("1", 2, False)
    assert clock.pauses == [0.5, 1.0, 2.0]
    assert methods(server)[-1] == "DELETE"


def test_no_timeout_is_longer_than_the_alarm(sock):
    """A hook killed by PBS' alarm could send ATOM nothing more."""
    conf = client.check_config(
        {
            "unix_socket_file": str(sock),
            "post_timeout": 3600,
            "delete_timeout": 3600,
        },
        "test",
    )
    with atom(sock, [{"delay_s": 600}]) as server:
        began = time.monotonic()
        with pytest.raises(client.AtomError, match="no answer in"):
            client.Atom(conf, lambda text: None, 2).begin("1", 2, False)
        assert time.monotonic() - began < 2
    assert methods(server) == ["POST", "DELETE"]


@pytest.mark.parametrize("status", [201, 204, 302, 401, 404, 409, 500, 503])
def test_begin_with_any_other_answer_offlines(sock, config, status):
    answer = {"status": status, "body": {"reason": "no", "code": 7}}
    pbs = fake_pbs("begin", USER, config=config())
    with atom(sock, [answer]) as server:
        ended = run_hook(pbs)
    assert isinstance(ended, Exception) and str(status) in str(ended)
    # PBS queues a job again that is not held
    assert pbs.event().job.Hold_Types is None
    # no end will come for a begin that failed
    assert methods(server) == ["POST", "DELETE"]
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
    path = config(post_timeout=0.05, delete_timeout=0.07)
    with atom(sock, [{"delay_s": 30}]) as server:
        ended = run_hook(fake_pbs("begin", USER, config=path))
        assert isinstance(ended, Exception) and "no answer in 0.05 s" in str(ended)
        assert methods(server) == ["POST", "DELETE"]
        ended = run_hook(fake_pbs("end", USER, config=path))
        assert ended.startswith("reject: ") and "no answer in 0.07 s" in ended


DRIPS = {
    "status line": b"HTTP/1.1 200 OK",
    "header": b"HTTP/1.1 200 OK\r\nX-Node: " + b"x" * 500,
    "more headers": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 90,
    "continue": b"HTTP/1.1 100 Continue\r\n\r\n" * 90,
    "body": b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n" + b" " * 800,
    "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    + b"1\r\nx\r\n" * 99,
}


@pytest.mark.parametrize("what", DRIPS)
@pytest.mark.parametrize("kind", ["begin", "end"])
def test_a_timeout_is_for_the_whole_exchange(sock, config, kind, what):
    """A byte now and then does not make it longer."""
    path = config(post_timeout=0.3, delete_timeout=0.3)
    pbs = fake_pbs(kind, USER, config=path)
    with dripping(sock, DRIPS[what]):
        began = time.monotonic()
        ended = run_hook(pbs)
        assert time.monotonic() - began < 5
    assert "no answer in 0.3 s" in str(ended)
    assert isinstance(ended, Exception) == (kind == "begin")


def test_an_end_that_the_alarm_interrupts_is_rejected(sock, config, monkeypatch):
    """PBS raises KeyboardInterrupt in the hook."""
    pbs = fake_pbs("end", USER, config=config())

    def interrupted(job, text):
        pbs.log.append((job, text))
        if "answered" in text:
            raise KeyboardInterrupt

    pbs.logjobmsg = interrupted
    with atom(sock):
        assert run_hook(pbs).startswith("reject: ")
    assert "KeyboardInterrupt" in log_of(pbs)


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
    ("prepare", "error"),
    [
        (prepare_missing, errno.ENOENT),
        (prepare_not_a_socket, errno.ECONNREFUSED),
        (prepare_dead_socket, errno.ECONNREFUSED),
    ],
)
def test_nobody_on_the_socket(sock, config, prepare, error):
    prepare(sock)
    pbs = fake_pbs("begin", USER, config=config())
    ended = run_hook(pbs)
    assert isinstance(ended, Exception) and "atomd.sock" in str(ended)
    assert os.strerror(error) in str(ended)
    # Nobody has heard of the job, so nobody is told of its end.
    assert [text for _, text in pbs.log if "may have" in text] == []
    assert run_hook(fake_pbs("end", USER, config=config())).startswith("reject: ")


@pytest.mark.skipif(os.getuid() == 0, reason="root may open every socket")
def test_permission_denied_on_the_socket(sock, config):
    with atom(sock):
        sock.chmod(0)
        ended = run_hook(fake_pbs("begin", USER, config=config()))
    assert isinstance(ended, Exception) and "Permission denied" in str(ended)


def test_connection_closed_without_an_answer(sock, config):
    with atom(sock, [{"status": 0}, {"status": 204}]) as server:
        ended = run_hook(fake_pbs("begin", USER, config=config()))
    assert isinstance(ended, Exception)
    assert methods(server) == ["POST", "DELETE"]


def test_what_is_not_http_is_an_answer_too(sock, config):
    with dripping(sock, b"* OK IMAP\r\n\r\n", pause_s=0):
        ended = run_hook(fake_pbs("begin", USER, config=config()))
    assert isinstance(ended, Exception) and "POST /rm/v1/jobs" in str(ended)


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


DEEP = '{"a":' * 10_000 + "1" + "}" * 10_000
UNSHOWABLE = {
    "brackets": ("[" * 60_000, "cannot be shown"),
    "deep": (DEEP, "cannot be shown"),
    "surrogate": ('{"\\ud800": 1}', "\\ud800: 1"),
    "newline": ('{"a\\n11/26/2026;0008;pbs_mom;Job;1.s;forged": 1}', "a\\x0a11/26"),
    "keys": (json.dumps({f"{n:x}": 0 for n in range(5500)}), "5468 more fields"),
    "long": (json.dumps({"k": "x" * 60_000}), "more characters"),
    "digits": (f'{{"n": {"9" * 60_000}}}', "9999"),
    "no text": ("\ufeff\x1b[2J\u202e", "body: "),
}


def test_a_field_that_cannot_be_shown_is_named(monkeypatch):
    def dumps(value):
        if value == 2:
            raise RecursionError
        return str(value)

    monkeypatch.setattr(client.json, "dumps", dumps)
    lines = client.lines_of(b'{"a": 1, "b": 2}')
    assert lines == ["a: 1", "b: cannot be shown (RecursionError)"]


@pytest.mark.parametrize("what", UNSHOWABLE)
def test_the_status_decides_whatever_the_body(sock, config, what):
    body, logged = UNSHOWABLE[what]
    answers = [{"method": "POST", "status": s, "raw": body} for s in (400, 200)]
    pbs = fake_pbs("begin", USER, config=config())
    with atom(sock, answers, jobs=set()) as server:
        assert run_hook(pbs) == "accept"
    assert methods(server) == ["POST", "DELETE", "POST"]
    said = log_of(pbs)
    assert logged in said and "answered 200" in said
    assert len(pbs.log) < 100 and max(len(text) for _, text in pbs.log) < 1200
    assert all(" " <= char <= "~" for _, text in pbs.log for char in text)


@pytest.mark.parametrize("what", UNSHOWABLE)
def test_a_job_whose_begin_failed_is_forgotten_whatever_the_body(sock, config, what):
    answers = [{"method": "POST", "status": 500, "raw": UNSHOWABLE[what][0]}]
    pbs = fake_pbs("begin", USER, config=config())
    with atom(sock, answers, jobs={"12.server"}) as server:
        assert "answered 500" in str(run_hook(pbs))
    assert server.jobs == set()


@pytest.mark.parametrize(
    "broken",
    [
        b"Content-Length: 100\r\n\r\n12345678",
        b"Content-Length: 100\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\nx\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n64\r\n12345678",
        b"Transfer-Encoding: chunked\r\n\r\n8\r\n12345678\r\n",
    ],
)
def test_a_body_that_breaks_off_does_not_matter(sock, config, broken):
    """And it is one thing, whatever says how long it should be."""
    pbs = fake_pbs("begin", USER, config=config())
    with dripping(sock, b"HTTP/1.1 200 OK\r\n" + broken, pause_s=0):
        assert run_hook(pbs) == "accept"
    assert "body: breaks off" in log_of(pbs)
    assert "cannot be shown" not in log_of(pbs)


@pytest.mark.parametrize(
    "whole",
    [
        b"Content-Length: 8\r\n\r\n" + b'{"a": 1}',
        b"Transfer-Encoding: chunked\r\n\r\n8\r\n" + b'{"a": 1}\r\n0\r\n\r\n',
        b"\r\n" + b'{"a": 1}',
    ],
)
def test_a_body_that_is_whole_is_not_said_to_break_off(sock, config, whole):
    pbs = fake_pbs("begin", USER, config=config())
    with dripping(sock, b"HTTP/1.1 200 OK\r\n" + whole, pause_s=0):
        assert run_hook(pbs) == "accept"
    assert "a: 1" in log_of(pbs)
    assert "breaks off" not in log_of(pbs)


@pytest.mark.parametrize(
    "line", [b"HTTP/\xff\x1b[2J" + b"x" * 60_000, b"\r12.s\rforged", b"HTTP/1.1 2\r"]
)
def test_what_is_no_answer_is_shown_on_one_line(sock, config, line):
    pbs = fake_pbs("begin", USER, config=config())
    with dripping(sock, line + b"\r\n\r\n", pause_s=0):
        ended = run_hook(pbs)
    # what PBS has for the log, too, as the hook does not catch it
    assert all(" " <= char <= "~" for char in str(ended)) and len(str(ended)) < 1200
    assert all(" " <= char <= "~" for _, text in pbs.log for char in text)
    assert "telling it that the job ended" in log_of(pbs)


@pytest.mark.parametrize("kind", ["begin", "end"])
def test_a_log_that_fails_does_not_decide(sock, config, kind):
    pbs = fake_pbs(kind, USER, config=config())

    def full(job, text):
        raise OSError("no space left on device")

    pbs.logjobmsg = full
    with atom(sock):
        assert run_hook(pbs) == "accept"
    with atom(sock, [{"status": 500}]):
        ended = run_hook(pbs)
    assert "answered 500" in str(ended)
    assert isinstance(ended, Exception) == (kind == "begin")


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


def test_a_user_without_an_account_is_held(sock, config):
    """The job is wrong here, not the node: PBS would try it again at once."""
    pbs = fake_pbs("begin", "no-such-user-here", config=config())
    with atom(sock) as server:
        ended = run_hook(pbs)
    assert ended.startswith("reject: ") and "no-such-user-here" in ended
    assert pbs.event().job.Hold_Types == "s"
    assert "no-such-user-here" in log_of(pbs)
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
        ('{"post_timeout": 1%s}' % ("0" * 400), "post_timeout"),
        ('{"post_timeout": 1e400}', "post_timeout"),
        ('{"delete_timeout": NaN}', "delete_timeout"),
        ('{"unix_socket_file": 7}', "unix_socket_file"),
        ('{"unix_socket_file": null}', "unix_socket_file"),
        ('{"unix_socket_file": ["/a"]}', "unix_socket_file"),
        ('{"post_timeout": null}', "post_timeout"),
        ('{"delete_timeout": [7]}', "delete_timeout"),
        ('{"unix_socket_file": "/\\ud800"}', "unix_socket_file"),
        ('{"unix_socket_file": "/a\\u0000b"}', "unix_socket_file"),
        ('{"\\ud800": 3}', "unknown key \\ud800"),
        ('{"\\ufeffpost_timeout": 3}', "unknown key \\ufeffpost_timeout"),
        ("[]", "table"),
        ("{", "hook.CF"),
        ("[" * 100_000, "hook.CF"),
    ],
)
@pytest.mark.parametrize("kind", ["begin", "end"])
def test_bad_configuration_is_refused_by_name(tmp_path, text, word, kind):
    path = tmp_path / "hook.CF"
    path.write_text(text)
    pbs = fake_pbs(kind, USER, config=str(path))
    ended = run_hook(pbs)
    # a begin that is only rejected would come again at once
    assert isinstance(ended, Exception) == (kind == "begin")
    assert word in log_of(pbs)
    if kind == "begin":
        assert word in str(ended)
    else:
        assert "DELETE /rm/v1/jobs/12.server on /var/run/atomd/atomd.sock" in ended


@pytest.mark.parametrize(
    "keys", [{"post_timout": 3}, {"delete_timeout": 0}, {"post_timeout": "ten"}]
)
def test_an_end_does_with_the_keys_that_are_good(sock, config, keys):
    """The configuration goes bad while a job runs: ATOM hears of its end."""
    pbs = fake_pbs("end", USER, config=config(**keys))
    with atom(sock, jobs={"12.server"}) as server:
        assert run_hook(pbs) == "accept"
    assert server.jobs == set()
    assert next(iter(keys)) in log_of(pbs)


def test_a_byte_order_mark_before_the_configuration_is_none_of_it(tmp_path):
    path = tmp_path / "hook.CF"
    path.write_text('\ufeff{"post_timeout": 3}', encoding="utf-8")
    assert client.read_config(str(path))["post_timeout"] == 3.0


def test_the_defaults_are_those_of_the_document():
    assert client.DEFAULTS == {
        "post_timeout": 30.0,
        "delete_timeout": 30.0,
        "unix_socket_file": "/var/run/atomd/atomd.sock",
    }
    assert client.ALARM_S == 300.0
    # no number of the document: our pages have them
    assert client.RETRY_LIMIT_S == 30.0
    assert client.BEGIN_PART * client.ALARM_S == 240.0
    assert client.SERVER_LIMIT_S == 10.0
    assert client.BODY_LIMIT_BYTES == 64 * 1024


@pytest.mark.skipif(sys.version_info < (3, 10), reason="needs the list of modules")
def test_only_what_python_has_is_needed():
    tree = ast.parse(HOOK.read_text())
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module.split(".")[0])
    assert names - {"pbs"} <= set(sys.stdlib_module_names)


def test_the_path_is_percent_encoded():
    assert client.path_of("jobs", "1[2].x/y") == "/rm/v1/jobs/1%5B2%5D.x%2Fy"


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
