# Which script the option plugin of flux commands reads, and when it lets a job alone.
# SPDX-License-Identifier: LGPL-3.0-only
"""etc/cli/plugins/dws_directives.py."""

from __future__ import annotations

import builtins
import pathlib
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from flux.importer import import_path

TOP = pathlib.Path(__file__).parents[2]
SCRIPT = "#!/bin/sh\n#DW jobdw type=xfs capacity=1GiB name=aa\ntrue\n"

plugin = import_path(str(TOP / "etc/cli/plugins/dws_directives.py"))


def jobspec(*command: str, cwd: pathlib.Path, script: str | None = None) -> Any:
    system: dict[str, Any] = {"cwd": str(cwd)}
    if script is not None:
        system["files"] = {"script": {"data": script}}
    return SimpleNamespace(
        attributes={"system": system},
        jobspec={"tasks": [{"command": list(command)}], "resources": []},
    )


def program(path: pathlib.Path, text: str = SCRIPT) -> None:
    path.write_text(text)
    path.chmod(0o755)


def test_program(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "job.sh")
    found = ("./job.sh", SCRIPT)
    assert plugin.program_script(jobspec("./job.sh", "x", cwd=tmp_path)) == found
    assert plugin.program_script(jobspec("job.sh", cwd=tmp_path)) is None
    monkeypatch.setenv("PATH", f"/nowhere:{tmp_path}")
    there = plugin.program_script(jobspec("job.sh", cwd=pathlib.Path("/")))
    assert there == ("job.sh", SCRIPT)
    whole = str(tmp_path / "job.sh")
    assert plugin.program_script(jobspec(whole, cwd=pathlib.Path("/")))[0] == whole


def test_no_script(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "text", SCRIPT[2:])
    assert plugin.program_script(jobspec("./text", cwd=tmp_path)) is None
    assert plugin.program_script(jobspec("./none", cwd=tmp_path)) is None
    assert plugin.program_script(jobspec(cwd=tmp_path)) is None
    (tmp_path / "data").write_text(SCRIPT)
    assert plugin.program_script(jobspec("./data", cwd=tmp_path)) is None

    def refuse(*args: Any) -> None:
        raise PermissionError(args)

    program(tmp_path / "job.sh")
    monkeypatch.setattr(builtins, "open", refuse)
    assert plugin.program_script(jobspec("./job.sh", cwd=tmp_path)) is None


def test_batch(tmp_path: pathlib.Path) -> None:
    spec = jobspec(cwd=tmp_path, script=SCRIPT)
    args = SimpleNamespace(wrap=False, SCRIPT=["job.sh", "x"])
    assert plugin.batch_script(args, spec) == ("job.sh", SCRIPT)
    args.SCRIPT = []
    assert plugin.batch_script(args, spec) == ("stdin", SCRIPT)
    args.wrap = True
    assert plugin.batch_script(args, spec) is None
    assert plugin.batch_script(args, jobspec(cwd=tmp_path)) is None


def test_nothing_is_imported_for_nothing(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # None: an import of it fails
    monkeypatch.setitem(sys.modules, "flux_rabbit", None)
    program(tmp_path / "job.sh", "#!/bin/sh\n# no directive\n")
    for prog in ("submit", "run", "batch", "alloc", "bulksubmit", "validate"):
        spec = jobspec("./job.sh", cwd=tmp_path, script="#!/bin/sh\ntrue\n")
        it = plugin.DirectivesPlugin(f"flux {prog}")
        it.preinit(SimpleNamespace())
        it.modify_jobspec(SimpleNamespace(), spec)
    program(tmp_path / "job.sh")
    with pytest.raises(ImportError):
        it.modify_jobspec(SimpleNamespace(), spec)


def test_a_check_is_no_submission() -> None:
    for option in ("dw_check", "dw_check_json"):
        args = SimpleNamespace(**{option: True, "dry_run": False})
        plugin.DirectivesPlugin("submit").preinit(args)
        assert args.dry_run
    args = SimpleNamespace(dw_check=False, dry_run=False)
    plugin.DirectivesPlugin("submit").preinit(args)
    assert not args.dry_run
