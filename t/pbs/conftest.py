# Fixtures of the tests with a real PBS.
# SPDX-License-Identifier: LGPL-3.0-only
import pytest
from pbs_cluster import HOSTS, Cluster


@pytest.fixture(scope="session")
def cluster():
    """A cluster with our hook, and an ATOM on each host."""
    cluster = Cluster()
    for host in HOSTS:
        cluster.start_atom(host)
    cluster.install()
    cluster.wait_free()
    return cluster


@pytest.fixture(autouse=True)
def repaired(cluster):
    """No test finds what another one broke."""
    yield
    cluster.repair()


@pytest.fixture
def configure(cluster):
    """Change the hook's configuration for a test."""
    yield cluster.configure
    cluster.configure()
