# Kubernetes objects, decoded no further than needed.
# SPDX-License-Identifier: LGPL-3.0-only
"""Objects as Kubernetes has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from flux_k8s.skim import skim

Name = tuple[str, str]  # namespace and name

# Compact. json.dumps() would make an encoder each time.
to_json = json.JSONEncoder(separators=(",", ":")).encode


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


_decode = json.JSONDecoder(parse_constant=_no_number).decode


def parse(text: bytes) -> Any:
    """JSON that somebody else has written. What the module cannot have in a string,
    NUL and half of a surrogate pair, is replaced.

    Raises:
        ValueError: it is none, or nested too deeply.
    """
    try:
        value = _decode(text.decode())
        return _readable(value) if _has_escapes(text) else value
    except RecursionError as exc:
        raise ValueError("JSON is nested too deeply") from exc


def _has_escapes(text: bytes) -> bool:
    return b"\\u" in text


def _readable(value: Any) -> Any:
    if isinstance(value, str):
        data = value.replace("\0", "\ufffd").encode("utf-16-le", "surrogatepass")
        return data.decode("utf-16-le", "replace")
    if isinstance(value, list):
        return [_readable(entry) for entry in value]
    if isinstance(value, dict):
        return {_readable(key): _readable(entry) for key, entry in value.items()}
    return value


class Object(dict[str, Any]):
    """A JSON object, with the text that it was read from as long as nobody has
    changed it: what is only passed on need not be encoded again."""

    __slots__ = ("text",)

    def __init__(self, values: Mapping[str, Any], text: bytes | None = None) -> None:
        super().__init__(values)
        self.text = text

    @classmethod
    def skimmed(cls, text: bytes) -> Object | None:
        """Of what is only passed on no more than what and which it is (skim());
        whole() has the rest. None if that is not enough to be sure of it."""
        found = skim(text)
        return None if found is None else cls(*found)

    @classmethod
    def decoded(cls, text: bytes) -> Object:
        """Raises ValueError if it is no object."""
        value = parse(text)
        if not isinstance(value, dict):
            raise ValueError("not a JSON object")
        return cls(value, None if _has_escapes(text) else text)

    def whole(self) -> Object:
        """All of it."""
        return self if self.text is None else Object(json.loads(self.text), self.text)


def is_object(answer: Any) -> bool:
    """Whether it is a Kubernetes object with a name."""
    metadata = answer.get("metadata") if isinstance(answer, dict) else None
    return isinstance(metadata, dict) and isinstance(metadata.get("name"), str)


def name_of(obj: dict[str, Any]) -> Name:
    """Raises KeyError if an object has none."""
    metadata = obj["metadata"]
    return str(metadata.get("namespace") or ""), metadata["name"]


def version_of(obj: dict[str, Any]) -> int:
    """An object's resource version, 0 if it has none that is a number."""
    return version_number((obj.get("metadata") or {}).get("resourceVersion"))


def version_number(text: Any) -> int:
    digits = isinstance(text, str) and text.isascii() and text.isdigit()
    return int(text) if digits and len(text) < 20 else 0
