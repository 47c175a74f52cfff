# Values of options and arguments of flux rabbit that make no sense: refused with the
# name of the option, and never passed over.
# SPDX-License-Identifier: LGPL-3.0-only
"""Odd values of options."""

from __future__ import annotations

import errno
import pathlib
from collections.abc import Iterator

import pytest

pytest.importorskip("_flux")

from flux_rabbit import cli, persistent, rpc, show, submit


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e30", "0", "-1", "", "x"])
@pytest.mark.parametrize(
    "words", ["watch 1 --interval", "top --interval", "selftest --timeout"]
)
def test_seconds_that_cannot_be_waited(
    words: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([*words.split()[:-1], f"{words.split()[-1]}={value}"])
    assert ended.value.code == cli.EXIT_USAGE
    assert "is no number of seconds above 0" in capsys.readouterr().err


@pytest.mark.parametrize(
    "value", ["-1", "1.5", "\u00b2", "", "x", str(1 << 31), "9" * 5000]
)
@pytest.mark.parametrize(
    "words", ["jobs -a --count", "stats --count", "top --count", "timeline 1 --width"]
)
def test_counts_that_are_none(
    words: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    *command, option = words.split()
    with pytest.raises(SystemExit) as ended:
        cli.main([*command, f"{option}={value}"])
    assert ended.value.code == cli.EXIT_USAGE
    assert f"argument -{option[2]}/{option}: " in capsys.readouterr().err


@pytest.mark.parametrize("size", ["\u00b2x5", "x", "5", "-1x5", "5x"])
def test_sizes_that_are_none(size: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc, "Handle", lambda: None)
    args = cli._parse(cli.parser_for("top"), ["top", f"--size={size}"])
    with pytest.raises(cli.Failure, match="COLSxROWS"):
        args.run(args)


@pytest.mark.parametrize("words", ["jobs --user", "quota --user"])
def test_a_user_that_is_none(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rpc, "Handle", lambda: None)
    monkeypatch.setattr(rpc, "system_uri", lambda: "")
    assert cli.main([*words.split(), "\u00b2"]) == cli.EXIT_ERROR
    assert "there is no user \u00b2" in capsys.readouterr().err


def test_there_is_no_part_of_json_without_an_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def pages(handle: None) -> Iterator[list[object]]:
        raise rpc.Absent(errno.ENOSYS, "dws.status", "no module")
        yield

    monkeypatch.setattr(rpc, "Handle", lambda: None)
    monkeypatch.setattr(rpc, "system_uri", lambda: "")
    monkeypatch.setattr(rpc, "job_pages", pages)
    assert cli.main(["jobs", "--json"]) == cli.EXIT_ERROR
    out, err = capsys.readouterr()
    assert (out, "module is not loaded" in err) == ("", True)


def test_a_job_id_that_is_no_text(capsys: pytest.CaptureFixture[str]) -> None:
    """Arguments are bytes, in which Python has surrogates for what is no text."""
    with pytest.raises(cli.Failure, match="is not a job id"):
        cli.jobids(["\udcff"])


RABBITS = [
    {"name": name, "state": "Ready", "capacity": size << 40, "free": 1 << 40}
    for name, size in (("rabbit0", 2), ("rabbit1", 3))
]


@pytest.fixture
def rabbits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc, "Handle", lambda: None)
    monkeypatch.setattr(rpc, "system_uri", lambda: "")
    monkeypatch.setattr(rpc, "rabbits", lambda handle: RABBITS)


@pytest.mark.usefixtures("rabbits")
@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("rabbit0 rabbit[0-1]", ["rabbit0", "rabbit1", "total"]),
        ("--sort=-capacity", ["rabbit1", "rabbit0", "total"]),
        ("--sort=capacity -n", ["rabbit0", "rabbit1"]),
    ],
)
def test_the_sum_is_the_last_line_and_has_each_once(
    words: str, names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["df", *words.split()]) == 0
    lines = capsys.readouterr().out.splitlines()
    lines = lines[0 if " -n" in f" {words}" else 1 :]
    assert [line.split()[0] for line in lines] == names
    if names[-1] == "total":
        assert "5.0TiB" in lines[-1]


@pytest.mark.usefixtures("rabbits")
@pytest.mark.parametrize("command", ["list", "df", "drain", "undrain", "disable"])
def test_an_empty_hostlist_is_no_rabbit(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such as a variable that is not set: nothing would be done, without a word."""
    monkeypatch.setattr(cli, "is_owner", lambda handle: True)
    reason = ["--reason=why"] if command in ("drain", "disable") else []
    assert cli.main([command, *reason, ""]) == cli.EXIT_ERROR
    assert "names no rabbit" in capsys.readouterr().err


@pytest.mark.parametrize(
    "option",
    ["--expires", "--profile", "--capacity", "--queue", "--bank", "--requires"],
)
def test_an_empty_option_is_not_passed_over(
    option: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """--expires "$LEASE" made a file system that never expires."""
    monkeypatch.setattr(persistent, "_submit", lambda *_: pytest.fail("submitted"))
    monkeypatch.setattr(rpc, "system_uri", lambda: "")
    monkeypatch.setattr(rpc, "Handle", lambda: None)
    argv = ["persistent", "create", "keep", "-t", "xfs", "-c", "1GiB"]
    assert cli.main([*argv, f"{option}="]) == cli.EXIT_ERROR
    assert f"{option}: is empty" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["&&", "a|", "("])
def test_a_constraint_that_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="--requires: "):
        submit.submit(["true"], "#DW", "name", requires=text)


@pytest.mark.parametrize("text", ["9999999999d", "1e999d", "in 99999999999 years", "x"])
def test_a_time_that_is_none(text: str) -> None:
    with pytest.raises(cli.Failure, match="--expires: "):
        persistent._when(text, 0.0)


def test_directives_that_nobody_has_checked() -> None:
    """Of a job that was submitted while no plugin was loaded."""
    system = {"dw": [1, None, " #DW jobdw ", {}]}
    lines = show._directives({"attributes": {"system": system}})
    assert "#DW jobdw" in lines


@pytest.mark.usefixtures("rabbits")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("toml", "list = 5\n"),
        ("toml", "[list]\nformats = 5\n"),
        ("toml", "list = [\n"),
        ("json", "[]"),
        ("yaml", ""),
        ("yaml", "a: b: c"),
        ("yaml", "list: [}"),
    ],
)
def test_formats_of_a_user_that_are_none(
    name: str,
    text: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "flux").mkdir()
    (tmp_path / "flux" / f"flux-rabbit.{name}").write_text(text)
    assert cli.main(["list"]) == cli.EXIT_ERROR
    assert str(tmp_path / "flux" / f"flux-rabbit.{name}") in capsys.readouterr().err


@pytest.mark.usefixtures("rabbits")
@pytest.mark.parametrize(
    "form", ["{name", "{name!z}", "{nothing}", "{name.x}", "{name[0]}", "{free:q}"]
)
def test_a_format_that_is_none(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list", "-o", form]) == cli.EXIT_ERROR
    assert capsys.readouterr().err.startswith("flux-rabbit: ERROR: ")
