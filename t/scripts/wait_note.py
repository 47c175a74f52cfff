# Waits until a job's annotation user.rabbit matches a regular expression.
# SPDX-License-Identifier: LGPL-3.0-only
#
# Usage: wait_note.py JOBID REGEX [SECONDS]
# An empty REGEX waits until there is none. Prints the annotation. Polls with a limit
# that only a failure reaches.
import re
import sys
import time

import flux
from flux.job import JobID, job_list_id

PAUSE_S = 0.05


def main() -> int:
    jobid, expression = JobID(sys.argv[1]), sys.argv[2]
    limit = time.monotonic() + (float(sys.argv[3]) if len(sys.argv) > 3 else 300.0)
    handle = flux.Flux()
    seen = {}
    while time.monotonic() < limit:
        job = job_list_id(handle, jobid, ["annotations"]).get()["job"]
        note = job.get("annotations", {}).get("user", {}).get("rabbit", "")
        seen[note] = None
        if re.search(expression, note) if expression else not note:
            print(note)
            return 0
        time.sleep(PAUSE_S)
    print(f"wait_note: never {expression!r} but {list(seen)}", file=sys.stderr)
    return 1


sys.exit(main())
