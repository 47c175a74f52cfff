# SPDX-License-Identifier: LGPL-3.0-only
"""flux bulksubmit: enqueue jobs in bulk."""

import solocmd
from flux.cli.bulksubmit import BulkSubmitCmd

if __name__ == "__main__":
    solocmd.run_submit("flux bulksubmit", BulkSubmitCmd)
