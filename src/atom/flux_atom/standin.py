# A stand-in for ATOM: its REST API on a UNIX socket, for tests and demos.
# SPDX-License-Identifier: LGPL-3.0-only
"""An ATOM whose answers are set request by request.

Run as `python -m flux_atom.standin SOCKET [--answers FILE]`. Each line of the
file is a JSON object and answers one request; the last one goes on for ever:

    {"status": 200, "body": {"ok": true}, "delay_s": 0, "after": "EVENT"}

`status` 0 closes the connection without an answer; `raw` is a body that is not
JSON; `size` a body of so many bytes; with `drip_s` a body comes byte by byte for
ever, one in so many seconds. A line with a `method` is passed over by requests of
another. The requests are printed as JSON lines.

With `--knows JOBID...` it keeps jobs, these from the beginning: what no line answers
is answered by that, a begin of one that it has with 400, the end of one that it has
not with 404.
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
        jobs: the ids of those that it has; None: it keeps none.
    """

    def __init__(
        self, answers: list[dict[str, Any]], jobs: set[str] | None = None
    ) -> None:
        self._answers = list(answers)
        self.jobs = jobs
        self.requests: list[dict[str, Any]] = []

    def _next(self, method: str) -> dict[str, Any]:
        of_method = [a for a in self._answers if a.get("method", method) == method]
        if not of_method:
            return {}
        if len(of_method) > 1:
            self._answers.remove(of_method[0])
        return of_method[0]

    def _status(self, method: str, jobid: str) -> int:
        """What it answers by itself."""
        if self.jobs is not None and method == "POST":
            if jobid in self.jobs:
                return 400
            self.jobs.add(jobid)
        elif self.jobs is not None:
            if jobid not in self.jobs:
                return 404
            self.jobs.remove(jobid)
        return OK_STATUS[method]

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
        jobid = request.match_info.get("jobid") or seen["body"].get("jobid")
        if "status" in answer:
            status = answer["status"]
        else:
            status = self._status(request.method, jobid)
        await asyncio.sleep(answer.get("delay_s", 0))
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
    parser.add_argument("--knows", metavar="JOBID", nargs="+", help="keep jobs")
    args = parser.parse_args()
    answers = []
    if args.answers:
        with open(args.answers) as stream:
            answers = [json.loads(line) for line in stream if line.strip()]
    standin = StandIn(answers, set(args.knows) if args.knows else None)
    try:
        asyncio.run(serve(args.socket, standin, lambda: print("ready", flush=True)))
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
