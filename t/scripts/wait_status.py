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

PAUSE_S = 0.05


def fits(expression: str, text: str) -> bool:
    return (
        subprocess.run(
            ["jq", "-e", expression],
            input=text,
            stdout=subprocess.DEVNULL,
            text=True,
            check=False,
        ).returncode
        == 0
    )


def main() -> int:
    expression = sys.argv[1]
    limit = time.monotonic() + (float(sys.argv[2]) if len(sys.argv) > 2 else 300.0)
    handle = flux.Flux()
    status = seen = None
    while time.monotonic() < limit:
        try:
            status = handle.rpc("dws.status", {}).get()
        except OSError as exc:
            status = {"error": str(exc)}
        text = json.dumps(status)
        if text != seen and fits(expression, text):
            return 0
        seen = text
        time.sleep(PAUSE_S)
    print(f"wait_status: never true: {expression}\n{status}", file=sys.stderr)
    return 1


sys.exit(main())
