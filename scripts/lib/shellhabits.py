#!/usr/bin/env python3
# Checks t/*.t for habits that hide failures. A pipe drops the exit code of its left
# side, so no command under test stands there. The shell expands an unquoted pattern of
# dws_until once, before the wait. A test file without execute permission was never run
# by itself.
# SPDX-License-Identifier: LGPL-3.0-only
#
# Usage: shellhabits.py FILE...
"""Find lost exit codes in the shell tests."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

# Commands whose failure is a failure of the test, and the functions for them.
OURS = {
    *("flux", "$FLUX", "dws-sim", "flux-coral2-dws", "guest"),
    *("dws_ctl", "dws_k8s", "dws_status", "rpc"),
}
# Words before the command that is run.
BEFORE = re.compile(
    r"^(\w+=.*|!|if|while|until|then|do|else|env|-u.*|exec|timeout|\d+)$"
)

# An unquoted pattern among the words that dws_until tries again and again.
WAITS_FOR_PATTERN = re.compile(
    r"""\bdws_until( +("[^"]*"|[^\s"*?|&;]+))* [^\s"|&;]*[*?]"""
)


@dataclass
class Pipe:
    """A pipe whose left side is one of OURS; offsets into the text."""

    start: int
    bar: int


def _quoted(text: str, at: int) -> int:
    """The offset after the double-quoted string that begins there."""
    at += 1
    while at < len(text) and text[at] != '"':
        if text[at] == "\\":
            at += 2
        elif text.startswith("$(", at):
            at = _paren(text, at + 1)
        else:
            at += 1
    return at + 1


def _paren(text: str, at: int) -> int:
    """The offset after the bracket that closes the one there."""
    at += 1
    while at < len(text) and text[at] != ")":
        if text[at] == "\\":
            at += 2
        elif text[at] == '"':
            at = _quoted(text, at)
        elif text[at] == "(":
            at = _paren(text, at)
        else:
            at += 1
    return at + 1


def _inner(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Begin and end of each $(...) in the double-quoted string from start to end."""
    at = start + 1
    while at < end - 1:
        if text[at] == "\\":
            at += 2
        elif text.startswith("$(", at):
            close = _paren(text, at + 1)
            yield at + 2, close - 1
            at = close
        else:
            at += 1


def _is_ours(words: list[str]) -> bool:
    while words and BEFORE.match(words[0]):
        words = words[2:] if words[0] == "-u" else words[1:]
    while words and words[0] in ("dws_wait", "dws_until", "test_must_fail"):
        words = words[2:] if words[0] == "dws_wait" else words[1:]
    return bool(words) and words[0].strip('"') in OURS


def pipes(text: str, start: int = 0, end: int | None = None) -> Iterator[Pipe]:
    """Pipes from one of OURS in this part of the text of a shell program."""
    end = len(text) if end is None else end
    at = command = start
    words: list[str] = []
    word = start

    def close(here: int) -> None:
        if text[word:here].strip():
            words.append(text[word:here].strip())

    while at < end:
        char = text[at]
        if char == "\\":
            if text.startswith("\\\n", at):
                close(at)
                word = at + 2
            at += 2
        elif char == "#" and (at == start or text[at - 1] in " \t\n"):
            while at < end and text[at] != "\n":
                at += 1
        elif char == '"':
            after = min(_quoted(text, at), end)
            for inner in _inner(text, at, after):
                yield from pipes(text, *inner)
            at = after
        elif char == "'":
            # The body of a test is a program as well.
            after = text.find("'", at + 1, end)
            after = end if after < 0 else after
            yield from pipes(text, at + 1, after)
            at = after + 1
        elif text.startswith("$(", at):
            after = _paren(text, at + 1)
            yield from pipes(text, at + 2, after - 1)
            at = after
        elif char in "|&;\n(){}" and not (char == "&" and text[at - 1] in "<>"):
            if char in "{}" and text[at - 1 : at] == "$":
                at = text.find("}", at) + 1 or end
                continue
            close(at)
            if char == "|" and text[at + 1] != "|" and _is_ours(words):
                yield Pipe(command, at)
            at += 2 if text[at : at + 2] in ("||", "&&") else 1
            words, word, command = [], at, at
        elif char in " \t":
            close(at)
            at += 1
            word = at
        else:
            at += 1


def main(paths: list[str]) -> int:
    """Entry point; returns the exit status."""
    found = 0
    for path in paths:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for pipe in pipes(text):
            line = text.count("\n", 0, pipe.bar) + 1
            what = " ".join(text[pipe.start : pipe.bar].split())
            print(
                f"{path}:{line}: the pipe drops the exit code of: {what}\n"
                "Let the command write to a file, and the next one read that."
            )
            found += 1
        for match in WAITS_FOR_PATTERN.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            print(f"{path}:{line}: the pattern is read once: {match.group()}")
            found += 1
        if path.endswith(".t") and not os.access(path, os.X_OK):
            print(f"{path}: is not executable: chmod +x")
            found += 1
    return min(found, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
