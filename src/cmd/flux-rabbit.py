# SPDX-License-Identifier: LGPL-3.0-only
#
# flux rabbit: what it does is in the package flux_rabbit.
"""See rabbits and rabbit jobs, and look after them."""

import sys

from flux_k8s import program
from flux_rabbit.cli import main

if __name__ == "__main__":
    sys.exit(program.run("flux-rabbit", main))
