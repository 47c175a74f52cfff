#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-only
"""Write the linker version script of a library, and stubs of its functions, from
its public header.

usage: gensyms.py HEADER STUBS.c LIBRARY.map

The library exports what the header declares, and nothing else. Stubs are weak: of
a function that there is code for, the linker takes that. The others set ENOSYS
and return NULL, -1 or false.
"""

import re
import sys
from pathlib import Path

# Text beside declarations of functions: comments, macros, enumerators, members.
REST = re.compile(
    r'/\*.*?\*/|^#(?:\\\n|[^\n])*|extern "C" \{|\{[^{}]*\}', flags=re.S | re.M
)
FUNCTION = re.compile(r"([^(]*[ *])((?:flux|idset|hostlist)_\w+) ?\(")
NUMBERS = {"int", "unsigned int", "double", "uint32_t", "size_t", "ssize_t", "pid_t"}
VALUES = {**dict.fromkeys(NUMBERS, " -1"), "bool": " false", "void": ""}

STUB = """
__attribute__ ((weak)) {type} {name} (void);
{type} {name} (void)
{{
    errno = ENOSYS;
    return{value};
}}
"""


def functions(path):
    """Yield (type, name) of each function that a header declares."""
    text = Path(path).read_text(encoding="utf-8")
    for statement in REST.sub("", text).split(";"):
        found = FUNCTION.match(" ".join(statement.split()))
        if found and not found[1].startswith("typedef"):
            yield found[1].strip(), found[2]


def main(header, stubs, version_script):
    found = dict.fromkeys(functions(header))
    with open(stubs, "w", encoding="utf-8") as out:
        out.write("#include <errno.h>\n#include <stdbool.h>\n")
        out.write("#include <stddef.h>\n#include <stdint.h>\n#include <sys/types.h>\n")
        for ctype, name in found:
            if ctype.endswith(("*", "_f")):
                out.write(STUB.format(type="void *", name=name, value=" NULL"))
            elif ctype in VALUES:
                out.write(STUB.format(type=ctype, name=name, value=VALUES[ctype]))
    with open(version_script, "w", encoding="utf-8") as out:
        out.write("{ global:\n")
        out.writelines(f"    {name};\n" for _, name in found)
        out.write("local: *; };\n")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
