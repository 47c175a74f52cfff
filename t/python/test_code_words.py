# The page about the words of the code is short, and names files that have them.
# SPDX-License-Identifier: LGPL-3.0-only
"""doc/dev/glossary.rst."""

from __future__ import annotations

import re

from page_support import TOP

WORDS_MAX = 40


def _plain(text: str) -> str:
    return re.sub(r"[\s*_]", "", text).lower()


def rows() -> list[tuple[str, str]]:
    """The words and the files of the table, without the header."""
    text = (TOP / "doc/dev/glossary.rst").read_text()
    found = re.findall(
        r"^   \* - (.+)\n     - .+\n     - ``(.+)``$", text, re.MULTILINE
    )
    assert len(found) == text.count("\n   * - ") - 1
    return found


def test_there_are_few_words() -> None:
    words = [word for word, _ in rows()]
    assert 0 < len(words) <= WORDS_MAX
    assert words == sorted(set(words))


def test_each_file_has_its_word() -> None:
    lacking = [
        f"{file}: {word}"
        for word, file in rows()
        if _plain(word) not in _plain((TOP / file).read_text())
    ]
    assert lacking == []


def test_no_word_is_explained_twice() -> None:
    text = (TOP / "doc/glossary.rst").read_text()
    both = {word for word, _ in rows()} & set(
        re.findall(r"^   (\w.*)$", text, re.MULTILINE)
    )
    assert both == set()
