# Lists of Kubernetes objects, in parts: kube.py asks for them.
# SPDX-License-Identifier: LGPL-3.0-only
"""Lists, part by part."""

from __future__ import annotations

from typing import Callable
from urllib.parse import urlencode

from flux_k8s.errors import BROKEN, TOO_LARGE, ApiError
from flux_k8s.loop import Task
from flux_k8s.objects import Object, is_object, parse

# Tries of a list whose beginning the server forgets (410) before the end is read.
LIST_TRIES = 4
# Objects per request of a list.
LIST_PART = 500
# The size limit of a list in all its parts: a faulty server may never end it.
LIST_BYTES = 256 << 20

# Objects of a part of a list, its resource version, and where the list goes on.
Part = tuple[list[Object], str, str]
Pick = Callable[[list[Object]], list[Object]]


def decoded(data: bytes, what: str) -> Object:
    try:
        value = parse(data)
    except ValueError as exc:
        raise ApiError(0, BROKEN, f"{what}: {exc}") from exc
    if not isinstance(value, dict):
        raise ApiError(0, BROKEN, f"{what}: not a JSON object")
    return value


def as_they_are(objects: list[Object]) -> list[Object]:
    return objects


def decoded_part(data: bytes, what: str) -> Part:
    answer = decoded(data, what)
    metadata, items = answer.get("metadata") or {}, answer.get("items") or []
    if (
        not isinstance(metadata, dict)
        or not isinstance(items, list)
        or not all(is_object(item) for item in items)
    ):
        raise ApiError(0, BROKEN, f"{what}: no list of objects")
    version, more = metadata.get("resourceVersion"), metadata.get("continue")
    return items, str(version or ""), str(more or "")


async def read(
    send: Callable[[str], Task[bytes]],
    path: str,
    pick: Pick,
    selector: str = "",
    limit: int = LIST_PART,
    recent: bool = False,
) -> tuple[list[Object], str]:
    """The objects of a list, and its resource version.

    Args:
        send: requests a path; returns the body of the answer.
        pick: reduces the objects of each part when it arrives.
        selector: label selector, or "" for all.
        limit: objects per request.
        recent: accept objects that are some seconds old.
    """
    objects: list[Object] = []
    size = 0
    query = {"limit": str(limit)}
    if recent:
        query["resourceVersion"] = "0"
    if selector:
        query["labelSelector"] = selector
    while True:
        url = f"{path}?{urlencode(query)}"
        try:
            data = await send(url)
        except ApiError as exc:
            if exc.reason != TOO_LARGE or limit <= 1:
                raise
            limit //= 2
            query["limit"] = str(limit)
            continue
        size += len(data)
        if size > LIST_BYTES:
            kind = path.rpartition("/")[2]
            text = f"the list of {kind} is more than {LIST_BYTES >> 20} MiB"
            raise ApiError(0, TOO_LARGE, text)
        part, version, more = decoded_part(data, f"GET {url}")
        objects.extend(pick(part))
        if not more:
            return objects, version
        if more == query.get("continue"):
            raise ApiError(0, BROKEN, f"GET {path}: the list does not go on")
        query["continue"] = more
        query.pop("resourceVersion", None)  # part of "continue"
