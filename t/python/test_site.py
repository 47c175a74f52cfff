# The documentation as a site: what a browser makes of it at the widths of a phone, of a
# small window and of a screen. Debian's Chromium; without it, or without Sphinx, these
# are skipped by name.
# SPDX-License-Identifier: LGPL-3.0-only
"""The pages of the documentation in a browser."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
from typing import Any

import pytest
from browser_support import in_frames, needs_chromium
from page_support import TOP, load

pytest.importorskip("sphinx_copybutton")
pytestmark = needs_chromium

WIDTHS = (390, 500, 1280)
PARTS = {"user": "For users", "admin": "For administrators", "dev": "For developers"}
# Readers of manual pages, which do not state them in their text.
MANUAL = {
    "man1/flux-rabbit.html": "user",
    "man5/flux-config-rabbit.html": "admin",
    "man1/dws-sim.html": "dev",
}

# Measures each page: the excess width over its window, or of its text over the theme's
# box, which would scroll; the line on its readers, with its link and the text before;
# its blocks of code, and the text that their buttons copy. A button exists once the
# page's library is loaded, and copies from an element that lives for a moment. A button
# covers text where a line of its block passes below it, however far the block is moved.
MEASURE = """
    let wider = 0;
    for (let box = doc.querySelector("article"); box; box = box.parentElement)
        if (box === doc.documentElement ||
            win.getComputedStyle(box).overflowX === "auto")
            wider = Math.max(wider, box.scrollWidth - box.clientWidth);
    const audience = Array.from(doc.querySelectorAll("p.audience"), line => [
        line.textContent,
        new URL(line.querySelector("a").href).pathname.slice(1),
        line.previousElementSibling && line.previousElementSibling.tagName]);
    const copied = [], blocks = Array.from(doc.querySelectorAll(".highlight pre"));
    const buttons = () => Array.from(doc.querySelectorAll(".copybtn"));
    for (let n = 0; n < 100 && buttons().length < blocks.length; n++)
        await new Promise(resolve => win.setTimeout(resolve, 100));
    doc.execCommand = () => {
        copied.push(doc.querySelector("body > textarea").value);
        return true;
    };
    for (const button of buttons()) button.click();
    const covered = button => {
        const box = button.getBoundingClientRect();
        const block = button.closest(".highlight").querySelector("pre");
        const range = doc.createRange();
        range.selectNodeContents(block);
        const right = block.getBoundingClientRect().right;
        return Array.from(range.getClientRects()).some(line =>
            Math.min(line.right, right) > box.left &&
            line.bottom > box.top && line.top < box.bottom);
    };
    const read = block => ({
        text: block.textContent,
        console: block.closest(".highlight-console") !== null});
    const hidden = buttons().filter(covered).map(
        button => button.closest(".highlight").textContent);
    return {wider, audience, blocks: blocks.map(read), copied, hidden};
"""
FOUND = """
    const title = doc.querySelector("#search-results > h2");
    for (let n = 0; n < 100 && title.innerText !== "Search Results"; n++)
        await new Promise(resolve => win.setTimeout(resolve, 100));
    return Array.from(doc.querySelectorAll("ul.search li a"), a => a.pathname.slice(1));
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The pages as HTML."""
    out = tmp_path_factory.mktemp("site")
    subprocess.run(
        [
            *(sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html"),
            *("-d", str(out / "trees"), str(TOP / "doc"), str(out / "html")),
        ],
        check=True,
    )
    return out / "html"


@pytest.fixture(scope="module", params=WIDTHS)
def told(
    site: pathlib.Path,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Any]:
    """The browser's measures of each page that has a source, by its name."""
    sources = [*(TOP / "doc").rglob("*.rst"), *(TOP / "doc").rglob("*.md")]
    names = sorted(str(path.relative_to(TOP / "doc")) for path in sources)
    pages = [str(pathlib.Path(name).with_suffix(".html")) for name in names]
    assert {"index.html", "user/tutorial.html", *MANUAL} <= set(pages)
    folder = tmp_path_factory.mktemp("browser")
    return in_frames(site, pages, request.param, MEASURE, folder)


def test_no_page_is_wider_than_the_window(told: dict[str, Any]) -> None:
    assert {page: of["wider"] for page, of in told.items() if of["wider"] > 0} == {}


def test_each_page_says_whom_it_is_for(told: dict[str, Any]) -> None:
    above = {"index.html", "glossary.html", *(f"{part}/index.html" for part in PARTS)}
    for page, of in told.items():
        if page in above:
            assert of["audience"] == []
            continue
        assert len(of["audience"]) == 1, page
        text, target, before = of["audience"][0]
        part = target.partition("/")[0]
        assert (text, target, before) == (PARTS[part], f"{part}/index.html", "H1")
        assert part == MANUAL.get(page, part)
        folder = page.partition("/")[0]
        assert folder not in PARTS or part == folder, page


def commands(block: list[str]) -> str:
    """The lines of a console block that are typed, without prompts."""
    return "\n".join(line[2:] for line in block if line.startswith(("$ ", "> ")))


def test_copies_have_no_prompts(told: dict[str, Any]) -> None:
    """A button copies only the commands of a block with prompts, and all of a block
    without."""
    for page, of in told.items():
        assert len(of["copied"]) == len(of["blocks"]), page
        for block, copy in zip(of["blocks"], of["copied"], strict=True):
            typed = commands(block["text"].split("\n"))
            if typed:
                assert copy.rstrip("\n") == typed, page
            else:
                assert not block["console"], (page, block)
                assert copy.split() == block["text"].split(), page


def test_no_button_covers_text(told: dict[str, Any]) -> None:
    assert {page: of["hidden"] for page, of in told.items() if of["hidden"]} == {}


def test_the_tutorial_has_a_button_for_each_command(told: dict[str, Any]) -> None:
    """The blocks of the source, as the test that runs them reads it."""
    source = (TOP / "doc/user/tutorial.rst").read_text(encoding="utf8")
    examples = load("doc_examples", TOP / "t" / "scripts")
    wanted = [commands(lines) for _, _, lines in examples.blocks(source)]
    copied = told["user/tutorial.html"]["copied"]
    assert [copy.rstrip("\n") for copy in copied] == wanted


def test_options_are_as_they_are_typed(site: pathlib.Path) -> None:
    page = (site / "man1/flux-rabbit.html").read_text(encoding="utf8")
    assert "<strong>--svg</strong>" in page


def test_the_first_use_of_a_term_leads_to_the_glossary(site: pathlib.Path) -> None:
    glossary = (site / "glossary.html").read_text(encoding="utf8")
    terms = set(re.findall(r'<dt id="(term-[^"]+)"', glossary))
    assert 40 <= len(terms) <= 60
    assert 'class="term' not in glossary
    used = set()
    for page in site.glob("*/*.html"):
        text = page.read_text(encoding="utf8")
        links = re.findall(
            r'<a class="term[^"]*" href="../glossary.html#([^"]+)"', text
        )
        assert len(links) == len(set(links)), page
        assert set(links) <= terms, page
        assert not re.search(r"<(?:code|h1)[^>]*><[^>]*a class=.term", text), page
        used |= set(links)
    assert len(used) > 30
    first_job = (site / "user/first-job.html").read_text(encoding="utf8")
    link = r'href="../glossary.html#term-directive"[^>]*>directive</a>'
    assert len(re.findall(link, first_job)) == 1
    # not linked: words that mostly mean something else
    common = re.findall(r"_COMMON \|?= \{(.*?)\}", (TOP / "doc/conf.py").read_text())
    words = [word.strip(' "') for words in common for word in words.split(",")]
    assert {f"term-{word}" for word in words} <= terms - used


def test_a_search_finds_pages(site: pathlib.Path, tmp_path: pathlib.Path) -> None:
    page = "search.html?q=gfs2"
    found = in_frames(site, [page], 390, FOUND, tmp_path)[page]
    assert "user/directives.html" in found
