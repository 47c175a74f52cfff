# scripts/setup installs locked versions, with their hashes, into .venv.
# SPDX-License-Identifier: LGPL-3.0-only

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
from typing import Callable

import pytest

TOP = pathlib.Path(__file__).parents[2]
LOCK = TOP / "scripts" / "lock"

pytestmark = pytest.mark.skipif(not LOCK.is_dir(), reason="no tree of its own")

# Records its calls, and fails if its second argument is {fails}: one of two installers.
STUB = '#!/bin/sh\necho "$(basename "$0") $*" >>"$CALLS"\ntest "$2" != "{fails}"\n'


def name_of(requirement: str) -> str:
    return re.split(r"[^a-z0-9-]", requirement.lower())[0]


def requirements(path: pathlib.Path) -> dict[str, list[str]]:
    """The lines of a file of requirements, by the names of the packages."""
    text = path.read_text(encoding="utf8").replace("\\\n", "")
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            found.setdefault(name_of(line), []).append(line)
    return found


@pytest.mark.parametrize("name", ["base", "coral2", "tests", "uv"])
def test_each_package_is_locked_with_its_hashes(name: str) -> None:
    locked = requirements(LOCK / f"{name}.txt")
    assert locked
    for line in sum(locked.values(), []):
        assert re.match(r"[a-z0-9-]+==[^ ]+( ;.*)? +--hash=sha256:[0-9a-f]{64}", line)
    assert set(requirements(LOCK / f"{name}.in")) <= set(locked)


def test_tests_have_the_versions_of_the_rest() -> None:
    tests = requirements(LOCK / "tests.txt")
    for name, lines in requirements(LOCK / "base.txt").items():
        versions = {line.split(" ;")[0].split(" ")[0] for line in tests[name]}
        assert {line.split(" ;")[0].split(" ")[0] for line in lines} == versions


@pytest.mark.parametrize("fails", ["pip", "none"])
def test_nothing_is_installed_without_its_hash(
    tmp_path: pathlib.Path, fails: str
) -> None:
    """Also where there is no uv, and pip has to do all."""
    shutil.copytree(TOP / "scripts", tmp_path / "scripts")
    (tmp_path / ".venv/bin").mkdir(parents=True)
    for name in ("python3", "uv"):
        stub = tmp_path / ".venv/bin" / name
        stub.write_text(STUB.replace("{fails}", fails))
        stub.chmod(0o755)
    calls = tmp_path / "calls"
    subprocess.run(
        [tmp_path / "scripts/setup", "--no-apt", "--tests"],
        env={**os.environ, "CALLS": str(calls)},
        capture_output=True,
    )
    installs = [line for line in calls.read_text().splitlines() if "install" in line]
    assert len(installs) >= 2
    assert all("--require-hashes -r scripts/lock/" in line for line in installs)
    if fails == "none":
        assert any(line.startswith("uv ") for line in installs)


Setup = Callable[..., list[str]]


@pytest.fixture
def setup(tmp_path: pathlib.Path) -> Setup:
    """Runs setup with these options, and returns its calls of meson that set any."""
    shutil.copytree(TOP / "scripts", tmp_path / "scripts")
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / "build").mkdir()
    stub = tmp_path / ".venv/bin/meson"
    stub.write_text(STUB.replace("{fails}", ""))
    stub.chmod(0o755)
    for name in ("python3", "uv", "ninja", "promtool"):
        shutil.copy(stub, stub.with_name(name))
    calls = tmp_path / "calls"

    def run(*options: str) -> list[str]:
        calls.write_text("")
        subprocess.run(
            [tmp_path / "scripts/setup", "--no-apt", "-q", *options],
            env={**os.environ, "CALLS": str(calls)},
            capture_output=True,
        )
        return re.findall("^meson .*-D.*", calls.read_text(), flags=re.M)

    return run


def test_who_does_not_test_builds_no_unit_tests(
    tmp_path: pathlib.Path, setup: Setup
) -> None:
    """Unit tests are a quarter of the build. Once requested, they stay enabled."""
    (configured,) = setup()
    assert " -Dtests=false" in configured
    (tmp_path / "build/build.ninja").touch()
    assert setup() == []
    assert setup("--tests") == ["meson configure build -Dtests=true"]
    assert setup("--tests") == setup() == []


def test_only_a_first_look_is_not_optimised(
    tmp_path: pathlib.Path, setup: Setup
) -> None:
    (configured,) = setup("--quick")
    assert " -Doptimization=0" in configured
    (tmp_path / "build/build.ninja").touch()
    assert setup("--quick") == []
    assert setup() == ["meson configure build -Doptimization=2"]
    assert setup() == setup("--quick") == []


def test_what_is_built_optimised_stays_so(tmp_path: pathlib.Path, setup: Setup) -> None:
    (configured,) = setup()
    assert "optimization" not in configured
    (tmp_path / "build/build.ninja").touch()
    assert setup("--quick") == setup() == []
