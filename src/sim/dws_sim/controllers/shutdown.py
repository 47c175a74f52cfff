# Asks the programs in user containers to exit when their job has ended.
# SPDX-License-Identifier: LGPL-3.0-only
"""POST /shutdown."""

from __future__ import annotations

import asyncio
import base64
import logging
import ssl

import aiohttp

from dws_sim.controllers.common import TLS_SECRET
from dws_sim.controllers.step import Step
from dws_sim.jsontree import Object

log = logging.getLogger("dws-sim.shutdown")

# NNF waits for an answer so long, and asks again after this.
TIMEOUT_S = 1.0
AGAIN_S = 2.0


def trust(secret: Object) -> ssl.SSLContext | None:
    """TLS context for clients of containers; None without a valid certificate, as a
    Secret may have been created as a mere placeholder."""
    try:
        certificate = base64.b64decode(secret["data"]["tls.crt"]).decode()
        return ssl.create_default_context(cadata=certificate) if certificate else None
    except (KeyError, TypeError, ValueError, ssl.SSLError):
        return None


async def ask_to_end(step: Step) -> bool:
    """Send the request to each port of a workflow's containers, all on this host.
    Errors are ignored, as a program need not listen. Returns whether a request was
    sent: containers without processes have no certificate."""
    status = step.workflow["status"]
    ports = status.get("env", {}).get("NNF_CONTAINER_PORTS", "")
    if not ports:
        return False
    context = trust(await step.cluster.get("secrets", "default", TLS_SECRET) or {})
    if context is None:
        return False
    headers = {}
    if named := status.get("workflowToken"):
        where = named["secretNamespace"], named["secretName"]
        token = (await step.cluster.get("secrets", *where) or {}).get("data", {})
        words = base64.b64decode(token.get("token", "")).decode()
        headers = {"Authorization": f"Bearer {words}", "X-Auth-Type": "XOAUTH2"}
    limit = aiohttp.ClientTimeout(total=TIMEOUT_S)
    async with aiohttp.ClientSession(timeout=limit, headers=headers) as session:
        for port in ports.split(","):
            url = f"https://127.0.0.1:{port}/shutdown"
            try:
                async with session.post(
                    url, json={"message": "shutdown"}, ssl=context
                ) as answer:
                    log.debug("%s: %d", url, answer.status)
            except (aiohttp.ClientError, asyncio.TimeoutError) as exc:
                log.debug("%s: %s", url, exc)
    return True
