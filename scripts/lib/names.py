# Generates flux_k8s/names.py, the names that C and Python share, from
# src/common/libutil/names.h. Without --write: fails if the module is out of date.
# SPDX-License-Identifier: LGPL-3.0-only
"""Usage: names.py [--write]"""

from __future__ import annotations

import pathlib
import re
import sys

TOP = pathlib.Path(__file__).parents[2]
HEADER = TOP / "src" / "common" / "libutil" / "names.h"
MODULE = TOP / "src" / "python" / "flux_k8s" / "names.py"
# a comment, or a name with its string
ENTRY = re.compile(r'/\*(.*?)\*/|^#define DWS_(\w+) ("[^"]*")$', re.DOTALL | re.M)
HEAD = '''\
# Made by scripts/lib/names.py --write from src/common/libutil/names.h: names
# that C and Python share. Change them there.
# SPDX-License-Identifier: LGPL-3.0-only
"""Names of events, exceptions, keys, topics, and in Kubernetes objects."""
'''


def module(header: str) -> str:
    """The text of the Python module."""
    text = HEAD
    for comment, name, value in ENTRY.findall(header):
        if name:
            text += f"{name} = {value}\n"
        elif "SPDX" not in comment and not comment.startswith(" !"):
            lines = [line.strip(" *") for line in comment.splitlines()]
            text += "\n" + "".join(f"# {line}\n" for line in lines if line)
    return text


def main() -> int:
    text = module(HEADER.read_text(encoding="utf-8"))
    if sys.argv[1:] == ["--write"]:
        MODULE.write_text(text, encoding="utf-8")
    elif sys.argv[1:] or MODULE.read_text(encoding="utf-8") != text:
        print(f"{MODULE.relative_to(TOP)} is not that of {HEADER.name}: run")
        print("scripts/lib/names.py --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
