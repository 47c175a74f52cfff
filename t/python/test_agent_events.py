# The events of a watch: parsing them from chunks, and passing on the relevant ones.
# SPDX-License-Identifier: LGPL-3.0-only
import json

import pytest
from flux_k8s import events
from flux_k8s.errors import BROKEN, ApiError
from flux_k8s.events import WatchStream
from flux_k8s.loop import Loop
from flux_k8s.transport import NoAnswer
from hypothesis import given
from hypothesis import strategies as st


def obj(name, version):
    return {"metadata": {"name": name, "resourceVersion": str(version)}}


class Chunks:
    """A stream of these, until its end."""

    def __init__(self, *chunks):
        self.chunks = [*chunks, b""]

    async def chunk(self):
        return self.chunks.pop(0)


def all_of(stream):
    """The events of a watch, to its end."""

    async def follow():
        while (events := await stream.next()) is not None:
            for event in events:
                found.append(event)

    found = []
    Loop().run(follow())
    return found


KIND = "servers"


def events_of(*lines, picked=True):
    """The events of lines that arrive in one chunk."""
    chunk = b"".join(b"%s\n" % x for x in lines)
    return all_of(WatchStream(Chunks(chunk), KIND if picked else ""))


def as_line(kind, name, version, uid="1", spaces=True, **metadata):
    """A line as Kubernetes writes it, or, with spaces, as another server may."""
    found = obj(name, version)
    found["metadata"].update(uid=uid, **metadata)
    separators = None if spaces else (",", ":")
    text = json.dumps({"type": kind, "object": found}, separators=separators)
    return text.encode()


def short(events):
    """Type, name and version of each."""
    metas = [found["metadata"] for _, found in events]
    return [
        (kind, meta.get("name"), int(meta["resourceVersion"]))
        for (kind, _), meta in zip(events, metas)
    ]


BOOKMARK = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"%d"}}}'
GONE = b'{"type":"ERROR","object":{"code":410,"reason":"Expired","message":"old"}}'


def test_of_events_that_come_together_the_last_counts():
    lines = [
        as_line("ADDED", "a", 1),
        as_line("MODIFIED", "a", 2),
        as_line("MODIFIED", "b", 3),
        as_line("MODIFIED", "a", 4),
        BOOKMARK % 5,
        as_line("MODIFIED", "b", 6),
    ]
    assert short(events_of(*lines)) == [
        ("ADDED", "a", 4),
        ("BOOKMARK", None, 5),
        ("MODIFIED", "b", 6),
    ]
    assert len(events_of(*lines, picked=False)) == 6


def test_the_end_of_an_object_is_told_and_what_was_before_it():
    lines = [
        as_line("MODIFIED", "a", 1),
        as_line("MODIFIED", "a", 2),
        as_line("DELETED", "a", 3),
        as_line("ADDED", "a", 4, uid="2"),
        as_line("MODIFIED", "a", 5, uid="2"),
    ]
    assert short(events_of(*lines)) == [
        ("MODIFIED", "a", 2),
        ("DELETED", "a", 3),
        ("ADDED", "a", 5),
    ]


def test_one_object_is_not_left_out_for_another():
    lines = [
        as_line("MODIFIED", "a", 1, namespace="x"),
        as_line("MODIFIED", "a", 2, namespace="y"),
        as_line("MODIFIED", "a", 3),
        as_line("MODIFIED", "b", 4),
        as_line("MODIFIED", "b", 5, uid="2"),
    ]
    assert len(events_of(*lines)) == 5


def test_what_came_before_an_error_is_told():
    stream = WatchStream(
        Chunks(
            as_line("MODIFIED", "a", 1) + b"\n" + as_line("MODIFIED", "a", 2),
            b"\n" + GONE + b"\n" + as_line("MODIFIED", "a", 3) + b"\n",
        ),
        KIND,
    )
    first, second = run_both(stream)
    assert short(first) == [("MODIFIED", "a", 1)]
    assert short(second) == [("MODIFIED", "a", 2), ("error", None, 410)]


def run_both(stream):
    """The events of two chunks, and how they end."""

    async def follow():
        for _ in range(2):
            events = []
            told.append(events)
            try:
                for event in await stream.next():
                    events.append(event)
            except ApiError as exc:
                error = {"metadata": {"resourceVersion": str(exc.status)}}
                events.append(("error", error))

    told = []
    Loop().run(follow())
    return told


def test_an_event_may_come_in_pieces():
    text = b"\r\n".join(
        [as_line("ADDED", "a", 1), b"", as_line("MODIFIED", "\u00e9", 2), b""]
    )
    whole = all_of(WatchStream(Chunks(text), KIND))
    assert short(whole) == [("ADDED", "a", 1), ("MODIFIED", "\u00e9", 2)]
    for cut in range(1, len(text)):
        stream = WatchStream(Chunks(text[:cut], text[cut:]), KIND)
        assert all_of(stream) == whole


@pytest.mark.parametrize("bad", [b"{", b"[]", b'{"type":"ADDED"}', b"\xff", b"null"])
def test_what_is_no_event_breaks_the_watch_and_not_more(bad):
    lines = as_line("ADDED", "a", 1) + b"\n" + bad + b"\n"
    told = []

    async def follow():
        for event in await WatchStream(Chunks(lines), KIND).next():
            told.append(event)

    with pytest.raises(ApiError, match="watch event"):
        Loop().run(follow())
    assert short(told) == [("ADDED", "a", 1)]


@given(st.data())
def test_nothing_is_lost_in_a_chunk(data):
    """Merged events of a chunk lead to the same objects as all of them, and the watch
    continues from the last version."""
    lines, there = [], {}
    for version in range(1, data.draw(st.integers(1, 30)) + 1):
        name = data.draw(st.sampled_from("abc"))
        if name in there:
            kind = data.draw(st.sampled_from(["MODIFIED", "MODIFIED", "DELETED"]))
        else:
            kind, there[name] = "ADDED", version
        lines.append(as_line(kind, name, version, uid=str(there[name])))
        if kind == "DELETED":
            del there[name]
    told = short(events_of(*lines))
    every = short(events_of(*lines, picked=False))
    assert told[-1][2] == every[-1][2] == len(lines)
    assert [e for e in told if e[0] == "DELETED"] == [
        e for e in every if e[0] == "DELETED"
    ]
    assert [v for _, _, v in told] == sorted(v for _, _, v in told)

    def known(events):
        state = {}
        for kind, name, version in events:
            if kind == "ADDED":
                assert name not in state
            else:
                assert name in state
            state[name] = version
            if kind == "DELETED":
                del state[name]
        return state

    assert known(told) == known(every)


UIDS = [{"uid": "1"}, {"uid": "2"}, {"uid": 1}, {"uid": "1", "owner": {"uid": "2"}}]
EVENTS = st.tuples(
    st.sampled_from(["ADDED", "MODIFIED", "MODIFIED", "MODIFIED", "DELETED", "ERROR"]),
    st.integers(0, 9),
    st.sampled_from(UIDS),
    st.sampled_from(['"uid":"2"', '"uid":"1","resourceVersion":"9"', "a"]),
)


def until_error(lines):
    """The events before an error, and the error."""

    async def follow():
        for event in await stream.next():
            told.append(event)

    told = []
    stream = WatchStream(Chunks(b"".join(b"%s\n" % x for x in lines)), KIND)
    try:
        Loop().run(follow())
    except ApiError as exc:
        return told, str(exc)
    return told, None


@given(st.lists(EVENTS, min_size=1, max_size=20))
def test_what_is_passed_over_undecoded_would_be_left_out(drawn):
    """Lines with spaces are all decoded."""
    told = [
        until_error(
            as_line(kind, f"a{uid['uid']}", version, spaces=spaces, text=text, **uid)
            for kind, version, uid, text in drawn
        )
        for spaces in (False, KIND)
    ]
    assert told[0] == told[1]


def decoded_lines(monkeypatch):
    """List to which each line is added when it is decoded."""
    lines = []
    real = WatchStream._decode
    monkeypatch.setattr(
        WatchStream,
        "_decode",
        lambda self, line: lines.append(line) or real(self, line),
    )
    return lines


def test_what_the_next_event_supersedes_is_not_decoded(monkeypatch):
    decoded = decoded_lines(monkeypatch)
    lines = [as_line("MODIFIED", "a", n, spaces=False) for n in (1, 2, 3)]
    lines.insert(2, as_line("MODIFIED", "b", 3, uid="2", spaces=False))
    assert short(events_of(*lines)) == [("MODIFIED", "b", 3), ("MODIFIED", "a", 3)]
    assert decoded == [lines[3], lines[2]]


def test_a_long_event_is_put_together_once(monkeypatch):
    """The pieces of an event are joined once, not at each piece, up to a limit."""
    decoded = decoded_lines(monkeypatch)
    line = as_line("ADDED", "a", 1, x="x" * 1000) + b"\n"
    pieces = [line[i : i + 10] for i in range(0, len(line), 10)]
    assert short(all_of(WatchStream(Chunks(*pieces), KIND))) == [("ADDED", "a", 1)]
    assert decoded == [line[:-1]]
    monkeypatch.setattr(events, "EVENT_BYTES", len(line) - 20)
    with pytest.raises(ApiError, match="does not end"):
        all_of(WatchStream(Chunks(*pieces), KIND))


@pytest.mark.parametrize("odd", ["null", "[]", '"x"', "7", '[["a", 1]]'])
@pytest.mark.parametrize("kind", ["ERROR", "ADDED", "\\u0041DDED"])
def test_an_event_without_an_object_breaks_the_watch_and_not_more(kind, odd):
    line = f'{{"type":"{kind}","object":{odd}}}'.encode()
    with pytest.raises(ApiError, match="watch event: no object") as error:
        events_of(line)
    assert (error.value.status, error.value.reason) == (0, BROKEN)


@pytest.mark.parametrize("code", ['"410"', "[]", "1e999", "null", "{}"])
def test_an_odd_code_of_an_error_is_none(code):
    with pytest.raises(ApiError, match="old") as error:
        events_of(GONE.replace(b"410", code.encode()))
    assert (error.value.status, error.value.reason) == (0, "Expired")


def test_an_event_that_is_nested_too_deeply_breaks_the_watch():
    with pytest.raises(ApiError, match="nested"):
        events_of(b'{"type":"ADDED","object":' + b'{"a":' * 100_000)


def test_a_connection_that_breaks_is_no_answer():
    class Broken:
        async def chunk(self):
            raise NoAnswer("reset", True)

    noted = []
    with pytest.raises(ApiError, match="watch ended: reset") as error:
        all_of(WatchStream(Broken(), KIND, broken=lambda: noted.append(1)))
    assert (error.value.status, error.value.reason, noted) == (0, BROKEN, [1])


def test_what_is_left_out_is_counted():
    chunk = b"".join(as_line("MODIFIED", "a", n) + b"\n" for n in range(1, 6))
    left_out = []
    stream = WatchStream(Chunks(chunk), KIND, left_out=left_out.append)
    assert len(all_of(stream)) == 1
    assert left_out == [4]


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"MODIFIED","object":{"metadata":{"name":"a"}}}',
        b'{"type": "MODIFIED", "object": {"metadata": {"name": "a"}}}',
        b'{"object":{"metadata":{"name":"a"}},"type":"MODIFIED"}',
    ],
)
def test_the_object_of_an_event_is_found_in_its_line(line):
    ((kind, obj),) = events_of(line)
    assert (kind, obj) == ("MODIFIED", {"metadata": {"name": "a"}})


def test_an_event_may_have_escapes():
    line = as_line("ADDED", "a", 7).replace(b'"a"', b'"\\u0061"')
    assert events_of(line) == [("ADDED", json.loads(line)["object"])]


def test_what_the_module_cannot_read_is_refused_alone():
    """And the version to go on from is that of the last event all the same."""
    bad = as_line("MODIFIED", "b", 3).replace(b'"1"', b"1")
    nameless = b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"4"}}}'
    chunk = b"\n".join([as_line("ADDED", "a", 2), bad, nameless, b""])
    refused = []
    stream = WatchStream(
        Chunks(chunk), KIND, refused=lambda error: refused.append(str(error))
    )
    told = all_of(stream)
    assert [kind for kind, _ in told] == ["ADDED", "REFUSED", "REFUSED"]
    assert told[-1][1]["metadata"]["resourceVersion"] == "4"
    assert sorted(refused) == [
        "servers b: metadata.uid: expected a string",
        "servers: an object without a name",
    ]
