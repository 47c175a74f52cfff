# The webhooks of DWS and NNF as a server that another API server calls:
# admission of workflows and profiles, and conversion between versions.
# SPDX-License-Identifier: LGPL-3.0-only
"""Admission and conversion webhooks over HTTPS."""

from __future__ import annotations

import base64
import functools
import json
import ssl
from dataclasses import dataclass
from typing import Any, Callable

from aiohttp import web

from dws_sim.admission import WorkflowAdmission
from dws_sim.convert import from_version, to_version
from dws_sim.errors import ApiError
from dws_sim.jsontree import Object, clone
from dws_sim.profile_admission import profile_hooks
from dws_sim.schema.resources import BY_KIND, RESOURCES
from dws_sim.store import Admission


@dataclass(frozen=True)
class _Hook:
    """One webhook: what is asked of it, and where."""

    name: str
    what: str  # Mutating, Validating
    plural: str
    operations: tuple[str, ...]
    admission: Admission

    @property
    def path(self) -> str:
        res = RESOURCES[self.plural]
        place = f"{res.group}-{res.storage_version}-{res.kind.lower()}"
        verb = "mutate" if self.what == "Mutating" else "validate"
        return f"/{verb}-{place.replace('.', '-')}"


CONVERT = "/convert"
MAX_BODY_BYTES = 8 << 20


class Webhooks:
    """Serves on the loopback, with a certificate of its own."""

    def __init__(self, rules: Callable[[], list[Object]], dws: bool = True) -> None:
        """
        Args:
            rules: returns the DWDirectiveRule objects.
            dws: whether to be DWS too, or NNF alone.
        """
        both = ("CREATE", "UPDATE")
        self._hooks = [
            _Hook(hook.webhook, "Validating", plural, both, hook)
            for plural, hook in profile_hooks().items()
        ]
        if dws:
            workflow = WorkflowAdmission(rules)
            kind = "workflows"
            self._hooks += [
                _Hook("mworkflow.kb.io", "Mutating", kind, ("CREATE",), workflow),
                _Hook("vworkflow.kb.io", "Validating", kind, both, workflow),
            ]
        self._runner: web.AppRunner | None = None
        self._url = ""
        self._ca = b""

    async def start(self, context: ssl.SSLContext, ca_pem: bytes) -> None:
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        for hook in self._hooks:
            mutating = hook.what == "Mutating"
            answer = self._mutate if mutating else self._validate
            app.router.add_post(hook.path, functools.partial(answer, hook.admission))
        app.router.add_post(CONVERT, self._convert)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        self._url = f"https://127.0.0.1:{self._runner.addresses[0][1]}"
        self._ca = ca_pem

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def client_config(self, path: str) -> Object:
        """How the API server reaches a path here."""
        ca = base64.b64encode(self._ca).decode()
        return {"url": self._url + path, "caBundle": ca}

    def configurations(self) -> list[Object]:
        """The objects that make an API server call the webhooks."""
        groups: dict[tuple[str, str], list[Object]] = {}
        for hook in self._hooks:
            project = "dws" if hook.plural == "workflows" else "nnf"
            groups.setdefault((project, hook.what), []).append(self._entry(hook))
        return [
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": f"{what}WebhookConfiguration",
                "metadata": {"name": f"{project}-{what.lower()}-webhook-configuration"},
                "webhooks": entries,
            }
            for (project, what), entries in groups.items()
        ]

    def _entry(self, hook: _Hook) -> Object:
        res = RESOURCES[hook.plural]
        return {
            "name": hook.name,
            "admissionReviewVersions": ["v1"],
            "clientConfig": self.client_config(hook.path),
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "rules": [
                {
                    "apiGroups": [res.group],
                    "apiVersions": [res.storage_version],
                    "operations": list(hook.operations),
                    "resources": [hook.plural],
                }
            ],
        }

    # -- requests ---------------------------------------------------------

    @staticmethod
    async def _request(request: web.Request) -> tuple[Object, Object]:
        """The review and the request in it."""
        try:
            review = json.loads(await request.read())
            return review, review["request"]
        except (ValueError, KeyError, TypeError) as exc:
            raise web.HTTPBadRequest(text="no review") from exc

    @staticmethod
    def _reply(review: Object, response: Object) -> web.Response:
        response["uid"] = review["request"]["uid"]
        return web.json_response(
            {
                "apiVersion": review["apiVersion"],
                "kind": review["kind"],
                "response": response,
            }
        )

    async def _mutate(self, admission: Admission, request: web.Request) -> web.Response:
        review, asked = await self._request(request)
        old = asked["object"]
        new = clone(old)
        try:
            admission.mutate(new)
        except ApiError as exc:
            return self._refuse(request, review, exc)
        patch = [
            {"op": "add", "path": f"/{key}", "value": value}
            for key, value in new.items()
            if value != old.get(key)
        ]
        text = base64.b64encode(json.dumps(patch).encode()).decode()
        return self._reply(
            review, {"allowed": True, "patchType": "JSONPatch", "patch": text}
        )

    async def _validate(
        self, admission: Admission, request: web.Request
    ) -> web.Response:
        review, asked = await self._request(request)
        try:
            admission.validate(asked["object"], asked.get("oldObject"))
        except ApiError as exc:
            return self._refuse(request, review, exc)
        return self._reply(review, {"allowed": True})

    def _refuse(
        self, request: web.Request, review: Object, exc: ApiError
    ) -> web.Response:
        if exc.code == 500 and request.transport is not None:
            # a webhook that panics answers nothing
            request.transport.close()
        # the API server puts the name of the webhook in front again
        text = exc.message.partition(" denied the request: ")[2]
        status: Object = {"code": exc.code, "message": text}
        if exc.reason:
            status["reason"] = exc.reason
        return self._reply(review, {"allowed": False, "status": status})

    async def _convert(self, request: web.Request) -> web.Response:
        review, asked = await self._request(request)
        version = asked["desiredAPIVersion"].rpartition("/")[2]
        try:
            done = [self._converted(obj, version) for obj in asked["objects"]]
        except ApiError as exc:
            result: Object = {"status": "Failure", "message": exc.message}
            return self._reply(review, {"result": result})
        return self._reply(
            review, {"result": {"status": "Success"}, "convertedObjects": done}
        )

    @staticmethod
    def _converted(obj: Object, version: str) -> Any:
        res = BY_KIND[obj["kind"]]
        stored = from_version(res, obj, obj["apiVersion"].rpartition("/")[2])
        return to_version(res, stored, version)
