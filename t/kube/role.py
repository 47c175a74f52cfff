# Changes the workload manager's role on a running cluster, and waits until the
# API server enforces it.
# SPDX-License-Identifier: LGPL-3.0-only
"""Usage: role.py KUBECONFIG [--needed] [RESOURCE:VERB...]

Takes verbs away; with --needed all that `flux rabbit selftest` does not ask for.
"""

from __future__ import annotations

import pathlib
import sys
import time
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

from cluster import role_objects
from dws_sim.rbac import wlm_role
from flux_rabbit.checks import RIGHTS
from parity_support import LIMIT_S, User

RBAC = "/apis/rbac.authorization.k8s.io/v1"
REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
POLL_S = 0.02


def may(user: User, group: str, resource: str, verb: str, space: str = "") -> bool:
    """Ask the API server whether a user may do something."""
    name, _, sub = resource.partition("/")
    asked = {
        "group": group,
        "resource": name,
        "subresource": sub,
        "verb": verb,
        "namespace": space,
    }
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": asked},
    }
    answer: Any = user.send("POST", REVIEW, body).expect(201)
    return bool(answer["status"]["allowed"])


def take(kubeconfig: pathlib.Path, *words: str) -> None:
    """Leave the role without these "resource:verb" words; none: whole."""
    admin, wlm = User(kubeconfig, "admin"), User(kubeconfig, "wlm")
    for obj in role_objects(without=words):
        if obj["kind"] in ("Role", "ClusterRole"):
            meta = obj["metadata"]
            space = f"/namespaces/{meta['namespace']}" if "namespace" in meta else ""
            path = f"{RBAC}{space}/{obj['kind'].lower()}s/{meta['name']}"
            admin.send("PUT", path, obj).expect(200)
    end = time.monotonic() + LIMIT_S
    for (group, resource, space), verbs in wlm_role().rules.items():
        for verb in verbs:
            wanted = f"{resource}:{verb}" not in words
            while may(wlm, group, resource, verb, space) != wanted:
                if time.monotonic() > end:
                    raise TimeoutError(f"{resource}:{verb} is not {wanted}")
                time.sleep(POLL_S)


def unneeded() -> list[str]:
    """Rights of the role that `flux rabbit selftest` does not check."""
    return [
        f"{resource}:{verb}"
        for (_, resource, _), verbs in wlm_role().rules.items()
        for verb in sorted(verbs)
        if verb not in RIGHTS.get(resource, "").split()
    ]


if __name__ == "__main__":
    words = sys.argv[2:]
    if "--needed" in words:
        words.remove("--needed")
        words += unneeded()
    take(pathlib.Path(sys.argv[1]), *words)
