# The rights of the workload manager in dws-sim: denied requests are refused, and
# reviews report the denial.
# SPDX-License-Identifier: LGPL-3.0-only
"""Rights in dws-sim."""

from __future__ import annotations

import pathlib

import pytest
from flux_k8s.crd import RESOURCES
from flux_k8s.errors import ApiError
from flux_k8s.kube import Kube
from sim_support import Sim


def test_denied_rights(tmp_path: pathlib.Path) -> None:
    sim = Sim(tmp_path)
    kube = Kube(str(sim.kubeconfig))
    workflows, storages = RESOURCES["workflows"], RESOURCES["storages"]
    assert kube.may(workflows, "create")
    assert not kube.may(RESOURCES["systemconfigurations"], "delete")
    sim.ctl("deny", "workflows:list", "storages:patch")
    assert not kube.may(workflows, "list")
    assert not kube.may(storages, "patch")
    assert kube.may(workflows, "create")
    with pytest.raises(ApiError) as caught:
        kube.list_all("workflows")
    assert caught.value.status == 403
    assert 'cannot list resource "workflows"' in caught.value.message
    sim.ctl("deny")
    assert kube.may(workflows, "list")
    assert kube.list_all("workflows")[0] == []
    profiles = RESOURCES["nnfstorageprofiles"]
    assert not kube.may(profiles, "list")
    sim.ctl("grant", "nnfstorageprofiles:list", "computes:create")
    assert kube.may(profiles, "list") and kube.may(RESOURCES["computes"], "create")
    refused = sim.ctl("grant", "profiles:list", check=False)
    assert "profiles:list: there is no such resource" in refused
    assert sim.stop() == 0
