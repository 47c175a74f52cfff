# Metrics for Prometheus: what is served, where, and to whom.
# SPDX-License-Identifier: LGPL-3.0-only
import http.client
import json
import os
import pathlib
import re
import socket
import stat
import threading
import time

import pytest
import yaml
from flux_k8s.agent import Agent, Overrides
from flux_k8s.stats import Stats

pytest.importorskip("prometheus_client")
from flux_k8s import metrics
from flux_k8s.metrics import Collector, MetricsServer
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

TOP = pathlib.Path(__file__).parents[2]
LIMIT_S = 20
STATUS = {
    "synced": True,
    "plugin": True,
    "jobs": 2,
    "phases": {"depend": 1, "running": 1},
    "states": {"Proposal": 1, "PreRun": 1},
    "agent": {
        "attached": True,
        "synced": True,
        "reachable": True,
        "commands": 3,
        "api": {"queue": {"running": 2, "repeated": 1, "queued": 0}},
    },
    "rabbits": {"capacity": 100, "used": 25, "foreign": 7, "states": {"Ready": 2}},
}


def collector(status=STATUS):
    stats = Stats()
    stats.request("get", "workflows", 200, 0.003)
    stats.request("get", "workflows", 503, 4.0)
    stats.request("patch", "servers", 0, 100.0)
    stats.retry(503)
    stats.event("workflows", 1)
    stats.listed("storages")
    stats.refuse("servers")
    return Collector(stats, lambda: status)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("local", timeout=LIMIT_S)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(LIMIT_S)
        self.sock.connect(self.path)


def scrape(connection, path="/metrics"):
    connection.request("GET", path)
    response = connection.getresponse()
    return response.status, response.read().decode()


def samples(text):
    return {
        (s.name, *sorted(s.labels.values())): s.value
        for family in text_string_to_metric_families(text)
        for s in family.samples
    }


@pytest.fixture
def server():
    made = MetricsServer("127.0.0.1:0", collector())
    yield made
    made.close()


def test_a_port_of_the_loopback(server):
    address = ("127.0.0.1", server.port)
    status, text = scrape(http.client.HTTPConnection(*address, timeout=LIMIT_S))
    assert status == 200
    found = samples(text)
    assert found["flux_dws_up",] == 1
    assert found["flux_dws_kubernetes_up",] == 1
    assert found["flux_dws_jobs", "running"] == 1
    assert found["flux_dws_workflows", "PreRun"] == 1
    assert found["flux_dws_agent_commands", "repeated"] == 1
    assert found["flux_dws_rabbit_used_bytes",] == 25
    assert found["flux_dws_rabbit_foreign_bytes",] == 7
    assert found["flux_dws_api_requests_total", "503", "get", "workflows"] == 1
    assert found["flux_dws_api_requests_total", "0", "patch", "servers"] == 1
    assert found["flux_dws_api_request_seconds_bucket", "0.005", "get"] == 1
    assert found["flux_dws_api_request_seconds_bucket", "+Inf", "get"] == 2
    assert found["flux_dws_api_request_seconds_bucket", "30.0", "patch"] == 0
    assert found["flux_dws_api_request_seconds_count", "patch"] == 1
    assert found["flux_dws_api_retries_total", "503"] == 1
    assert found["flux_dws_watch_events_total", "workflows"] == 1
    assert found["flux_dws_watch_lists_total", "storages"] == 1
    assert found["flux_dws_refused_total", "servers"] == 1
    address = ("127.0.0.1", server.port)
    assert scrape(http.client.HTTPConnection(*address), "/secret")[0] == 404


def metrics_threads():
    return {
        thread for thread in threading.enumerate() if "process_request" in thread.name
    }


def test_only_so_many_connections_at_once(server, caplog):
    address = ("127.0.0.1", server.port)
    before = metrics_threads()
    silent = [
        socket.create_connection(address, timeout=LIMIT_S)
        for _ in range(metrics.CONNECTIONS)
    ]
    for _ in range(3):
        with pytest.raises((http.client.HTTPException, OSError)):
            scrape(http.client.HTTPConnection(*address, timeout=LIMIT_S))
    assert len(metrics_threads() - before) == metrics.CONNECTIONS
    (said,) = caplog.records
    assert "8 scrapers at the same time" in said.getMessage()
    for each in silent:
        each.close()
    for thread in metrics_threads() - before:
        thread.join(LIMIT_S)
    connection = http.client.HTTPConnection(*address, timeout=LIMIT_S)
    assert scrape(connection)[0] == 200


def test_who_dribbles_is_hung_up_on(monkeypatch):
    """Each byte arrives in time, but the request never ends."""
    monkeypatch.setattr(metrics, "CLIENT_TIMEOUT_S", 1.0)
    server = MetricsServer("127.0.0.1:0", collector())
    try:
        with socket.create_connection(("127.0.0.1", server.port)) as dribbler:
            dribbler.settimeout(0.1)
            began = time.monotonic()
            gone = False
            while not gone:
                assert time.monotonic() - began < LIMIT_S
                try:
                    dribbler.send(b"G")
                    gone = dribbler.recv(1) == b""
                except TimeoutError:
                    pass
                except OSError:
                    gone = True
        address = ("127.0.0.1", server.port)
        connection = http.client.HTTPConnection(*address, timeout=LIMIT_S)
        assert scrape(connection)[0] == 200
    finally:
        server.close()


def test_a_newer_agents_socket_is_left_alone(tmp_path):
    path = tmp_path / "metrics"
    older = MetricsServer(f"unix:{path}", collector())
    newer = MetricsServer(f"unix:{path}", collector())
    older.close()
    try:
        assert scrape(UnixConnection(str(path)))[0] == 200
    finally:
        newer.close()
    assert not path.exists()


def test_a_port_that_is_taken_is_tried_again(caplog):
    """The agent that is being replaced has it for a while."""
    older = MetricsServer("127.0.0.1:0", collector())
    port = older.port
    agent = Agent(None, Overrides())
    agent._serve_metrics(f"127.0.0.1:{port}")
    agent._on_stats_timer()
    assert len(caplog.records) == 1
    older.close()
    agent._on_stats_timer()
    try:
        address = ("127.0.0.1", port)
        connection = http.client.HTTPConnection(*address, timeout=LIMIT_S)
        assert scrape(connection)[0] == 200
    finally:
        agent._serve_metrics(None)


def test_without_the_module_the_agents_own_are_there():
    server = MetricsServer("127.0.0.1:0", collector(None))
    try:
        address = ("127.0.0.1", server.port)
        _, text = scrape(http.client.HTTPConnection(*address, timeout=LIMIT_S))
    finally:
        server.close()
    found = samples(text)
    assert found["flux_dws_up",] == 0
    assert ("flux_dws_jobs", "running") not in found
    assert found["flux_dws_api_retries_total", "503"] == 1


def test_a_socket_is_the_owners_alone(tmp_path):
    path = tmp_path / "metrics"
    # left by an agent that was killed
    with socket.socket(socket.AF_UNIX) as old:
        old.bind(str(path))
    server = MetricsServer(f"unix:{path}", collector())
    try:
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        status, text = scrape(UnixConnection(str(path)))
        assert status == 200 and samples(text)["flux_dws_up",] == 1
    finally:
        server.close()
    assert not path.exists()


def test_another_file_is_not_replaced(tmp_path):
    path = tmp_path / "precious"
    path.write_text("data")
    with pytest.raises(OSError):
        MetricsServer(f"unix:{path}", collector())
    assert path.read_text() == "data"


def test_every_metric_is_documented():
    page = (TOP / "doc" / "metrics.md").read_text(encoding="utf8")
    documented = set(re.findall(r"^\| `(flux_dws_\w+)`", page, re.MULTILINE))
    served = {
        m.name + ("_total" if m.type == "counter" else "")
        for m in collector().collect()
    }
    assert served == documented


def used_in(path):
    """The metrics that a file of expressions is about."""
    return set(re.findall(r"\bflux_dws_[a-z_]+", path.read_text(encoding="utf8")))


@pytest.mark.parametrize("name", ["grafana/flux-dws.json", "prometheus/alerts.yaml"])
def test_dashboard_and_alerts_use_what_is_served(name):
    served = {s[0] for s in samples(generate_latest(collector()).decode())}
    used = used_in(TOP / "etc" / name)
    assert used and used <= served


def test_the_dashboard_shows_everything():
    shown = used_in(TOP / "etc" / "grafana" / "flux-dws.json")
    for metric in collector().collect():
        assert any(name.startswith(metric.name) for name in shown), metric.name


def test_dashboard_and_alerts_are_well_formed():
    board = json.loads((TOP / "etc" / "grafana" / "flux-dws.json").read_text())
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))
    for panel in board["panels"]:
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24
        assert all(
            target["expr"].count("(") == target["expr"].count(")")
            for target in panel["targets"]
        )
    alerts = yaml.safe_load((TOP / "etc" / "prometheus" / "alerts.yaml").read_text())
    rules = [rule for group in alerts["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
        assert set(rule["annotations"]) == {"summary", "description"}


def test_runbook_has_a_section_for_each_alert():
    alerts = yaml.safe_load((TOP / "etc" / "prometheus" / "alerts.yaml").read_text())
    names = [rule["alert"] for group in alerts["groups"] for rule in group["rules"]]
    lines = (TOP / "doc" / "admin" / "runbook.rst").read_text().splitlines()
    for name in names:
        assert name in lines, name
        assert lines[lines.index(name) + 1] == "-" * len(name)
