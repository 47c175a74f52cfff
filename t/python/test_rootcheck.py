# Checks of selftest on a site with an IMP.
# SPDX-License-Identifier: LGPL-3.0-only
"""Findings in configurations of the instance and of flux-security."""

import sys

import pytest

pytest.importorskip("_flux")

from flux_rabbit import rootcheck
from flux_rabbit.checks import Site, Skip, Wrong

PLUGINS = ["dws-jobtap.so", "perilog.so"]
RUN = """
[run.prolog]
allowed-environment = [ "FLUX_*" ]
[run.epilog]
allowed-environment = [ "FLUX_JOB_*", "FLUX_URI" ]
"""


class Handle:
    """Answers the query of plugins."""

    def __init__(self, plugins):
        self.plugins = plugins

    def call(self, topic, payload):
        assert topic == "job-manager.jobtap"
        return {"plugins": self.plugins}


@pytest.fixture
def site(tmp_path, monkeypatch):
    """With an IMP in a prefix of its own, whose folders are made here."""
    for name, text in {"imp": RUN, "security": "[sign]\n"}.items():
        folder = tmp_path / "etc" / "flux" / name / "conf.d"
        folder.mkdir(parents=True)
        (folder / "a.toml").write_text(text)
    monkeypatch.setattr(rootcheck, "IMP_PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    for program in rootcheck.PROGRAMS:
        (tmp_path / "bin" / program).touch(mode=0o755)
    each = {"per-rank": True}
    config = {
        "exec": {"imp": str(tmp_path / "libexec" / "flux" / "flux-imp")},
        "job-manager": {"prolog": each, "epilog": dict(each)},
    }
    return Site(Handle(PLUGINS), config)


def imp_toml(tmp_path, text):
    (tmp_path / "etc" / "flux" / "imp" / "conf.d" / "a.toml").write_text(text)


def wrong(function, site):
    with pytest.raises(Wrong) as caught:
        function(site)
    assert caught.value.hint
    return str(caught.value)


def test_without_an_IMP_there_is_nothing_to_look_at():
    site = Site(Handle([]), {})
    checks = [rootcheck._root, rootcheck._perilog]
    for function in (*checks, rootcheck._configured, rootcheck._munge):
        assert "no exec.imp" in function(site)


def test_root_may_read_jobs(site):
    access = {"allow-guest-user": True, "allow-root-owner": True}
    site.config["access"] = access
    assert "root may read jobs" in rootcheck._root(site)
    for key in access:
        site.config["access"] = {**access, key: False}
        assert f"access.{key} is not true" in wrong(rootcheck._root, site)


def test_all_is_right(site):
    assert rootcheck._perilog(site) and rootcheck._configured(site)


def test_no_perilog(site):
    site.handle.plugins = ["dws-jobtap.so"]
    assert "perilog.so is not loaded" in wrong(rootcheck._perilog, site)


@pytest.mark.parametrize("name", ["prolog", "epilog"])
def test_one_that_runs_nowhere(site, name):
    site.config["job-manager"][name] = {}
    assert f"job-manager.{name} has neither" in wrong(rootcheck._perilog, site)
    # a command of the site is its own affair
    site.config["job-manager"][name] = {"command": ["/etc/site/run"]}
    assert rootcheck._perilog(site)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (RUN.replace("run.prolog", "run.other"), "has no table run.prolog"),
        (RUN.replace(', "FLUX_URI"', ""), "run.epilog.allowed-environment"),
        (RUN.replace('"FLUX_*"', ""), "leaves FLUX_JOB_ID out"),
        ("[run", "a.toml"),
    ],
)
def test_configuration_of_the_IMP(site, tmp_path, text, found):
    imp_toml(tmp_path, text)
    assert found in wrong(rootcheck._configured, site)


def test_tables_of_several_files_are_one(site, tmp_path):
    folder = tmp_path / "etc" / "flux" / "imp" / "conf.d"
    first, second = RUN.split("[run.epilog]")
    (folder / "a.toml").write_text(first)
    (folder / "b.toml").write_text("[run.epilog]" + second)
    assert rootcheck._configured(site)


def test_only_what_the_IMP_runs_has_to_be_there(site, tmp_path):
    site.config["job-manager"]["prolog"] = {"command": ["/etc/site/run"]}
    imp_toml(tmp_path, RUN.replace("run.prolog", "run.other"))
    assert rootcheck._configured(site)


def test_a_program_that_root_does_not_find(site, tmp_path):
    (tmp_path / "bin" / "jq").unlink()
    assert "jq is not in" in wrong(rootcheck._configured, site)


def test_no_configuration_to_be_found(site, tmp_path):
    (tmp_path / "etc" / "flux" / "imp" / "conf.d" / "a.toml").unlink()
    (tmp_path / "etc" / "flux" / "imp" / "conf.d").rmdir()
    with pytest.raises(Skip, match="flux/imp/conf.d"):
        rootcheck._configured(site)


def test_munge(site, tmp_path, monkeypatch):
    (tmp_path / "bin" / "munge").write_text("#!/bin/sh\necho no munged >&2; exit 1\n")
    (tmp_path / "bin" / "munge").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    assert wrong(rootcheck._munge, site) == "no munged"
    (tmp_path / "bin" / "munge").write_text("#!/bin/sh\n")
    assert "answers" in rootcheck._munge(site)
    monkeypatch.setenv("PATH", str(tmp_path / "etc"))
    assert "no program munge" in wrong(rootcheck._munge, site)


def test_jobs_that_are_signed_by_something_else(site, tmp_path):
    folder = tmp_path / "etc" / "flux" / "security" / "conf.d"
    (folder / "a.toml").write_text('[sign]\ndefault-type = "none"\n')
    assert rootcheck._munge(site) == "jobs are signed by none"


@pytest.mark.parametrize(
    "line", ["allow-sudo = true", 'some = "text"', "list = [1]", "run.other = 1"]
)
def test_keys_of_the_IMP_that_are_no_tables(site, tmp_path, line):
    imp_toml(tmp_path, f"{line}\n{RUN}")
    assert rootcheck._configured(site)


def test_tables_of_the_IMP_that_are_none(site, tmp_path):
    imp_toml(tmp_path, "run = 1\n")
    assert "no table run.prolog" in wrong(rootcheck._configured, site)


def test_an_older_python_has_the_reader_of_flux(site, monkeypatch):
    monkeypatch.setitem(sys.modules, "tomllib", None)
    assert rootcheck._configured(site)
