# SPDX-License-Identifier: LGPL-3.0-only
"""flux bulksubmit: enqueue jobs in bulk."""

from flux.cli.bulksubmit import BulkSubmitCmd

import solocmd

if __name__ == "__main__":
    solocmd.run_submit("flux bulksubmit", BulkSubmitCmd)
