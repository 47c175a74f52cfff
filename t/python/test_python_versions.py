# What runs on a site's machines runs with the Python that is there: that of flux-core,
# 3.9 or newer (RHEL 9); for the hook of PBS and the example of a notice command that of
# the system, which is 3.6 on RHEL 8.
# SPDX-License-Identifier: LGPL-3.0-only
"""The oldest Python."""

from __future__ import annotations

import ast
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import pytest

TOP = pathlib.Path(__file__).parents[2]
WITH_FLUX = (
    *("src/python", "src/cmd", "src/atom/flux_atom", "src/modules/sched-rabbit"),
    *("etc/cli", "etc/modprobe"),
)
WITH_SYSTEM = ("etc/rabbit-notice", "src/atom/pbs/PBS_cray_atom.PY")


@pytest.mark.parametrize(
    ("oldest", "paths"), [("3.9", WITH_FLUX), ("3.6", WITH_SYSTEM)]
)
def test_it_runs_with_the_oldest(
    oldest: str, paths: tuple[str, ...], tmp_path: pathlib.Path
) -> None:
    pytest.importorskip("vermin")
    # vermin knows Python by its suffix.
    files = []
    for path in map(TOP.joinpath, paths):
        for file in path.rglob("*.py") if path.is_dir() else [path]:
            copy = tmp_path / f"{file.relative_to(TOP)}.py".replace("/", "-")
            copy.write_bytes(file.read_bytes())
            files.append(copy.name)
    done = subprocess.run(
        [sys.executable, "-c", "import vermin; vermin.main()", "--quiet"]
        + ["--violations", "--no-tips", f"--target={oldest}-", *files],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


TYPES = {"bool", "bytes", "dict", "float", "int", "list", "set", "str", "tuple", "type"}


def is_type(node: ast.AST) -> bool:
    if isinstance(node, ast.Subscript):
        node = node.value
    return (isinstance(node, ast.Name) and node.id in TYPES) or (
        isinstance(node, ast.Constant) and node.value is None
    )


def unions(node: ast.AST) -> Iterator[int]:
    """The lines of unions of types that are evaluated, as annotations are not."""
    is_or = isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)
    if is_or and (is_type(node.left) or is_type(node.right)):
        yield node.lineno
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from unions(child)


def test_unions_of_types_are_not_evaluated() -> None:
    """int | str is an error before Python 3.10; vermin does not see it."""
    assert list(unions(ast.parse("A = list[int] | B\ndef f(a: int | None): pass"))) == [
        1
    ]
    found = [
        f"{file.relative_to(TOP)}:{line}"
        for path in WITH_FLUX
        for file in (TOP / path).rglob("*.py")
        for line in unions(ast.parse(file.read_text(encoding="utf8")))
    ]
    assert found == []
