# API errors: an exception that carries a Kubernetes Status object.
# SPDX-License-Identifier: LGPL-3.0-only
"""API errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dws_sim.jsontree import Object

# Retry-After of the API server with 429 and 503.
RETRY_AFTER_S = 1


@dataclass(frozen=True)
class Cause:
    """A fault in a field of an object."""

    field: str
    message: str
    reason: str = "FieldValueInvalid"

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


class ApiError(Exception):
    """A refusal, with the HTTP status and the words of the Status object."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Object | None = None,
        retry_after_s: int = RETRY_AFTER_S,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after_s = retry_after_s

    @property
    def has_retry_after(self) -> bool:
        """Whether the response has a Retry-After."""
        return self.code in (429, 503)

    def status(self) -> Object:
        """The Status object."""
        body: Object = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        }
        if self.reason:
            body["reason"] = self.reason
        if self.details:
            body["details"] = self.details
        return body


def _qualified(group: str, word: str) -> str:
    return f"{word}.{group}" if group else word


def _details(group: str, kind: str, name: str, **more: Any) -> Object:
    details: Object = {"name": name, "kind": kind}
    if group:
        details["group"] = group
    details.update(more)
    return details


def not_found(group: str, plural: str, name: str) -> ApiError:
    return ApiError(
        404,
        "NotFound",
        f'{_qualified(group, plural)} "{name}" not found',
        _details(group, plural, name),
    )


def no_such_path() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def already_exists(group: str, plural: str, name: str) -> ApiError:
    return ApiError(
        409,
        "AlreadyExists",
        f'{_qualified(group, plural)} "{name}" already exists',
        _details(group, plural, name),
    )


def conflict(group: str, plural: str, name: str, why: str = "") -> ApiError:
    why = why or (
        "the object has been modified; please apply your changes to the "
        "latest version and try again"
    )
    return ApiError(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {_qualified(group, plural)} "{name}": {why}',
        _details(group, plural, name),
    )


def invalid(group: str, kind: str, name: str, causes: Sequence[Cause]) -> ApiError:
    texts: list[str] = [str(c) for c in causes]
    text = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    return ApiError(
        422,
        "Invalid",
        f'{_qualified(group, kind)} "{name}" is invalid: {text}',
        _details(
            group,
            kind,
            name,
            causes=[
                {"reason": c.reason, "message": c.message, "field": c.field}
                for c in causes
            ],
        ),
    )


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def forbidden(message: str, details: Object | None = None) -> ApiError:
    return ApiError(403, "Forbidden", message, details)


def denied(webhook: str, text: str) -> ApiError:
    """A refusal by an admission webhook."""
    return forbidden(f'admission webhook "{webhook}" denied the request: {text}')


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")


def expired(message: str) -> ApiError:
    return ApiError(410, "Expired", message)


def too_large_version(wanted: int, now: int) -> ApiError:
    """The refusal to read what is still to come."""
    cause = {
        "reason": "ResourceVersionTooLarge",
        "message": "Too large resource version",
    }
    return ApiError(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {wanted}, current: {now}",
        {"causes": [cause], "retryAfterSeconds": 1},
    )


def method_not_allowed() -> ApiError:
    return ApiError(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
    )
