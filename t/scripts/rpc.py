# SPDX-License-Identifier: LGPL-3.0-only
"""Send one request: ``flux python rpc.py TOPIC [JSON]``.

A "id" or "jobid" may be in any of Flux's notations. Prints the response's
payload, or the error text (status 1).
"""

import json
import sys

import flux
from flux.job import JobID


def main() -> int:
    topic = sys.argv[1]
    payload = json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}
    for key in ("id", "jobid"):
        if isinstance(payload.get(key), str):
            payload[key] = int(JobID(payload[key]))
    try:
        response = flux.Flux().rpc(topic, payload).get()
    except OSError as exc:
        print(exc.strerror, file=sys.stderr)
        return 1
    if response is not None:
        print(json.dumps(response, sort_keys=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
