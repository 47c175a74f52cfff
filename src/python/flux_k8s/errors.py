# The error of a request to Kubernetes, which tells whether a retry may succeed.
# SPDX-License-Identifier: LGPL-3.0-only
"""Errors of requests."""

from __future__ import annotations

from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any

from flux_k8s.objects import parse

# Our reasons for a request without a usable answer.
UNREACHABLE = "Unreachable"  # no connection: nothing else gets through either
BROKEN = "Broken"  # the connection, or the answer, ended early or never came
TOO_LARGE = "TooLarge"  # the answer is larger than any that makes sense

# The most that is kept of a server's error text.
MESSAGE_CHARS = 4096

# The longest pause that a server can request.
RETRY_AFTER_CAP_S = 300.0


def retry_after_s(header: str | None) -> float | None:
    """Seconds from a Retry-After header: a number, or a date (RFC 9110)."""
    if header is None:
        return None
    header = header.strip()
    if header.isascii() and header.isdigit():
        return min(float(header), RETRY_AFTER_CAP_S)
    try:
        date = parsedate_to_datetime(header)
    except (TypeError, ValueError, OverflowError, IndexError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=timezone.utc)
    left_s = (date - datetime.now(timezone.utc)).total_seconds()
    return min(max(left_s, 0.0), RETRY_AFTER_CAP_S)


class ApiError(Exception):
    """A request that did not succeed.

    Attributes:
        status: HTTP status, or 0 without an answer of the API server.
        reason: the API server's reason word, such as "AlreadyExists".
        message: the API server's own text, or the error of the connection.
        retry_after_s: the pause that the server requested with 429 or 503, else None.
    """

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        retry_after_s: float | None = None,
    ) -> None:
        if len(message) > MESSAGE_CHARS:
            more = len(message) - MESSAGE_CHARS
            message = f"{message[:MESSAGE_CHARS]} ... ({more} more characters)"
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s

    @property
    def transient(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status in (0, 401, 408, 429) or self.status >= 500

    @classmethod
    def from_response(
        cls, status: int, body: bytes, retry_after: str | None = None
    ) -> ApiError:
        """Read the Status object of an answer (spec/dws-api.md section 10)."""
        answer: Any = None
        try:
            answer = parse(body)
        except ValueError:
            pass
        if isinstance(answer, dict) and answer.get("kind") == "Status":
            reason = str(answer.get("reason") or "")
            message = str(answer.get("message") or "")
        else:
            # Plain text, such as that of a proxy or of a starting server.
            reason = BROKEN
            message = body[:512].decode("utf-8", errors="replace").strip()
        delay = retry_after_s(retry_after)
        return cls(status, reason, message or f"HTTP status {status}", delay)
