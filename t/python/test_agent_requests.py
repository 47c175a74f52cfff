# Each command of the module to the agent with each field left out, and of each wrong
# type: the same as t/scripts/request_fields.py for requests to services.
# SPDX-License-Identifier: LGPL-3.0-only
from __future__ import annotations

import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from flux_k8s import commands
from flux_k8s.agent import Agent
from flux_k8s.loop import Loop
from flux_k8s.reports import Mailbox
from page_support import TOP

# A good value of each field, and whether others are as good.
VALUES: list[Any] = [None, True, -1, 0, 7, 1.5, "", "x", [], ["x"], {}, {"x": "y"}]
GOOD = {
    "kind": "workflows",
    "namespace": "default",
    "name": "w",
    "object": {},
    "patch": {},
    "finalizer": "ours",
    "once": True,
    "whole": True,
    "key": "token",
    "workflow": {},
    "selector": "a=b",
    "fields": ["spec"],
    "bytes": 10,
    "since": 1,
    "path": "/etc/kubeconfig",
}


def of_protocol() -> dict[str, list[str]]:
    """The fields of each operation in doc/protocol.md, but for ``seq``."""
    text = (TOP / "doc" / "protocol.md").read_text(encoding="utf8")
    rows = re.findall(r"^\| `([a-z-]+)` \| `seq, ([^`]+)` \|", text, re.MULTILINE)
    return {op: fields.split(", ") for op, fields in rows}


def at_fault(fields: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Commands, and the field that is at fault in each."""
    good = {name.rstrip("?"): GOOD[name.rstrip("?")] for name in fields}
    for name in fields:
        key = name.rstrip("?")
        for value in VALUES:
            alike = type(value) is type(good[key]) and value not in ("", -1)
            alike = alike or (key, value) == ("selector", "")
            if not alike:
                yield key, {**good, key: value}
        if key == name:
            yield key, {k: v for k, v in good.items() if k != key}


class Nobody:
    """An API server that must not be asked."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)


def refusal(command: dict[str, Any]) -> str:
    if command.get("op") == "kubeconfig":
        with pytest.raises(commands.CommandError) as info:
            commands.check_fields(command)
        return str(info.value)
    result = Loop().run(commands.execute(Nobody(), command))
    assert (result["ok"], result["status"]) == (False, 400), command
    return str(result["message"])


@pytest.mark.parametrize("op", commands._FIELDS)
def test_a_field_at_fault_is_named(op: str) -> None:
    sent = 0
    for key, command in at_fault(of_protocol()[op]):
        assert re.match(
            f"{op}: {key}: (is required|expected )", refusal({"op": op, **command})
        ), command
        sent += 1
    assert sent >= 10


def test_the_page_has_all_operations() -> None:
    assert of_protocol().keys() == commands._FIELDS.keys()
    assert commands._FIELDS.keys() - commands._OPERATIONS.keys() == {"kubeconfig"}


def test_a_check_of_a_kubeconfig_that_is_no_path() -> None:
    box = Mailbox()
    asked: Any = SimpleNamespace(_box=box)
    Agent._check_kubeconfig(asked, {"op": "kubeconfig", "seq": 7, "path": 1})
    result = box.take()
    assert (result["seq"], result["ok"], result["status"]) == (7, False, 400)


def test_a_check_of_a_kubeconfig_names_its_fault(tmp_path: Any) -> None:
    box, path = Mailbox(), str(tmp_path / "missing")
    overrides = SimpleNamespace(kubeconfig=None, insecure=False)
    asked: Any = SimpleNamespace(_box=box, _overrides=overrides)
    Agent._check_kubeconfig(asked, {"op": "kubeconfig", "seq": 8, "path": path})
    result = box.take()
    assert (result["seq"], result["ok"]) == (8, True)
    assert path in str(result["objects"])


@pytest.mark.parametrize("op", [None, True, 7, "", "explode", [], {}])
def test_an_operation_that_there_is_not(op: Any) -> None:
    assert refusal({"op": op, **GOOD}) == f"unknown op {op!r}"
    assert refusal(GOOD) == "unknown op None"


def test_a_kind_that_there_is_not() -> None:
    command = {"op": "get", **GOOD, "kind": "teapots"}
    assert refusal(command) == "get: unknown kind 'teapots'"
