"""Send a request to a job service and print the answer as JSON.

usage: job-rpc.py TOPIC [KEY=VALUE...]     VALUE is JSON, or a string
       job-rpc.py submit JOBSPEC           the jobspec as it stands
       job-rpc.py submit-true [KEY=VALUE]  a good one, with bad values
       job-rpc.py list CONSTRAINT

On an error its text goes to standard error, and the status is 1.

SPDX-License-Identifier: LGPL-3.0-only
"""

import json
import sys
from typing import Any

import flux
from flux.job import JobID, JobspecV1


def sign(jobspec: str) -> str:
    """Wrap a jobspec as J, unsigned."""
    import base64
    import os

    header = f"version\0i1\0userid\0i{os.getuid()}\0mechanism\0snone\0"
    parts = [base64.b64encode(s.encode()).decode() for s in (header, jobspec)]
    return ".".join(parts + ["none"])


def value(key: str, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return int(JobID(text)) if key == "id" else text


def pairs(args: list[str]) -> dict[str, Any]:
    return {k: value(k, v) for k, v in (arg.split("=", 1) for arg in args)}


def main(topic: str, *args: str) -> None:
    request: dict[str, Any] = {}
    if topic.startswith("submit"):
        spec = JobspecV1.from_command(["true"]).dumps()
        if topic == "submit":
            spec, args = args[0], ()
        request = {"J": sign(spec), "urgency": 16, "flags": 0}
        topic = "job-ingest.submit"
    elif topic == "list":
        request = {
            "max_entries": 0,
            "attrs": ["all"],
            "constraint": json.loads(args[0]),
        }
        topic, args = "job-list.list", ()
    request.update(pairs(list(args)))
    try:
        answer = flux.Flux().rpc(topic, request).get()
    except OSError as exc:
        sys.exit(str(exc))
    print(json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
