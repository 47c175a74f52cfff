# The configuration table: --check-config, and the manual page made from it.
# SPDX-License-Identifier: LGPL-3.0-only
import importlib.util
import json
import pathlib
import re
import sys

import pytest
from flux_k8s import configcheck, dws, main

TOP = pathlib.Path(__file__).parents[2]
MAPPING = {
    "computes": {"n0": "r0"},
    "rabbits": {"r0": {"capacity": 1 << 40, "hostlist": "n0"}},
}
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {token: secret}}]
"""


def load(name):
    path = TOP / "scripts" / "lib" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def faults(table):
    return configcheck.faults({"rabbit": table})[0]


@pytest.fixture
def table(tmp_path):
    (tmp_path / "mapping.json").write_text(json.dumps(MAPPING))
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    return {
        "mapping": str(tmp_path / "mapping.json"),
        "kubeconfig": str(tmp_path / "kubeconfig"),
    }


def test_the_manual_page_is_that_of_the_table():
    configkeys = load("configkeys")
    text = configkeys.PAGE.read_text(encoding="utf8")
    assert configkeys.page(text) == text, "run scripts/lib/configkeys.py --write"


def test_the_manual_page_names_each_value_of_a_choice():
    configkeys = load("configkeys")
    text = configkeys.PAGE.read_text(encoding="utf8")
    choices = {k["name"]: re.findall('"(.*?)"', k["bounds"]) for k in dws.config_keys()}
    assert choices["data_first"] == ["never", "asked", "always"]
    for name, values in choices.items():
        entry = text.split(f"\n**{name}** (")[1].split("\n\n")[0]
        for value in values:
            assert f'"{value}"' in entry, name


def test_the_sections_that_keys_refer_to_are_there():
    page = load("configkeys").PAGE.read_text(encoding="utf8")
    names = re.findall(r"See ([A-Z]+(?:\s[A-Z]+)*)\.", page)
    assert "LIMITS" in names
    for name in names:
        assert f"\n{' '.join(name.split())}\n====" in page, name


def test_every_key_is_known_to_the_parser(table):
    for key in dws.config_keys():
        if key["default"] is not None:
            table[key["name"]] = key["default"]
    # no limit can be given as a time below zero, where it is the default
    assert faults(table) == []


def test_the_example_configuration_is_right():
    tables = configcheck.resourceconfig.read(str(TOP / "etc" / "rabbit.toml"))
    found, notes = dws.config_faults(tables["rabbit"])
    # its files are not on this machine
    assert [f for f in found if "No such file" not in f] == notes == []


def test_the_program_that_tells_users_is_looked_at(table, tmp_path):
    program = tmp_path / "notice"
    table["notice_command"] = [str(program), "--domain", "example.org"]
    assert faults(table) == [
        f"rabbit.notice_command: {program}: No such file or directory"
    ]
    program.write_text("#!/bin/sh\n")
    program.chmod(0o644)
    (fault,) = faults(table)
    assert "is not a program that can be run" in fault
    for mode in (0o775, 0o757):
        program.chmod(mode)
        (fault,) = faults(table)
        assert "can be written to by others: chown root, chmod go-w" in fault
    program.chmod(0o755)
    assert faults(table) == []
    table["notice_command"] = [str(tmp_path)]
    (fault,) = faults(table)
    assert "is not a program that can be run" in fault
    table["notice_command"] = ["notice"]
    (fault,) = faults(table)
    assert "begins with an absolute path" in fault


def test_files_are_looked_at(table, tmp_path):
    (tmp_path / "mapping.json").write_text('{"computes": 5}')
    (tmp_path / "kubeconfig").write_text("kind: Config\n")
    found = faults(table)
    assert [f.split(":")[0] for f in found] == ["rabbit.mapping", "rabbit.kubeconfig"]
    table["mapping"] = str(tmp_path / "none")
    assert "No such file" in faults(table)[0]


def test_check_config_tells_every_fault(table, tmp_path, capsys):
    conf = tmp_path / "conf.d"
    conf.mkdir()
    lines = [
        "[rabbit]",
        'tc_timeout = "ten"',
        "soft_dran = true",
        "save_datamovements = 1979-05-27",
    ]
    lines += [f'{key} = "{value}"' for key, value in table.items()]
    (conf / "a.toml").write_text("\n".join(lines))
    (conf / "b.toml").write_text("[rabbit.policy.maximums]\nxfs = -1\n")
    assert main.main(["--check-config", str(conf)]) == 1
    assert sorted(capsys.readouterr().err.splitlines()) == [
        "rabbit.policy.maximums.xfs: expected GiB >= 0, got -1",
        'rabbit.save_datamovements: expected an integer >= 0, got "1979-05-27"',
        "rabbit.soft_dran: unknown key, did you mean soft_drain?",
        'rabbit.tc_timeout: expected seconds >= 0, got "ten"',
    ]


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "99999999999999999999"])
def test_check_config_names_numbers_that_are_none(table, tmp_path, capsys, number):
    conf = tmp_path / "rabbit.toml"
    lines = ["[rabbit]", "soft_dran = true", f"tc_timeout = {number}"]
    lines += [f'{key} = "{value}"' for key, value in table.items()]
    lines += ["[rabbit.policy.maximums]", f"xfs = {number}"]
    conf.write_text("\n".join(lines))
    assert main.main(["--check-config", str(conf)]) == 1
    found = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in found] == [
        "rabbit.tc_timeout",
        "rabbit.policy.maximums.xfs",
        "rabbit.soft_dran",
    ]
    assert "is no number that Flux can read" in found[0]


def test_check_config_names_what_is_no_text(table, tmp_path, capsys):
    conf = tmp_path / "rabbit.toml"
    conf.write_text('[rabbit]\nmapping = "a\\u0000b"\n')
    assert main.main(["--check-config", str(conf)]) == 1
    assert capsys.readouterr().err.startswith("rabbit: ")


def test_the_name_of_a_directory_is_no_pattern(table, tmp_path, capsys):
    conf = tmp_path / "conf[1]"
    conf.mkdir()
    text = "\n".join(f'{key} = "{value}"' for key, value in table.items())
    (conf / "a.toml").write_text(f"[rabbit]\n{text}\n")
    assert main.main(["--check-config", str(conf)]) == 0
    assert capsys.readouterr().err == ""


def test_check_config_with_an_older_python(table, tmp_path, monkeypatch):
    """flux-core brings the TOML reader that Python has from 3.11 on."""
    monkeypatch.setitem(sys.modules, "tomllib", None)
    conf = tmp_path / "rabbit.toml"
    text = "\n".join(f'{key} = "{value}"' for key, value in table.items())
    conf.write_text(f"[rabbit]\n{text}\n")
    assert main.main(["--check-config", str(conf)]) == 0


def test_check_config_is_silent_about_what_is_right(table, tmp_path, capsys):
    conf = tmp_path / "rabbit.toml"
    text = "\n".join(f'{key} = "{value}"' for key, value in table.items())
    conf.write_text(f"[rabbit]\ntc_timeout = '5m'\n{text}\n")
    assert main.main(["--check-config", str(conf)]) == 0
    assert capsys.readouterr().err == ""


# The keys of flux-coral2 0.36, by its guide and its code.
CORAL2 = """
save_datamovements = 5
tc_timeout = 10
drain_compute_nodes = true
restrict_persistent_creation = true
soft_drain = true
setup_timeout = 600.0
prerun_timeout = 600.0
postrun_timeout = 600.0
teardown_after = 3600.0
prolog_timeout = 1800
[rabbit.policy.maximums]
xfs = 1024
gfs2 = 1024
raw = 1024
lustre = 1024
[rabbit.presets]
small = "#DW jobdw type=xfs capacity=1GiB name=small"
"""


def test_each_key_of_flux_coral2_is_read(table, tmp_path, capsys):
    conf = tmp_path / "rabbit.toml"
    text = "\n".join(f'{key} = "{value}"' for key, value in table.items())
    conf.write_text(f"[rabbit]\n{text}\n{CORAL2}")
    assert main.main(["--check-config", str(conf)]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "value",
    ["restrict_persistent = true"]
    + [f'{kind}_api_version = "v1alpha3"' for kind in ("dws", "nnf")],
)
def test_keys_of_flux_coral2_that_changed_say_what_to_do(
    table, tmp_path, capsys, value
):
    conf = tmp_path / "rabbit.toml"
    text = "\n".join(f'{key} = "{value}"' for key, value in table.items())
    conf.write_text(f"[rabbit]\n{value}\n{text}\n")
    main.main(["--check-config", str(conf)])
    said = capsys.readouterr().err
    assert said.startswith(f"rabbit.{value.split()[0]}: ")
    assert "is now called" in said or "has no effect" in said


@pytest.mark.parametrize(
    "text,word", [("[rabbit", "a.toml"), ("[resource]\n", "no [rabbit]")]
)
def test_check_config_without_a_table(tmp_path, capsys, text, word):
    (tmp_path / "a.toml").write_text(text)
    assert main.main(["--check-config", str(tmp_path / "a.toml")]) == 1
    assert word in capsys.readouterr().err


@pytest.mark.parametrize("path", ["", "/nowhere"])
def test_check_config_says_what_cannot_be_read(path, monkeypatch, capsys):
    monkeypatch.setenv("FLUX_URI", "local:///nowhere")
    assert main.main(["--check-config", path]) == 1
    error = capsys.readouterr().err
    assert error.startswith("flux-coral2-dws: ") and "Errno" not in error
