# Answers as a client wants them: whole objects, tables or metadata, JSON or YAML.
# SPDX-License-Identifier: LGPL-3.0-only
"""Answers."""

from __future__ import annotations

from typing import Any

import yaml
from aiohttp import web

from dws_sim import tables
from dws_sim.jsontree import Object, encode
from dws_sim.negotiate import YAML, Wanted
from dws_sim.schema.resources import Resource


def json_answer(value: Any, status: int = 200) -> web.Response:
    return web.Response(
        body=encode(value), status=status, content_type="application/json"
    )


def answer(value: Any, want: Wanted, status: int = 200) -> web.Response:
    """Response with a value that needs no conversion but to JSON or YAML."""
    if not want.as_yaml:
        return json_answer(value, status)
    text = yaml.safe_dump(value, sort_keys=False)
    return web.Response(text=text, status=status, content_type=YAML)


def _include(request: web.Request) -> str:
    return request.query.get("includeObject", "Metadata")


def of_object(
    request: web.Request, res: Resource, obj: Object, want: Wanted, status: int = 200
) -> web.Response:
    """One object."""
    if want.form == "table":
        meta = {"resourceVersion": obj["metadata"]["resourceVersion"]}
        return answer(tables.table(res, [obj], meta, _include(request)), want, status)
    if want.form == "partial":
        return answer(tables.partial(obj), want, status)
    return answer(obj, want, status)


def of_list(
    request: web.Request, res: Resource, found: Object, want: Wanted
) -> web.Response:
    """A list: as of a kind, with its items."""
    if want.form == "table":
        rows = tables.table(res, found["items"], found["metadata"], _include(request))
        return answer(rows, want)
    if want.form == "partial":
        items = [tables.partial(obj) for obj in found["items"]]
        head = {**found, "apiVersion": tables.META, "kind": "PartialObjectMetadataList"}
        return answer({**head, "items": items}, want)
    return answer(found, want)


class Shown:
    """Objects of a watch, one by one, as a client wants them."""

    def __init__(self, request: web.Request, res: Resource, form: str) -> None:
        self._include = _include(request)
        self._res = res
        self._form = form
        self._is_first = True

    def __call__(self, obj: Object) -> Object:
        if self._form == "partial":
            return tables.partial(obj)
        meta = {"resourceVersion": obj["metadata"]["resourceVersion"]}
        out = tables.table(self._res, [obj], meta, self._include)
        if not self._is_first:
            # the columns are known by now
            out["columnDefinitions"] = None
        self._is_first = False
        return out
