# The ends of container logs: what is kept of them, and what is done without.
# SPDX-License-Identifier: LGPL-3.0-only
import pytest
from flux_k8s import logs
from flux_k8s.errors import UNREACHABLE, ApiError
from flux_k8s.loop import Loop


@pytest.mark.parametrize(
    ("text", "limit", "want"),
    [
        ("", 4, ("", False)),
        ("abcd", 4, ("abcd", False)),
        ("one\ntwo\nthree\n", 9, ("three\n", True)),
        ("one\ntwo\n", 4, ("two\n", True)),
        ("one\ntwo\nx", 3, ("x", True)),
        ("a long line", 4, ("line", True)),
        ("a long line\n", 4, ("ine\n", True)),
        ("\u00e9\u00e9\u00e9", 3, ("\u00e9", True)),
        ("something", 0, ("", True)),
    ],
)
def test_tail(text, limit, want):
    assert logs.tail(text, limit) == want


def read_logs(*args):
    return Loop().run(logs.read_logs(*args))


class Pods:
    def __init__(self, texts, fault=None):
        self.texts = texts
        self.fault = fault

    async def alist_in(self, plural, namespace, selector):
        assert (plural, namespace, selector) == ("pods", "default", "a=b")
        return [
            {
                "metadata": {"name": name},
                "spec": {"nodeName": "rabbit0", "containers": [{"name": "c"}]},
                "status": {"phase": "Succeeded"},
            }
            for name in sorted(self.texts, reverse=True)
        ]

    async def apod_log(self, namespace, name, container, lines, limit_bytes, since):
        self.since = since
        if self.fault:
            raise self.fault
        # as the API server has it: the last lines, and their beginning
        last = self.texts[name].splitlines(keepends=True)[-lines:]
        return "".join(last).encode()[:limit_bytes]


def test_each_container_once_in_order():
    entries = read_logs(Pods({"p1": "x\n", "p2": "y\n"}), "default", "a=b", 10)
    assert [(e["pod"], e["container"], e["log"]) for e in entries] == [
        ("p1", "c", "x\n"),
        ("p2", "c", "y\n"),
    ]
    assert all(e["phase"] == "Succeeded" and not e["truncated"] for e in entries)
    assert all(e["node"] == "rabbit0" for e in entries)


def test_the_sum_is_bounded(monkeypatch):
    monkeypatch.setattr(logs, "TOTAL_BYTES", 15)
    pods = Pods({f"p{i}": "0123456789" for i in range(3)})
    entries = read_logs(pods, "default", "a=b", 10)
    assert [len(e["log"]) for e in entries] == [10, 5, 0]
    assert [e["truncated"] for e in entries] == [False, True, True]


def test_a_log_that_cannot_be_read_is_named():
    pods = Pods({"p": ""}, ApiError(400, "BadRequest", "container is waiting"))
    (entry,) = read_logs(pods, "default", "a=b", 10)
    assert entry["error"] == "container is waiting"
    assert entry["log"] == ""


@pytest.mark.parametrize(
    "fault",
    [
        ApiError(503, "ServiceUnavailable", "later"),
        ApiError(429, "TooManyRequests", "later"),
        ApiError(0, UNREACHABLE, "connection refused"),
    ],
)
def test_trouble_of_the_server_is_for_the_command_queue(fault):
    with pytest.raises(ApiError) as raised:
        read_logs(Pods({"p": ""}, fault), "default", "a=b", 10)
    assert raised.value is fault


@pytest.mark.parametrize(
    "fault",
    [
        ApiError(500, "InternalError", "dial tcp 10.0.0.1:10250: i/o timeout"),
        ApiError(502, "Broken", "bad gateway"),
        ApiError(504, "Timeout", "timed out"),
        ApiError(0, "Broken", "read timed out"),
    ],
)
def test_a_dead_node_is_not_waited_for(fault):
    """Its log can not be had for as long as it is dead; the job's end waits."""
    (entry,) = read_logs(Pods({"p": ""}, fault), "default", "a=b", 10)
    assert (entry["error"], entry["log"]) == (fault.message, "")


def test_a_node_that_answers_the_second_time_is_heard():
    class Once(Pods):
        async def apod_log(self, *args):
            fault, self.fault = self.fault, None
            if fault:
                raise fault
            return await super().apod_log(*args)

    pods = Once({"p": "x"}, ApiError(500, "InternalError", "connection reset"))
    assert read_logs(pods, "default", "a=b", 10)[0]["log"] == "x"


def test_long_lines_do_not_hide_the_end(monkeypatch):
    monkeypatch.setattr(logs, "READ_BYTES", 1000)
    text = "".join(f"{n:099}\n" for n in range(50)) + "the end\n"
    (entry,) = read_logs(Pods({"p": text}), "default", "a=b", 8)
    assert (entry["log"], entry["truncated"]) == ("the end\n", True)


def test_lines_that_were_not_asked_for_are_missing():
    pods = Pods({"p": "x\n" * 2000, "q": "x\n" * 500})
    entries = read_logs(pods, "default", "a=b", 10_000)
    assert [e["truncated"] for e in entries] == [True, False]


def test_a_nul_in_a_log_is_replaced():
    """JSON for the module has none."""
    (entry,) = read_logs(Pods({"p1": "a\0b\n"}), "default", "a=b", 10)
    assert entry["log"] == "a\ufffdb\n"


def test_a_live_log_is_read_since_then():
    pods = Pods({"p": "x\n"})
    read_logs(pods, "default", "a=b", 10, 7)
    assert pods.since == 7


def test_a_line_without_its_beginning_has_its_time():
    """The reader of a live log needs the time of each line."""
    stamp = "2026-01-02T03:04:05.000000006Z "
    text = f"{stamp}first\n{stamp}" + "x" * 1000 + "\n"
    for limit in (100, 1000, 1001, len(stamp) + 1001):
        log, missing = logs.tail(text, limit, stamped=True)
        assert missing and len(log) == limit
        assert log.startswith(stamp) and log.endswith("x\n")
    assert logs.tail(text, len(stamp), stamped=True) == ("", True)
    pods = Pods({"p": text})
    [entry] = read_logs(pods, "default", "a=b", 100, 0)
    assert entry["log"].startswith(stamp) and len(entry["log"]) == 100


def test_carriage_returns_are_no_lines(monkeypatch):
    monkeypatch.setattr(logs, "TAIL_LINES", (3,))
    [entry] = read_logs(Pods({"p": "1\r2\r3\r4\n"}), "default", "a=b", 100)
    assert entry["truncated"] is False
