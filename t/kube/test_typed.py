# A program made with controller-runtime, on dws-sim and on kube-apiserver.
# SPDX-License-Identifier: LGPL-3.0-only
"""Typed objects, created, watched and applied from Go."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

from sim_support import Sim

KUBECONFIG = pathlib.Path(os.environ["DWS_PARITY_KUBECONFIG"])
PROGRAM = os.environ.get("DWS_TYPED", "")
LIMIT_S = 120


def run(kubeconfig: pathlib.Path) -> str:
    command = [PROGRAM, "--kubeconfig", str(kubeconfig)]
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    return result.stdout + result.stderr


@pytest.mark.skipif(not PROGRAM, reason="no program with types (DWS_TYPED)")
@pytest.mark.parametrize("where", ["dws-sim", "kube-apiserver"])
def test_typed(tmp_path: pathlib.Path, where: str) -> None:
    if where == "kube-apiserver":
        assert run(KUBECONFIG) == "typed: all is as it should be\n"
        return
    sim = Sim(tmp_path)
    assert run(sim.kubeconfig) == "typed: all is as it should be\n"
    assert sim.stop() == 0
