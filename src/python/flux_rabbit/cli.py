# SPDX-License-Identifier: LGPL-3.0-only
#
# The command line of flux rabbit: table of subcommands, common options and errors.
# Import only the module of the requested subcommand, as imports dominate start-up.
"""flux rabbit."""

from __future__ import annotations

import argparse
import difflib
import errno
import functools
import importlib
import json
import math
import os
import select
import shutil
import signal
import sys
import textwrap
import time
from collections.abc import Iterable
from typing import Any

from flux_k8s import program
from flux_k8s.release import RELEASE

from flux_rabbit import rpc, term

PROG = "flux rabbit"

# name: (module, what it does)
COMMANDS = {
    "status": ("status", "how everything is, on one screen"),
    "list": ("listing", "list rabbits: state, space, links, nodes"),
    "df": ("listing", "space on the rabbits"),
    "jobs": ("listing", "list active rabbit jobs and what they wait for"),
    "show": ("show", "everything about one job, in plain words"),
    "watch": ("watch", "follow a job until it ends"),
    "logs": ("logs", "what the containers of a job print"),
    "timeline": ("chart", "where the time of jobs went, as a picture"),
    "stats": ("stats", "how long finished jobs spent in each state"),
    "report": ("report", "what became of the jobs of some days"),
    "top": ("top", "live view of rabbits and jobs"),
    "persistent": ("persistent", "file systems that outlive jobs: list, make, destroy"),
    "quota": ("quota", "how much storage you may have, and have"),
    "presets": ("presets", "what may be written in place of directives"),
    "profiles": ("profiles", "what profile= of a directive chooses from"),
    "losses": ("losses", "list jobs whose data was not staged out"),
    "retry": ("retry", "try failed stage-outs of jobs again"),
    "drain": ("admin", "drain the compute nodes next to rabbits"),
    "undrain": ("admin", "undrain the compute nodes next to rabbits"),
    "disable": ("admin", "give no storage of rabbits to new jobs"),
    "enable": ("admin", "give storage of rabbits to jobs again"),
    "release": ("admin", "give up the stuck workflow of a job"),
    "selftest": ("selftest", "test a whole installation, with a verdict per line"),
}

# poll(2) waits for 2^31 ms at most.
MOST_SECONDS = 1_000_000

EXIT_ERROR = 1
# As argparse has it.
EXIT_USAGE = 2
# The command succeeded and reports a fault of the installation.
EXIT_BAD = 3

OVERVIEW_EXAMPLES = """
examples:
  flux rabbit status                    how are the rabbits?
  flux rabbit show ƒ2gVz                why does my job wait?
  flux rabbit timeline --svg t.svg ƒ2gVz
  flux rabbit list -s Offline -no '{name}'
"""


class Failure(Exception):
    """Ends the command; the text says why."""


class _Help(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)
        # argparse omits the second indent of commands from the column's width.
        self._action_max_length = max(map(len, COMMANDS)) + 2 * self._indent_increment


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "-L",
        "--color",
        nargs="?",
        const="always",
        default="auto",
        choices=("always", "never", "auto"),
        metavar="WHEN",
        help="colour: always, never or auto (on a terminal, without NO_COLOR)",
    )


def parser_for(name: str | None) -> argparse.ArgumentParser:
    """The parser, with the options of one subcommand."""
    top = argparse.ArgumentParser(
        prog=PROG,
        description="See rabbits and rabbit jobs, and look after them.",
        formatter_class=_Help,
        epilog=OVERVIEW_EXAMPLES,
    )
    top.add_argument("-V", "--version", action="version", version=f"flux-dws {RELEASE}")
    subparsers = top.add_subparsers(
        dest="command", metavar="COMMAND", title="commands", required=True
    )
    for command, (module, text) in COMMANDS.items():
        sub = subparsers.add_parser(command, help=text, formatter_class=_Help)
        if command == name:
            found: Any = importlib.import_module(f"flux_rabbit.{module}")
            _common(sub)
            description, examples = found.configure(sub, command)
            # Fill here: the raw formatter, which the examples need, does not.
            width = max(40, shutil.get_terminal_size().columns - 2)
            sub.description = textwrap.fill(description, width)
            sub.epilog = "examples:\n" + "".join(
                f"  {example}\n" for example in examples
            )
            sub.set_defaults(run=found.run, error=sub.error)
    return top


def colour(args: argparse.Namespace) -> bool:
    return term.use_colour(sys.stdout, args.color)


def print_json(value: Any) -> None:
    """JSON for programs on a pipe, indented on a terminal."""
    json.dump(value, sys.stdout, indent=2 if sys.stdout.isatty() else None)
    print()


def jobids(words: Iterable[str]) -> list[int]:
    """Job ids from the command line. Raises Failure."""
    try:
        return [rpc.jobid(word) for word in words]
    except ValueError as exc:
        raise Failure(str(exc)) from None


def count(text: str) -> int:
    """The type of an option: a number of things, 0 or more."""
    if not (text.isascii() and text.isdigit() and int(text) < 1 << 31):
        raise argparse.ArgumentTypeError(f"'{text}' is no number of 0 or more")
    return int(text)


def seconds(text: str) -> float:
    """The type of an option: seconds that a program can wait."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= MOST_SECONDS:
        raise argparse.ArgumentTypeError(
            f"'{text}' is no number of seconds above 0, of {MOST_SECONDS} at most"
        )
    return value


def userid(text: str | None) -> int | None:
    """The id of a user by number or name, None for None. Raises Failure for a name that
    nobody has."""
    if text is None:
        return None
    if text.isascii() and text.isdigit():
        return int(text)
    import pwd

    try:
        return pwd.getpwnam(text).pw_uid
    except KeyError:
        raise Failure(f"there is no user {text}") from None


def pause(seconds: float) -> None:
    """Wait for the next look of a command that follows something. Ends the command if
    the reader of its output goes away meanwhile (| head -1), as a write would.

    Raises:
        BrokenPipeError: the reader is gone.
    """
    try:
        fd = sys.stdout.fileno()
    except OSError:  # no file, in tests
        time.sleep(seconds)
        return
    poll = select.poll()
    poll.register(fd, 0)  # errors alone
    if any(what & select.POLLERR for _, what in poll.poll(1000 * seconds)):
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def _parse(parser: argparse.ArgumentParser, argv: list[str]) -> argparse.Namespace:
    """The parsed arguments. argparse does not parse an optional word after an option if
    another stands before it: assign the word to the argument that 'late' names."""
    args, rest = parser.parse_known_args(argv)
    late = getattr(args, "late", "")
    if late and getattr(args, late) is None and rest and not rest[0].startswith("-"):
        setattr(args, late, rest.pop(0))
    if rest:
        # Print the usage of the subcommand if one was parsed.
        error = getattr(args, "error", parser.error)
        error(f"unrecognized arguments: {' '.join(rest)}")
    return args


def _named(argv: list[str]) -> tuple[str | None, list[str]]:
    """The requested command and its arguments; "help" means --help. Exits, as argparse
    does, for an unknown command."""
    word = next((word for word in argv if not word.startswith("-")), None)
    if word == "help":
        argv = [*(other for other in argv if other != "help"), "--help"]
        word = next((word for word in argv if not word.startswith("-")), None)
    if word is not None and word not in COMMANDS:
        near = difflib.get_close_matches(word, COMMANDS, 1) or [
            command for command in COMMANDS if command.startswith(word)
        ]
        remedy = f"did you mean '{near[0]}'?" if near else f"see {PROG} --help"
        parser_for(None).error(f"there is no command '{term.clean(word)}'; {remedy}")
    return word, argv


def main(argv: list[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    argv = sys.argv[1:] if argv is None else argv
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="surrogateescape")  # type: ignore
    if not argv:
        # Like flux, list the commands as a usage error.
        parser_for(None).print_help(sys.stderr)
        return EXIT_USAGE
    name, argv = _named(argv)
    args = _parse(parser_for(name), argv)
    try:
        uri = rpc.system_uri()
        if uri:
            os.environ["FLUX_URI"] = uri
            print(f"{PROG}: of the system instance, {uri}", file=sys.stderr)
        return int(args.run(args) or 0)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except rpc.Absent as exc:
        text = str(exc)
        if exc.topic.startswith("dws."):
            text = "the dws module is not loaded in this Flux instance"
    except BrokenPipeError:
        raise  # program.run() asks whether the reader of the output is gone
    except (Failure, OSError, ValueError) as exc:
        text = program.error_text(exc)
    print(f"{PROG.replace(' ', '-')}: ERROR: {term.clean(text)}", file=sys.stderr)
    return EXIT_ERROR


@functools.cache
def confirm() -> None:
    """Ask whether to go on. Raises Failure if not."""
    if not sys.stdin.isatty():
        raise Failure("not confirmed: say --yes where nobody can be asked")
    print("Type yes to go on: ", end="", flush=True)
    if sys.stdin.readline().strip() != "yes":
        raise Failure("not confirmed: nothing was done")


@functools.cache
def user_name(userid: int) -> str:
    """The name of a user, or the number."""
    import pwd

    try:
        return pwd.getpwuid(userid).pw_name
    except KeyError:
        return str(userid)


def is_owner(handle: rpc.Handle) -> bool:
    """Whether we own the instance."""
    return handle.attribute("security.owner") == str(os.getuid())
