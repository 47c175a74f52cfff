# Pages and comments are for readers who were not there: few of their sentences begin
# with a pronoun, which nearly always hides the subject (CONTRIBUTING.md, "Style").
# SPDX-License-Identifier: LGPL-3.0-only
"""scripts/lib/words.py, and its bounds for each folder."""

from __future__ import annotations

import pathlib

import pytest
from page_support import load

words = load("words")

# Upper bound in per cent on the sentences of a folder that begin with a pronoun.
BOUND = 8
FOLDERS = ["doc/user", "doc/admin", "doc/dev", "doc/man1", "doc/man5", "doc/man8"]
FILES = ["README.md", "CONTRIBUTING.md", "NEWS.md", "doc/index.rst", "doc/glossary.rst"]
FILES += ["doc/faults.md", "doc/metrics.md", "doc/protocol.md", "doc/storage-layout.md"]

# The same for comments.
COMMENTS = ["bench", "engine", "scripts", "src/common/libdws", "src/modules/dws"]
COMMENTS += ["src/modules/dws-jobtap", "src/modules/sched-rabbit", "src/sim", "t"]
COMMENTS += ["src/python/flux_k8s", "src/python/flux_rabbit"]


@pytest.mark.parametrize("name", FOLDERS + FILES)
def test_sentences_of_pages(name: str) -> None:
    found = words.of(name, words.PAGES)
    assert found.sentences > 2
    assert found.percent < BOUND, "\n".join(found.found)


@pytest.mark.parametrize("folder", COMMENTS)
def test_sentences_of_comments(folder: str) -> None:
    found = words.of(folder, words.COMMENTS)
    assert found.sentences > 100
    assert found.percent < BOUND, f"scripts/lib/words.py -l {folder}"


RST = """\
What is no sentence
===================

It begins so. The agent does not. That is one; those are none.

* Who reads a list
  reads this sentence, too. Nothing else is in it.

::

   It is an example.

.. list-table::

   * - That is a cell, too
     - of a table

.. code-block:: sh

   What is typed, is no sentence.

The text goes on here.
"""
MD = """\
# What is no sentence

It begins so. `It` is no word of the text here.

    All that is indented
    counts as an example.

| it | What is a cell, is a sentence |
|---|---|

```
There is a fence.
```
"""
C = """\
/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * It is the comment of a file. The module calls it.
 */
int that; // Those do not count

/* Who frees the result.
 */
"""
PYTHON = """\
# This is a comment
# on two lines.
def it() -> None:
    \"\"\"Which is a docstring. The caller frees it.\"\"\"
    what = "That is a text"
"""


@pytest.mark.parametrize(
    "name, text, sentences, begin",
    [
        ("a.rst", RST, 8, ["It", "That", "Who", "Nothing", "That"]),
        ("a.md", MD, 3, ["It", "What"]),
        ("a.c", C, 3, ["It", "Who"]),
        ("a.py", PYTHON, 3, ["This", "Which"]),
    ],
)
def test_sentences_are_found(
    tmp_path: pathlib.Path, name: str, text: str, sentences: int, begin: list[str]
) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf8")
    found = words.count(path)
    assert sorted(s.split()[0] for s in found.found) == sorted(begin)
    assert found.sentences == sentences
