# A module that no meson.build lists works in a checkout and is missing wherever
# it is installed.
# SPDX-License-Identifier: LGPL-3.0-only
"""Every Python module is installed."""

from __future__ import annotations

import pathlib

SRC = pathlib.Path(__file__).parents[2] / "src"


def test_every_module_is_listed() -> None:
    modules = [
        path
        for package in SRC.rglob("__init__.py")
        for path in package.parent.glob("*.py")
    ]
    assert len(modules) > 50
    builds = {path.parent: path.read_text() for path in SRC.rglob("meson.build")}
    missing = [
        str(path.relative_to(SRC))
        for path in modules
        if not any(
            f"'{path.relative_to(folder)}'" in text
            for folder, text in builds.items()
            if folder in path.parents
        )
    ]
    assert missing == []
