# Text from outside, on screens, in pages and in logs: over all of Unicode, in Python
# and in C.
# SPDX-License-Identifier: LGPL-3.0-only
from __future__ import annotations

import io
import logging
import pathlib
import re
import sys
import unicodedata
from types import SimpleNamespace
from typing import Any

import pytest
from flux_k8s import dws, texts

ROOT = pathlib.Path(__file__).resolve().parents[2]
HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")


def expected(char: str) -> str:
    """The replacement of a character, by Unicode's own database."""
    if char in "\t\n\r":
        return " "
    return "\ufffd" if unicodedata.category(char) in HIDDEN else char


def wrong(char: str, shown: str) -> bool:
    """Not even a character that this Python does not know yet is anything but shown
    or hidden."""
    if unicodedata.category(char) == "Cn":
        return shown not in (char, "\ufffd")
    return shown != expected(char)


EVERYTHING = list(map(chr, range(sys.maxunicode + 1)))


def test_every_character_in_python() -> None:
    assert [c for c in EVERYTHING if wrong(c, texts.clean(c))] == []
    # the same among others
    assert texts.clean("".join(EVERYTHING)) == "".join(map(texts.clean, EVERYTHING))


def test_every_character_in_c() -> None:
    """NUL and surrogates are left out, as JSON cannot pass them to C."""
    chars = [c for c in EVERYTHING[1:] if unicodedata.category(c) != "Cs"]
    shown = dws._call("clean", "".join(chars))
    assert len(shown) == len(chars)
    assert [c for c, s in zip(chars, shown) if wrong(c, s)] == []


def test_both_have_the_same_table() -> None:
    chars = "".join(c for c in EVERYTHING[1:] if unicodedata.category(c) != "Cs")
    assert dws._call("clean", chars) == texts.clean(chars)


def test_what_libdws_refuses_is_one_line() -> None:
    with pytest.raises(ValueError) as caught:
        dws.parse_directives("#DW jobdw type=x\u202e\u200bfs capacity=1GiB name=a")
    assert str(caught.value).isprintable()


def test_module_and_plugins_log_by_way_of_it() -> None:
    calls = re.compile(r"\bflux_(?:v?log|log_error|log_verror) \(")
    sources = [p for p in ROOT.glob("src/modules/**/*.c") if "test" not in p.parts]
    assert len(sources) > 50
    assert [str(p) for p in sources if calls.search(p.read_text("utf-8"))] == []


def logged(*args: Any, **kwargs: Any) -> str:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(texts.LogFormatter("agent: %(levelname)s: %(message)s"))
    logger = logging.getLogger("test_texts")
    logger.handlers = [handler]
    logger.error(*args, **kwargs)
    return stream.getvalue()


def test_a_message_of_the_server_is_one_line_of_the_agents_log() -> None:
    text = "no\nagent: ERROR: forged\033[2K\u202e"
    assert logged("patch: %s", text) == (
        "agent: ERROR: patch: no agent: ERROR: forged\ufffd[2K\ufffd\n"
    )


def test_nor_do_the_lines_of_a_traceback_pass_for_others() -> None:
    try:
        raise ValueError("no\nagent: ERROR: forged\033[2K")
    except ValueError:
        first, *others = logged("failed", exc_info=True).splitlines()
    assert first == "agent: ERROR: failed"
    assert "  agent: ERROR: forged\ufffd[2K" in others
    assert all(line.startswith("  ") for line in others)


def test_what_the_scheduler_says_of_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """A denial becomes the note of an exception, and an error a line of the log."""
    flux_scheduler = pytest.importorskip("flux.scheduler")
    scheduler = pytest.importorskip("flux_sched_rabbit.scheduler")
    said: list[Any] = []
    monkeypatch.setattr(
        flux_scheduler.Scheduler,
        "alloc_deny",
        lambda _self, _msg, note=None: said.append(note),
    )
    rabbit = object.__new__(scheduler.RabbitScheduler)
    rabbit.alloc_deny(None, "no 'a\nb\u202e'")
    handle = SimpleNamespace(log=lambda _level, text: said.append(text))
    scheduler.CleanLogger(handle).error("no 'a\nb\u202e'")
    assert said == ["no 'a b\ufffd'"] * 2
    scheduler.CleanLogger(handle).error("%s%n")
    assert said.pop() == "%%s%%n"


def test_the_names_of_what_cannot_be_seen_are_those_of_unicode() -> None:
    source = (ROOT / "src/common/libdws/util/unseen.c").read_text(encoding="utf8")
    named = re.findall(r'\{ 0x([0-9a-f]+), "([A-Z -]+)" \}', source)
    assert len(named) > 20
    for code, name in named:
        theirs = {"VERTICAL TAB": "LINE TABULATION"}.get(name, name)
        assert unicodedata.lookup(theirs) == chr(int(code, 16))
