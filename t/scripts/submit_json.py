# SPDX-License-Identifier: LGPL-3.0-only
"""Submit a jobspec from a file: ``flux python submit_json.py FILE``."""

import json
import sys

import flux
from flux.job import JobID

with open(sys.argv[1], encoding="utf-8") as file:
    jobspec = json.load(file)
print(JobID(flux.job.submit(flux.Flux(), json.dumps(jobspec))).f58)
