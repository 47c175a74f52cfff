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


def run(
    name: str, main: Callable[[], None], faults: tuple[type[Exception], ...]
) -> int:
    """Run the main function of a program; returns the exit status.

    Args:
        name: begins each message of an error.
        faults: the errors whose text is for the user, besides OSError and ValueError.
    """
    told: tuple[type[Exception], ...] = (OSError, ValueError, *faults)
    open_streams()
    try:
        main()
        sys.stdout.flush()
        return 0
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except told as exc:
        if isinstance(exc, BrokenPipeError) and _reader_is_gone():
            # End (| head -1) as programs do that do not ignore the signal.
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            signal.raise_signal(signal.SIGPIPE)
        print(f"{name}: ERROR: {texts.clean(str(exc))}", file=sys.stderr)
    return 1
