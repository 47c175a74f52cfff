# How the commands begin and end as programs: without standard streams, by an error, by
# an interrupt, and when the reader of their output goes away.
# SPDX-License-Identifier: LGPL-3.0-only
"""Beginnings and ends of programs."""

from __future__ import annotations

import json
import os
import pathlib
import pty
import signal
import subprocess
import sys
import termios

import flux
import flux.constants
import pytest
from instance_support import FLUX, Instance

TOP_FOLDER = pathlib.Path(__file__).parents[2]

CODE = """
import sys
from flux_k8s import program
program.open_streams()
print("something")
print("an error", file=sys.stderr)
sys.exit(len(sys.stdin.read()))
"""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_program_without_its_standard_streams(closed: str) -> None:
    run = f'exec "$0" -c "$1" {closed}'
    ended = subprocess.run(
        ["sh", "-c", run, sys.executable, CODE],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0
    assert ended.stdout == ("" if ">&-" in closed.split() else "something\n")
    assert ended.stderr == ("" if "2>&-" in closed else "an error\n")


@pytest.mark.parametrize(
    ("raised", "status", "error"),
    [
        ("KeyboardInterrupt()", 130, ""),
        ("ValueError('a\\x1bb')", 1, "prog: ERROR: a\ufffdb\n"),
        ("KeyError('x')", 1, "prog: ERROR: 'x'\n"),
        ("OSError(28, 'no space', 'a')", 1, "prog: ERROR: a: no space\n"),
        ("OSError('no number')", 1, "prog: ERROR: no number\n"),
        ("SystemExit(2)", 2, ""),
        (
            "BrokenPipeError(32, 'the broker')",
            1,
            "prog: ERROR: the broker\n",
        ),
    ],
)
def test_the_end_of_a_program(raised: str, status: int, error: str) -> None:
    code = f"""
import sys
from flux_k8s import program
def main():
    raise {raised}
sys.exit(program.run("prog", main, (KeyError,)))
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (status, error)


COMMANDS = ("rabbit", "dws2jgf", "getrabbit", "rabbitmapping")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_is_an_error(command: str, unbuffered: str) -> None:
    with open("/dev/full", "wb") as out:
        ended = subprocess.run(
            [FLUX, command, "--help"],
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    error = f"flux-{command}: ERROR: No space left on device\n"
    assert (ended.returncode, ended.stderr) == (1, error)


def test_a_peer_that_goes_away_does_not_end_a_command_without_a_word() -> None:
    """libcurl is told to leave signals alone: some of its versions raise SIGPIPE when
    an API server hangs up."""
    code = """
import os, runpy, sys
import flux_rabbit.cli
def main():
    reader, writer = os.pipe()
    os.close(reader)
    os.write(writer, b"a request")
flux_rabbit.cli.main = main
runpy.run_path(sys.argv[1], run_name="__main__")
"""
    ended = subprocess.run(
        [sys.executable, "-c", code, TOP_FOLDER / "src/cmd/flux-rabbit.py"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (1, "flux-rabbit: ERROR: Broken pipe\n")


def test_a_program_whose_reader_has_gone() -> None:
    code = """
import sys
from flux_k8s import program
sys.exit(program.run("prog", lambda: print("something"), ()))
"""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as out:
        ended = subprocess.run(
            [sys.executable, "-c", code],
            stdout=out,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (ended.returncode, ended.stderr) == (-signal.SIGPIPE, b"")


# Ctrl-C is ignored by what a shell has started in the background.
WITH_SIGNALS = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])
"""


def test_an_interrupt_while_nobody_answers() -> None:
    """libflux waits in C, where Python does not act on signals."""
    with Instance() as instance:
        handle = instance.open()
        handle.service_register("dws").get()
        asked = handle.msg_watcher_create(
            lambda h, *_: h.reactor_stop(), flux.constants.FLUX_MSGTYPE_REQUEST, "dws.*"
        )
        asked.start()
        with subprocess.Popen(
            [sys.executable, "-c", WITH_SIGNALS, FLUX, "rabbit", "status"],
            env={**os.environ, "FLUX_URI": instance.uri},
            stderr=subprocess.PIPE,
        ) as child:
            handle.reactor_run()
            child.send_signal(signal.SIGINT)
            try:
                ended = child.communicate(timeout=60)[1]
            finally:
                child.kill()
        assert (child.returncode, ended) == (130, b"")
        asked.stop()


def test_an_interrupt_of_the_agent() -> None:
    """An admin who runs it by hand ends it so."""
    with Instance() as instance:
        with subprocess.Popen(
            [sys.executable, "-c", WITH_SIGNALS]
            + [FLUX, "python", "-m", "flux_k8s.main"],
            env={**os.environ, "FLUX_URI": instance.uri},
            stderr=subprocess.PIPE,
            text=True,
        ) as child:
            try:
                assert child.stderr is not None
                assert "until the module is there" in child.stderr.readline()
                child.send_signal(signal.SIGINT)
                ended = child.communicate(timeout=60)[1]
            finally:
                child.kill()
        assert (child.returncode, ended) == (130, "")


TOP = """
from flux_rabbit import top
with top._raw_terminal():
    print("drawn", flush=True)
    top._keys(600)
"""


def test_a_terminal_is_left_as_it_was() -> None:
    """Also by `timeout 60 flux rabbit top`, and a kill."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", TOP])
    before = termios.tcgetattr(fd)
    written = b""
    while b"drawn" not in written:
        written += os.read(fd, 1024)
    os.kill(pid, signal.SIGTERM)
    status = os.waitpid(pid, 0)[1]
    written += os.read(fd, 1024)
    assert os.waitstatus_to_exitcode(status) == 128 + signal.SIGTERM
    assert written.endswith(b"\033[?25h\033[?1049l")
    assert termios.tcgetattr(fd) == before
    os.close(fd)


def test_a_notice_without_a_program_that_sends_it_is_sent_later() -> None:
    notice = {"id": "1", "event": "stage-out-lost", "userid": os.getuid()}
    example = TOP_FOLDER / "etc" / "rabbit-notice"
    ended = subprocess.run(
        [sys.executable, example, "--sendmail", "/nowhere"],
        input=json.dumps({**notice, "what": [], "message": "Only a test."}),
        capture_output=True,
        text=True,
        check=False,
    )
    wanted = (75, "/nowhere: No such file or directory\n")
    assert (ended.returncode, ended.stderr) == wanted
