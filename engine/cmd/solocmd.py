# SPDX-License-Identifier: LGPL-3.0-only
"""Shared by the commands: a main() wrapper, one-line error messages, and small
parsers. This module imports only what most commands need anyway.
"""

import argparse
import logging
import signal
import sys
import time
from typing import Any, Callable, NoReturn, Optional

import flux
import flux.util


def run(name: str, main: Callable[[], Any]) -> None:
    """Run main(); turn an exception into "name: ERROR: text" and status 1."""
    # A reader that goes away (| head) is no reason for a traceback.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="surrogateescape")  # type: ignore
    flux.util.CLIMain(logging.getLogger(name))(main)


def run_submit(name: str, command: Any) -> None:
    """Run one of flux-python's submission commands."""
    import flux.debugged

    # Wheels of flux-python are made without the functions of the parallel
    # debugger interface, which the commands ask whether a debugger runs.
    try:
        flux.debugged.get_mpir_being_debugged()
    except AttributeError:
        flux.debugged.get_mpir_being_debugged = lambda: 0
    run(name.replace(" ", "-"), lambda: command(name).run_command())


def die(name: str, text: str, code: int = 1) -> NoReturn:
    """Print an error as run() does, and exit."""
    print(f"{name}: {text}", file=sys.stderr)
    sys.exit(code)


class Deadline:
    """A point in time up to which to wait for futures."""

    def __init__(self, timeout: Optional[float]) -> None:
        self.when = None if timeout is None else time.monotonic() + timeout

    def wait(self, future: Any) -> None:
        """Return when the future is ready; raise TimeoutError if it is late."""
        if self.when is not None:
            future.wait_for(max(self.when - time.monotonic(), 0.0))


def parser(prog: str, **kwargs: Any) -> argparse.ArgumentParser:
    """An argument parser with the look of the other commands."""
    return argparse.ArgumentParser(
        prog=prog, formatter_class=flux.util.help_formatter(), **kwargs
    )


def dispatch(top: argparse.ArgumentParser, argv: Optional[list[str]] = None) -> None:
    """Parse the arguments and call the subcommand's func(args)."""
    args = top.parse_args(argv)
    if not getattr(args, "func", None):
        top.print_help(sys.stderr)
        sys.exit(1)
    args.func(args)


def jobid(text: str) -> int:
    """A job ID in any form, as an argparse type."""
    from flux.job.JobID import JobID

    try:
        return JobID(text)
    except (ValueError, OSError) as exc:
        raise argparse.ArgumentTypeError(f'error parsing jobid: "{text}"') from exc


def duration(text: str) -> float:
    """A duration with an optional unit (RFC 23), as an argparse type."""
    try:
        return float(flux.util.parse_fsd(text))
    except ValueError as exc:
        raise argparse.ArgumentTypeError(f"invalid duration: {text}") from exc


def signum(text: str) -> int:
    """A signal by number or by name, with or without SIG."""
    if text.isdigit() and 0 < int(text) < signal.NSIG:
        return int(text)
    name = text.upper()
    if not name.startswith("SIG"):
        name = "SIG" + name
    try:
        return int(signal.Signals[name])
    except KeyError:
        raise argparse.ArgumentTypeError(f"invalid signal: {text}") from None


def color_option(top: argparse.ArgumentParser) -> None:
    """Add -L, --color."""
    top.add_argument(
        "-L",
        "--color",
        nargs="?",
        const="always",
        default="auto",
        choices=("always", "never", "auto"),
        metavar="WHEN",
        help="colorize output: always, never, or auto (default)",
    )
