# SPDX-License-Identifier: LGPL-3.0-only
"""flux submit: enqueue a job."""

import solocmd
from flux.cli.submit import SubmitCmd

if __name__ == "__main__":
    solocmd.run_submit("flux submit", SubmitCmd)
