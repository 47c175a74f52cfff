# The grammar of #DW directives as DWDirectiveRule objects define it.
# SPDX-License-Identifier: LGPL-3.0-only
"""Parse and check directives."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dws_sim.jsontree import Object
from dws_sim.states import STATES

# the label of the test driver
TESTER = "tester"

_UNITS = {
    unit: base**power
    for base, suffix in ((1000, "B"), (1024, "iB"))
    for power, unit in enumerate((letter + suffix for letter in "KMGT"), start=1)
}
_INTEGER = re.compile(r"^[-+]?[0-9]+$")
_CAPACITY = re.compile(r"^(\d+)(KiB|KB|MiB|MB|GiB|GB|TiB|TB)$")


class DirectiveError(Exception):
    """A directive that the user has to correct; the text gives the reason."""


class DirectivePanic(Exception):
    """A directive that crashes the webhook."""


@dataclass(frozen=True)
class Directive:
    """A parsed directive; a bare key has the value None."""

    text: str
    command: str
    args: tuple[tuple[str, str | None], ...]

    def get(self, key: str) -> str | None:
        return dict(self.args).get(key)


@functools.lru_cache(maxsize=4096)
def parse(text: str) -> Directive:
    """Split a directive.

    Raises:
        DirectiveError: it does not start with #DW, or repeats an argument.
        DirectivePanic: it has no command.
    """
    words = text.split()
    if not words or words[0] != "#DW":
        raise DirectiveError(f"missing '#DW' prefix in directive '{text}'")
    if len(words) < 2:
        raise DirectivePanic(text)
    args: list[tuple[str, str | None]] = []
    # the command is among the arguments, by that name
    seen = {"command"}
    for word in words[2:]:
        key, equal, value = word.partition("=")
        if key in seen:
            raise DirectiveError(f"repeated argument '{key}' in directive '{text}'")
        seen.add(key)
        args.append((key, value if equal else None))
    return Directive(text, words[1], tuple(args))


def capacity_bytes(text: str) -> int:
    """The number of bytes that a capacity such as 10GiB means.

    Raises:
        ValueError: it has no known unit.
    """
    match = _CAPACITY.match(text)
    if not match:
        raise ValueError(f"invalid capacity {text!r}")
    return int(match.group(1)) * int(_UNITS[match.group(2)])


def _matches(pattern: str, text: str) -> bool:
    return re.search(pattern, text) is not None


def _check_integer(rule: Object, key: str, value: str) -> None:
    if not _INTEGER.match(value):
        raise DirectiveError(f"argument '{key}' invalid integer '{value}'")
    number = int(value)
    low, high = rule.get("min", 0), rule.get("max", 0)
    if high and number > high:
        raise DirectiveError(
            f"argument '{key}' specified integer value {number} is greather than "
            f"maximum value {high}"
        )
    if low and number < low:
        raise DirectiveError(
            f"argument '{key}' specified integer value {number} is less than "
            f"minimum value {low}"
        )


def _check_list(rule: Object, key: str, value: str) -> None:
    patterns = rule.get("patterns") or ()
    words: set[str] = set()
    for word in value.split(","):
        if patterns and not any(_matches(p, word) for p in patterns):
            raise DirectiveError(
                f"argument '{key}' invalid string '{word}' in list '{value}'"
            )
        if word in words:
            raise DirectiveError(
                f"argument '{key}' word '{word}' repeated in list '{value}'"
            )
        words.add(word)


def _check_value(rule: Object, key: str, value: str | None) -> None:
    if value is None:
        if rule.get("isValueRequired"):
            raise DirectiveError(f"argument '{key}' requires value")
        return
    kind = rule["type"]
    if kind == "integer":
        _check_integer(rule, key, value)
    elif kind == "bool":
        # the pattern itself does not count, only that there is one
        if rule.get("pattern") and value.lower() not in ("true", "false"):
            raise DirectiveError(f"argument '{key}' invalid boolean '{value}'")
    elif kind == "list-of-string":
        _check_list(rule, key, value)
    elif rule.get("pattern") and not _matches(rule["pattern"], value):
        raise DirectiveError(f"argument '{key}' invalid string '{value}'")


def _check_rule(
    rule: Object, directive: Directive, unique: dict[str, set[str]]
) -> None:
    required = {d["key"] for d in rule["ruleDefs"] if d.get("isRequired")}
    for key, value in directive.args:
        for definition in rule["ruleDefs"]:
            if _matches(definition["key"], key):
                break
        else:
            raise DirectiveError(f"unsupported argument '{key}'")
        _check_value(definition, key, value)
        required.discard(definition["key"])
        scope = definition.get("uniqueWithin")
        if scope:
            values = unique.setdefault(scope, set())
            if value in values:
                raise DirectiveError(f"value '{value}' must be unique within '{scope}'")
            values.add(value or "")
    for pattern in sorted(required):
        raise DirectiveError(f"missing required argument '{pattern}'")


def check(
    directives: Iterable[str], rules: Iterable[tuple[str, Object]]
) -> list[tuple[int, str, list[str]]]:
    """Check directives against rules.

    Args:
        rules: (name of the rule object, rule) pairs.
    Returns:
        (directive index, driver, states) for each directive and matching rule.
    Raises:
        DirectiveError, DirectivePanic: the first fault.
    """
    rules = list(rules)
    found: list[tuple[int, str, list[str]]] = []
    unique: dict[str, set[str]] = {}
    for index, text in enumerate(directives):
        directive = parse(text)
        matching = [(n, r) for n, r in rules if r["command"] == directive.command]
        if not matching:
            raise DirectiveError(f"invalid directive '{text}'")
        for name, rule in matching:
            _check_rule(rule, directive, unique)
            states = [s for s in (rule.get("watchStates") or "").split(",") if s]
            found.append((index, rule.get("driverLabel") or name, states))
    return found


def _definition(key: str, type_: str = "string", **more: Any) -> Object:
    return {
        "key": key,
        "type": type_,
        "isRequired": more.pop("required", False),
        "isValueRequired": True,
        **more,
    }


def tester_rules() -> list[Object]:
    """The rules of the test driver: a command for each state."""
    return [
        {
            "command": state,
            "driverLabel": TESTER,
            "watchStates": state,
            "ruleDefs": [
                _definition(
                    "^action$", required=True, pattern="^(complete|wait|error)$"
                ),
                _definition("^message$"),
                _definition("^severity$", pattern="^(Minor|Major|Fatal)$"),
            ],
        }
        for state in STATES
    ]


def nnf_rules() -> list[Object]:
    """The rules of NNF systems."""
    name = "^[a-z][a-z0-9-]+$"
    types = _definition("^type$", required=True, pattern="^(raw|xfs|gfs2|lustre)$")
    size = r"^\d+(KiB|KB|MiB|MB|GiB|GB|TiB|TB)$"
    profile = _definition("^profile$", pattern=name)
    requires = _definition(
        "^requires$",
        "list-of-string",
        patterns=["^copy-offload$", "^user-container-auth$"],
    )

    def named(scope: str = "") -> Object:
        more = {"uniqueWithin": scope} if scope else {}
        return _definition("^name$", required=True, pattern=name, **more)

    def rule(command: str, states: str, *definitions: Object) -> Object:
        return {
            "command": command,
            "watchStates": f"Proposal,{states}Teardown",
            "ruleDefs": list(definitions),
        }

    ends = (
        _definition("^source$", required=True),
        _definition("^destination$", required=True),
        profile,
    )
    run = "Setup,PreRun,PostRun,"
    return [
        rule(
            "jobdw",
            run,
            types,
            _definition("^capacity$", required=True, pattern=size),
            named("jobdw_name"),
            profile,
            requires,
        ),
        rule(
            "create_persistent",
            "Setup,",
            types,
            _definition("^capacity$", pattern=size),
            named("create_persistent_name"),
            profile,
        ),
        rule("destroy_persistent", "", named("destroy_persistent_name")),
        rule("persistentdw", run, named(), requires),
        rule("copy_in", "DataIn,", *ends),
        rule("copy_out", "DataOut,", *ends),
        rule(
            "container",
            run,
            named(),
            _definition("^profile$", required=True, pattern=name),
            _definition("^(DW_JOB_|DW_PERSISTENT_|DW_GLOBAL_)[a-z][a-z0-9_]+$"),
        ),
    ]
