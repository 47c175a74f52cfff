# Kubernetes objects: decoding and encoding of their JSON, names and versions.
# SPDX-License-Identifier: LGPL-3.0-only
"""Objects of Kubernetes."""

from __future__ import annotations

import json
from typing import Any

try:
    import msgspec as msgspec
except ImportError:  # as on Debian 12: json does the same, and takes longer
    msgspec = None  # type: ignore[assignment]

Object = dict[str, Any]
Name = tuple[str, str]  # namespace and name


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def _integer(word: str) -> int | float:
    """An integer of JSON; one beyond 64 bits becomes a float."""
    value = int(word)
    return value if -(2**63) <= value < 2**64 else float(value)


_decode = json.JSONDecoder(parse_constant=_no_number, parse_int=_integer).decode
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def parse(text: bytes) -> Any:
    """Decode JSON from outside. Replaces NUL and halves of surrogate pairs in strings,
    which the module rejects.

    Raises:
        ValueError: the text is not JSON, or nested too deeply.
    """
    if msgspec is not None and b"\\u0000" not in text:
        try:
            return msgspec.json.decode(text)
        except (ValueError, RecursionError):
            pass  # json accepts half of a pair, or names the fault
    try:
        value = _decode(text.decode())
        return _readable(value) if b"\\u" in text else value
    except RecursionError as exc:
        raise ValueError("JSON is nested too deeply") from exc
    except OverflowError as exc:
        raise ValueError("a number is too large") from exc


def to_json(value: Any) -> bytes:
    """Encode a value. Raises ValueError if it is nested too deeply."""
    if msgspec is not None:
        try:
            return msgspec.json.encode(value)
        except (ValueError, OverflowError, RecursionError):
            pass  # half of a surrogate pair, or json names the fault
    try:
        return _encode(_readable(value)).encode()
    except RecursionError as exc:
        raise ValueError("nested too deeply") from exc


def _readable(value: Any) -> Any:
    if isinstance(value, str):
        data = value.replace("\0", "\ufffd").encode("utf-16-le", "surrogatepass")
        return data.decode("utf-16-le", "replace")
    if isinstance(value, list):
        return [_readable(entry) for entry in value]
    if isinstance(value, dict):
        return {_readable(key): _readable(entry) for key, entry in value.items()}
    return value


def is_object(answer: Any) -> bool:
    """Whether an answer is a Kubernetes object with a name."""
    metadata = answer.get("metadata") if isinstance(answer, dict) else None
    return isinstance(metadata, dict) and isinstance(metadata.get("name"), str)


def metadata_of(obj: Object) -> Object:
    """The holder of an object's name and version: its metadata in Kubernetes, or the
    flat record for the module itself (flux_k8s.fields)."""
    return obj.get("metadata") or obj


def name_of(obj: Object) -> Name:
    """Namespace and name of an object. Raises KeyError without a name."""
    metadata = metadata_of(obj)
    return str(metadata.get("namespace") or ""), metadata["name"]


def position_of(obj: Object) -> Any:
    """The raw resource version, which should be a text."""
    metadata = metadata_of(obj)
    return metadata.get("resourceVersion") or metadata.get("version")


def version_of(obj: Object) -> int:
    """The resource version as a number, 0 if it is none."""
    return version_number(position_of(obj))


def version_number(text: Any) -> int:
    if not isinstance(text, str) or len(text) >= 20:
        return 0
    return int(text) if text.isdigit() and text.isascii() else 0
