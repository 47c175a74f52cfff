# Label and field selectors, as the query strings of list and watch have them.
# SPDX-License-Identifier: LGPL-3.0-only
"""Selectors: parse once, match many."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from dws_sim.errors import bad_request
from dws_sim.jsontree import Object, dig

_KEY = r"[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?"
_VALUE = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_SET = re.compile(rf"^({_KEY})\s+(in|notin)\s*\(([^()]*)\)$")
_EQUAL = re.compile(rf"^({_KEY})\s*(==|=|!=)\s*({_VALUE}|)$")
_EXISTS = re.compile(rf"^(!?)\s*({_KEY})$")


@dataclass(frozen=True)
class _Term:
    key: str
    # None: the label has to exist, with any value
    values: frozenset[str] | None
    negate: bool

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        if self.values is None:
            found = value is not None
        else:
            found = value in self.values if value is not None else False
        return found != self.negate


def _split(text: str) -> list[str]:
    """Split at the commas that are not inside parentheses."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        if c == "(":
            depth += 1
        elif c == ")":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return [p.strip() for p in parts]


class LabelSelector:
    """A conjunction of requirements on labels."""

    def __init__(self, text: str) -> None:
        """Parse a selector; an empty one matches everything.

        Raises:
            ApiError: 400, it cannot be parsed.
        """
        self._terms: list[_Term] = []
        for part in _split(text) if text.strip() else []:
            self._terms.append(self._term(part, text))

    @classmethod
    def of(cls, labels: Mapping[str, str]) -> LabelSelector:
        """The selector of objects that have all these labels."""
        made = cls("")
        made._terms = [_Term(k, frozenset([v]), False) for k, v in labels.items()]
        return made

    @staticmethod
    def _term(part: str, whole: str) -> _Term:
        match = _SET.match(part)
        if match:
            values = frozenset(v.strip() for v in match.group(3).split(","))
            return _Term(match.group(1), values, match.group(2) == "notin")
        match = _EQUAL.match(part)
        if match:
            return _Term(
                match.group(1), frozenset([match.group(3)]), match.group(2) == "!="
            )
        match = _EXISTS.match(part)
        if match:
            return _Term(match.group(2), None, bool(match.group(1)))
        raise bad_request(
            f'unable to parse requirement: found "{part}" in selector "{whole}"'
        )

    def __bool__(self) -> bool:
        return bool(self._terms)

    def exact(self) -> tuple[str, str] | None:
        """A label and value that every match has, for a look-up in an index; None if
        there is no such pair."""
        for term in self._terms:
            if not term.negate and term.values is not None and len(term.values) == 1:
                return term.key, next(iter(term.values))
        return None

    def matches(self, obj: Object) -> bool:
        if not self._terms:
            return True
        labels: dict[str, str] = obj["metadata"].get("labels") or {}
        return all(t.matches(labels) for t in self._terms)


def _text(value: object) -> str:
    """A field as a selector has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


# Field selectors of custom resources, and further ones of other kinds.
_FIELDS = ("metadata.name", "metadata.namespace")
_ABOUT = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion")
_MORE = {
    "events": (
        *(f"involvedObject.{word}" for word in (*_ABOUT, "fieldPath")),
        *("reason", "reportingComponent", "source", "type"),
    ),
    "jobs": ("status.successful",),
    "namespaces": ("status.phase",),
    "nodes": ("spec.unschedulable",),
    "pods": (
        *("spec.nodeName", "spec.restartPolicy", "spec.schedulerName"),
        *("spec.serviceAccountName", "status.phase", "status.podIP"),
    ),
    "secrets": ("type",),
}


class FieldSelector:
    """A conjunction of requirements on fields."""

    def __init__(self, text: str, plural: str = "") -> None:
        """Parse a selector of a kind; an empty one matches everything.

        Raises:
            ApiError: 400, it cannot be parsed, or the kind has no such field.
        """
        self._terms: list[tuple[list[str], str, bool]] = []
        for part in text.split(",") if text.strip() else []:
            match = re.match(r"^\s*([\w.]+)\s*(==|=|!=)\s*(.*?)\s*$", part)
            if not match:
                raise bad_request(
                    f"invalid selector: '{text}'; can't understand '{part}'"
                )
            if match.group(1) not in (*_FIELDS, *_MORE.get(plural, ())):
                raise bad_request(f"field label not supported: {match.group(1)}")
            path = match.group(1).split(".")
            self._terms.append((path, match.group(3), match.group(2) == "!="))

    def __bool__(self) -> bool:
        return bool(self._terms)

    def matches(self, obj: Object) -> bool:
        return all((_text(dig(obj, *p)) == v) != neg for p, v, neg in self._terms)
