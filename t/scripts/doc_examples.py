# Runs what a page of the documentation shows: each `$ command` of its console
# blocks, in order, in one shell, and compares what is printed with what the
# page says. Usage: doc_examples.py PAGE.rst
# SPDX-License-Identifier: LGPL-3.0-only
#
# In what is expected, "..." stands for anything, on a line of its own for any
# number of lines, and any job id for any other. A block with the class `fails`
# must end with an error; one with the class `elsewhere` needs what a test does
# not have (root, a real cluster) and is only counted.
"""Run the examples of a page."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

BLOCK = ".. code-block:: console"
MARK = "\x1e"


@dataclass
class Example:
    """One command: the line it begins on, its text, what it prints."""

    line: int
    command: str
    expected: list[str] = field(default_factory=list)
    fails: bool = False


def blocks(text: str) -> list[tuple[int, str, list[str]]]:
    """Console blocks: line, class, lines without their indentation."""
    found = []
    lines = text.splitlines()
    i = 0
    while i < len(lines):
        start = lines[i]
        i += 1
        if start.strip() != BLOCK:
            continue
        margin = len(start) - len(start.lstrip())
        first, word, body = i + 1, "", []
        while i < len(lines) and (
            not lines[i].strip() or len(lines[i]) - len(lines[i].lstrip()) > margin
        ):
            stripped = lines[i].strip()
            if not body and stripped.startswith(":class:"):
                word = stripped.split()[1]
            elif body or stripped:
                if not body:
                    first, indent = i + 1, len(lines[i]) - len(lines[i].lstrip())
                body.append(lines[i][indent:])
            i += 1
        while body and not body[-1].strip():
            body.pop()
        found.append((first, word, body))
    return found


def examples(text: str) -> tuple[list[Example], int]:
    """The commands of a page, and how many are for elsewhere."""
    found: list[Example] = []
    elsewhere = 0
    for number, word, body in blocks(text):
        if word == "elsewhere":
            elsewhere += sum(line.startswith("$ ") for line in body)
            continue
        for offset, line in enumerate(body):
            if line.startswith("$ "):
                found.append(Example(number + offset, line[2:], fails=word == "fails"))
            elif line.startswith("> ") and found and not found[-1].expected:
                found[-1].command += "\n" + line[2:]
            elif found:
                found[-1].expected.append(line)
    return found, elsewhere


def pattern(expected: list[str]) -> re.Pattern[str]:
    """Pattern that the output has to match; "..." stands for any text."""
    out = []
    for line in expected:
        if line.strip() == "...":
            out.append(r"(?:.*\n)*?")
            continue
        text = re.escape(line.rstrip()).replace(r"\.\.\.", ".*")
        out.append(re.sub(r"ƒ\w+", r"ƒ\\w+", text) + r"\s*?\n")
    return re.compile("".join(out))


def typed(command: str) -> str:
    """The command as it has to be where flux-core looks for jobtap plugins in its
    own folder only: ours is named by its path."""
    if os.environ["DWS_ENGINE"] == "solo":
        return command
    path = os.path.join(os.environ["DWS_PLUGINS"], "dws-jobtap.so")
    return re.sub(r"(?<=\s)dws-jobtap\.so", path, command)


def run(found: list[Example], directory: str) -> list[tuple[int, str]]:
    """Exit status and output of each."""
    script = "".join(
        f"{typed(example.command)}\nprintf '{MARK}%d{MARK}' $?\n" for example in found
    )
    done = subprocess.run(
        ["bash", "-c", script],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=directory,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
        check=False,
    )
    parts = done.stdout.split(MARK)
    return [(int(s), text) for text, s in zip(parts[0::2], parts[1::2])]


def main() -> int:
    page = pathlib.Path(sys.argv[1])
    found, elsewhere = examples(page.read_text())
    with tempfile.TemporaryDirectory(prefix="flux-dws-doc-") as directory:
        results = run(found, directory)
    bad = len(found) - len(results)
    for example, (status, output) in zip(found, results):
        good = bool(status) == example.fails
        good &= pattern(example.expected).fullmatch(output) is not None
        if not good:
            bad += 1
            print(f"{page}:{example.line}: $ {example.command}")
            print(f"exit status {status}, printed:\n{output}")
    print(f"{page.name}: {len(found)} commands, {bad} wrong, {elsewhere} not for here")
    return 1 if bad or not (found or elsewhere) else 0


if __name__ == "__main__":
    sys.exit(main())
