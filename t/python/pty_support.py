# A command on a pseudo-terminal of any size, and what its screen shows.
# SPDX-License-Identifier: LGPL-3.0-only
"""Run commands on a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import termios
import time
from collections.abc import Callable

import pyte

LIMIT_S = 30.0


def _set_size(fd: int, columns: int, rows: int) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


class Terminal:
    """A child process whose terminal is emulated."""

    def __init__(self, argv: list[str], columns: int, rows: int) -> None:
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self.written = b""
        self._pid, self._fd = pty.fork()
        if self._pid == 0:
            _set_size(0, columns, rows)
            os.environ.update(TERM="xterm-256color", TZ="UTC")
            os.environ.pop("NO_COLOR", None)
            os.execvp(argv[0], argv)

    def resize(self, columns: int, rows: int) -> None:
        _set_size(self._fd, columns, rows)
        self._screen.resize(rows, columns)

    def type(self, keys: str) -> None:
        os.write(self._fd, keys.encode())

    def screen(self) -> list[str]:
        return [line.rstrip() for line in self._screen.display]

    def _read(self, timeout_s: float) -> bool:
        """Take in what has been written; False when the process has ended."""
        if not select.select([self._fd], [], [], timeout_s)[0]:
            return True
        try:
            data = os.read(self._fd, 65536)
        except OSError:
            data = b""
        self.written += data
        self._stream.feed(data)
        return bool(data)

    def until(self, true: Callable[[list[str]], bool]) -> list[str]:
        """Wait until something is true of the screen; returns the screen."""
        limit = time.monotonic() + LIMIT_S
        alive = True
        while not true(self.screen()):
            text = "\n".join(self.screen())
            assert alive, f"ended before:\n{text}"
            assert time.monotonic() < limit, f"never:\n{text}"
            alive = self._read(0.2)
        # A single write may arrive in several reads.
        while alive and select.select([self._fd], [], [], 0.1)[0]:
            alive = self._read(0.0)
        return self.screen()

    def shows(self, text: str) -> list[str]:
        return self.until(lambda rows: any(text in row for row in rows))

    def end(self) -> int:
        """Read until the process ends; returns its exit status."""
        limit = time.monotonic() + LIMIT_S
        while self._read(0.2):
            assert time.monotonic() < limit, "does not end"
        _, status = os.waitpid(self._pid, 0)
        os.close(self._fd)
        return os.waitstatus_to_exitcode(status)
