# The published description of dws-sim's API: complete, and no request that can
# be made from it breaks the server or keeps it from answering.
# SPDX-License-Identifier: LGPL-3.0-only
"""OpenAPI documents and CustomResourceDefinitions."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
import requests
from hypothesis import HealthCheck, given, settings
from kubernetes import client
from sim_support import DWS, NNF, Sim, error_of

schemathesis = pytest.importorskip("schemathesis")

# Number of variations of each request. DWS_SIM_FUZZ=N sets another, and tests
# all groups.
EXAMPLES = int(os.environ.get("DWS_SIM_FUZZ", "2"))
PLACES = [f"apis/{DWS}/v1alpha7"]
if EXAMPLES > 2:
    PLACES += [
        f"apis/{NNF}/v1alpha10",
        f"apis/{DWS}/v1alpha6",
        "api/v1",
        "apis/batch/v1",
    ]
LIMIT_S = 30
GROUPS = {DWS: ("v1alpha7", "v1alpha6"), NNF: ("v1alpha11", "v1alpha10")}


class Client:
    """Plain HTTP as admin."""

    def __init__(self, sim: Sim) -> None:
        config = json.loads(sim.kubeconfig.read_text())
        self.server = config["clusters"][0]["cluster"]["server"]
        self.session = requests.Session()
        # or a CA bundle in the environment would take the place of ours
        self.session.trust_env = False
        self.session.verify = str(sim.ca)
        token = config["users"][1]["user"]["token"]
        self.session.headers["Authorization"] = f"Bearer {token}"

    def get(self, path: str, **query: Any) -> requests.Response:
        return self.session.get(self.server + path, params=query, timeout=LIMIT_S)


@pytest.fixture(scope="module")
def http(sim: Sim) -> Client:
    return Client(sim)


def test_documents_describe_what_discovery_lists(http: Client) -> None:
    index = http.get("/openapi/v3").json()["paths"]
    described: set[str] = set()
    for entry in index.values():
        document = http.get(entry["serverRelativeURL"]).json()
        described.update(document["paths"])
    assert described == set(http.get("/openapi/v2").json()["paths"])
    for group, versions in GROUPS.items():
        for version in versions:
            listed = http.get(f"/apis/{group}/{version}").json()["resources"]
            for res in listed:
                plural, _, sub = res["name"].partition("/")
                path = f"/apis/{group}/{version}/namespaces/{{namespace}}/{plural}"
                assert (path + "/{name}/" + sub if sub else path) in described


def test_definitions(sim: Sim) -> None:
    api = client.ApiextensionsV1Api(sim.client())
    crds = {c.metadata.name: c for c in api.list_custom_resource_definition().items}
    workflows = crds[f"workflows.{DWS}"].spec
    assert [(v.name, v.served, v.storage) for v in workflows.versions] == [
        ("v1alpha4", False, False),
        ("v1alpha5", False, False),
        ("v1alpha6", True, False),
        ("v1alpha7", True, True),
    ]
    assert workflows.conversion.strategy == "Webhook"
    assert workflows.versions[3].subresources is None
    schema = workflows.versions[3].schema.open_apiv3_schema.properties["spec"]
    assert "forceReady" in schema.required
    assert crds[f"servers.{DWS}"].spec.versions[3].subresources.status == {}
    only = crds[f"nnfcontainerdata.{NNF}"].spec
    assert [v.name for v in only.versions] == ["v1alpha11"]
    with pytest.raises(client.ApiException) as info:
        api.delete_custom_resource_definition(f"workflows.{DWS}")
    assert error_of(info.value)["code"] == 405
    with pytest.raises(client.ApiException) as info:
        client.ApiextensionsV1Api(sim.client("wlm")).list_custom_resource_definition()
    assert error_of(info.value)["code"] == 403


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"resourceVersion": "x"}, 500),
        ({"resourceVersion": "²"}, 500),
        ({"resourceVersion": "1"}, 410),
        ({"resourceVersion": "9" * 30}, 500),
        ({"timeoutSeconds": "1.5"}, 400),
        ({"timeoutSeconds": "²"}, 400),
        ({"labelSelector": "a in"}, 400),
        ({"fieldSelector": "spec.x=1"}, 400),
    ],
)
def test_watch_that_cannot_be(http: Client, query: dict[str, str], code: int) -> None:
    path = f"/apis/{DWS}/v1alpha7/workflows"
    answer = http.get(path, watch="true", **query)
    assert (answer.status_code, answer.json()["code"]) == (code, code)


@pytest.mark.parametrize("name", ["a%0Ab", "a%2Fb", "%00", "%FF", "%E2%82%AC"])
def test_names_that_cannot_be(http: Client, name: str) -> None:
    answer = http.get(f"/apis/{DWS}/v1alpha7/namespaces/default/computes/{name}")
    assert answer.status_code == answer.json()["code"] == 404


def check(http: Client, case: Any) -> None:
    """The answer to a request that may be nonsense."""
    # a watch ends when the client wants; see above
    case.query.pop("watch", None)
    answer = case.call(
        base_url=http.server,
        session=http.session,
        timeout=LIMIT_S,
        verify=http.session.verify,
    )
    if answer.status_code == 500:
        # the real webhook crashes too when a directive has no command, and what is
        # applied has a 500 of its own for a field that is not declared
        known = (b"failed calling webhook", b"failed to create typed patch object")
        assert any(text in answer.content for text in known), answer.content
    assert answer.status_code not in (501, 502, 503)
    if answer.status_code >= 400 and case.method != "HEAD":
        assert json.loads(answer.content)["kind"] == "Status"


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode))
def test_any_request(http: Client, place: str, mode: Any) -> None:
    document = http.get(f"/openapi/v3/{place}").json()
    schema = schemathesis.openapi.from_dict(document)
    count = 0
    for found in schema.get_all_operations():
        operation = found.ok()

        @settings(
            max_examples=EXAMPLES,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def run(case: Any) -> None:
            check(http, case)

        run()
        count += 1
    assert count > 5
