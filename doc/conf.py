# Sphinx: the documentation as HTML and as manual pages. See scripts/docs.
# SPDX-License-Identifier: LGPL-3.0-only
"""Configuration of Sphinx."""

import pathlib
import re
from typing import Any

from docutils import nodes

_TOP = pathlib.Path(__file__).resolve().parent

project = "flux-dws"
author = "the flux-dws developers"
copyright = author
version = release = re.search(
    r"version: '([^']+)'", (_TOP.parent / "meson.build").read_text()
).group(1)

extensions = ["myst_parser", "sphinx_copybutton"]
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
# Dashes and quotation marks stay as they are typed.
smartquotes = False
html_static_path = ["static"]
html_css_files = ["site.css"]

# A copy of a console block has its commands: no prompt, and nothing that they print.
copybutton_prompt_text = r"\$ |> "
copybutton_prompt_is_regexp = True


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


def _part(app: Any, page: str) -> str | None:
    """The part of the table of contents that a page is in, None for the parts and for
    what they are in."""
    contents: dict[str, list[str]] = app.env.toctree_includes

    def below(of: str) -> bool:
        return any(page == name or below(name) for name in contents.get(of, []))

    return next((part for part in contents[master_doc] if below(part)), None)


def _say_audience(app: Any, doctree: nodes.document, page: str) -> None:
    """Say below the title of each HTML page whom it is for, which is the title of its
    part."""
    part = _part(app, page)
    if app.builder.format != "html" or part is None:
        return
    title = next(doctree.findall(nodes.title))
    link = nodes.reference(
        "",
        app.env.titles[part].astext(),
        internal=True,
        refuri=app.builder.get_relative_uri(page, part),
    )
    line = nodes.paragraph("", "", link, classes=["audience"])
    # A manual page has its description as a subtitle: below that.
    title.parent.insert(title.parent.index(title) + 1, line)


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("doctree-resolved", _say_audience)
