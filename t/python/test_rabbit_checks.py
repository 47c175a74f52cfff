# Verdicts of flux rabbit selftest on configurations.
# SPDX-License-Identifier: LGPL-3.0-only
from typing import Any

import pytest
from flux_k8s.crd import Resource
from flux_k8s.release import RELEASE
from flux_rabbit import checks

LIMIT = {"policy": {"limits": {"duration": "1h"}}}
DEFAULT = {"policy": {"jobspec": {"defaults": {"system": {"duration": "1h"}}}}}


def fluxion(more: dict[str, Any] | None = None, **keys: str) -> str | checks.Advice:
    """The verdict about Fluxion with these keys in its table."""
    table = {name.replace("_", "-"): value for name, value in keys.items()}
    config: dict[str, Any] = {"resource": {"path": "/R.json"}}
    config.update(LIMIT if more is None else more)
    if table:
        config["sched-fluxion-resource"] = table
    return checks._fluxion(checks.Site(handle=None, config=config))


@pytest.mark.parametrize("format", ["rv1", "rv1_shorthand"])
def test_formats_that_say_which_rabbits(format):
    assert fluxion(match_format=format) == "Fluxion"


@pytest.mark.parametrize(
    "keys,text",
    [
        ({}, "match-format is not set"),
        ({"queue_policy": "fcfs"}, "match-format is not set"),
        ({"match_format": "rv1_nosched"}, 'match-format is "rv1_nosched"'),
    ],
)
def test_formats_that_do_not(keys, text):
    with pytest.raises(checks.Wrong, match=text) as info:
        fluxion(**keys)
    assert info.value.hint == "with rabbits it has to be rv1 or rv1_shorthand"


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"sched-fluxion-qmanager": {"queue-policy": "easy"}},
        {
            "sched-fluxion-qmanager": {
                "queue-policy": "conservative",
                "queue-policy-per-queue": "batch:conservative debug:fcfs",
            }
        },
        {"policy": {"limits": {"job-size": {"max": {"nnodes": 4}}}}},
        {"queues": {"debug": LIMIT, "batch": {}}},
        {"queues": {"debug": {}, "quick": {"parent": "debug"}}},
    ],
)
def test_policies_that_refuse_jobs_while_nodes_are_busy(config):
    found = fluxion(config, match_format="rv1")
    assert isinstance(found, checks.Advice)
    assert "may refuse jobs that use persistent storage" in found.text
    assert "queue-policy" in found.hint and "policy.limits.duration" in found.hint


@pytest.mark.parametrize(
    "config",
    [
        {"sched-fluxion-qmanager": {"queue-policy": "conservative"}},
        LIMIT,
        DEFAULT,
        {"queues": {"debug": LIMIT, "batch": DEFAULT}},
        {"queues": {"debug": LIMIT, "quick": {"parent": "debug"}}},
    ],
)
def test_policies_and_limits_that_do_not(config):
    assert fluxion(config, match_format="rv1") == "Fluxion"


def releases(attached: bool = True, **parts: str | None) -> str | checks.Advice:
    """The verdict about parts of these releases."""
    status: dict[str, Any] = {"agent": {"attached": attached}}
    if parts:
        status["releases"] = parts
    return checks._releases(checks.Site(handle=None, status=status))


def test_parts_of_one_release():
    same = RELEASE
    assert isinstance(releases(module=same, plugin=same, agent=same), str)
    assert isinstance(releases(False, module=same, plugin=same, agent=None), str)


@pytest.mark.parametrize("part", ["module", "plugin", "agent"])
@pytest.mark.parametrize("release", ["0.0.1", None])
def test_a_part_of_another_release_is_named(part, release):
    parts = dict.fromkeys(("module", "plugin", "agent"), RELEASE)
    found = releases(**{**parts, part: release})
    assert isinstance(found, checks.Advice)
    assert f"{part}: {release or 'an older one'}" in found.text


def test_a_module_that_does_not_tell():
    found = releases()
    assert isinstance(found, checks.Advice)
    assert "module: an older one" in found.text


class Rights:
    """An API server that allows all but these."""

    def __init__(self, *refused: str) -> None:
        self._refused = refused

    def may(self, res: Resource, verb: str, namespace: str, sub: str) -> bool:
        return f"{verb} {res.plural}" not in self._refused


def permissions(table: dict[str, Any], *refused: str) -> str | checks.Advice:
    site = checks.Site(handle=None, config={"rabbit": table}, kube=Rights(*refused))
    return checks._permissions(site)


RETRY = {"stage_out_retry": "1h"}
DELETE = "delete nnfdatamovements"


def test_the_right_to_retry_is_asked_for_only_where_it_is_needed():
    least = permissions({}, DELETE)
    assert permissions({"stage_out_retry": 0}, DELETE) == least
    with pytest.raises(checks.Wrong, match=f"may not: {DELETE}$") as info:
        permissions(RETRY, DELETE)
    assert "rabbit.stage_out_retry" in info.value.hint
    assert "--verb=delete --resource=nnfdatamovements" in info.value.hint
    assert "nnf-workload-manager" not in info.value.hint
    count = int(str(least).split()[0])
    assert permissions(RETRY) == f"{count + 1} rights"


def test_rights_of_the_role_and_the_right_to_retry():
    with pytest.raises(checks.Wrong) as info:
        permissions(RETRY, DELETE, "patch workflows")
    assert str(info.value) == f"may not: patch workflows, {DELETE}"
    assert "nnf-workload-manager; flux rabbit retry" in info.value.hint
    with pytest.raises(checks.Wrong) as info:
        permissions(RETRY, "patch workflows")
    assert "flux-retry" not in info.value.hint


def test_an_error_of_a_check_hides_no_other(monkeypatch):
    def broken(site):
        return {}["x"]

    listed = [("one", broken), ("two", lambda site: "fine")]
    monkeypatch.setattr(checks, "CHECKS", listed)
    one, two = checks.run(checks.Site(handle=None))
    assert (one.good, two.good) == (False, True)
    assert "KeyError('x')" in one.text and one.hint
