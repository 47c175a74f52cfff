# SPDX-License-Identifier: LGPL-3.0-only
"""Fail if a function that solo has is in no test which also runs on flux-core,
and not listed in untested.txt, or is listed without need.

usage: untested.py FOLDER-OF-THE-ENGINE
"""

import re
import sys
from pathlib import Path

WORD = re.compile(r"\b\w+\b")
HERE = ("libflux/test/test_[!u]*.c", "t/libflux/*.c", "t/plugins/*.c")


def main():
    top = Path(sys.argv[1])
    lines = (top / "libflux/symbols.txt").read_text().splitlines()
    fields = [line.split() for line in lines if not line.startswith("#")]
    done = {words[1] for words in fields if words and words[2] == "done"}
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
