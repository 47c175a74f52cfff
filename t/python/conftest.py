# A dws-sim for its own tests, and the server that the parity tests ask: dws-sim
# unless another one is named.
# SPDX-License-Identifier: LGPL-3.0-only
"""Fixtures that several files share."""

from __future__ import annotations

import json
import os
import pathlib
import signal
from collections.abc import Callable, Iterator

import parity_nnf
import parity_pods
import parity_support
import parity_trouble
import pytest
from hypothesis import settings
from sim_support import Sim

# A shell has commands in the background ignore SIGINT, and what these start
# inherits that: the programs under test are to begin as they do for a user.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)

# How long an example takes is this machine's affair.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="module")
def sim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sim]:
    """A simulator for all tests of a file."""
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
    sim = Sim(tmp_path_factory.mktemp("parity"))
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


@pytest.fixture(scope="session")
def machine(admin: parity_support.User) -> parity_nnf.Machine:
    """The rabbits and computes of the server under test."""
    return parity_nnf.Machine.of(admin)


@pytest.fixture
def jobs(wlm: parity_support.User) -> Iterator[parity_nnf.Jobs]:
    """Makes workflows that are gone after the test."""
    jobs = parity_nnf.Jobs(wlm)
    yield jobs
    jobs.remove()


@pytest.fixture
def trouble(server: pathlib.Path) -> Iterator[parity_trouble.Trouble]:
    """Breaks things in the server under test; all is well after the test."""
    simulated = "DWS_PARITY_KUBECONFIG" not in os.environ
    trouble = parity_trouble.of(server, simulated)
    yield trouble
    trouble.mend()


@pytest.fixture
def pods(
    server: pathlib.Path, admin: parity_support.User
) -> Iterator[parity_pods.Pods]:
    """Plays the pods of containers; skips the test where somebody else does."""
    pods: parity_pods.Pods = parity_pods.RigPods(admin)
    if "DWS_PARITY_KUBECONFIG" not in os.environ:
        pods = parity_pods.SimPods(parity_trouble.SimTrouble(server).ctl)
    elif not (server.parent / "run" / "slc.pid").exists():
        pytest.skip("pods of this server do as they like")
    yield pods
    pods.mend()


@pytest.fixture
def sock(tmp_path: pathlib.Path) -> pathlib.Path:
    """The socket of an ATOM."""
    return tmp_path / "atomd.sock"


@pytest.fixture
def config(tmp_path: pathlib.Path, sock: pathlib.Path) -> Callable[..., str]:
    """Writes the configuration of the PBS hook, and returns its path."""

    def write(**keys: object) -> str:
        path = tmp_path / "hook.CF"
        path.write_text(json.dumps({"unix_socket_file": str(sock), **keys}))
        return str(path)

    return write


@pytest.fixture
def no_hook_config(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hook's configuration is none of the environment of the tests."""
    monkeypatch.delenv("PBS_HOOK_CONFIG_FILE", raising=False)
