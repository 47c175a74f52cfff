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


# Entries of the glossary whose words mean something else in most sentences: no links.
_COMMON = {"draft", "group", "limit", "loss", "near", "queue", "row", "state"}
_COMMON |= {"outdated", "preset", "suspect", "taken", "used"}
# The text in these is no prose, or leads to another place already.
_OTHER = (nodes.literal, nodes.literal_block, nodes.reference, nodes.title, nodes.raw)


def _form(term: str) -> str:
    """A pattern for a term, also in the plural, as a participle, or at the beginning of
    a sentence."""
    first, *rest = term.split(" ")
    first = f"[{first[0].upper()}{first[0]}]{re.escape(first[1:])}"
    words = [first + (r"(?:s|d|ed)?" if rest else ""), *rest]
    return " ".join(words) + r"(?:s|es|d|ed)?"


def _link_terms(app: Any, doctree: nodes.document, page: str) -> None:
    """Let the first use of each term on an HTML page lead to the glossary."""
    if app.builder.format != "html" or page == "glossary":
        return
    targets = {
        name: anchor
        for name, _, kind, _, anchor, _ in app.env.domains["std"].get_objects()
        if kind == "term" and name not in _COMMON
    }
    there = app.builder.get_relative_uri(page, "glossary")
    for name in sorted(targets, key=len, reverse=True):
        form = re.compile(rf"(?<![\w/.-]){_form(name)}(?![\w/-]|\.\w)")
        for text in doctree.findall(nodes.Text):
            match = form.search(text)
            parent, above = text.parent, text.parent
            while above and not isinstance(above, _OTHER):
                above = above.parent
            if match is None or above:
                continue
            link = nodes.reference(
                "",
                match[0],
                internal=True,
                refuri=f"{there}#{targets[name]}",
                classes=["term"],
            )
            rest = [text[: match.start()], text[match.end() :]]
            parent.replace(text, [nodes.Text(rest[0]), link, nodes.Text(rest[1])])
            break


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("doctree-resolved", _say_audience)
    app.connect("doctree-resolved", _link_terms)
