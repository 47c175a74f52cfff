# The published description of the API: OpenAPI v3 for each group and version,
# and all of it as v2, from the same tables that requests are checked by.
# SPDX-License-Identifier: LGPL-3.0-only
"""OpenAPI documents."""

from __future__ import annotations

import functools
from typing import Any

from dws_sim.jsontree import Object
from dws_sim.negotiate import APPLY_PATCH, JSON_PATCH, MERGE_PATCH
from dws_sim.schema.crd import open_schema
from dws_sim.schema.resources import ALL, GROUPS, Resource

_JSON = "application/json"
_PATCH_TYPES = (MERGE_PATCH, JSON_PATCH, APPLY_PATCH)
_INFO = {"title": "Kubernetes", "version": "v1.34.0+dws-sim"}
_SECURITY: list[Object] = [{"BearerToken": []}]
_BEARER = {
    "type": "apiKey",
    "name": "authorization",
    "in": "header",
    "description": "Bearer Token authentication",
}
_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_STATUS_NAME = f"{_META}.Status"
_NAMED_META: Object = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "namespace": {"type": "string"},
        "generateName": {"type": "string"},
        "resourceVersion": {"type": "string"},
        "uid": {"type": "string"},
        "generation": {"type": "integer", "format": "int64"},
        "creationTimestamp": {"type": "string", "format": "date-time"},
        "deletionTimestamp": {"type": "string", "format": "date-time"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
        "finalizers": {"type": "array", "items": {"type": "string"}},
        "ownerReferences": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["apiVersion", "kind", "name", "uid"],
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "name": {"type": "string"},
                    "uid": {"type": "string"},
                    "controller": {"type": "boolean"},
                    "blockOwnerDeletion": {"type": "boolean"},
                },
            },
        },
    },
}
_SHARED: dict[str, Object] = {
    f"{_META}.ObjectMeta": _NAMED_META,
    f"{_META}.ListMeta": {
        "type": "object",
        "properties": {
            "continue": {"type": "string"},
            "remainingItemCount": {"type": "integer", "format": "int64"},
            "resourceVersion": {"type": "string"},
        },
    },
    _STATUS_NAME: {
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "code": {"type": "integer", "format": "int32"},
            "message": {"type": "string"},
            "reason": {"type": "string"},
            "status": {"type": "string"},
            "details": {"type": "object"},
            "metadata": {"type": "object"},
        },
    },
    f"{_META}.DeleteOptions": {
        "type": "object",
        "properties": {
            "propagationPolicy": {
                "type": "string",
                "enum": ["Orphan", "Background", "Foreground"],
            },
            "preconditions": {
                "type": "object",
                "properties": {
                    "uid": {"type": "string"},
                    "resourceVersion": {"type": "string"},
                },
            },
        },
    },
    f"{_META}.Patch": {"type": "object"},
}


def _type_name(res: Resource, version: str) -> str:
    if res.group in ("", "batch"):
        return f"io.k8s.api.{res.group or 'core'}.{version}.{res.kind}"
    place = ".".join(reversed(res.group.split(".")))
    return f"{place}.{version}.{res.kind}"


def _ref(name: str) -> Object:
    return {"$ref": f"#/components/schemas/{name}"}


def _content(name: str, *types: str) -> Object:
    return {t: {"schema": _ref(name)} for t in types or (_JSON,)}


def _query(name: str, type_: str = "string") -> Object:
    return {
        "name": name,
        "in": "query",
        "schema": {"type": type_, "uniqueItems": True},
    }


def _path_parameter(name: str) -> Object:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "schema": {"type": "string", "uniqueItems": True},
    }


_LIST_QUERY = [
    _query("labelSelector"),
    _query("fieldSelector"),
    _query("limit", "integer"),
    _query("continue"),
    _query("resourceVersion"),
    _query("timeoutSeconds", "integer"),
    _query("watch", "boolean"),
    _query("allowWatchBookmarks", "boolean"),
]
# kubectl checks a body itself where fieldValidation is not described.
_WRITE_QUERY = [_query("dryRun"), _query("fieldManager"), _query("fieldValidation")]
_PATCH_QUERY = [*_WRITE_QUERY, _query("force", "boolean")]


class _Operations:
    """The operations of one kind in one version."""

    def __init__(self, res: Resource, version: str) -> None:
        self._res = res
        self._version = version
        self._name = _type_name(res, version)
        words = res.group.replace(".k8s.io", "").replace("-", ".").split(".")
        group = "".join(w.capitalize() for w in words) or "Core"
        self._tag = f"{group.lower()}_{version}"
        self._id = f"{group}{version.capitalize()}"

    def _operation(
        self, action: str, place: str, answer: Object, code: str = "200", **more: Any
    ) -> Object:
        status = {"description": "Refused", "content": _content(_STATUS_NAME)}
        responses = {code: {"description": "OK", "content": answer}}
        if action in ("delete", "post", "put", "patch"):
            # a finished delete answers with a Status, a begun one with the object
            responses.setdefault("200", {"description": "OK", "content": answer})
        return {
            "operationId": f"{action}{self._id}{place}",
            "tags": [self._tag],
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": {
                "group": self._res.group,
                "version": self._version,
                "kind": self._res.kind,
            },
            "responses": {**responses, "default": status},
            **more,
        }

    def paths(self) -> dict[str, Object]:
        """Path to path item."""
        res, version = self._res, self._version
        base = f"/apis/{res.group}/{version}" if res.group else f"/api/{version}"
        out: dict[str, Object] = {}
        below = base
        if res.namespaced:
            out[f"{base}/{res.plural}"] = {
                "get": self._list(f"{res.kind}ForAllNamespaces")
            }
            below = f"{base}/namespaces/{{namespace}}"
        place = "Namespaced" if res.namespaced else ""
        space = [_path_parameter("namespace")] if res.namespaced else []
        many = {"parameters": space, "get": self._list(f"{place}{res.kind}")}
        one: Object = {
            "parameters": [_path_parameter("name"), *space],
            "get": self._get(f"{place}{res.kind}"),
        }
        if not res.read_only:
            many.update(self._collection_writes(f"{place}{res.kind}"))
            one.update(self._object_writes(f"{place}{res.kind}"))
        out[f"{below}/{res.plural}"] = many
        out[f"{below}/{res.plural}/{{name}}"] = one
        if res.status:
            out[f"{below}/{res.plural}/{{name}}/status"] = {
                "parameters": one["parameters"],
                "get": self._get(f"{place}{res.kind}Status"),
                "put": self._put(f"{place}{res.kind}Status"),
                "patch": self._patch(f"{place}{res.kind}Status"),
            }
        if res.plural == "pods":
            out[f"{below}/pods/{{name}}/log"] = {
                "parameters": one["parameters"],
                "get": self._operation(
                    "get",
                    "NamespacedPodLog",
                    {"text/plain": {"schema": {"type": "string"}}},
                ),
            }
        return out

    def _list(self, place: str) -> Object:
        return self._operation(
            "list", place, _content(f"{self._name}List"), parameters=_LIST_QUERY
        )

    def _get(self, place: str) -> Object:
        return self._operation("get", place, _content(self._name))

    def _put(self, place: str) -> Object:
        body = {"required": True, "content": _content(self._name)}
        return self._operation(
            "put",
            place,
            _content(self._name),
            parameters=_WRITE_QUERY,
            requestBody=body,
        )

    def _patch(self, place: str) -> Object:
        # Strategic merge patches are taken for kinds of Kubernetes' own, but not
        # described: kubectl would make them from schemas, and these have no fields.
        types = _content(f"{_META}.Patch", *_PATCH_TYPES)
        return self._operation(
            "patch",
            place,
            _content(self._name),
            parameters=_PATCH_QUERY,
            requestBody={"required": True, "content": types},
        )

    def _collection_writes(self, place: str) -> Object:
        body = {"required": True, "content": _content(self._name)}
        out = {
            "post": self._operation(
                "post",
                place,
                _content(self._name),
                "201",
                parameters=_WRITE_QUERY,
                requestBody=body,
            )
        }
        if self._res.plural != "namespaces":
            out["delete"] = self._operation(
                "deletecollection",
                place.replace(self._res.kind, f"Collection{self._res.kind}"),
                _content(f"{self._name}List"),
                parameters=_LIST_QUERY[:2],
                requestBody=self._options(),
            )
        return out

    def _object_writes(self, place: str) -> Object:
        return {
            "put": self._put(place),
            "patch": self._patch(place),
            "delete": self._operation(
                "delete",
                place,
                {_JSON: {"schema": {"type": "object"}}},
                requestBody=self._options(),
            ),
        }

    @staticmethod
    def _options() -> Object:
        return {"content": _content(f"{_META}.DeleteOptions")}

    def schemas(self) -> dict[str, Object]:
        body = open_schema(self._res)
        body["properties"]["metadata"] = _ref(f"{_META}.ObjectMeta")
        gvk = {
            "group": self._res.group,
            "version": self._version,
            "kind": self._res.kind,
        }
        body["x-kubernetes-group-version-kind"] = [gvk]
        listed = {**gvk, "kind": f"{self._res.kind}List"}
        return {
            self._name: body,
            f"{self._name}List": {
                "type": "object",
                "required": ["items"],
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "metadata": _ref(f"{_META}.ListMeta"),
                    "items": {"type": "array", "items": _ref(self._name)},
                },
                "x-kubernetes-group-version-kind": [listed],
            },
        }


def _kinds(group: str, version: str) -> list[_Operations]:
    return [
        _Operations(r, version) for r in GROUPS.get(group, ()) if version in r.versions
    ]


def _place(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


@functools.cache
def v3_index() -> Object:
    """Where the documents are."""
    places = {_place(r.group, v) for r in ALL for v in r.versions}
    return {
        "paths": {
            p: {"serverRelativeURL": f"/openapi/v3/{p}?hash=dws-sim"}
            for p in sorted(places)
        }
    }


@functools.cache
def v3(group: str, version: str) -> Object | None:
    """The document of one group and version, if it is served."""
    kinds = _kinds(group, version)
    if not kinds:
        return None
    paths: dict[str, Object] = {}
    schemas = dict(_SHARED)
    for kind in kinds:
        paths.update(kind.paths())
        schemas.update(kind.schemas())
    return {
        "openapi": "3.0.0",
        "info": _INFO,
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"BearerToken": _BEARER},
        },
        "security": _SECURITY,
    }


def _older(value: Any) -> Any:
    """References as v2 has them."""
    if isinstance(value, dict):
        return {
            k: v.replace("#/components/schemas/", "#/definitions/")
            if k == "$ref"
            else _older(v)
            for k, v in value.items()
        }
    if isinstance(value, list):
        return [_older(v) for v in value]
    return value


def _older_parameter(parameter: Object) -> Object:
    out = {k: v for k, v in parameter.items() if k != "schema"}
    return {**out, **parameter["schema"]}


def _older_operation(operation: Object) -> Object:
    out = {k: v for k, v in operation.items() if k != "requestBody"}
    parameters = [_older_parameter(p) for p in operation.get("parameters", ())]
    body = operation.get("requestBody")
    if body is not None:
        out["consumes"] = list(body["content"])
        schema = next(iter(body["content"].values()))["schema"]
        required = body.get("required", False)
        parameters.append(
            {"name": "body", "in": "body", "required": required, "schema": schema}
        )
    if parameters:
        out["parameters"] = parameters
    responses: Object = {}
    for code, response in operation["responses"].items():
        media, content = next(iter(response["content"].items()))
        out["produces"] = [media]
        responses[code] = {
            "description": response["description"],
            "schema": content["schema"],
        }
    out["responses"] = responses
    return out


@functools.cache
def v2() -> Object:
    """Everything, as Swagger 2.0."""
    paths: Object = {}
    definitions: Object = {}
    for group, version in {(r.group, v) for r in ALL for v in r.versions}:
        document = v3(group, version) or {}
        for path, item in document["paths"].items():
            paths[path] = {
                k: [_older_parameter(p) for p in v]
                if k == "parameters"
                else _older_operation(v)
                for k, v in item.items()
            }
        definitions.update(document["components"]["schemas"])
    return {
        "swagger": "2.0",
        "info": _INFO,
        "paths": dict(sorted(_older(paths).items())),
        "definitions": dict(sorted(_older(definitions).items())),
        "securityDefinitions": {"BearerToken": _BEARER},
        "security": _SECURITY,
    }
