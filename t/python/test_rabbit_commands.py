# Every command of flux rabbit has an entry in the manual page and in the page of
# rights, a help with examples, and --json. test_completion.py checks completion.
# SPDX-License-Identifier: LGPL-3.0-only
"""The list of commands."""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest
from flux_rabbit import cli

TOP = pathlib.Path(__file__).parents[2]
MANUAL = (TOP / "doc" / "man1" / "flux-rabbit.rst").read_text(encoding="utf8")
RIGHTS = (TOP / "doc" / "admin" / "rights.rst").read_text(encoding="utf8")


def section(name: str) -> str:
    return re.split(rf"^{name}\n=+\n", MANUAL, flags=re.MULTILINE)[1].split("\n\n\n")[0]


def parser_of(command: str) -> argparse.ArgumentParser:
    top = cli.parser_for(command)
    (found,) = (a for a in top._actions if isinstance(a, argparse._SubParsersAction))
    return found.choices[command]  # type: ignore[no-any-return]


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_the_manual_page_has_it(command: str) -> None:
    synopsis = section("SYNOPSIS").split("DESCRIPTION\n")[0]
    assert f"**{command}**" in synopsis
    described = section("COMMANDS").split("OPTIONS\n")[0]
    terms = re.findall(r"^([a-z][a-z, ]*)$", described, re.MULTILINE)
    assert command in {word for term in terms for word in term.split(", ")}


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_the_page_of_rights_has_it(command: str) -> None:
    assert re.search(rf"^   \* - ``{command}\b", RIGHTS, re.MULTILINE)


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_it_has_json_and_its_help_examples(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = parser_of(command).format_help()
    assert "--json" in text and "-L" in text
    assert f"  flux rabbit {command}" in text.split("examples:\n")[1]
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(
    "words",
    ["destroy keep --yes", "destroy --yes keep", "--yes destroy keep"],
)
def test_options_may_stand_before_the_name(words: str) -> None:
    argv = ["persistent", *words.split()]
    args = cli._parse(cli.parser_for("persistent"), argv)
    assert (args.action, args.name, args.yes) == ("destroy", "keep", True)


@pytest.mark.parametrize(
    "words", ["destroy --yes keep more", "show keep --yes more", "list --what"]
)
def test_what_is_too_much_is_refused(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli._parse(cli.parser_for("persistent"), ["persistent", *words.split()])
    assert f"unrecognized arguments: {words.split()[-1]}" in capsys.readouterr().err


def test_a_reader_that_goes_away_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as out:
        program = TOP / "src/cmd/flux-rabbit.py"
        ended = subprocess.run(
            [sys.executable, program, "--help"],
            stdout=out,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert ended.returncode == -signal.SIGPIPE
    assert not ended.stderr


def test_a_reader_that_goes_away_ends_a_command_that_follows() -> None:
    code = """
from flux_k8s import program
from flux_rabbit import cli
def main():
    print("looks", flush=True)
    cli.pause(600)
program.run("prog", main)
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"looks\n"
        child.stdout.close()
        assert child.wait(60) == -signal.SIGPIPE
