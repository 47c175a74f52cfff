#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-only
"""Write a public header: a template with flux-python's declarations in it.

usage: genheader.py TEMPLATE DECLARATIONS HEADER

flux-python ships what its extensions were made of: flux-core's headers as the
preprocessor leaves them. Without functions there is nothing to stand in for.
"""

import re
import sys
from pathlib import Path

# Lines of the preprocessor, of cffi, and empty ones.
LEFT_OUT = re.compile(r"#|extern \"Python\"|//|\s*$")


def main(template, declarations, header):
    lines = Path(declarations).read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not LEFT_OUT.match(line))
    text = re.sub(r";(\s*;)+", ";", text)  # where a macro was
    if not re.search(r"\w \*?\w+ \([^)]*\);", text):
        sys.exit(f"{declarations} declares no function")
    text = Path(template).read_text(encoding="utf-8").replace("@DECLARATIONS@", text)
    Path(header).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
