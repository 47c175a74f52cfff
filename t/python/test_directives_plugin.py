# The option plugin of flux commands reads the directives of the job's script, and
# leaves other jobs unchanged.
# SPDX-License-Identifier: LGPL-3.0-only
"""etc/cli/plugins/dws_directives.py."""

from __future__ import annotations

import argparse
import builtins
import pathlib
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from flux.cli import base
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
    wrapped = jobspec(cwd=tmp_path, script=f"#!/bin/sh\n{SCRIPT}")
    assert plugin.batch_script(args, wrapped) == ("stdin", SCRIPT)
    args.SCRIPT = ["./job.sh"]
    assert plugin.batch_script(args, wrapped) is None
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


def test_program_of_other_commands(tmp_path: pathlib.Path) -> None:
    program(tmp_path / "job.sh")
    found = ("./job.sh", SCRIPT)
    spec = jobspec("flux", "broker", "./job.sh", cwd=tmp_path, script="#!/bin/sh\n")
    for words in (["./job.sh", "x"], ["--", "./job.sh"]):
        args = SimpleNamespace(COMMAND=words, SCRIPT=words, wrap=True)
        assert plugin.scripts_of("alloc", args, spec) == (found, None)
        assert plugin.scripts_of("batch", args, spec) == (found, None)
    for none in (SimpleNamespace(COMMAND=[]), SimpleNamespace()):
        assert plugin.scripts_of("alloc", none, spec) == (None, None)


@pytest.mark.parametrize(
    ("command", "unread"),
    [
        (("bash", "job.sh"), True),
        (("/bin/python3.11", "-u", "./job.sh", "x"), True),
        (("bash", "-c", "job.sh"), False),
        (("bash", "-x"), False),
        (("bash", "none.sh"), False),
        (("cat", "job.sh"), False),
        (("env", "A=1", "./run.sh", "x"), True),
        (("/usr/bin/env", "-i", "A=1", "bash", "-e", "job.sh"), True),
        (("timeout", "-k", "5", "10", "nice", "-n", "3", "./run.sh"), True),
        (("srun", "-n", "4", "./run.sh"), True),
        (("env", "A=1", "true", "run.sh"), False),
        (("timeout", "10"), False),
        ((), False),
    ],
)
def test_script_as_argument(
    command: tuple[str, ...], unread: bool, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "job.sh").write_text(SCRIPT.partition("\n")[2])
    program(tmp_path / "run.sh")
    spec = jobspec(*command, cwd=tmp_path)
    script, other = plugin.scripts_of("run", SimpleNamespace(), spec)
    assert script is None
    assert (other is not None) is unread


@pytest.mark.parametrize(
    ("line", "looked_at"),
    [
        ("#DW jobdw", True),
        ("#Dw jobdw", True),
        ("  #DW jobdw", True),
        ("# DW jobdw", True),
        ("#BB create_persistent", True),
        ("#flux: --dw=tiny", True),
        ("# hardware, bandwidth", False),
        ("echo DW", False),
        ("\n" * 100000, False),
    ],
)
def test_marked(line: str, looked_at: bool) -> None:
    script = ("job.sh", f"#!/bin/sh\n{line}\n")
    assert plugin.marked(script) == (script if looked_at else None)
    assert plugin.marked(None) is None


class Registry:
    """Stands for flux.cli.base's registry of plugins."""

    def __init__(self, prog: str) -> None:
        self.parser = argparse.ArgumentParser()
        for name in ("dws_directives.py", "coral2_chassis.py"):
            module = import_path(str(TOP / "etc/cli/plugins" / name))
            for value in vars(module).values():
                if isinstance(value, type) and value.__name__.endswith("sPlugin"):
                    for option in value(prog).options:
                        self.parser.add_argument(option.name, **option.kwargs)

    def parse(self, *words: str) -> Any:
        builtin = dict.fromkeys(base.Xcmd.mutable_args)
        args = self.parser.parse_args(words, argparse.Namespace(**builtin))
        args.command, args.methods = ["true"], {}
        return args


@pytest.fixture()
def flux_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base.Xcmd, "mutable_args", dict(base.Xcmd.mutable_args))


def test_options_of_copies(flux_options: None) -> None:
    args = Registry("submit").parse(
        "--dw=#DW persistentdw name=a{cc}",
        "--dw={{id}}",
        "--dw-rabbits=rabbit{cc}",
        "--dw-data-first",
        "--coral2-chassis={cc}",
    )
    copy = vars(base.Xcmd(args, cc=3))
    assert copy["dw"] == ["#DW persistentdw name=a3", "{{id}}"]
    assert copy["dw_rabbits"] == "rabbit3"
    assert copy["dw_data_first"] is True
    assert copy["coral2_chassis"] == "3"
    # without them a command has no more options than before
    assert "dw_check" not in base.Xcmd.mutable_args


def test_options_of_bulksubmit(flux_options: None) -> None:
    args = Registry("bulksubmit").parse("--dw={}", "--dw-near={1}")
    once = base.Xcmd(args, ["a.dw", "f1"], seq=0, seq1=1, cc="{cc}")
    assert vars(once)["dw"] == ["a.dw"]
    assert vars(base.Xcmd(once, cc=1))["dw_near"] == "f1"
    assert str(once) == "--dw=['a.dw'] --dw-near=f1 true"


def test_plain_command_has_defaults() -> None:
    args = Registry("run").parse()
    assert args.dw == [] and args.dw_near is None and args.dw_check is False
    assert args.coral2_chassis == 0


@pytest.mark.parametrize("value", ["0", "two", "{cc}", "-1"])
def test_number(value: str) -> None:
    chassis = import_path(str(TOP / "etc/cli/plugins/coral2_chassis.py"))
    assert chassis.number(SimpleNamespace(chassis="12"), "chassis") == 12
    assert chassis.number(SimpleNamespace(chassis=2), "chassis") == 2
    assert chassis.number(SimpleNamespace(), "rabbit_cores") == 0
    with pytest.raises(ValueError, match="--coral2-rabbit-cores: .* positive number"):
        chassis.number(SimpleNamespace(rabbit_cores=value), "rabbit_cores")
