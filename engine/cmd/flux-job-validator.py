# SPDX-License-Identifier: LGPL-3.0-only
"""flux job-validator: let plugins judge jobspecs, a line of JSON each."""

import json
import sys
from typing import Any

import ingestcmd
import solocmd
from flux.job.validator import JobValidator


def validate(stack: JobValidator, job: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(str(stack.validate(job)))
    return result


def main() -> None:
    sys.exit(ingestcmd.serve("flux-job-validator", JobValidator, validate))


if __name__ == "__main__":
    solocmd.run("flux-job-validator", main)
