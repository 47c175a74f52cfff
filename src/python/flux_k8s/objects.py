# Kubernetes objects, decoded no further than needed.
# SPDX-License-Identifier: LGPL-3.0-only
"""Objects as Kubernetes has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from flux_k8s.dws import skim

Name = tuple[str, str]  # namespace and name

# Compact. json.dumps() would make an encoder each time.
to_json = json.JSONEncoder(separators=(",", ":")).encode


class Object(dict[str, Any]):
    """A JSON object, with the text that it was read from as long as nobody has
    changed it: what is only passed on need not be encoded again."""

    __slots__ = ("text",)

    def __init__(self, values: Mapping[str, Any], text: bytes | None = None) -> None:
        super().__init__(values)
        self.text = text

    @classmethod
    def skimmed(cls, text: bytes) -> Object | None:
        """Of what is only passed on no more than what and which it is (dws.skim());
        whole() has the rest. None if that is not enough to be sure of it."""
        found = skim(text)
        return None if found is None else cls(*found)

    def whole(self) -> Object:
        """All of it."""
        return self if self.text is None else Object(json.loads(self.text), self.text)


def is_object(answer: Mapping[str, Any]) -> bool:
    """Whether it is a Kubernetes object with a name."""
    metadata = answer.get("metadata")
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
    return int(text) if digits else 0
