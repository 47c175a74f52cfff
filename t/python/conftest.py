# A dws-sim for its own tests, and the server that the parity tests ask: dws-sim
# unless another one is named.
# SPDX-License-Identifier: LGPL-3.0-only
"""Fixtures that several files share."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator

import parity_support
import pytest
from sim_support import Sim


@pytest.fixture(scope="module")
def sim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sim]:
    """One for all tests of a file."""
    sim = Sim(tmp_path_factory.mktemp("sim"))
    yield sim
    assert sim.stop() == 0


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pathlib.Path]:
    """The kubeconfig of the server under test."""
    named = os.environ.get("DWS_PARITY_KUBECONFIG")
    if named:
        yield pathlib.Path(named)
        return
    sim = Sim(tmp_path_factory.mktemp("parity"), "--tls")
    yield sim.kubeconfig
    assert sim.stop() == 0


@pytest.fixture(scope="session")
def admin(server: pathlib.Path) -> parity_support.User:
    user = parity_support.User(server, "admin")
    made = user.create("dwdirectiverules", parity_support.rules(), "dws-system")
    assert made.code in (201, 409), made.object
    return user


@pytest.fixture(scope="session")
def wlm(admin: parity_support.User, server: pathlib.Path) -> parity_support.User:
    return parity_support.User(server, "wlm")
