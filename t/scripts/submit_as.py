# SPDX-License-Identifier: LGPL-3.0-only
"""Submit the jobspec on standard input as another user, as far as an instance of
one user knows any: ``flux submit --dry-run ... | submit_as.py USERID``.

Signs the jobspec in that user's name, with the mechanism that needs no key.
Prints the job's id.
"""

import base64
import os
import sys

userid = int(sys.argv[1])
os.environ["FLUX_HANDLE_USERID"] = str(userid)  # before a handle is opened

import flux  # noqa: E402
from flux.job import JobID  # noqa: E402


def encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


header = f"version\0i1\0userid\0i{userid}\0mechanism\0snone\0"
signed = f"{encode(header.encode())}.{encode(sys.stdin.buffer.read())}.none"
request = {"J": signed, "urgency": 16, "flags": 0}
try:
    print(JobID(flux.Flux().rpc("job-ingest.submit", request).get()["id"]).f58)
except OSError as exc:
    sys.exit(str(exc))
