# Completion after "flux rabbit" in bash. The words in etc/completion/flux-rabbit must
# match the parsers, and flux-core's own completion must not change.
# SPDX-License-Identifier: LGPL-3.0-only

from __future__ import annotations

import argparse
import pathlib
import subprocess

import pytest
from flux_rabbit import cli, listing, selftest
from pty_support import Terminal

TOP = pathlib.Path(__file__).parents[2]
SCRIPT = TOP / "etc" / "completion" / "flux-rabbit"

# A flux with one job and two rabbits, and the completion of a flux-core.
SITE = r"""
flux () {
    case "$*" in
    "rabbit jobs -no {id}") echo 7 ;;
    "rabbit jobs -no {id.f58}") echo ƒA ;;
    "rabbit jobs -no {id.f58plain}") echo fA ;;
    "rabbit persistent -no {name}") echo keep ;;
    "rabbit presets") echo "tiny  #DW jobdw"; echo "      #DW copy_out" ;;
    "rabbit list -no {name}") echo rabbit0; echo rabbit1 ;;
    esac
}
_flux_core () { COMPREPLY=("core:${COMP_WORDS[COMP_CWORD]}"); }
"""
STATES = {"jobs": listing.JOB_STATES}


def kind(command: str, action: argparse.Action) -> str:
    """Kind of the value of an option, or of an argument."""
    if action.choices:
        return ",".join(action.choices)
    if not action.option_strings and action.metavar == "NAME":
        return "NAME"
    if action.metavar == "STATE,...":
        return ",".join((*STATES.get(command, listing.RABBIT_STATES), "..."))
    if action.metavar == "TYPE,...":
        return ",".join(("none", *selftest.TYPES, "..."))
    known = {
        "PRESET": "PRESET",
        "JOBID": "JOBID",
        "RABBITS": "RABBIT",
        "FILE": "FILE",
        "USER": "USER",
    }
    return known.get(str(action.metavar), "")


def words(command: str) -> str:
    """The words for a command that the script must contain."""
    found = []
    subparsers = next(
        action
        for action in cli.parser_for(command)._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    for action in subparsers.choices[command]._actions:
        if not action.option_strings:
            found.append(f"@{kind(command, action)}")
            continue
        value = ""
        if action.nargs != 0:
            value = "=?" if action.nargs == "?" else "="
            value += kind(command, action)
        found += [name + value for name in action.option_strings]
    return " ".join(found)


def bash(script: str) -> list[str]:
    result = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stderr == ""
    return result.stdout.splitlines()


def offered(line: list[str], site: str = SITE) -> list[str]:
    """Completions of the last word of a line, which may be incomplete."""
    quoted = " ".join(f"'{word}'" for word in line)
    return bash(f"""
compopt () {{ echo "readline: $*"; }}
{site}
. '{SCRIPT}'
COMP_WORDS=({quoted}) COMP_CWORD={len(line) - 1}
_flux_with_rabbit flux '{line[-1]}' '{line[-2]}'
printf '%s\n' "${{COMPREPLY[@]}}"
""")


def test_words_are_those_of_the_parsers() -> None:
    said = bash(f"""
. '{SCRIPT}'
for command in "${{!_flux_rabbit_words[@]}}"; do
    echo "$command ${{_flux_rabbit_words[$command]}}"
done
""")
    assert sorted(said) == sorted(f"{name} {words(name)}" for name in cli.COMMANDS)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("rabbit l", ["list", "logs", "losses"]),
        ("-v rabbit und", ["undrain"]),
        ("rabbit jobs --no", ["--no-header"]),
        ("rabbit top --s", ["--sort", "--svg", "--size"]),
        ("rabbit top --sort ti", ["time"]),
        ("rabbit top --sort = u", ["user"]),
        ("rabbit show --color = a", ["always", "auto"]),
        ("rabbit show --color ", ["ƒA"]),
        ("rabbit show ", ["ƒA"]),
        ("rabbit show f", ["fA"]),
        ("rabbit losses --ack 7", ["7"]),
        ("rabbit losses ", [""]),
        ("rabbit drain rabbit", ["rabbit0", "rabbit1"]),
        ("rabbit drain rabbit0 rabbit", ["rabbit0", "rabbit1"]),
        ("rabbit drain --reason x ", ["rabbit0", "rabbit1"]),
        ("rabbit presets ", ["tiny"]),
        ("rabbit persistent de", ["destroy"]),
        ("rabbit persistent destroy ", ["keep"]),
        ("rabbit persistent create new -t l", ["lustre"]),
        (
            "rabbit list -s Ready,D",
            ["Ready,Disabled", "Ready,Degraded", "Ready,Drained"],
        ),
        ("rabbit drain --reason ", [""]),
        ("rabbit timeline --svg x", ["readline: -o default", ""]),
        ("rabbit none ", [""]),
        ("rabbit", ["core:rabbit"]),
        ("run --di", ["core:--di"]),
        ("run rabbit ", ["core:"]),
    ],
)
def test_offers(line: str, expected: list[str]) -> None:
    assert sorted(offered(["flux", *line.split(" ")])) == sorted(expected)


def test_the_users_are_those_of_the_system() -> None:
    assert "root" in offered(["flux", "rabbit", "jobs", "--user", "roo"])


def test_what_flux_core_has_is_read_when_it_is_needed() -> None:
    site = """
_completion_loader () {
    _flux_core () { COMPREPLY=(read); }
    complete -F _flux_core flux
    return 124
}
"""
    assert offered(["flux", "jo"], site) == ["read"]
    assert offered(["flux", "rabbit", "tim"], site) == ["timeline"]


def test_without_flux_core_there_is_nothing_else() -> None:
    assert offered(["flux", "jo"], "") == [""]


def test_keys_of_a_terminal(tmp_path: pathlib.Path) -> None:
    rc = tmp_path / "rc"
    rc.write_text(f"{SITE}. '{SCRIPT}'\nPS1='$ '\n", encoding="utf8")
    terminal = Terminal(["bash", "--noprofile", "--rcfile", str(rc), "-i"], 80, 24)
    terminal.until(lambda rows: rows[0] == "$")
    terminal.type("flux rabbit tim\t")
    terminal.until(lambda rows: rows[0] == "$ flux rabbit timeline")
    terminal.type("fA --sv\t")
    terminal.until(lambda rows: rows[0] == "$ flux rabbit timeline fA --svg")
    terminal.type(f"{tmp_path}/r\t")
    terminal.until(lambda rows: str(rc) in "".join(rows))
    terminal.type("\x15exit\n")
    terminal.end()


def test_names_are_no_commands(tmp_path: pathlib.Path) -> None:
    """A preset may have any name."""
    evil = f"ti$(touch${{IFS}}{tmp_path}/run)`touch {tmp_path}/run`*"
    site = SITE.replace('"tiny  #DW jobdw"', f"'{evil}  #DW jobdw'")
    assert offered(["flux", "rabbit", "presets", "ti"], site)[0].startswith("ti$(touch")
    assert list(tmp_path.iterdir()) == []
