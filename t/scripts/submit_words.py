# SPDX-License-Identifier: LGPL-3.0-only
"""Submit jobs with directives by the API: lines "DW | TEXT" of standard input, where
"; " begins another line of DW. Flux must reject a job with a TEXT, with that TEXT in
the error; the ids of the other jobs are printed.
"""

import json
import sys

import flux
import flux.job

with open(sys.argv[1], encoding="utf-8") as stream:
    jobspec = json.load(stream)
handle = flux.Flux()
failed = False
for line in sys.stdin.read().rstrip("\n").split("\n"):
    dw, _, text = line.partition(" |")
    text = text.strip(" ")
    jobspec["attributes"]["system"]["dw"] = dw.replace("; ", "\n")
    try:
        jobid = flux.job.submit(handle, json.dumps(jobspec))
    except OSError as exc:
        said = exc.strerror
        print(said, file=sys.stderr)
    else:
        said = ""
        print(flux.job.JobID(jobid).f58)
    if text not in said or (said and not text):
        print(f"{dw!r}: said {said!r}, not {text!r}", file=sys.stderr)
        failed = True
sys.exit(1 if failed else 0)
