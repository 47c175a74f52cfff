# SelfSubjectAccessReview: a user asks what he may do.
# SPDX-License-Identifier: LGPL-3.0-only
"""Questions about rights."""

from __future__ import annotations

from typing import Any

from dws_sim import errors
from dws_sim.jsontree import Object
from dws_sim.rbac import User

GROUP = "authorization.k8s.io"
PATH = ["apis", GROUP, "v1", "selfsubjectaccessreviews"]


def answer(review: Any, user: User) -> Object:
    """The review with its status filled in.

    Raises:
        ApiError: it asks nothing.
    """
    try:
        asked = review["spec"]["resourceAttributes"]
        resource, verb = str(asked["resource"]), str(asked["verb"])
    except (KeyError, TypeError) as exc:
        raise errors.bad_request("spec.resourceAttributes is required") from exc
    if asked.get("subresource"):
        resource += f"/{asked['subresource']}"
    allowed = user.role.allows(
        str(asked.get("group", "")), resource, str(asked.get("namespace", "")), verb
    )
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "SelfSubjectAccessReview",
        "metadata": {},
        "spec": review["spec"],
        "status": {"allowed": allowed},
    }
