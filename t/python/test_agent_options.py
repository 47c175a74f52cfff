# The command line of the agent, and its place below systemd.
# SPDX-License-Identifier: LGPL-3.0-only
import errno

import pytest
from flux_k8s import systemd
from flux_k8s.main import OLD_OPTIONS, parse_args


def test_options_of_flux_coral2_are_taken():
    """A unit with these options still starts; the agent names each of them, with its
    replacement."""
    given = "-w 5 --min-allocation-size=4 --retry-delay 10 --disable-fluxion -v"
    given += " --drain-queues pbatch pdebug --workers 3"
    args = parse_args(given.split())
    assert args.verbose == 1
    assert args.workers == 3
    assert [text.split(":")[0] for text in args.old] == [
        "-w",
        "--min-allocation-size",
        "--retry-delay",
        "--disable-fluxion",
        "--drain-queues",
    ]
    assert "--drain-queues: set rabbit.drain_queues in the configuration" in args.old


def test_no_help_for_what_has_no_effect(capsys):
    with pytest.raises(SystemExit):
        parse_args(["--help"])
    text = capsys.readouterr().out
    assert "--workers" in text
    assert not [names for names, _, _ in OLD_OPTIONS if names[-1] in text]


def test_other_options_are_refused():
    with pytest.raises(SystemExit) as info:
        parse_args(["--wokers=3"])
    assert info.value.code == 2


def test_workers_are_bounded(capsys):
    assert parse_args([]).workers == 16
    for workers in ("0", "1025"):
        with pytest.raises(SystemExit):
            parse_args([f"--workers={workers}"])
        assert "--workers: expected 1 to 1024" in capsys.readouterr().err


def test_systemd_is_not_needed(monkeypatch):
    """Without a free file descriptor there is no socket to notify it by."""

    def no_socket(*_):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setenv("NOTIFY_SOCKET", "/run/systemd/notify")
    monkeypatch.setattr(systemd.socket, "socket", no_socket)
    systemd.notify("WATCHDOG=1")
