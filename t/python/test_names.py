# The names that C and Python share are written in one place, a C header.
# SPDX-License-Identifier: LGPL-3.0-only

from __future__ import annotations

import pathlib
import subprocess
import sys

TOP = pathlib.Path(__file__).parents[2]


def test_names_are_those_of_the_header() -> None:
    script = TOP / "scripts" / "lib" / "names.py"
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_every_name_of_the_header_is_there() -> None:
    from flux_k8s import names

    header = TOP / "src" / "common" / "libutil" / "names.h"
    defined = [
        line.split()[1][len("DWS_") :]
        for line in header.read_text(encoding="utf-8").splitlines()
        if line.startswith("#define DWS_")
    ]
    assert "EPILOG" in defined
    assert [name for name in defined if not isinstance(getattr(names, name), str)] == []
