# The ends of the logs of a workflow's containers, read before they vanish.
# SPDX-License-Identifier: LGPL-3.0-only
"""Container logs (doc/protocol.md, command `logs`)."""

from __future__ import annotations

from typing import Any

from flux_k8s.errors import BROKEN, ApiError
from flux_k8s.kube import Kube

# The limit on all logs of a job together.
TOTAL_BYTES = 256 * 1024
# The most to read of one log in order to find its end.
READ_BYTES = 1024 * 1024


TAIL_LINES = (1000, 100, 10, 1)
# Tries for a log whose node does not answer.
NODE_TRIES = 2


def _is_of_node(error: ApiError) -> bool:
    """Whether the node may be the cause of an error: the API server fetches the log
    from it, and passes errors on or times out."""
    return error.status in (500, 502, 504) or (
        error.status == 0 and error.reason == BROKEN
    )


async def _ask(
    kube: Kube, place: tuple[str, str, str], lines: int, since_s: int | None
) -> bytes:
    """The end of a log. Raises ApiError 404 after NODE_TRIES on a dead node, as the end
    of the job waits for its logs."""
    for _ in range(NODE_TRIES):
        try:
            return await kube.apod_log(*place, lines, READ_BYTES, since_s)
        except ApiError as exc:
            if not _is_of_node(exc):
                raise
            error = exc
    raise ApiError(404, error.reason, error.message) from error


async def _read(
    kube: Kube, place: tuple[str, str, str], since_s: int | None
) -> tuple[str, bool]:
    """The end of a log, and whether more may precede it. Ask for fewer lines if these
    are so long that READ_BYTES cuts off the end."""
    data, lines = b"", 0
    for lines in TAIL_LINES:
        data = await _ask(kube, place, lines, since_s)
        if len(data) < READ_BYTES:
            break
    # Not splitlines(): a line may contain carriage returns.
    found = data.count(b"\n") + (data[-1:] not in (b"", b"\n"))
    more = len(data) >= READ_BYTES or found >= lines
    return data.decode(errors="replace").replace("\0", "\ufffd"), more


def tail(text: str, limit_bytes: int, stamped: bool = False) -> tuple[str, bool]:
    """The last `limit_bytes` of a text, from the beginning of a line if possible, and
    whether the beginning of the text is missing. If lines are `stamped`, also a line
    whose beginning is missing has its timestamp."""
    data = text.encode(errors="replace")
    if len(data) <= limit_bytes:
        return text, False
    begin = max(0, len(data) - max(0, limit_bytes))
    end, stamp = data[begin:], b""
    newline = end.find(b"\n")
    if 0 <= newline < len(end) - 1:
        end = end[newline + 1 :]
    elif stamped:
        line = data[data.rfind(b"\n", 0, begin) + 1 :]
        stamp = line[: line.find(b" ") + 1]
        stamp, end = (stamp, end[len(stamp) :]) if len(stamp) < len(end) else (b"", b"")
    return (stamp + end).decode(errors="ignore"), True


async def read_logs(
    kube: Kube,
    namespace: str,
    selector: str,
    limit_bytes: int,
    since_s: int | None = None,
) -> list[dict[str, Any]]:
    """The end of the log of each container of the selected pods.

    Args:
        limit_bytes: limit for each container.
        since_s: only lines of the last `since_s` seconds, 0: all. Unless None, each
            line begins with its timestamp.
    Returns:
        Objects with pod, node, phase, container, log, truncated, and error if
        the log could not be read.
    Raises:
        ApiError: the pods could not be listed, or the server is in trouble.
    """
    entries: list[dict[str, Any]] = []
    left = TOTAL_BYTES
    pods = await kube.alist_in("pods", namespace, selector)
    pods.sort(key=lambda pod: str(pod["metadata"]["name"]))
    for pod in pods:
        name = str(pod["metadata"]["name"])
        spec, status = pod.get("spec") or {}, pod.get("status") or {}
        for container in spec.get("containers") or []:
            entry = {
                "pod": name,
                "node": spec.get("nodeName") or "",
                "phase": status.get("phase") or "",
                "container": str(container.get("name") or ""),
            }
            limit = min(limit_bytes, left)
            try:
                place = (namespace, name, entry["container"])
                text, more = await _read(kube, place, since_s)
                entry["log"], cut = tail(text, limit, since_s is not None)
                entry["truncated"] = cut or more
                left -= len(entry["log"].encode(errors="replace"))
            except ApiError as exc:
                if exc.transient:
                    raise
                entry.update(log="", truncated=False, error=exc.message)
            entries.append(entry)
    return entries
