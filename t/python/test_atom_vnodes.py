# Whether a job has its node alone, by its vnodes: what the PBS hook tells ATOM.
# SPDX-License-Identifier: LGPL-3.0-only
import getpass
import os
import types

import pytest
from atom_support import HOOK, atom, fake_pbs, load, log_of, run_hook

client = load(HOOK, "atom_client")
pytestmark = pytest.mark.usefixtures("no_hook_config")
USER = getpass.getuser()

# Rows: sharing of the vnode; columns: place= unset, shared, excl, exclhost.
# T where the job has the vnode alone by the documentation of `sharing`.
RULE = {
    None: "FFTT",
    "default_shared": "FFTT",
    "default_excl": "TFTT",
    "default_exclhost": "TFTT",
    "ignore_excl": "FFFF",
    "force_excl": "TTTT",
    "force_exclhost": "TTTT",
}
PLACES = ["scatter", "free:shared", "excl", "pack:exclhost:group=host"]


@pytest.mark.parametrize("sharing", RULE)
@pytest.mark.parametrize("column", range(4))
def test_exclusive_is_the_schedulers_rule(sock, config, sharing, column):
    pbs = fake_pbs(
        "begin", USER, place=PLACES[column], sharing=[sharing], config=config()
    )
    with atom(sock) as server:
        assert run_hook(pbs) == "accept"
    assert server.requests[0]["body"]["exclusive"] is (RULE[sharing][column] == "T")


@pytest.mark.parametrize(
    ("name", "host", "own"),
    [("gpu0", "cn1", True), ("gpu0", "cn2", False), ("cn1[1]", None, True)],
)
def test_a_vnode_is_on_the_host_of_its_resource_or_its_name(name, host, own):
    vnodes = {name: types.SimpleNamespace(resources_assigned={"host": host})}
    assert client.own_vnodes(vnodes, ["cn1"]) == ([name] if own else [])


def test_one_shared_vnode_makes_the_node_shared(sock, config):
    pbs = fake_pbs(
        "begin", USER, sharing=["force_excl", "ignore_excl"], config=config()
    )
    with atom(sock) as server:
        assert run_hook(pbs) == "accept"
    assert server.requests[0]["body"]["exclusive"] is False


@pytest.mark.parametrize("place,alone", [(None, False), ("excl", True)])
def test_a_dead_server_leaves_what_the_job_asks_for(sock, config, place, alone):
    pbs = fake_pbs("begin", USER, place=place, sharing=None, config=config())
    with atom(sock) as server:
        assert run_hook(pbs) == "accept"
    assert server.requests[0]["body"]["exclusive"] is alone
    assert "going by place=" in log_of(pbs)


def test_a_server_that_does_not_answer_is_not_waited_for(sock, config, monkeypatch):
    pbs = fake_pbs("begin", USER, place="excl", config=config())
    ready, blocked = os.pipe()
    pbs.server = lambda: os.read(ready, 1)
    monkeypatch.setattr(client, "pbs", pbs, raising=False)
    try:
        assert client.ask_server(["cn1"], 0.2) is None
    finally:
        os.close(ready)
        os.close(blocked)


def test_an_answer_in_the_last_second_counts(monkeypatch):
    reader, writer = os.pipe()
    os.write(writer, b"{}")
    os.close(writer)
    monkeypatch.setattr(client, "time", types.SimpleNamespace(monotonic=lambda: 10.0))
    assert client._read_all(reader, 10.0) is None
    assert client._read_all(reader, 10.5) == b"{}"
    os.close(reader)


def test_asking_the_server_leaves_no_descriptor_open(monkeypatch):
    monkeypatch.setattr(client, "pbs", fake_pbs("begin", USER), raising=False)
    before = os.listdir("/proc/self/fd")
    client.ask_server(["cn1"], 10)
    assert os.listdir("/proc/self/fd") == before


def test_a_job_whose_vnodes_are_elsewhere(sock, config):
    """By name they are none of this host's: what the job asks for decides."""
    pbs = fake_pbs("begin", USER, place="excl", config=config())
    pbs.get_local_nodename = lambda: "another"
    with atom(sock) as server:
        assert run_hook(pbs) == "accept"
    assert server.requests[0]["body"]["exclusive"] is True


# A mom's own name, and the host of its vnode in PBS.
NAMES = [
    ("cn1", "cn1"),
    ("cn1.example.com", "cn1"),
    ("cn1", "cn1.example.com"),
    ("cn1.example.com", "cn1.example.com"),
    ("CN1", "cn1"),
]


@pytest.mark.parametrize("mom,host", NAMES)
def test_the_vnodes_of_a_mom_by_whatever_name(sock, config, mom, host):
    pbs = fake_pbs("begin", USER, sharing=["force_excl"], config=config())
    pbs.get_local_nodename = lambda: mom
    for vnode in pbs.event().vnode_list.values():
        if vnode.resources_assigned["host"] == "cn1":
            vnode.resources_assigned["host"] = host
    with atom(sock) as server:
        assert run_hook(pbs) == "accept"
    assert server.requests[0]["body"]["exclusive"] is True
    assert "going by place=" not in log_of(pbs)


def test_a_mom_with_a_node_name_of_its_own(sock, config):
    """PBS_MOM_NODE_NAME: the vnode has that name, and its host another."""
    pbs = fake_pbs("begin", USER, sharing=["force_excl"], config=config())
    pbs.get_local_nodename = lambda: "cn1"
    for name, vnode in pbs.event().vnode_list.items():
        if name == "cn1[0]":
            vnode.resources_assigned["host"] = "rack7-u3"
    with atom(sock) as server:
        assert run_hook(pbs) == "accept"
    assert server.requests[0]["body"]["exclusive"] is True


def test_numbers_are_no_host_names():
    """Addresses are not cut at their dots."""
    vnodes = {
        name: types.SimpleNamespace(resources_assigned={"host": name})
        for name in ("10.0.0.1", "10.0.0.2")
    }
    assert client.own_vnodes(vnodes, ["10.0.0.1"]) == ["10.0.0.1"]
