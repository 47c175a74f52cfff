# Waits until a jq filter is true of the answer of dws.status.
# SPDX-License-Identifier: LGPL-3.0-only
#
# Usage: wait_status.py FILTER [SECONDS]
# The module has no event for "something changed", so this asks again and
# again, with a limit that only a failure reaches.
import json
import subprocess
import sys
import time

import flux

PAUSE_S = 0.02


def main() -> int:
    expression = sys.argv[1]
    limit = time.monotonic() + (float(sys.argv[2]) if len(sys.argv) > 2 else 60.0)
    handle = flux.Flux()
    status = None
    while time.monotonic() < limit:
        try:
            status = handle.rpc("dws.status", {}).get()
        except OSError as exc:
            status = {"error": str(exc)}
        found = subprocess.run(
            ["jq", "-e", expression],
            input=json.dumps(status),
            stdout=subprocess.DEVNULL,
            text=True,
            check=False,
        )
        if found.returncode == 0:
            return 0
        time.sleep(PAUSE_S)
    print(f"wait_status: never true: {expression}\n{status}", file=sys.stderr)
    return 1


sys.exit(main())
