# Counts sentences that begin with a pronoun, in the pages and the comments of a folder.
# Such a sentence nearly always hides its subject (CONTRIBUTING.md, "Style").
# scripts/lib/words.py [-l] FOLDER|FILE...: a line for each; -l lists the sentences.
# t/python/test_words.py has the bounds.
# SPDX-License-Identifier: LGPL-3.0-only
"""Count sentences that begin with a pronoun."""

from __future__ import annotations

import argparse
import pathlib
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

TOP = pathlib.Path(__file__).parents[2]
PRONOUN = re.compile(
    r"(?:It|That|Those|They|These|This|What|Who|Whoever|Of|Which|One|Some|Nobody"
    r"|Nothing|All|Both|So|There)\b"
)
LITERAL = re.compile(r"(?<!:)::$|^\.\. (?:code-block|toctree|image|list-table)::")
ITEM = re.compile(r"(?:[*-] |\d+\. |\.\. \w+:: ?|:[\w ]+:(?: |$))+")
TITLE = re.compile(r"#+ .*|[=~^-]{3,}")
COMMENTS = (".c", ".h", ".py")
PAGES = (".rst", ".md")


@dataclass
class Count:
    """Sentences, and those of them that begin with a pronoun."""

    sentences: int
    found: list[str]

    @property
    def percent(self) -> float:
        return 100 * len(self.found) / max(self.sentences, 1)


def comments(text: str, c: bool) -> Iterator[str]:
    """The comments of a file in C, or the comments and docstrings of one in Python."""
    if c:
        found = re.findall(r"/\*(.*?)\*/", text, re.DOTALL)
        found = [re.sub(r"\n\s*\*", "\n", comment) for comment in found]
    else:
        found = re.findall(r'"""(.*?)"""', text, re.DOTALL)
        blocks = re.findall(r"(?:^[ \t]*#[^!\n].*\n)+", text, re.MULTILINE)
        found += [re.sub(r"^\s*#", "", block, flags=re.MULTILINE) for block in blocks]
    for comment in found:
        yield re.sub(r".*?SPDX[^\n]*", "", comment)


def blocks(text: str) -> Iterator[str]:
    """The paragraphs, list items and table cells of a page, without its examples."""
    block: list[str] = []
    indent, literal, fenced = 0, -1, False
    for line in [*text.splitlines(), ""]:
        begin = len(line) - len(line.lstrip())
        words = line.strip()
        if words.startswith("```"):
            fenced = not fenced
        if fenced or (words and 0 <= literal < begin):
            continue
        if words:
            literal = -1
        item = ITEM.match(words)
        begin += item.end() if item else 0
        if TITLE.fullmatch(words):
            block, words = [], ""
        if not words or item or begin != indent or words.startswith("|"):
            yield " ".join(block)
            block = []
        indent = begin
        if LITERAL.search(words) and not words.startswith(".. list-table"):
            literal = len(line) - len(line.lstrip())
        if words.startswith("|"):
            yield from words.split("|")
        elif words and not words.startswith("```"):
            block.append(words[item.end() :] if item else words)


def count(path: pathlib.Path) -> Count:
    """The sentences of one file."""
    text = path.read_text(encoding="utf8", errors="replace")
    page = path.suffix in PAGES
    if path.suffix == ".md":
        text = re.sub(r"(?:^(?: {4}.*)?\n)*^ {4}.*\n", "\n", text, flags=re.MULTILINE)
    found = blocks(text) if page else comments(text, path.suffix != ".py")
    total = Count(0, [])
    for block in found:
        words = " ".join(block.replace("#", " ").split())
        if len(words.split()) < 4:
            continue
        for sentence in re.split(r"(?<=[.:;])\s+", words):
            if len(sentence.split()) > 2:
                total.sentences += 1
                if PRONOUN.match(sentence):
                    total.found.append(sentence)
    return total


def of(folder: str, suffixes: tuple[str, ...] = PAGES + COMMENTS) -> Count:
    """The sentences of all files below a folder that git knows, without unit tests."""
    total = Count(0, [])
    listed = subprocess.run(
        ["git", "ls-files", folder], cwd=TOP, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.split():
        if name.endswith(suffixes) and "/test/" not in name:
            one = count(TOP / name)
            total.sentences += one.sentences
            total.found += [f"{name}: {sentence}" for sentence in one.found]
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-l", "--list", action="store_true", help="list the sentences")
    parser.add_argument("folder", nargs="+")
    args = parser.parse_args()
    for folder in args.folder:
        total = of(folder)
        if args.list:
            print(*total.found, sep="\n")
        print(f"{folder}: {total.percent:.1f} % of {total.sentences}")


if __name__ == "__main__":
    main()
