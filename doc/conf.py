# Sphinx: the documentation as HTML and as manual pages. See scripts/docs.
# SPDX-License-Identifier: LGPL-3.0-only
"""Configuration of Sphinx."""

import pathlib
import re

_TOP = pathlib.Path(__file__).resolve().parent

project = "flux-dws"
author = "the flux-dws developers"
copyright = author
version = release = re.search(
    r"version: '([^']+)'", (_TOP.parent / "meson.build").read_text()
).group(1)

extensions = ["myst_parser"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
master_doc = "index"
exclude_patterns = ["img/README.md"]
nitpicky = True
# What a command prints is no shell text, but its lexer takes it for that.
suppress_warnings = ["misc.highlighting_failure"]
myst_heading_anchors = 3

# Reads well on a telephone and in the dark.
html_theme = "furo"
html_title = "flux-dws"
html_static_path = []


def _pages() -> list[tuple[str, str, str, list[str], int]]:
    """The manual pages: each file in man1, man5, man8, its second heading as
    the description."""
    found = []
    for path in sorted(_TOP.glob("man[158]/*.rst")):
        description = path.read_text().splitlines()[5 - 1].strip()
        found.append(
            (
                f"{path.parent.name}/{path.stem}",
                path.stem,
                description,
                [],
                int(path.parent.name[3:]),
            )
        )
    return found


man_pages = _pages()
