# SPDX-License-Identifier: LGPL-3.0-only
"""Fail if a function that solo has is in no test which also runs on flux-core,
and not listed in untested.txt, or is listed without need.

usage: untested.py FOLDER-OF-THE-ENGINE LIBFLUX-CORE

Of what the library exports, functions that there is no code for are weak symbols.
"""

import re
import subprocess
import sys
from pathlib import Path

WORD = re.compile(r"\b\w+\b")
HERE = ("libflux/test/test_[!u]*.c", "t/libflux/*.c", "t/plugins/*.c")


def main():
    top = Path(sys.argv[1])
    command = ["nm", "-D", "--defined-only", sys.argv[2]]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    done = set(re.findall(r" T (\w+)", text))
    used = set()
    for pattern in HERE:
        for path in top.glob(pattern):
            used.update(WORD.findall(path.read_text()))
    listed = set((top / "t/libflux/untested.txt").read_text().split())
    print(f"{len(done)} functions, {len(done & used)} in a test")
    for name in sorted(done - used - listed):
        print("in no test:", name)
    for name in sorted(listed & used | listed - done):
        print("listed without need:", name)
    return 1 if done - used != listed else 0


if __name__ == "__main__":
    sys.exit(main())
