# Sets the clocks that t/scripts/jump-clock.c makes of those of the host.
# SPDX-License-Identifier: LGPL-3.0-only
"""Usage: set_clock.py FILE jump|pass SECONDS"""

import os
import struct
import sys

SIZE = struct.calcsize("dd")

path, how, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
# Processes have the file mapped: it is written to, not made anew.
fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
wall, monotonic = struct.unpack("dd", os.pread(fd, SIZE, 0).ljust(SIZE, b"\0"))
if how == "pass":
    wall, monotonic = wall + seconds, monotonic + seconds
else:
    wall = seconds
os.pwrite(fd, struct.pack("dd", wall, monotonic), 0)
