# Negotiates media types: of the bodies that clients send, and of the answers.
# SPDX-License-Identifier: LGPL-3.0-only
"""Content negotiation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from dws_sim import errors, proto
from dws_sim.errors import ApiError
from dws_sim.jsontree import Object, decode

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
BODIES = (JSON, YAML, PROTOBUF)
_AS = {
    "Table": "table",
    "PartialObjectMetadata": "partial",
    "PartialObjectMetadataList": "partial",
}


@dataclass(frozen=True)
class Wanted:
    """How a client wants objects: whole, as rows of a table, or their metadata."""

    form: str = "whole"  # whole, table, partial
    as_yaml: bool = False


WHOLE = Wanted()


def _words(text: str) -> list[tuple[str, dict[str, str]]]:
    """The media types of an Accept header, with their parameters."""
    out = []
    for part in text.split(","):
        words = [word.strip() for word in part.split(";")]
        pairs = (word.partition("=")[::2] for word in words[1:])
        if words[0]:
            out.append((words[0].lower(), dict(pairs)))
    return out


def wanted(accept: str) -> Wanted:
    """The form of the answer to this Accept header: its first supported entry.

    Raises:
        ApiError: 406, no entry is supported.
    """
    if accept in ("", "*/*", JSON):
        return WHOLE
    for media, more in _words(accept):
        if media in ("*/*", "application/*"):
            return WHOLE
        if media not in (JSON, YAML):
            continue
        if "as" not in more:
            return Wanted(as_yaml=media == YAML)
        known = more.get("g") == "meta.k8s.io" and more.get("v") == "v1"
        if known and more["as"] in _AS:
            return Wanted(_AS[more["as"]], media == YAML)
    raise not_acceptable(JSON, YAML)


def not_acceptable(*types: str) -> ApiError:
    return ApiError(
        406,
        "NotAcceptable",
        f"only the following media types are accepted: {', '.join(types)}",
    )


def accepts_json(accept: str) -> bool:
    """Whether plain JSON is among what a client takes."""
    media = {word for word, _ in _words(accept)}
    return not media or bool(media & {JSON, "*/*", "application/*"})


def unsupported(*types: str) -> ApiError:
    return ApiError(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types "
        f"include: {', '.join(types)}",
    )


def decode_json(raw: bytes) -> Any:
    """Raises ApiError 400: it is none."""
    try:
        return decode(raw)
    except ValueError as exc:
        raise errors.bad_request(f"the object provided is unrecognized: {exc}") from exc


def decode_yaml(raw: bytes) -> Any:
    """YAML, of which JSON is part. Raises ApiError 400: it is none."""
    try:
        return decode(raw)
    except ValueError:
        pass
    try:
        value = yaml.safe_load(raw)
    except (yaml.YAMLError, ValueError, RecursionError) as exc:
        raise errors.bad_request(f"error decoding YAML: {exc}") from exc
    return _plain(value)


def _plain(value: Any) -> Any:
    """Convert values of YAML that JSON lacks: dates, and keys that are no strings."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if value is None or isinstance(value, (str, int, float)):
        return value
    return str(value)


def body(content_type: str, raw: bytes, takes_protobuf: bool) -> Any:
    """The object that a client sends.

    Args:
        takes_protobuf: Kubernetes has no protobuf for custom resources.
    Raises:
        ApiError: 415, its media type is not supported; 400, it does not match its
            media type.
    """
    if content_type in ("", JSON, "application/octet-stream"):
        return decode_json(raw)
    if content_type == YAML:
        return decode_yaml(raw)
    if content_type == PROTOBUF and takes_protobuf:
        try:
            found: Object = proto.decode(raw)
        except proto.UnknownFieldError as exc:
            raise unsupported(*BODIES) from exc
        except ValueError as exc:
            raise errors.bad_request(f"protobuf: {exc}") from exc
        return found
    raise unsupported(*BODIES)
