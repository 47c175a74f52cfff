# The two patch types that custom resources take: JSON merge patch (RFC 7396)
# and JSON patch (RFC 6902). The functions return a new tree.
# SPDX-License-Identifier: LGPL-3.0-only
"""Patches."""

from __future__ import annotations

from typing import Any

from dws_sim.errors import ApiError, bad_request
from dws_sim.jsontree import clone, number


def merge_patch(target: Any, patch: Any) -> Any:
    """Apply a merge patch: objects are merged, null deletes, all else
    (arrays too) replaces."""
    if not isinstance(patch, dict):
        return clone(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def _fault() -> ApiError:
    """The error of a failed operation, which the API server does not name."""
    text = "the server rejected our request due to an error in our request"
    return ApiError(422, "Invalid", text)


def _tokens(pointer: Any) -> list[str]:
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise bad_request(f"bad JSON pointer {pointer!r}")
    return [t.replace("~1", "/").replace("~0", "~") for t in pointer.split("/")[1:]]


def _index(token: str, length: int) -> int:
    # "01" and "-1" are no array indexes
    index = number(token)
    if index is None or (len(token) > 1 and token[0] == "0"):
        raise _fault()
    if index >= length:
        raise _fault()
    return index


def _get(doc: Any, tokens: list[str]) -> Any:
    for token in tokens:
        if isinstance(doc, list):
            doc = doc[_index(token, len(doc))]
        elif isinstance(doc, dict) and token in doc:
            doc = doc[token]
        else:
            raise _fault()
    return doc


def _add(doc: Any, tokens: list[str], value: Any) -> Any:
    if not tokens:
        return value
    parent, last = _get(doc, tokens[:-1]), tokens[-1]
    if isinstance(parent, list):
        at = len(parent) if last == "-" else _index(last, len(parent) + 1)
        parent.insert(at, value)
    elif isinstance(parent, dict):
        parent[last] = value
    else:
        raise _fault()
    return doc


def _remove(doc: Any, tokens: list[str]) -> tuple[Any, Any]:
    if not tokens:
        return None, doc
    old = _get(doc, tokens)
    parent, last = _get(doc, tokens[:-1]), tokens[-1]
    if isinstance(parent, list):
        del parent[_index(last, len(parent))]
    else:
        del parent[last]
    return doc, old


def json_patch(target: Any, operations: Any) -> Any:
    """Apply a JSON patch.

    Raises:
        ApiError: 400 for a malformed patch, 422 when an operation fails.
    """
    if not isinstance(operations, list):
        raise bad_request("a JSON patch is an array of operations")
    doc = clone(target)
    for op in operations:
        if not isinstance(op, dict) or "op" not in op or "path" not in op:
            raise bad_request("a JSON patch operation has op and path")
        doc = _operation(doc, op)
    return doc


def _operation(doc: Any, op: Any) -> Any:
    kind, path = op["op"], _tokens(op["path"])
    if kind in ("add", "replace", "test") and "value" not in op:
        raise bad_request(f"{kind} needs a value")
    if kind == "add":
        return _add(doc, path, clone(op["value"]))
    if kind == "remove":
        return _remove(doc, path)[0]
    if kind == "replace":
        doc, _ = _remove(doc, path)
        return _add(doc, path, clone(op["value"]))
    if kind == "test":
        if _get(doc, path) != op["value"]:
            raise _fault()
        return doc
    if kind in ("move", "copy"):
        source = _tokens(op.get("from"))
        if kind == "move":
            doc, value = _remove(doc, source)
        else:
            value = clone(_get(doc, source))
        return _add(doc, path, value)
    raise bad_request(f"unknown JSON patch operation {kind!r}")
