# The webhooks that dws-sim controllers serve to another API server, asked as
# that would ask them.
# SPDX-License-Identifier: LGPL-3.0-only
"""Admission over HTTPS."""

from __future__ import annotations

import asyncio
import base64
import ssl
from typing import Any

import aiohttp
import pytest
import sim_support  # noqa: F401  (puts dws_sim on the path)
from dws_sim.tls import server_context
from dws_sim.webhook import Webhooks
from dws_sim.world import template_profile

Object = dict[str, Any]


def hooks_of(dws: bool) -> dict[str, Object]:
    """The configured webhooks by name."""
    made = Webhooks(list, dws)
    return {h["name"]: h for c in made.configurations() for h in c["webhooks"]}


async def _ask(name: str, obj: Object, old: Object | None) -> Object:
    hooks = Webhooks(list)
    await hooks.start(*server_context())
    try:
        found = {h["name"]: h for c in hooks.configurations() for h in c["webhooks"]}
        config = found[name]["clientConfig"]
        ca = base64.b64decode(config["caBundle"]).decode()
        context = ssl.create_default_context(cadata=ca)
        review = {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {"uid": "u1", "object": obj, "oldObject": old},
        }
        async with (
            aiohttp.ClientSession() as session,
            session.post(config["url"], json=review, ssl=context) as response,
        ):
            answer: Object = (await response.json())["response"]
    finally:
        await hooks.stop()
    assert answer["uid"] == "u1"
    return answer


def ask(name: str, obj: Object, old: Object | None = None) -> Object:
    return asyncio.run(_ask(name, obj, old))


def profile(data: Object, namespace: str = "nnf-system") -> Object:
    return {"metadata": {"name": "p", "namespace": namespace}, "data": data}


def test_what_is_configured() -> None:
    both = hooks_of(dws=True)
    assert set(both) == {
        "mworkflow.kb.io",
        "vworkflow.kb.io",
        "vnnfcontainerprofile.kb.io",
        "vnnfstorageprofile.kb.io",
    }
    rule = both["vnnfstorageprofile.kb.io"]["rules"][0]
    assert rule["apiGroups"] == ["nnf.cray.hpe.com"]
    assert rule["resources"] == ["nnfstorageprofiles"]
    # a real DWS has its own
    assert set(hooks_of(dws=False)) == {n for n in both if n.startswith("vnnf")}


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        (
            "vnnfstorageprofile.kb.io",
            {
                "lustreStorage": {
                    "combinedMgtMdt": True,
                    "mgtOptions": {"externalMgs": "10.0.0.1@tcp"},
                }
            },
            "externalMgs excludes combinedMgtMdt",
        ),
        (
            "vnnfcontainerprofile.kb.io",
            {"retryLimit": 6},
            "exactly one of spec and mpiSpec must be set",
        ),
    ],
)
def test_a_profile_that_contradicts_itself(name: str, data: Object, text: str) -> None:
    answer = ask(name, profile(data))
    assert answer["allowed"] is False
    assert answer["status"] == {"code": 403, "reason": "Forbidden", "message": text}


def test_profiles_that_are_right() -> None:
    name, data = "vnnfstorageprofile.kb.io", template_profile()
    assert ask(name, profile(data)) == {"allowed": True, "uid": "u1"}
    pinned = {**data, "pinned": True}
    assert ask(name, profile(pinned, "default"))["allowed"]
    changed = profile({**pinned, "default": not pinned.get("default")}, "default")
    answer = ask(name, changed, profile(pinned, "default"))
    assert answer["status"]["message"] == "the data of a pinned profile is immutable"
