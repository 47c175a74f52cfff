# SPDX-License-Identifier: LGPL-3.0-only
"""The alert rules, as Prometheus' own promtool evaluates them: each becomes firing when
it should, not before its time, and with the text that it is to have; and stays silent
where all is well. Needs promtool, which scripts/setup --tests gets."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ETC = Path(__file__).parents[2] / "etc"
ALERTS = ETC / "prometheus" / "alerts.yaml"
DASHBOARD = ETC / "grafana" / "flux-dws.json"

PROMTOOL = shutil.which("promtool")
pytestmark = pytest.mark.skipif(PROMTOOL is None, reason="no promtool")

Series = dict[str, str]


@dataclasses.dataclass
class Case:
    """An alert: series that make it fire and series that do not, a value each minute
    (promtool's notation); when they have made it fire, with what value and labels."""

    bad: Series
    good: Series
    minutes: int
    value: str = ""
    labels: dict[str, str] = dataclasses.field(default_factory=dict)


def requests(failed: str, succeeded: str) -> Series:
    name = "flux_dws_api_requests_total"
    return {f'{name}{{code="503"}}': failed, f'{name}{{code="200"}}': succeeded}


def latency(verb: str, fast: str, every: str) -> Series:
    name = f'flux_dws_api_request_seconds_bucket{{verb="{verb}",le='
    return {f'{name}"2.5"}}': fast, f'{name}"5"}}': every, f'{name}"+Inf"}}': every}


def commands(doing: str, count: str) -> Series:
    return {f'flux_dws_agent_commands{{doing="{doing}"}}': count}


def lists(count: str) -> Series:
    return {'flux_dws_watch_lists_total{kind="workflows"}': count}


def rabbits(ready: str, offline: str) -> Series:
    name = "flux_dws_rabbits"
    return {f'{name}{{status="Ready"}}': ready, f'{name}{{status="Offline"}}': offline}


def space(used: str, foreign: str) -> Series:
    return {
        "flux_dws_rabbit_used_bytes": used,
        "flux_dws_rabbit_foreign_bytes": foreign,
        "flux_dws_rabbit_capacity_bytes": "1000x99",
    }


CASES = {
    "RabbitAgentDown": Case({}, {"flux_dws_up": "0x99"}, 5),
    "RabbitModuleDown": Case({"flux_dws_up": "0x99"}, {"flux_dws_up": "1x99"}, 5),
    "RabbitKubernetesUnreachable": Case(
        {"flux_dws_kubernetes_up": "0x99"}, {"flux_dws_kubernetes_up": "1x99"}, 5
    ),
    "RabbitNotInStep": Case(
        {"flux_dws_synced": "0x99"}, {"flux_dws_synced": "0x9 1x90"}, 10
    ),
    "RabbitApiErrors": Case(
        requests("0+10x99", "0+90x99"), requests("0+4x99", "0+96x99"), 11, "10%"
    ),
    # The 99th of 100 is where 9 of the 10 slow ones are, from 2.5 to 5 s. A watch is
    # meant to last.
    "RabbitApiSlow": Case(
        latency("get", "0+90x99", "0+100x99"),
        latency("get", "0+100x99", "0+100x99") | latency("watch", "0x99", "0+9x99"),
        16,
        "4.75s",
    ),
    # Many of them are no fault while they become fewer, and those that run are at work.
    "RabbitCommandsPileUp": Case(
        commands("queued", "200+10x99"),
        commands("queued", "2000-10x99") | commands("running", "200+10x99"),
        16,
        "360",
    ),
    "RabbitWatchesFallBehind": Case(
        lists("0+40x199"), lists("0+0.3x199"), 61, labels={"kind": "workflows"}
    ),
    "RabbitsUnusable": Case(
        rabbits("8x99", "2x99"), rabbits("19x99", "1x99"), 30, "20%"
    ),
    "RabbitStorageFull": Case(
        space("900x99", "60x99"), space("900x99", "50x99"), 60, "96%"
    ),
}


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(ALERTS.read_text(encoding="utf8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def promtool(*args: str | Path) -> None:
    done = subprocess.run(
        [str(PROMTOOL), *args], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def expected(rule: dict[str, Any], case: Case) -> dict[str, Any]:
    """The alert as sent, with the value and the labels in place of their templates."""

    def fill(text: str) -> str:
        text = re.sub(r"{{ \$value[^}]*}}", case.value, text)
        return re.sub(r"{{ \$labels\.(\w+) }}", lambda m: case.labels[m[1]], text)

    return {
        "exp_labels": rule["labels"] | case.labels,
        "exp_annotations": {k: fill(text) for k, text in rule["annotations"].items()},
    }


def at(
    rule: dict[str, Any], minute: int, alerts: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "alertname": rule["alert"],
        "eval_time": f"{minute}m",
        "exp_alerts": alerts,
    }


def test_each_alert_has_a_case() -> None:
    assert {rule["alert"] for rule in rules()} == set(CASES)


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_alert_fires_when_it_should(rule: dict[str, Any], tmp_path: Path) -> None:
    case = CASES[rule["alert"]]
    last = case.minutes + 30

    def scene(series: Series, checks: list[dict[str, Any]]) -> dict[str, Any]:
        values = [{"series": name, "values": v} for name, v in series.items()]
        return {"interval": "1m", "input_series": values, "alert_rule_test": checks}

    alert = expected(rule, case)
    # The value of one grows: it is told at the minute when it begins to fire.
    begins = [at(rule, case.minutes - 1, []), at(rule, case.minutes, [alert])]
    never = [at(rule, minute, []) for minute in (case.minutes, last)]
    test = {
        "rule_files": [str(ALERTS)],
        "evaluation_interval": "1m",
        "tests": [scene(case.bad, begins), scene(case.good, never)],
    }
    path = tmp_path / "test.yaml"
    path.write_text(yaml.safe_dump(test), encoding="utf8")
    promtool("test", "rules", path)


def test_what_the_dashboard_asks_for_is_understood(tmp_path: Path) -> None:
    board = json.loads(DASHBOARD.read_text(encoding="utf8"))
    asked = [t["expr"] for panel in board["panels"] for t in panel["targets"]]
    assert asked
    recorded = [
        {"record": f"panel:{i}", "expr": expr.replace("$__rate_interval", "5m")}
        for i, expr in enumerate(asked)
    ]
    path = tmp_path / "rules.yaml"
    groups = {"groups": [{"name": "dashboard", "rules": recorded}]}
    path.write_text(yaml.safe_dump(groups), encoding="utf8")
    promtool("check", "rules", path)
