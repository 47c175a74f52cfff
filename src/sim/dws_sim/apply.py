# Server-side apply: records the managers of fields, removes fields without a manager,
# and reports conflicts. Fields that were never applied belong to MANAGER.
# SPDX-License-Identifier: LGPL-3.0-only
"""Server-side apply."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from dws_sim.errors import ApiError
from dws_sim.fields import MANAGER
from dws_sim.jsontree import Object, clone, now_seconds
from dws_sim.strategic import key_of

# Trees of owned fields, as managedFields has them: "f:NAME" is a field, "k:{...}"
# an entry of a list by its key, "v:..." a plain one; a leaf has nothing below it.
Tree = dict[str, Any]
_OF_ALL = ("name", "namespace", "managedFields", "uid", "resourceVersion")
_SERVERS = ("creationTimestamp", "generation", "selfLink", "deletionTimestamp")


def _entries(name: str, items: list[Any], core: bool) -> dict[str, Any] | None:
    """The entries of a list by their names in a tree; None: it is one value."""
    if name != "finalizers" and name != "ownerReferences" and not core:
        return None
    key = key_of(name, items)
    if key is None:
        return None
    if key == "":
        return {"v:" + json.dumps(item): item for item in items}
    return {
        "k:" + json.dumps({key: item[key]}, separators=(",", ":")): item
        for item in items
    }


def tree_of(value: Any, core: bool, name: str = "") -> Tree:
    """The fields of a value; core: of a kind whose lists have keys."""
    if isinstance(value, dict):
        return {f"f:{k}": tree_of(v, core, k) for k, v in value.items()}
    if isinstance(value, list):
        entries = _entries(name, value, core)
        return {k: tree_of(v, core) for k, v in (entries or {}).items()}
    return {}


def _intent(config: Object) -> Object:
    """The fields that a configuration sets, without those that identify the object."""
    meta = config.get("metadata", {})
    mine = {k: v for k, v in meta.items() if k not in _OF_ALL + _SERVERS}
    rest = {k: v for k, v in config.items() if k not in ("apiVersion", "kind")}
    rest.pop("metadata", None)
    return {**rest, **({"metadata": mine} if mine else {})}


def _leaves(tree: Tree, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, below in tree.items():
        if below:
            yield from _leaves(below, (*path, key))
        else:
            yield (*path, key)


def _has(tree: Tree, path: tuple[str, ...]) -> bool:
    for key in path:
        if key not in tree:
            return False
        tree = tree[key]
    return True


def _without(tree: Tree, path: tuple[str, ...]) -> Tree:
    """A tree without a field, and what has got empty by that."""
    key, *rest = path
    if key not in tree:
        return tree
    out = dict(tree)
    below = _without(tree[key], tuple(rest)) if rest else {}
    if below:
        out[key] = below
    else:
        del out[key]
    return out


class _Missing:
    """The value of a field that is not there."""


def _find(value: Any, path: tuple[str, ...], core: bool) -> Any:
    """The value of a field in an object, or _Missing."""
    name = ""
    for step in path:
        if step.startswith("f:"):
            name = step[2:]
            if not isinstance(value, dict) or name not in value:
                return _Missing
            value = value[name]
        else:
            found = _entries(name, value, core) if isinstance(value, list) else None
            if found is None or step not in found:
                return _Missing
            value = found[step]
    return value


def _merge(live: Any, config: Any, core: bool, name: str = "") -> Any:
    if isinstance(live, dict) and isinstance(config, dict):
        merged = {k: _merge(live.get(k), v, core, k) for k, v in config.items()}
        return {**live, **merged}
    if isinstance(live, list) and isinstance(config, list):
        new = _entries(name, config, core)
        old = _entries(name, live, core) if new is not None else None
        if new is not None and old is not None:
            merged = {k: _merge(old.get(k), v, core) for k, v in new.items()}
            return list({**old, **merged}.values())
    return clone(config)


def _remove(value: Any, path: tuple[str, ...], core: bool, name: str = "") -> Any:
    """A value without a field, and without the objects that have got empty."""
    step, *rest = path
    if step.startswith("f:"):
        key = step[2:]
        if not isinstance(value, dict) or key not in value:
            return value
        out = dict(value)
        below = _remove(value[key], tuple(rest), core, key) if rest else None
        if below or (rest and below == value[key]):
            out[key] = below
        else:
            del out[key]
        return out
    found = _entries(name, value, core) if isinstance(value, list) else None
    if found is None or step not in found:
        return value
    below = _remove(found[step], tuple(rest), core) if rest else None
    entries = (
        {**found, step: below}
        if below
        else {k: v for k, v in found.items() if k != step}
    )
    return list(entries.values())


def _shown(path: tuple[str, ...]) -> str:
    """A field as the text of a conflict names it."""
    return "".join(
        f".{step[2:]}" if step.startswith("f:") else f"[{step[2:]}]" for step in path
    )


def _conflict(found: list[tuple[str, str]]) -> ApiError:
    """Args: found: the manager of each field, and the field."""
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {who}",
            "field": field,
        }
        for who, field in found
    ]
    if len(found) == 1:
        text = f"1 conflict: conflict with {found[0][0]}: {found[0][1]}"
    else:
        fields: dict[str, list[str]] = {}
        for who, field in found:
            fields.setdefault(who, []).append(f"- {field}")
        each = (f"conflicts with {w}:\n" + "\n".join(fields[w]) for w in sorted(fields))
        text = f"{len(found)} conflicts: " + "\n".join(each)
    return ApiError(409, "Conflict", f"Apply failed with {text}", {"causes": causes})


def entry(manager: str, version: str, tree: Tree) -> Object:
    return {
        "manager": manager,
        "operation": "Apply",
        "apiVersion": version,
        "time": now_seconds(),
        "fieldsType": "FieldsV1",
        "fieldsV1": tree,
    }


def applied(
    live: Object | None, config: Object, manager: str, force: bool, core: bool
) -> tuple[Object, list[Object]]:
    """The object after the apply, and its managedFields entries.

    Args:
        live: the stored object in the version of the configuration, or None.
        core: whether the lists of the kind have keys.
    Raises:
        ApiError: 409, another manager has a field.
    """
    version = str(config.get("apiVersion", ""))
    wanted = _intent(config)
    tree = tree_of(wanted, core)
    if live is None:
        return config, [entry(manager, version, tree)]
    before: list[Object] = live["metadata"].get("managedFields", [])
    mine = next((e for e in before if e["manager"] == manager), None)
    others = [e for e in before if e is not mine]
    had: Tree = mine["fieldsV1"] if mine else {}
    found: list[tuple[str, str]] = []
    for path in _leaves(tree):
        value, now = _find(wanted, path, core), _find(live, path, core)
        if now is _Missing or now == value:
            continue
        holders = [e for e in others if _has(e["fieldsV1"], path)]
        for e in holders:
            found.append((json.dumps(e["manager"]), _shown(path)))
        if not holders and not _has(had, path):
            found.append((f'"{MANAGER}" using {version}', _shown(path)))
        others = [
            {**e, "fieldsV1": _without(e["fieldsV1"], path)} if e in holders else e
            for e in others
        ]
    if found and not force:
        raise _conflict(found)
    new = _merge(live, wanted, core)
    for path in _leaves(had):
        # remove fields that this manager has dropped, unless another one applies them
        if not _has(tree, path) and not any(_has(e["fieldsV1"], path) for e in others):
            new = _remove(new, path, core)
    if mine is not None and mine["fieldsV1"] == tree:
        made = mine
    else:
        made = entry(manager, version, tree)
    return new, [*(e for e in others if e["fieldsV1"]), made]


def kept(old: Object, new: Object, core: bool) -> list[Object]:
    """The entries of an object after a write that is no apply. Managers lose the fields
    that the write changes."""
    out: list[Object] = []
    for e in old["metadata"].get("managedFields", ()):
        tree = e["fieldsV1"]
        for path in list(_leaves(tree)):
            if _find(old, path, core) != _find(new, path, core):
                tree = _without(tree, path)
        if tree:
            out.append(e if tree == e["fieldsV1"] else {**e, "fieldsV1": tree})
    return out
