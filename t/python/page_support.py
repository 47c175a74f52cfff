# Support for the tests of pages that refer to tests.
# SPDX-License-Identifier: LGPL-3.0-only
"""References to tests, and the programs of scripts/lib that read pages."""

from __future__ import annotations

import importlib.util
import pathlib
import re
import sys
from types import ModuleType

TOP = pathlib.Path(__file__).parents[2]
# of a shell script the title of a test, or a function that makes one
TITLES = {
    ".t": r"^(?:test_expect_success (?:[A-Z_,]+ )?'{0}'|{0} ')",
    ".c": r"^static void {0} \(void \*\*state\)",
    ".py": r"^(?:    )?(?:async )?def {0}\(",
}


def is_there(reference: str) -> bool:
    """Whether "FILE: TITLE" is a test."""
    path, _, title = reference.strip("`").partition(": ")
    file = TOP / path
    title = title.strip().replace("'", r"'\''")
    wanted = TITLES[file.suffix].format(re.escape(title))
    return file.is_file() and bool(re.search(wanted, file.read_text(), re.MULTILINE))


def load(name: str, folder: pathlib.Path = TOP / "scripts" / "lib") -> ModuleType:
    """A program of a folder that is no package."""
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
