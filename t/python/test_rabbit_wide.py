# Every screen of flux rabbit on the smallest terminal and the largest machine: 696
# rabbits with 16 nodes each, 1,000 jobs, long names and numbers; and without
# anything.
# SPDX-License-Identifier: LGPL-3.0-only
"""The screens of flux rabbit at 80 columns."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
from collections.abc import Iterator

import instance_support
import pytest
from flux_rabbit import top

pytest.importorskip("pyte")

# isort: split
from machine_support import Machine

COLUMNS = 80
SIZE = (COLUMNS, 24)
RABBITS = 696
JOBS = 1000
PRESETS = """\
[rabbit.presets]
scratch = "#DW jobdw type=xfs capacity=10TiB name=scratch"
climate = [
  "#DW jobdw type=lustre capacity=2000TiB name=checkpoint profile=large-striped",
  "#DW copy_out source=$DW_JOB_checkpoint/simulations/out destination=/lus/$JOBID/out",
]
"""
CAUSE = (
    "workflow error in DataOut: DW Directive 1: Internal error: copy of "
    "/mnt/nnf/0cf1d9c5-9bbb-4a0c-8f12-1d1f0e4f6d36-0/hetchy1001-0/out to "
    "/lus/global/out: dcp: Disk quota exceeded [fault: user; make room there]"
)
# Each command with output, but for commands on a job.
SCREENS = [
    ("status",),
    ("list",),
    ("df",),
    ("jobs",),
    ("top", "-c", "1"),
    ("persistent",),
    ("persistent", "show", "climate-1006"),
    ("quota",),
    ("quota", "--all"),
    ("presets",),
    ("profiles",),
    ("losses",),
    ("selftest", "--types", "none"),
    ("report",),
    ("stats",),
]
OF_A_JOB = [("show",), ("timeline",), ("watch",)]
# Formats without a limit on names and messages: for programs, or wide terminals.
WIDER = {
    "list -o long",
    "jobs -o long",
    "persistent -o long",
}
# End of an uncut line on a machine with more than 9,999 nodes.
NODES = re.compile(r"rzvernal\[\d{4,5}-\d{5}\]$")
CONTROL = re.compile(r"\033\[[0-9;?]*[A-Za-z]")

pytestmark = pytest.mark.skipif(not instance_support.available(), reason="no flux")


def job_with_everything(machine: Machine, *command: str) -> str:
    """Submit a job with a long name, and write what a rabbit job has of storage."""
    name = "climate-simulation-with-checkpoints-2026-11-24-restart-17"
    text = machine.run("submit", "-n1", f"--job-name={name}", *command)
    jobid = text.strip()
    machine.run("job", "memo", jobid, "rabbits=hetchy[1001-1128,1130-1257]")
    place = machine.run("job", "id", "--to=kvs", jobid).strip()
    for state, took in (("setup", "22.5s"), ("datain", "2h3m"), ("prerun", "12s")):
        machine.run("kvs", "put", f'{place}.rabbit_{state}_timing="{took}"')
    return jobid


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    made = Machine(str(RABBITS), str(JOBS), "wide")
    try:
        config = tmp_path_factory.mktemp("config") / "rabbit.toml"
        config.write_text(PRESETS)
        made.run("config", "load", str(config))
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def jobs(machine: Machine) -> dict[str, str]:
    """A job that runs, and one that has failed."""
    failed = job_with_everything(machine, "sleep", "inf")
    machine.run("job", "wait-event", "-t", "60", failed, "start")
    machine.run("job", "raise", "--severity=0", "--type=dws-epilog", failed, CAUSE)
    machine.run("job", "wait-event", "-t", "60", failed, "clean")
    return {"failed": failed, "runs": job_with_everything(machine, "sleep", "inf")}


@pytest.fixture(scope="module")
def nothing() -> Iterator[Machine]:
    made = Machine("0", "0")
    yield made
    made.close()


def written(machine: Machine, *words: str, **env: str) -> str:
    """Raw output of a command on a terminal."""
    terminal = machine.terminal(SIZE, *words, **env)
    terminal.end()
    return terminal.written.decode()


def lines_of(text: str) -> list[str]:
    """The lines as they are seen."""
    return [line.rstrip("\r") for line in CONTROL.sub("", text).split("\n")]


def check_width(text: str) -> None:
    assert text.strip(), "nothing is said"
    assert "flux-rabbit: ERROR" not in text, text
    wide = [line for line in lines_of(text) if len(NODES.sub("", line)) > COLUMNS]
    assert not wide, "\n".join(wide[:10])


def keep(name: str, text: str) -> None:
    """Save a screen for inspection, with SCREENS_DIR=DIR."""
    directory = os.environ.get("SCREENS_DIR")
    if directory:
        path = pathlib.Path(directory) / f"{name}.txt"
        path.write_text("\n".join(lines_of(text)), encoding="utf-8")


@pytest.mark.parametrize("words", SCREENS, ids=" ".join)
def test_80_columns_without_colour(
    machine: Machine, jobs: dict[str, str], words: tuple[str, ...]
) -> None:
    text = written(machine, *words, TERM="dumb")
    keep(" ".join(words), text)
    check_width(text)
    assert "\033" not in text
    done = subprocess.run(
        [instance_support.FLUX, "rabbit", *words],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.stdout.strip(), done.stderr
    assert "\033" not in done.stdout + done.stderr


@pytest.mark.parametrize("words", OF_A_JOB, ids=" ".join)
def test_a_job_at_80_columns(
    machine: Machine, jobs: dict[str, str], words: tuple[str, ...]
) -> None:
    for env in ({}, {"TERM": "dumb"}):
        text = written(machine, *words, jobs["failed"], **env)
        keep(" ".join((*words, *env)), text)
        check_width(text)
        assert env == {} or "\033" not in text
        seen = " ".join(line.strip() for line in lines_of(text))
        assert "[fault: user; make room there]" in seen, "the end says what to do"
    if words[0] != "watch":
        text = written(machine, *words, jobs["runs"], NO_COLOR="1")
        keep(f"{words[0]} of one that runs", text)
        check_width(text)
        assert "\033" not in text


@pytest.mark.parametrize("name", sorted(WIDER))
def test_wider_ones_are_not_cut(machine: Machine, name: str) -> None:
    text = written(machine, *name.split())
    keep(name, text)
    assert not any(line.endswith("+") and len(line) == 80 for line in lines_of(text))


def test_a_long_list_ends_with_a_summary(machine: Machine) -> None:
    last = lines_of(written(machine, "list").rstrip())[-1]
    assert re.fullmatch(
        r"696 rabbits: 566 Ready, 44 Degraded, .*; [0-9.]+PiB free", last
    )
    last = " ".join(lines_of(written(machine, "jobs").rstrip())[-2:])
    assert re.search("1000 jobs: 143 Proposal, .* 142 DataOut$", last)
    for words in (("list", "-n"), ("list", "hetchy[1001-1004]")):
        assert "rabbits:" not in written(machine, *words)
    assert "rabbits:" not in machine.run("rabbit", "list"), "programs read that"


def blocks_of(rows: list[str]) -> str:
    """The block characters of the map."""
    found = (re.match("[·▁▃▅▆█]{20,}", row) for row in rows)
    return "".join(match[0] for match in found if match)


def test_the_map_shows_every_rabbit(machine: Machine) -> None:
    """A block that stands for some is as bad as the worst of them."""
    terminal = machine.terminal(SIZE, "top", "-i", "60", NO_COLOR="1")
    rows = terminal.shows("q:quit")
    assert any("2 rabbits a block" in row for row in rows)
    assert len(blocks_of(rows)) == RABBITS / 2
    terminal.type("h")
    rows = terminal.shows("rabbits by health")
    bad = blocks_of(rows).count("█")
    assert 44 <= bad <= 44 + 43, "degraded and offline ones, at most two in one"
    terminal.type("q")
    assert terminal.end() == 0


SENTENCES = {
    "list": "no rabbits: the mapping is empty",
    "df": "no rabbits: the mapping is empty",
    "list -s Offline": "no rabbit is like that",
    "jobs": "no rabbit job is active",
    "jobs -s Setup": "no rabbit job is like that",
    "persistent": "no persistent file system",
    "losses": "no job has lost data",
    "losses --mine": "no job of yours has lost data",
    "presets": "no presets: there are none in [rabbit.presets]",
    "quota": "no limits: there is no rule in [rabbit.limits]",
    "profiles storage": "no profiles for storage",
    "profiles containers": "no profiles for containers",
    "report": "no rabbit job ended from",
    "stats": "no finished rabbit job has left its times",
}


@pytest.mark.parametrize("name", SENTENCES)
def test_a_sentence_when_there_is_nothing(nothing: Machine, name: str) -> None:
    text = written(nothing, *name.split())
    assert SENTENCES[name] in text
    assert len(lines_of(text.strip())) == 1, "and no headings"
    assert len(text.strip()) <= COLUMNS


@pytest.mark.parametrize("words", [("status",), ("top", "-c", "1")], ids=" ".join)
def test_screens_of_nothing(nothing: Machine, words: tuple[str, ...]) -> None:
    check_width(written(nothing, *words))


def test_programs_read_nothing_of_an_empty_table(nothing: Machine) -> None:
    for command in ("list", "df", "jobs", "persistent"):
        assert nothing.run("rabbit", command, "-n") == ""


def test_what_is_cut_in_top_is_marked() -> None:
    assert top._cut("rabbit[35-36,38-40]", 16) == "rabbit[35-36,38+"
    assert top._cut("rabbit[35-36,38]", 16) == "rabbit[35-36,38]"
