# Parses writes of clients: bodies, patches, and fields that the kind does not know.
# SPDX-License-Identifier: LGPL-3.0-only
"""Bodies of writes."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web

from dws_sim import apply, errors, metadata, negotiate
from dws_sim.convert import from_version, to_version
from dws_sim.errors import ApiError
from dws_sim.jsontree import Object
from dws_sim.negotiate import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
)
from dws_sim.patch import json_patch, merge_patch
from dws_sim.schema.resources import Resource
from dws_sim.store import Store
from dws_sim.strategic import strategic_merge

_IDENTITY = ("apiVersion", "kind", "metadata")
_MODES = ("", "Ignore", "Strict", "Warn")
# Known fields of metadata that are not stored.
_METADATA = ("managedFields", "selfLink")


def dry_run(request: web.Request, kind: str, options: Object | None = None) -> bool:
    """Whether a write shall only be tried.

    Raises:
        ApiError: 422, there is but one way to do that: "All".
    """
    wanted = (options or {}).get("dryRun") or request.query.getall("dryRun", [])
    if not isinstance(wanted, list) or not all(isinstance(w, str) for w in wanted):
        raise errors.bad_request("dryRun must be a list of strings")
    if set(wanted) - {"All"}:
        shown = ", ".join(json.dumps(word) for word in wanted)
        text = f'Unsupported value: []string{{{shown}}}: supported values: "All"'
        cause = errors.Cause("dryRun", text, "FieldValueNotSupported")
        raise errors.invalid("meta.k8s.io", kind, "", [cause])
    return bool(wanted)


def unknown_fields(res: Resource, body: Any) -> list[str]:
    """Fields of a body that its kind does not know."""
    if res.body is None or not isinstance(body, dict):
        return []
    rest = {k: v for k, v in body.items() if k not in _IDENTITY}
    meta = body.get("metadata")
    known = (*metadata.KEPT, *_METADATA)
    mine = meta if isinstance(meta, dict) else {}
    return [
        *(f"metadata.{key}" for key in mine if key not in known),
        *res.body.unknown(rest),
    ]


def _shown(found: list[str]) -> str:
    return ", ".join(f'unknown field "{field}"' for field in sorted(found))


class Checker:
    """Handles unknown fields by the request's fieldValidation: drop, warn or reject."""

    def __init__(self, request: web.Request, res: Resource, version: str) -> None:
        """Raises ApiError 422: fieldValidation has an unknown value."""
        self._mode = request.query.get("fieldValidation") or "Warn"
        self._res = res
        self._version = version
        self.warnings: list[str] = []
        if self._mode not in _MODES:
            words = ", ".join(f'"{word}"' for word in _MODES)
            text = f'Unsupported value: "{self._mode}": supported values: {words}'
            cause = errors.Cause("fieldValidation", text, "FieldValueNotSupported")
            kind = {"POST": "Create", "PUT": "Update"}.get(request.method, "Patch")
            raise errors.invalid("meta.k8s.io", f"{kind}Options", "", [cause])

    def check(self, body: Any, is_patched: bool = False) -> None:
        """Look through a body.

        Args:
            is_patched: a patch has made it of the stored one.
        Raises:
            ApiError: it has unknown fields, and the client is strict.
        """
        found = [] if self._mode == "Ignore" else unknown_fields(self._res, body)
        if found and self._mode == "Strict":
            text = f"strict decoding error: {_shown(found)}"
            if not is_patched:
                kind = self._res.kind
                raise errors.bad_request(
                    f'{kind} in version "{self._version}" cannot be handled as a '
                    f"{kind}: {text}"
                )
            shown = json.dumps(json.dumps(body, separators=(",", ":"), sort_keys=True))
            cause = errors.Cause("patch", f"Invalid value: {shown}: {text}")
            raise errors.invalid("", "", "", [cause])
        self.warnings += [f'unknown field "{field}"' for field in sorted(found)]


def patch(
    store: Store,
    request: web.Request,
    raw: bytes,
    place: tuple[Resource, str, str, str, str],
    may_create: bool,
) -> tuple[Object, bool, list[str]]:
    """Patch an object.

    Args:
        place: resource, version, namespace, name and subresource.
        may_create: whether the user may create a missing object by an apply.
    Returns:
        The object, whether it is new, and warnings.
    Raises:
        ApiError: it cannot be done.
    """
    res, version, namespace, name, sub = place
    if request.content_type == APPLY_PATCH:
        return _apply(store, request, raw, place, may_create)
    own = res.body is None
    kinds: dict[str, Any] = {JSON_PATCH: json_patch, MERGE_PATCH: merge_patch}
    if own:
        kinds[STRATEGIC_PATCH] = strategic_merge
    make = kinds.get(request.content_type)
    if make is None:
        raise negotiate.unsupported(*kinds, APPLY_PATCH)
    body = negotiate.decode_json(raw)
    if make is not json_patch and not isinstance(body, dict):
        raise errors.bad_request("a merge patch of an object must be an object")
    checker = Checker(request, res, version)
    old = store.get(res, namespace, name)
    new = make(to_version(res, old, version), body)
    checker.check(new, True)
    new = from_version(res, new, version)
    dry = dry_run(request, "PatchOptions")
    obj = store.update(res, namespace, name, new, sub, dry_run=dry)
    return obj, False, checker.warnings


def _apply(
    store: Store,
    request: web.Request,
    raw: bytes,
    place: tuple[Resource, str, str, str, str],
    may_create: bool,
) -> tuple[Object, bool, list[str]]:
    """Apply a configuration as its field manager."""
    res, version, namespace, name, sub = place
    config = negotiate.decode_yaml(raw)
    manager = request.query.get("fieldManager", "")
    if not manager:
        text = "Required value: is required for apply patch"
        cause = errors.Cause("fieldManager", text, "FieldValueRequired")
        raise errors.invalid("meta.k8s.io", "PatchOptions", "", [cause])
    if not isinstance(config, dict) or not isinstance(config.get("metadata", {}), dict):
        raise errors.bad_request("the object applied must be an object")
    config = {"apiVersion": res.at(version), "kind": res.kind, **config}
    config["metadata"] = {"name": name, **config.get("metadata", {})}
    _check_declared(res, version, namespace, name, config)
    force = request.query.get("force", "") in ("true", "1", "True")
    dry = dry_run(request, "PatchOptions")
    old = store.peek(res, namespace, name)
    core = res.body is None
    if old is None:
        if sub:
            store.get(res, namespace, name)
        if not may_create:
            raise errors.forbidden(f'{res.qualified} "{name}" cannot be created')
        if config["metadata"]["name"] != name:
            raise errors.bad_request("the name of the object is not that of the URL")
        new, managed = apply.applied(None, config, manager, force, core)
        new = from_version(res, new, version)
        return store.create(res, namespace, new, dry, managed), True, []
    live = to_version(res, old, version)
    new, managed = apply.applied(live, config, manager, force, core)
    new = from_version(res, new, version)
    obj = store.update(res, namespace, name, new, sub, dry_run=dry, managed=managed)
    return obj, False, []


def _check_declared(
    res: Resource, version: str, namespace: str, name: str, config: Object
) -> None:
    """Raises ApiError: the configuration has a field that its kind does not know."""
    found = unknown_fields(res, config)
    if found:
        where = f"{namespace}/{name}" if namespace else f"/{name}"
        raise ApiError(
            500,
            "",
            f"failed to create typed patch object ({where}; {res.at(version)}, "
            f"Kind={res.kind}): .{sorted(found)[0]}: field not declared in schema",
        )
