# flux rabbit selftest finds leftovers of flux-coral2.
# SPDX-License-Identifier: LGPL-3.0-only
import pathlib

import pytest
from flux_k8s import workflow
from flux_rabbit import leftovers


@pytest.fixture
def site(tmp_path):
    """The folders of a site with flux-dws, as arguments of find()."""
    folders = (tmp_path / "etc-units", tmp_path / "lib-units")
    for folder in (tmp_path / "conf/cli/plugins", tmp_path / "flux_k8s", *folders):
        folder.mkdir(parents=True)
    (tmp_path / "flux_k8s/kube.py").touch()
    ours = pathlib.Path(workflow.__file__)
    (tmp_path / "flux_k8s/workflow.py").write_text(ours.read_text())
    (tmp_path / "conf/cli/plugins/coral2_chassis.py").touch()
    unit = folders[1] / "flux-coral2-dws.service"
    unit.write_text("ExecStart=/usr/bin/flux-coral2-dws\n")
    return tmp_path / "conf", tmp_path / "flux_k8s", folders


def test_nothing_but_ours(site):
    assert leftovers.find(*site) == []


def test_each_leftover_is_named(site):
    conf, package, (etc, lib) = site
    override = etc / "flux-coral2-dws.service.d" / "options.conf"
    override.parent.mkdir()
    expected = [
        package / "workflow.py",
        conf / "cli/plugins/chassis.py",
        override,
        lib / "flux-coral2-dws.service",
    ]
    for path in expected:
        path.write_text("ExecStart=flux python /usr/bin/coral2_dws.py -w 5\n")
    assert leftovers.find(*site) == expected


def test_each_module_of_ours_is_known():
    package = pathlib.Path(workflow.__file__).parent
    assert all((package / f"{name}.py").exists() for name in leftovers.MODULES)
    assert leftovers.find(None, package, ()) == []


def test_where_the_configuration_is_not_known(site):
    assert leftovers.find(None, *site[1:]) == []
