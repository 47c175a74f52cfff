# SPDX-License-Identifier: LGPL-3.0-only
"""flux job-frobnicator: change jobspecs by plugins, a line of JSON each."""

from typing import Any

import ingestcmd
import solocmd
from flux.job import Jobspec
from flux.job.frobnicator import JobFrobnicator


def frobnicate(stack: JobFrobnicator, job: dict[str, Any]) -> dict[str, Any]:
    # A plugin may raise whatever it likes: that is the text of the refusal.
    try:
        jobspec = Jobspec(**job["jobspec"])
    except Exception as exc:
        return {"errnum": 1, "errstr": f"invalid jobspec: {exc}"}
    try:
        # In the order in which plugins expect them, whatever frob() calls them.
        stack.frob(jobspec, job["userid"], job["urgency"], job["flags"])
    except Exception as exc:
        return {"errnum": 1, "errstr": str(exc)}
    return {"errnum": 0, "data": jobspec.jobspec}


def main() -> None:
    ingestcmd.serve("flux-job-frobnicator", JobFrobnicator, frobnicate)


if __name__ == "__main__":
    solocmd.run("flux-job-frobnicator", main)
