# selftest's verdicts on nnf-clientmount on compute nodes. t/install/t15-systemd.t and
# t/multiuser/t30-selftest.t query a real systemd.
# SPDX-License-Identifier: LGPL-3.0-only
"""Verdicts on the unit nnf-clientmount."""

import subprocess
import types

import pytest

pytest.importorskip("_flux")
pytest.importorskip("flux.hostlist")

from flux_rabbit import nodecheck
from flux_rabbit.checks import Advice, Skip, Wrong

START = (
    "{{ path=/usr/bin/clientmountd ; argv[]=/usr/bin/clientmountd {} ; "
    "ignore_errors=no ; start_time=[n/a] ; stop_time=[n/a] ; pid=0 ; code=(null) ; "
    "status=0/0 }}"
)
SERVER = "127.0.0.1:6443"
FLAGS = "--kubernetes-service-host=127.0.0.1 -kubernetes-service-port 6443"


def unit(flags=FLAGS, **changed):
    return {
        "LoadState": "loaded",
        "ActiveState": "active",
        "SubState": "running",
        "WantedBy": "flux.service",
        "RequiredBy": "",
        "ExecStart": START.format(flags),
        "Environment": "",
        **changed,
    }


def judge(units, busy=(), server=SERVER):
    return nodecheck.judge(units, set(busy), server)


def test_a_unit_that_is_as_it_should_be():
    assert judge({"n0": unit(), "n1": unit()}) == "nnf-clientmount is ready on 2 nodes"


def test_it_is_stopped_beside_jobs():
    units = {"n0": unit(ActiveState="inactive"), "n1": unit()}
    assert "ready" in judge(units, ["n0"])


@pytest.mark.parametrize(
    "changed, text, hint",
    [
        ({"LoadState": "not-found"}, "no unit nnf-clientmount on n[1-2]", "Alias="),
        ({"LoadState": "masked"}, "is masked on n[1-2]", "systemctl status"),
        ({"ActiveState": "failed"}, "is failed on n[1-2] without a job", "start"),
        ({"ActiveState": "inactive"}, "is inactive on n[1-2]", "start"),
        ({"WantedBy": ""}, "nothing starts nnf-clientmount when n[1-2]", "enable"),
        ({"flags": "--node-name=x"}, "on n1 has the node name x", "--node-name"),
        ({"Environment": "NODE_NAME=x"}, "on n1 has the node name x", "NODE_NAME"),
    ],
)
def test_what_is_wrong_is_named_with_its_nodes(changed, text, hint):
    wrong = unit(**changed)
    with pytest.raises(Wrong) as caught:
        judge({"n0": unit(), "n1": wrong, "n2": wrong})
    assert text in str(caught.value)
    assert hint in caught.value.hint


def test_required_is_as_good_as_wanted():
    assert "ready" in judge({"n0": unit(WantedBy="", RequiredBy="flux.service")})


@pytest.mark.parametrize(
    "flags, environment, server",
    [
        ("--kubernetes-service-host=h --kubernetes-service-port=1", "", "h:1"),
        ("-kubernetes-service-host h -kubernetes-service-port 1", "", "h:1"),
        ("", "KUBERNETES_SERVICE_HOST=h KUBERNETES_SERVICE_PORT=1", "h:1"),
        ("--kubernetes-service-host=g", "KUBERNETES_SERVICE_HOST=h", "g:443"),
        ("--kubernetes-service-host=fd00::1", "", "[fd00::1]:443"),
        ("", "", ""),
    ],
)
def test_its_api_server(flags, environment, server):
    assert nodecheck.server_of(unit(flags, Environment=environment)) == server


def test_another_api_server_than_the_agents():
    other = unit("--kubernetes-service-host=127.0.0.2 --kubernetes-service-port=6443")
    found = judge({"n0": unit(), "n1": other})
    assert isinstance(found, Advice)
    assert "on n1 its API server is 127.0.0.2:6443" in found.text
    assert SERVER in found.text and found.hint


def test_another_name_of_the_same_server():
    named = unit("--kubernetes-service-host=localhost --kubernetes-service-port=6443")
    assert "ready" in judge({"n0": named})


def test_the_agents_server_is_not_known():
    assert "ready" in judge({"n0": unit()}, server="")


def test_nodes_that_cannot_be_asked(monkeypatch):
    def run(*_, **__):
        raise subprocess.TimeoutExpired("flux exec", 60)

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(Skip, match="60"):
        nodecheck.ask("0")


def test_answers_are_sorted_by_rank(monkeypatch):
    done = subprocess.CompletedProcess([], 1, "1: A=b: c\n0: A=\n1: D=\n", "no\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    assert nodecheck.ask("0-2") == ({1: ["A=b: c", "D="], 0: ["A="]}, "no")


def test_a_line_that_is_no_property(monkeypatch):
    """Such as the second line of a value."""
    lines = [f"{key}={value}" for key, value in unit().items()]
    site = types.SimpleNamespace(rabbits=[{}], kube=None)
    monkeypatch.setattr(nodecheck, "_nodes", lambda site: ({0: "n0"}, set()))
    monkeypatch.setattr(nodecheck, "ask", lambda ranks: ({0: [*lines, "more"]}, ""))
    assert "ready" in nodecheck._clientmount(site)
