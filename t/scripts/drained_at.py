# SPDX-License-Identifier: LGPL-3.0-only
"""``flux python drained_at.py JOBID <EVENTLOG``: the ranks that were drained when
dws-jobtap.so ended the epilog of a job, by the eventlog of the resource module.
"""

import json
import sys

import flux
import flux.job
from flux.idset import IDset


def main() -> None:
    handle = flux.Flux()
    end = 0.0
    for event in flux.job.event_watch(handle, flux.job.JobID(sys.argv[1])):
        name = event.context.get("description")
        if (event.name, name) == ("epilog-finish", "dws-epilog"):
            end = event.timestamp
    drained = IDset()
    for line in sys.stdin:
        entry = json.loads(line)
        if entry["timestamp"] > end:
            break
        if entry["name"] == "drain":
            drained.add(IDset(entry["context"]["idset"]))
        elif entry["name"] == "undrain":
            drained.subtract(IDset(entry["context"]["idset"]))
    print(drained)


if __name__ == "__main__":
    main()
