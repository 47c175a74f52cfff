# Structural schemas: prune what is unknown, fill in defaults, find faults.
# A schema is built from plain Python values by schema(): see there.
# SPDX-License-Identifier: LGPL-3.0-only
"""Validation of objects."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dws_sim.errors import Cause
from dws_sim.jsontree import clone

_MISSING: Any = object()
# Types as the texts of the API server have them; no JSON value is of a subclass.
_NAMES = {
    str: "string",
    int: "integer",
    bool: "boolean",
    dict: "object",
    list: "array",
    type(None): "null",
}

_FITTING: dict[str, type] = {"string": str, "integer": int, "boolean": bool}


def _type_of(value: Any) -> str:
    return _NAMES.get(type(value), "number")


@dataclass
class Schema:
    """A node of a schema."""

    type: str  # string, integer, boolean, object, array, int-or-string, any
    default: Any = _MISSING
    enum: tuple[str, ...] | None = None
    pattern: str | None = None
    minimum: int | None = None
    maximum: int | None = None
    min_items: int = 0
    format: str | None = None
    items: Schema | None = None
    # object: named properties, or values for any key
    properties: dict[str, Schema] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    values: Schema | None = None

    def __post_init__(self) -> None:
        self._any = self.type == "any"
        self._plain = (
            self.enum is None
            and self.pattern is None
            and self.format is None
            and self.minimum is None
            and self.maximum is None
        )
        # a type of which every value is right
        self._fits = _FITTING.get(self.type) if self._plain else None
        # an enumeration, to be looked up
        self._words = frozenset(self.enum) if self.enum is not None else None
        # whether values can be trees, which have to be looked into
        self._deep = self.type in ("object", "array", "any")
        self._defaults = [
            (key, sub.default)
            for key, sub in self.properties.items()
            if sub.default is not _MISSING
        ]

    def prune(self, value: Any, old: Any, doubts: list[Schema]) -> Any:
        """A copy without unknown fields and with defaults filled in.

        Args:
            old: the stored value; identical parts are copied without a check.
            doubts: gets an entry where faults() may find something. While it is empty,
                callers skip faults(), which is twice as fast.
        """
        if value is old:
            return value
        if self._any:
            return clone(value)
        kind = type(value)
        if kind is dict and self.type == "object":
            was = old if type(old) is dict else {}
            if self.values is not None:
                sub = self.values
                return {k: sub.prune(v, was.get(k), doubts) for k, v in value.items()}
            result = {}
            known = self.properties
            for key, item in value.items():
                # null counts as absent: nothing here is nullable
                if item is None or key not in known:
                    continue
                before = was.get(key)
                if item is not before:
                    sub = known[key]
                    if sub._deep:
                        item = sub.prune(item, before, doubts)
                    elif type(item) is not sub._fits and not sub._fine(item):
                        doubts.append(sub)
                result[key] = item
            for key, default in self._defaults:
                if key not in result:
                    result[key] = clone(default)
            for key in self.required:
                if key not in result:
                    doubts.append(self)
            return result
        if kind is list and self.items is not None:
            items, had = self.items, old if type(old) is list else ()
            some = len(had)
            if len(value) < self.min_items:
                doubts.append(self)
            return [
                items.prune(v, had[i] if i < some else None, doubts)
                for i, v in enumerate(value)
            ]
        if kind is not self._fits and not self._fine(value):
            doubts.append(self)
        return value

    def unknown(self, value: Any, path: str = "") -> Iterator[str]:
        """The fields of a value that prune() leaves out."""
        if type(value) is dict and self.type == "object":
            prefix = f"{path}." if path else ""
            for key, item in value.items():
                sub = self.values or self.properties.get(key)
                if sub is None:
                    yield prefix + key
                elif sub._deep:
                    yield from sub.unknown(item, prefix + key)
        elif type(value) is list and self.items is not None and self.items._deep:
            for i, item in enumerate(value):
                yield from self.items.unknown(item, f"{path}[{i}]")

    def _fine(self, value: Any) -> bool:
        """Whether faults() finds nothing in a value."""
        if self._words is not None and type(value) is str:
            return value in self._words
        if self.format is not None and type(value) is str:
            return _DATE_TIME.match(value) is not None
        causes: list[Cause] = []
        self.faults(value, "", causes, _MISSING)
        return not causes

    def faults(self, value: Any, path: str, causes: list[Cause], old: Any) -> None:
        """Append what is wrong with a value that is not as it was."""
        if value is old or self._any:
            return
        found = _type_of(value)
        if self.type == "int-or-string":
            if found not in ("integer", "string"):
                self._wrong_type(path, value, "integer,string", found, causes)
            return
        if found == "integer" and self.type == "number":
            return
        if found != self.type:
            self._wrong_type(path, value, self.type, found, causes)
        elif found == "object":
            self._object_faults(value, path, causes, old)
        elif found == "array":
            if len(value) < self.min_items:
                text = f"{path} in body should have at least {self.min_items} items"
                causes.append(Cause(path, f"Invalid value: {len(value)}: {text}"))
            if self.items is not None:
                had = old if type(old) is list else ()
                for i, item in enumerate(value):
                    was = had[i] if i < len(had) else None
                    if item is not was:
                        self.items.faults(item, f"{path}[{i}]", causes, was)
        elif not self._plain:
            self._scalar_faults(value, path, causes)

    @staticmethod
    def _wrong_type(
        path: str, value: Any, want: str, found: str, causes: list[Cause]
    ) -> None:
        causes.append(
            Cause(
                path,
                f'Invalid value: "{found}": {path} in body must be of type '
                f'{want}: "{found}"',
                "FieldValueTypeInvalid",
            )
        )

    def _object_faults(
        self, value: Any, path: str, causes: list[Cause], old: Any
    ) -> None:
        was = old if type(old) is dict else {}
        prefix = f"{path}." if path else ""
        for key in self.required:
            if key not in value:
                causes.append(
                    Cause(prefix + key, "Required value", "FieldValueRequired")
                )
        named, any_key = self.properties, self.values
        for key, item in value.items():
            before = was.get(key)
            if item is before:
                continue
            sub = any_key or named.get(key)
            # most values are plain ones of the right type: no call for these
            if sub is not None and type(item) is not sub._fits:
                sub.faults(item, prefix + key, causes, before)

    def _scalar_faults(self, value: Any, path: str, causes: list[Cause]) -> None:
        if self.enum is not None and value not in self.enum:
            words = ", ".join(f'"{w}"' for w in self.enum)
            shown = json.dumps(value)
            causes.append(
                Cause(
                    path,
                    f"Unsupported value: {shown}: supported values: {words}",
                    "FieldValueNotSupported",
                )
            )
        wrong = ""
        if self.minimum is not None and value < self.minimum:
            wrong = f"should be greater than or equal to {self.minimum}"
        elif self.maximum is not None and value > self.maximum:
            wrong = f"should be less than or equal to {self.maximum}"
        elif self.pattern is not None and not re.search(self.pattern, value):
            wrong = f"should match '{self.pattern}'"
        elif self.format == "date-time" and not _DATE_TIME.match(value):
            wrong = f"must be of type date-time: {json.dumps(value)}"
        if wrong:
            shown = json.dumps(value)
            causes.append(
                Cause(path, f"Invalid value: {shown}: {path} in body {wrong}")
            )

    def openapi(self) -> dict[str, Any]:
        """The schema in OpenAPI v3 terms."""
        if self.type == "any":
            return {"x-kubernetes-preserve-unknown-fields": True}
        if self.type == "int-or-string":
            return {"x-kubernetes-int-or-string": True}
        out: dict[str, Any] = {"type": self.type}
        for key, value in (
            ("enum", list(self.enum) if self.enum else None),
            ("pattern", self.pattern),
            ("minimum", self.minimum),
            ("maximum", self.maximum),
            ("minItems", self.min_items or None),
            ("format", self.format),
            ("required", list(self.required) or None),
            ("items", self.items.openapi() if self.items else None),
            ("additionalProperties", self.values.openapi() if self.values else None),
        ):
            if value is not None:
                out[key] = value
        if self.default is not _MISSING:
            out["default"] = self.default
        if self.properties:
            out["properties"] = {k: s.openapi() for k, s in self.properties.items()}
        return out


_DATE_TIME = re.compile(
    r"^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$"
)


def schema(spec: Any) -> Schema:
    """Build a schema.

    A Schema stands for itself, a list of one for an array, a dict for an
    object ("name!" is required, "*" any key), and a string is one of str,
    int, bool, time, int|str, any, or an enumeration "A|B|C".
    """
    if isinstance(spec, Schema):
        return spec
    if isinstance(spec, list):
        return Schema("array", items=schema(spec[0]))
    if isinstance(spec, dict):
        if "*" in spec:
            return Schema("object", values=schema(spec["*"]))
        return Schema(
            "object",
            properties={k.rstrip("!"): schema(v) for k, v in spec.items()},
            required=tuple(k[:-1] for k in spec if k.endswith("!")),
        )
    simple = {
        "str": Schema("string"),
        "int": Schema("integer"),
        "bool": Schema("boolean"),
        "time": Schema("string", format="date-time"),
        "int|str": Schema("int-or-string"),
        "any": Schema("any"),
    }
    if spec in simple:
        return simple[spec]
    if not isinstance(spec, str) or "|" not in spec:
        raise TypeError(f"no schema: {spec!r}")
    return Schema("string", enum=tuple(spec.split("|")))


def enum(words: str, **more: Any) -> Schema:
    """An enumeration, also of a single word."""
    return Schema("string", enum=tuple(words.split("|")), **more)


def integer(**more: Any) -> Schema:
    return Schema("integer", **more)


def boolean(default: bool) -> Schema:
    return Schema("boolean", default=default)


def string(**more: Any) -> Schema:
    return Schema("string", **more)


def array(item: Any, **more: Any) -> Schema:
    return Schema("array", items=schema(item), **more)
