# The webhooks of DWS as a server that another API server calls: admission of
# workflows, and conversion between versions.
# SPDX-License-Identifier: LGPL-3.0-only
"""Admission and conversion webhooks over HTTPS."""

from __future__ import annotations

import base64
import json
import ssl
from typing import Any, Callable

from aiohttp import web

from dws_sim.admission import WorkflowAdmission
from dws_sim.convert import from_version, to_version
from dws_sim.errors import ApiError
from dws_sim.jsontree import Object, clone
from dws_sim.schema.resources import BY_KIND, DWS_GROUP, RESOURCES

_STEM = "dataworkflowservices-github-io-v1alpha7-workflow"
_PATHS = {
    "mworkflow.kb.io": f"/mutate-{_STEM}",
    "vworkflow.kb.io": f"/validate-{_STEM}",
}
CONVERT = "/convert"
MAX_BODY_BYTES = 8 << 20


class Webhooks:
    """Serves on the loopback, with a certificate of its own."""

    def __init__(self, rules: Callable[[], list[Object]]) -> None:
        """rules: returns the DWDirectiveRule objects."""
        self._admission = WorkflowAdmission(rules)
        self._runner: web.AppRunner | None = None
        self._url = ""
        self._ca = b""

    async def start(self, context: ssl.SSLContext, ca_pem: bytes) -> None:
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.router.add_post(_PATHS["mworkflow.kb.io"], self._mutate)
        app.router.add_post(_PATHS["vworkflow.kb.io"], self._validate)
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
        return [
            self._configuration("Mutating", "mworkflow.kb.io", ["CREATE"]),
            self._configuration("Validating", "vworkflow.kb.io", ["CREATE", "UPDATE"]),
        ]

    def _configuration(self, what: str, name: str, operations: list[str]) -> Object:
        version = RESOURCES["workflows"].storage_version
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{what}WebhookConfiguration",
            "metadata": {"name": f"dws-{what.lower()}-webhook-configuration"},
            "webhooks": [
                {
                    "name": name,
                    "admissionReviewVersions": ["v1"],
                    "clientConfig": self.client_config(_PATHS[name]),
                    "failurePolicy": "Fail",
                    "sideEffects": "None",
                    "rules": [
                        {
                            "apiGroups": [DWS_GROUP],
                            "apiVersions": [version],
                            "operations": operations,
                            "resources": ["workflows"],
                        }
                    ],
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

    async def _mutate(self, request: web.Request) -> web.Response:
        review, asked = await self._request(request)
        old = asked["object"]
        new = clone(old)
        try:
            self._admission.mutate(new)
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

    async def _validate(self, request: web.Request) -> web.Response:
        review, asked = await self._request(request)
        try:
            self._admission.validate(asked["object"], asked.get("oldObject"))
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
