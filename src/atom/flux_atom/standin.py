# A stand-in for ATOM: its REST API on a UNIX socket, for tests and demos.
# SPDX-License-Identifier: LGPL-3.0-only
"""An ATOM whose answers are set request by request.

Run as `python -m flux_atom.standin SOCKET [--answers FILE]`. Each line of the
file is a JSON object and answers one request; the last one goes on for ever:

    {"status": 200, "body": {"ok": true}, "delay_s": 0, "after": "EVENT"}

`status` 0 closes the connection without an answer; `raw` is a body that is not
JSON; `size` a body of so many bytes; with `drip_s` a body comes byte by byte for
ever, one in so many seconds. The requests are printed as JSON lines.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from typing import Any, NoReturn

from aiohttp import web

VERSION_URI = "/rm/v1"
OK_STATUS = {"POST": 200, "DELETE": 204}


async def drip(request: web.Request, status: int, pause_s: float) -> NoReturn:
    """Answer a request byte by byte, until the client has gone."""
    response = web.StreamResponse(status=status)
    await response.prepare(request)
    while True:
        await response.write(b" ")
        await asyncio.sleep(pause_s)


class StandIn:
    """Answers from a list, requests to a list.

    Args:
        answers: what to answer, in order; the last one is repeated. An empty
            list answers as a healthy ATOM does.
    """

    def __init__(self, answers: list[dict[str, Any]]) -> None:
        self._answers = list(answers)
        self.requests: list[dict[str, Any]] = []

    def _next(self, method: str) -> dict[str, Any]:
        if not self._answers:
            return {"status": OK_STATUS[method]}
        if len(self._answers) == 1:
            return self._answers[0]
        return self._answers.pop(0)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        text = await request.text()
        seen = {
            "method": request.method,
            "path": request.raw_path,
            "body": json.loads(text) if text else None,
        }
        self.requests.append(seen)
        print(json.dumps(seen), flush=True)
        answer = self._next(request.method)
        await asyncio.sleep(answer.get("delay_s", 0))
        status = answer.get("status", OK_STATUS[request.method])
        if status == 0:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if "drip_s" in answer:
            await drip(request, status, answer["drip_s"])
        if "raw" in answer:
            return web.Response(status=status, text=answer["raw"])
        if "size" in answer:
            return web.Response(status=status, body=b"x" * answer["size"])
        if "body" in answer:
            return web.json_response(answer["body"], status=status)
        return web.Response(status=status)

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_post(f"{VERSION_URI}/jobs", self.handle)
        app.router.add_delete(f"{VERSION_URI}/jobs/{{jobid}}", self.handle)
        return app


async def serve(path: str, standin: StandIn, ready: Any = None) -> None:
    """Serve on a socket that only its owner can use, until cancelled."""
    runner = web.AppRunner(standin.app(), handler_cancellation=True)
    await runner.setup()
    mask = os.umask(0o177)
    try:
        await web.UnixSite(runner, path).start()
    finally:
        os.umask(mask)
    if ready is not None:
        ready()
    try:
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


def main() -> int:
    parser = argparse.ArgumentParser(prog="atom-standin", description=__doc__)
    parser.add_argument("socket", help="path of the UNIX socket to make")
    parser.add_argument("--answers", metavar="FILE", help="JSON lines, see above")
    args = parser.parse_args()
    answers = []
    if args.answers:
        with open(args.answers) as stream:
            answers = [json.loads(line) for line in stream if line.strip()]
    try:
        asyncio.run(
            serve(args.socket, StandIn(answers), lambda: print("ready", flush=True))
        )
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
