# Kubernetes objects: JSON that the API server has written, and what it is about.
# SPDX-License-Identifier: LGPL-3.0-only
"""Objects as Kubernetes has them."""

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
    """What is beyond 64 bits is no integer."""
    value = int(word)
    return value if -(2**63) <= value < 2**64 else float(value)


_decode = json.JSONDecoder(parse_constant=_no_number, parse_int=_integer).decode
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def parse(text: bytes) -> Any:
    """JSON that somebody else has written. What the module cannot have in a string,
    NUL and half of a surrogate pair, is replaced.

    Raises:
        ValueError: it is none, or nested too deeply.
    """
    if msgspec is not None and b"\\u0000" not in text:
        try:
            return msgspec.json.decode(text)
        except (ValueError, RecursionError):
            pass  # json takes half of a pair, or says what is wrong
    try:
        value = _decode(text.decode())
        return _readable(value) if b"\\u" in text else value
    except RecursionError as exc:
        raise ValueError("JSON is nested too deeply") from exc
    except OverflowError as exc:
        raise ValueError("a number is too large") from exc


def to_json(value: Any) -> bytes:
    """Raises ValueError if it is nested too deeply."""
    if msgspec is not None:
        try:
            return msgspec.json.encode(value)
        except (ValueError, OverflowError, RecursionError):
            pass  # half of a surrogate pair, or json says what is wrong
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
    """Whether it is a Kubernetes object with a name."""
    metadata = answer.get("metadata") if isinstance(answer, dict) else None
    return isinstance(metadata, dict) and isinstance(metadata.get("name"), str)


def metadata_of(obj: Object) -> Object:
    """What says which object this is: its metadata, as Kubernetes has it, or all of a
    flat one, as it goes to the module (flux_k8s.fields)."""
    return obj.get("metadata") or obj


def name_of(obj: Object) -> Name:
    """Raises KeyError if it has none."""
    metadata = metadata_of(obj)
    return str(metadata.get("namespace") or ""), metadata["name"]


def position_of(obj: Object) -> Any:
    """The resource version as it stands there, text if it is right."""
    metadata = metadata_of(obj)
    return metadata.get("resourceVersion") or metadata.get("version")


def version_of(obj: Object) -> int:
    """Its resource version, 0 if it has none that is a number."""
    return version_number(position_of(obj))


def version_number(text: Any) -> int:
    digits = isinstance(text, str) and text.isascii() and text.isdigit()
    return int(text) if digits and len(text) < 20 else 0
