# The page about what users can send names every request, and tests that exist.
# SPDX-License-Identifier: LGPL-3.0-only
"""doc/dev/inputs.rst."""

from __future__ import annotations

import re

import pytest
from flux_k8s import names
from page_support import TOP, load

SOURCES = TOP / "src" / "modules"


inputs = load("inputs")


def of_module() -> dict[str, str]:
    """Permitted senders of the requests in dws.so's table."""
    text = (SOURCES / "dws" / "service.c").read_text()
    entry = r'REQUEST,\s*(?:"([^"]+)"|DWS_(TOPIC_\w+)),\s*\w+,\s*(\w+)\s*\}'
    found = {
        word or getattr(names, name): role
        for word, name, role in re.findall(entry, text)
    }
    assert len(found) == text.count("FLUX_MSGTYPE_REQUEST")
    who = {"0": "owner", "FLUX_ROLE_USER": "any user"}
    return {topic: who[role] for topic, role in found.items()}


def of_plugin() -> dict[str, str]:
    """Requests of dws-jobtap.so: the job manager lets the owner alone call them, but
    for the one that returns nothing that a user cannot see anyway."""
    text = (SOURCES / "dws-jobtap" / "service.c").read_text()
    entry = r'^    \{ "([a-z-]+)", (?:\w+, NULL|NULL, \w+_cb), \{'
    found = re.findall(entry, text, re.MULTILINE)
    assert "flux_jobtap_service_register (" in text
    assert "flux_jobtap_service_register_ex" not in text
    text = (SOURCES / "dws-jobtap" / "validate.c").read_text()
    open_to_all = re.findall(r'service_register_ex \(ctx->p, "([a-z]+)"', text)
    assert open_to_all == ["validate"]
    return {
        **{f"job-manager.dws.{name}": "owner" for name in found},
        **{f"job-manager.dws.{name}": "any user" for name in open_to_all},
    }


def of_scheduler() -> dict[str, str]:
    """Requests of sched-rabbit itself."""
    folder = SOURCES / "sched-rabbit" / "flux_sched_rabbit"
    text = "".join(path.read_text() for path in folder.glob("*.py"))
    assert "allow_guest" not in text
    found = re.findall(r'@request_handler\("([a-z-]+)"\)', text)
    assert len(found) == text.count("@request_handler(")
    return {f"sched-rabbit.{name}": "owner" for name in found}


def of_scheduler_class() -> dict[str, str]:
    """Requests of sched-rabbit that flux-core's class handles."""
    scheduler = pytest.importorskip("flux.scheduler").Scheduler
    found = {}
    for name in dir(scheduler):
        handler = getattr(getattr(scheduler, name), "_flux_handler", None)
        if handler is not None:
            prefix = "sched-rabbit." if handler["prefix"] else ""
            role = "any user" if handler["allow_guest"] else "owner"
            found[prefix + handler["topic"]] = role
    return found


@pytest.mark.parametrize(
    "registered, least",
    [(of_module, 13), (of_plugin, 4), (of_scheduler, 3), (of_scheduler_class, 5)],
)
def test_every_method_has_a_row(registered, least):
    found = registered()
    assert len(found) >= least
    listed = inputs.methods()
    assert {topic: listed.get(topic) for topic in found} == found


def test_the_page_of_rights_has_every_attribute_of_ours():
    pages = [
        (TOP / "doc" / p).read_text() for p in ("dev/inputs.rst", "admin/rights.rst")
    ]
    read, rights = (set(re.findall(r"attributes\.system\.(dw\w*)", p)) for p in pages)
    assert "dw_near" in read
    assert rights == read


def test_every_row_is_about_a_method_that_there_is():
    known = {**of_module(), **of_plugin(), **of_scheduler(), **of_scheduler_class()}
    assert set(inputs.methods()) == set(known)


def test_every_row_has_tests_that_exist():
    rows = inputs.rows()
    assert len(rows) > 20
    for what, who, checks, tests in rows:
        assert who and checks
        named = re.findall(r"``([^`]+)``", tests)
        assert named, what
        assert [path for path in named if not (TOP / path).is_file()] == [], what


def test_every_method_is_sent_by_a_guest():
    for what, _, _, tests in inputs.rows():
        if inputs.METHOD.search(what) and "attributes." not in what:
            assert "t/t3004-guests.t" in tests, what


def test_nothing_is_read_of_what_jobs_write_to_the_kvs():
    for folder in ("modules", "shell", "python/flux_k8s"):
        for path in (TOP / "src" / folder).rglob("*"):
            if path.suffix in (".c", ".h", ".py") and "test" not in path.parts:
                text = path.read_text(encoding="utf8")
                assert not re.search(r'"[^"\n]*\bguest[./"]', text), path


def test_lists_are_expanded_in_one_place():
    """Flux' own functions expand lists of any length; lists.c limits them."""
    call = re.compile(r"[^_]\b(hostlist_decode|hostlist_append|idset_decode\w*) \(")
    found = [
        f"{path.relative_to(TOP)}: {name}"
        for path in sorted((TOP / "src").rglob("*.c"))
        if path.name != "lists.c" and "test" not in path.parts
        for name in call.findall(path.read_text())
    ]
    assert found == []
