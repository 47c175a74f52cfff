# SPDX-License-Identifier: LGPL-3.0-only
"""flux python: run python with the flux module on its path."""

import os
import sys

if __name__ == "__main__":
    os.execv(sys.executable, [sys.executable] + sys.argv[1:])
