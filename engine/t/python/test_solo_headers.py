# SPDX-License-Identifier: LGPL-3.0-only
"""The public headers that the build makes of flux-python's, and what it says if
there are none.
"""

import subprocess
import sys
import venv
from pathlib import Path

import pytest

TOP = Path(__file__).parents[3]
GENHEADER = TOP / "engine/include/flux/genheader.py"
GENSYMS = TOP / "engine/libflux/gensyms.py"

DECLARATIONS = """\
# 1 "/usr/include/stdc-predef.h" 1 3 4
typedef struct flux_handle flux_t;
enum { FLUX_ONE = 1 };


 ;
int flux_one (flux_t *h,
              int x);
const char * flux_two(void);
 ;
flux_t *flux_three (double x);
extern "Python" void flux_four (void);
"""


def run(*args):
    return subprocess.run(
        [str(a) for a in args], capture_output=True, text=True, check=False
    )


@pytest.fixture
def header(tmp_path):
    (tmp_path / "in.h").write_text("/* A comment; flux_no (1). */\n@DECLARATIONS@\n")
    return tmp_path / "out.h"


def generate(header, declarations):
    (header.parent / "preproc.h").write_text(declarations)
    folder = header.parent
    return run(sys.executable, GENHEADER, folder / "in.h", folder / "preproc.h", header)


def test_declarations(header):
    assert generate(header, DECLARATIONS).returncode == 0
    text = header.read_text()
    assert "stdc-predef" not in text
    assert "Python" not in text
    check = run("cc", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-c", "-o",
                header.parent / "out.o", "-xc", header)  # fmt: skip
    assert check.returncode == 0, check.stderr


def test_symbols(header):
    generate(header, DECLARATIONS)
    stubs, version_script = header.parent / "stubs.c", header.parent / "out.map"
    assert run(sys.executable, GENSYMS, header, stubs, version_script).returncode == 0
    names = [line.strip(" ;") for line in version_script.read_text().splitlines()]
    assert names[1:-1] == ["flux_one", "flux_two", "flux_three"]
    text = stubs.read_text()
    assert "int flux_one (void)\n{\n    errno = ENOSYS;\n    return -1;" in text
    assert text.count("return NULL;") == 2


def test_no_function(header):
    process = generate(header, "typedef struct flux_handle flux_t;\n")
    assert process.returncode == 1
    assert process.stderr.endswith("preproc.h declares no function\n")


def test_no_wheel(tmp_path):
    """With a Python that has no flux-python, the build says in a line what is wrong."""
    venv.create(tmp_path / "venv", symlinks=True)
    (tmp_path / "native").write_text(
        f"[binaries]\npython = '{tmp_path}/venv/bin/python3'\n"
    )
    process = run("meson", "setup", "--native-file", tmp_path / "native",
                  "-Dflux=solo", "-Dtests=false", tmp_path / "build", TOP)  # fmt: skip
    assert process.returncode != 0
    (line,) = [s for s in process.stdout.splitlines() if "ERROR" in s]
    assert "does not ship src/_core_preproc.h, of which solo is built" in line
