# Revokes each verb of the workload manager's role in turn: the errors of the agent's
# own requests name the missing one.
# SPDX-License-Identifier: LGPL-3.0-only
"""The rights of the agent on a real API server."""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Iterator
from typing import Any, Callable

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

from dws_sim.rbac import wlm_role
from flux_k8s.commands import execute
from flux_k8s.crd import RESOURCES
from flux_k8s.errors import ApiError
from flux_k8s.kube import Kube
from flux_k8s.loop import Loop
from role import take

KUBECONFIG = pathlib.Path(os.environ["DWS_PARITY_KUBECONFIG"])
WHO = 'User "system:serviceaccount:default:flux-wlm" cannot'
NAME = "no-such"
VERBS = [
    (resource, verb)
    for (_, resource, space), verbs in wlm_role().rules.items()
    for verb in sorted(verbs)
    # the agent writes by patches only, and reads no status by itself
    if verb != "update" and "/" not in resource and not space
]
PATCH = {"metadata": {"labels": {"a": "b"}}}


def _watch(kube: Kube, plural: str) -> None:
    kube.watch(plural, "0", "", 1).close()


REQUESTS: dict[str, Callable[[Kube, str], Any]] = {
    "get": lambda kube, plural: kube.get(plural, "default", NAME),
    "list": lambda kube, plural: kube.list_all(plural),
    "watch": _watch,
    "create": lambda kube, plural: kube.create(
        plural, "default", {"metadata": {"name": NAME}}
    ),
    "patch": lambda kube, plural: kube.patch(plural, "default", NAME, PATCH),
    "delete": lambda kube, plural: kube.delete(plural, "default", NAME),
}


def outcome(kube: Kube, verb: str, plural: str) -> tuple[int, str]:
    """HTTP status and message of a request; 200 when it succeeds."""
    try:
        REQUESTS[verb](kube, plural)
    except ApiError as exc:
        return exc.status, exc.message
    return 200, ""


@pytest.fixture(scope="module")
def kube() -> Iterator[Kube]:
    yield Kube(str(KUBECONFIG))
    take(KUBECONFIG)


@pytest.mark.parametrize(("plural", "verb"), VERBS)
def test_a_missing_verb_is_named(kube: Kube, plural: str, verb: str) -> None:
    group = RESOURCES[plural].group
    take(KUBECONFIG, f"{plural}:{verb}")
    status, message = outcome(kube, verb, plural)
    assert status == 403
    text = f'{WHO} {verb} resource "{plural}" in API group "{group}"'
    assert text in message
    # and only that one is missing
    for other in REQUESTS:
        if other != verb and (plural, other) in VERBS:
            assert outcome(kube, other, plural)[0] != 403, other


def test_the_module_is_told_so(kube: Kube) -> None:
    take(KUBECONFIG, "workflows:create")
    command = {
        "op": "create",
        "kind": "workflows",
        "namespace": "default",
        "name": NAME,
        "object": {"metadata": {"name": NAME}},
    }
    result = Loop().run(execute(kube, command))
    assert (result["ok"], result["status"]) == (False, 403)
    assert result["reason"] == "Forbidden"
    assert f'{WHO} create resource "workflows"' in result["message"]
    # unlike a refused directive this is not the user's fault
    assert "admission webhook" not in result["message"]
