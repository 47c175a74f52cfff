# SPDX-License-Identifier: LGPL-3.0-only
#
# Write the C source of the extension flux_k8s._dws (cffi, API mode).
# Usage: build.py text.h OUTPUT. Run by meson, which also compiles the result.
"""Generate the source of flux_k8s._dws."""

import pathlib
import re
import sys

import cffi


def declarations(header: str) -> str:
    """The declarations of text.h, without what cffi does not read."""
    header = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    return re.sub(r"^#.*$", "", header, flags=re.MULTILINE)


def main() -> None:
    header, output = sys.argv[1:]
    ffi = cffi.FFI()
    ffi.cdef(declarations(pathlib.Path(header).read_text(encoding="utf8")))
    ffi.set_source("flux_k8s._dws", '#include "text.h"')
    ffi.emit_c_code(output)


if __name__ == "__main__":
    main()
