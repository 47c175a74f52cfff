# SPDX-License-Identifier: LGPL-3.0-only
"""flux run: run a job interactively.

flux-python's command submits the job and then executes "flux-job attach".
Here that program is a module, and a call saves the start of another
interpreter.
"""

import os
import sys
from typing import NoReturn

import jobcmd
import solocmd
from flux.cli.run import RunCmd


def execute(program: str, argv: list[str]) -> NoReturn:
    sys.argv = [os.fsdecode(arg) for arg in argv]
    jobcmd.main()
    sys.exit(0)


if __name__ == "__main__":
    os.execvp = execute  # type: ignore[assignment]
    solocmd.run_submit("flux run", RunCmd)
