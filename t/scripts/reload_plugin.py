# SPDX-License-Identifier: LGPL-3.0-only
"""reload_plugin.py PLUGIN FILE: what flux jobtap load --remove=NAME PLUGIN does, every
second until FILE is there. Prints how often."""

import pathlib
import sys
import time

import flux

INTERVAL_S = 1.0


def main() -> None:
    plugin, stop = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    handle, begin, count = flux.Flux(), time.monotonic(), 0
    while not stop.exists():
        request = {"remove": plugin.name, "load": str(plugin)}
        handle.rpc("job-manager.jobtap", request).get()
        count += 1
        # Keep the rate, however busy the job manager is.
        time.sleep(max(0.0, begin + count * INTERVAL_S - time.monotonic()))
    print(f"{count} times in {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
