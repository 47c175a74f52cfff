# How the commands flux rabbit, dws2jgf, getrabbit and rabbitmapping, and the agent,
# begin and end as programs.
# SPDX-License-Identifier: LGPL-3.0-only
"""Standard streams and the end of a program."""

from __future__ import annotations

import os
import select
import signal
import sys
from typing import Callable

from flux_k8s import texts


def open_streams() -> None:
    """Open the standard streams that the caller has closed (>&-) on /dev/null. Python
    has None in their place, and the connection to the broker would get their number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            fd = os.open(os.devnull, os.O_RDWR)  # the lowest free number
            setattr(sys, name, open(fd, mode, encoding="utf-8"))  # noqa: SIM115


def _reader_is_gone() -> bool:
    poll = select.poll()
    poll.register(1, 0)  # errors alone
    return any(what & select.POLLERR for _, what in poll.poll(0))


def error_text(exc: Exception) -> str:
    """The text of an error for the user: "FILE: No such file or directory" instead of
    Python's "[Errno 2] No such file or directory: 'FILE'"."""
    if isinstance(exc, OSError) and type(exc).__str__ is OSError.__str__:
        parts = (exc.filename, exc.strerror or exc)
        return texts.clean(": ".join(str(part) for part in parts if part is not None))
    return texts.clean(str(exc))


def _settle_output() -> None:
    """Drop what standard output could not write. Python would try once more at its
    exit, and end with status 120."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def run(
    name: str,
    main: Callable[[], int | None],
    faults: tuple[type[Exception], ...] = (),
) -> int:
    """Run the main function of a program; returns the exit status.

    Args:
        name: begins each message of an error.
        main: returns the exit status, None for 0. One that returns 1 has named the
            error.
        faults: the errors whose text is for the user, besides OSError and ValueError.
    """
    told: tuple[type[Exception], ...] = (OSError, ValueError, *faults)
    open_streams()
    status = 0
    try:
        try:
            status = main() or 0
        except SystemExit as exc:  # of argparse
            status = int(exc.code or 0)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except told as exc:
        if isinstance(exc, BrokenPipeError) and _reader_is_gone():
            # End (| head -1) as programs do that do not ignore the signal.
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            signal.raise_signal(signal.SIGPIPE)
        if status != 1:
            print(f"{name}: ERROR: {error_text(exc)}", file=sys.stderr)
        _settle_output()
    return 1
