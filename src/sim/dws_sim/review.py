# Answers self-subject reviews: the user's identity, whether an action is allowed, and
# all allowed actions.
# SPDX-License-Identifier: LGPL-3.0-only
"""Questions about users and rights."""

from __future__ import annotations

from typing import Any

from dws_sim import errors
from dws_sim.jsontree import Object
from dws_sim.rbac import User

AUTHORIZATION = "authorization.k8s.io"
AUTHENTICATION = "authentication.k8s.io"
# By group: kinds that can be created, and nothing else.
KINDS = {
    AUTHENTICATION: ("SelfSubjectReview",),
    AUTHORIZATION: ("SelfSubjectAccessReview", "SelfSubjectRulesReview"),
}
# Rights of every user, by Kubernetes' default roles.
_PATHS = (
    *("/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi"),
    *("/openapi/*", "/readyz", "/version", "/version/"),
)


_INFO = ("/healthz", "/livez", "/readyz", "/version", "/version/")


def resource(kind: str) -> str:
    return kind.lower() + "s"


def answer(parts: list[str], review: Any, user: User) -> Object | None:
    """The review that was sent to a path, with its status filled in; None: the path
    is of something else.

    Raises:
        ApiError: it asks nothing.
    """
    if len(parts) != 4 or parts[0] != "apis" or parts[2] != "v1":
        return None
    kinds = {resource(kind): kind for kind in KINDS.get(parts[1], ())}
    kind = kinds.get(parts[3])
    if kind is None:
        return None
    if not isinstance(review, dict):
        raise errors.bad_request("the object must be a JSON object")
    spec = review.get("spec")
    out: Object = {"apiVersion": f"{parts[1]}/v1", "kind": kind, "metadata": {}}
    if kind == "SelfSubjectReview":
        return {**out, "status": {"userInfo": _who(user)}}
    if kind == "SelfSubjectRulesReview":
        if not isinstance(spec, dict) or not spec.get("namespace"):
            raise errors.bad_request("no namespace on request")
        return {**out, "spec": spec, "status": _rules(user, str(spec["namespace"]))}
    return {**out, "spec": spec, "status": {"allowed": _allowed(review, user)}}


def _who(user: User) -> Object:
    groups = ["system:masters"] if user.role.is_admin else []
    words = user.name.split(":")
    if words[:2] == ["system", "serviceaccount"]:
        groups += ["system:serviceaccounts", f"system:serviceaccounts:{words[2]}"]
    return {"username": user.name, "groups": [*groups, "system:authenticated"]}


def _allowed(review: Any, user: User) -> bool:
    try:
        asked = review["spec"]["resourceAttributes"]
        name, verb = str(asked["resource"]), str(asked["verb"])
    except (KeyError, TypeError) as exc:
        try:
            path = str(review["spec"]["nonResourceAttributes"]["path"])
        except (KeyError, TypeError):
            raise errors.bad_request("spec.resourceAttributes is required") from exc
        return user.role.is_admin or path in _PATHS
    if asked.get("subresource"):
        name += f"/{asked['subresource']}"
    group, place = str(asked.get("group", "")), str(asked.get("namespace", ""))
    return user.role.allows(group, name, place, verb)


def _rules(user: User, namespace: str) -> Object:
    rules: list[Object] = []
    paths: list[Object] = []
    if user.role.is_admin:
        rules.append({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]})
        paths.append({"verbs": ["*"], "nonResourceURLs": ["*"]})
    for group, kinds in KINDS.items():
        names = [resource(kind) for kind in kinds]
        rules.append({"verbs": ["create"], "apiGroups": [group], "resources": names})
    for (group, name, place), verbs in user.role.rules.items():
        if place in ("", namespace) and verbs:
            rules.append(
                {"verbs": sorted(verbs), "apiGroups": [group], "resources": [name]}
            )
    for urls in (_PATHS, _INFO):
        paths.append({"verbs": ["get"], "nonResourceURLs": sorted(urls)})
    return {"resourceRules": rules, "nonResourceRules": paths, "incomplete": False}
