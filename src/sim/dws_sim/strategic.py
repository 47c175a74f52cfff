# Strategic merge patches, by which kubectl changes Kubernetes' own kinds: lists
# whose entries have a key are merged entry by entry.
# SPDX-License-Identifier: LGPL-3.0-only
"""Strategic merge patches."""

from __future__ import annotations

from typing import Any

from dws_sim.errors import bad_request
from dws_sim.jsontree import Object, clone

# By the name of a list: the key of its entries, "" where they are plain values.
# A list that is not here is replaced as a whole.
KEYS = {
    "addresses": "type",
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "finalizers": "",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "podCIDRs": "",
    "ports": "containerPort",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
# The ports of a Service are identified by another key.
_OTHER_KEYS = {"ports": "port"}
_PATCH = "$patch"
_KEEP = "$retainKeys"
_DELETE = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"


def key_of(name: str, entries: list[Any]) -> str | None:
    """The key of the entries of a list; None: it is one value."""
    key = KEYS.get(name)
    if key is None or key == "":
        return key
    for word in (key, _OTHER_KEYS.get(name, key)):
        if all(isinstance(e, dict) and word in e for e in entries):
            return word
    return None


def strategic_merge(target: Any, patch: Any) -> Any:
    """Apply a patch to an object; returns a new tree.

    Raises:
        ApiError: 400, it has a directive that is none.
    """
    if not isinstance(patch, dict):
        return clone(patch)
    word = patch.get(_PATCH)
    if word == "replace":
        return {k: clone(v) for k, v in patch.items() if k != _PATCH}
    if word == "delete":
        return {}
    if word not in (None, "merge"):
        raise bad_request(f"Unknown patch type found: {word}")
    result: Object = dict(target) if isinstance(target, dict) else {}
    kept = patch.get(_KEEP)
    if isinstance(kept, list):
        result = {k: v for k, v in result.items() if k in kept}
    for key, value in patch.items():
        if key.startswith(_DELETE):
            name = key[len(_DELETE) :]
            found = result.get(name)
            if isinstance(found, list) and isinstance(value, list):
                result[name] = [v for v in found if v not in value]
        elif key in (_PATCH, _KEEP) or key.startswith(_ORDER):
            continue
        elif value is None:
            result.pop(key, None)
        elif isinstance(value, list):
            result[key] = _merge_list(key, result.get(key), value)
        else:
            result[key] = strategic_merge(result.get(key), value)
    for key, value in patch.items():
        name = key[len(_ORDER) :]
        if key.startswith(_ORDER) and isinstance(result.get(name), list):
            result[name] = _ordered(name, result[name], value)
    return result


def _merge_list(name: str, target: Any, patch: list[Any]) -> list[Any]:
    rest = [
        e for e in patch if not (isinstance(e, dict) and len(e) == 1 and _PATCH in e)
    ]
    if len(rest) < len(patch):
        # {"$patch": "replace"}: what is beside it is the whole list
        return [clone(e) for e in rest]
    key = key_of(name, [*patch, *(target or [])] if target else patch)
    if key is None or not isinstance(target, list):
        return [clone(e) for e in patch if not _is_deletion(e)]
    if key == "":
        return [*target, *(e for e in patch if e not in target)]
    out = list(target)
    for entry in patch:
        at = next((i for i, e in enumerate(out) if e[key] == entry[key]), None)
        if _is_deletion(entry):
            if at is not None:
                del out[at]
        elif at is None:
            out.append(strategic_merge({}, entry))
        else:
            out[at] = strategic_merge(out[at], entry)
    return out


def _is_deletion(entry: Any) -> bool:
    return isinstance(entry, dict) and entry.get(_PATCH) == "delete"


def _ordered(name: str, items: list[Any], order: Any) -> list[Any]:
    """Items in the order of the patch; items that it does not name come last."""
    key = key_of(name, items)
    if key is None or not isinstance(order, list):
        return items

    def word(item: Any) -> Any:
        return item.get(key) if isinstance(item, dict) and key else item

    places = [word(o) for o in order]
    end = len(places)
    return sorted(
        items, key=lambda i: places.index(word(i)) if word(i) in places else end
    )
