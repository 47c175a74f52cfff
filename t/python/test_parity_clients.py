# Features on which kubectl and Go's typed clients rely must be the same in dws-sim and
# in kube-apiserver.
# SPDX-License-Identifier: LGPL-3.0-only
"""Tables, server-side apply, field validation, protobuf, questions about oneself."""

from __future__ import annotations

import json
from typing import Any

import pytest
from parity_support import (
    DWS,
    MERGE,
    VERSION,
    XFS,
    User,
    computes,
    unique,
    workflow,
)

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PROTOBUF = "application/vnd.kubernetes.protobuf"
APPLY = "application/apply-patch+yaml"
STRATEGIC = "application/strategic-merge-patch+json"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def made(admin: User) -> Any:
    obj = admin.create("computes", computes(unique("made"), "a")).expect(201)
    yield obj
    admin.delete("computes", obj["metadata"]["name"])


@pytest.fixture
def settings(admin: User) -> Any:
    """A ConfigMap: a kind of Kubernetes' own."""
    name = unique("settings")
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "finalizers": ["parity/a"]},
        "data": {"a": "1", "b": "2"},
    }
    yield admin.send("POST", CONFIGMAPS, body).expect(201)
    path = f"{CONFIGMAPS}/{name}"
    admin.send("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
    admin.send("DELETE", path)


def applying(
    admin: User, body: Any, manager: str, code: int = 200, **query: Any
) -> Any:
    path = admin.path("computes", body["metadata"]["name"])
    answer = admin.send("PATCH", path, body, APPLY, fieldManager=manager, **query)
    return answer.expect(code)


# -- tables ----------------------------------------------------------------------


def columns(table: Any) -> list[tuple[str, str, int]]:
    return [(c["name"], c["type"], c["priority"]) for c in table["columnDefinitions"]]


def test_a_table_of_workflows(admin: User) -> None:
    name = unique("table")
    obj = workflow(name, XFS)
    admin.create("workflows", obj).expect(201)
    path = admin.path("workflows")
    table = admin.send(
        "GET", path, accept=TABLE, fieldSelector=f"metadata.name={name}"
    ).expect(200)
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert table["metadata"]["resourceVersion"].isdigit()
    assert columns(table) == [
        ("Name", "string", 0),
        ("STATE", "string", 0),
        ("READY", "boolean", 0),
        ("STATUS", "string", 0),
        ("JOBID", "string", 0),
        ("AGE", "date", 0),
        ("DESIREDSTATE", "string", 1),
        ("DESIREDSTATECHANGE", "date", 1),
        ("ELAPSEDTIMELASTSTATE", "string", 1),
        ("UID", "string", 1),
        ("GID", "string", 1),
    ]
    (row,) = table["rows"]
    assert row["cells"][0] == name
    assert row["cells"][4] == "f23"
    assert row["cells"][6] == "Proposal"
    assert row["cells"][9] == str(obj["spec"]["userID"])
    assert row["object"]["kind"] == "PartialObjectMetadata"
    assert row["object"]["metadata"]["name"] == name
    assert "spec" not in row["object"]
    one = admin.send(
        "GET", admin.path("workflows", name), accept=TABLE, includeObject="Object"
    ).expect(200)
    assert one["rows"][0]["object"]["spec"]["wlmID"] == "flux"
    admin.delete("workflows", name)


def test_columns_of_other_kinds(admin: User) -> None:
    for plural, names in {
        "storages": ["Name", "State", "Status", "Mode", "Age"],
        "servers": ["Name", "READY", "ERROR", "AGE"],
        "clientmounts": ["Name", "DESIREDSTATE", "READY", "ERROR", "AGE"],
        "computes": ["Name", "Age"],
    }.items():
        table = admin.send("GET", admin.path(plural, ns=None), accept=TABLE).expect(200)
        assert [c[0] for c in columns(table)] == names


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("namespaces", ["Name", "Status", "Age"]),
        ("namespaces/default/secrets", ["Name", "Type", "Data", "Age"]),
        ("namespaces/default/configmaps", ["Name", "Data", "Age"]),
        (
            "nodes",
            ["Name", "Status", "Roles", "Age", "Version", "Internal-IP"]
            + ["External-IP", "OS-Image", "Kernel-Version", "Container-Runtime"],
        ),
        (
            "pods",
            ["Name", "Ready", "Status", "Restarts", "Age", "IP", "Node"]
            + ["Nominated Node", "Readiness Gates"],
        ),
        (
            "events",
            ["Last Seen", "Type", "Reason", "Object", "Subobject", "Source"]
            + ["Message", "First Seen", "Count", "Name"],
        ),
    ],
)
def test_tables_of_kubernetes_kinds(admin: User, path: str, names: list[str]) -> None:
    table = admin.send("GET", f"/api/v1/{path}", accept=TABLE).expect(200)
    assert [c[0] for c in columns(table)] == names


def test_a_watch_of_rows(admin: User, made: Any) -> None:
    name = made["metadata"]["name"]
    response = admin.session.get(
        admin.url + admin.path("computes"),
        params={
            "watch": "true",
            "timeoutSeconds": 1,
            "fieldSelector": f"metadata.name={name}",
        },
        headers={"Accept": TABLE},
    )
    events = [json.loads(line) for line in response.text.splitlines()]
    assert [e["type"] for e in events] == ["ADDED"]
    assert events[0]["object"]["kind"] == "Table"
    assert events[0]["object"]["rows"][0]["cells"][0] == name


def test_metadata_alone(admin: User, made: Any) -> None:
    name = made["metadata"]["name"]
    path = admin.path("computes", name)
    obj = admin.send("GET", path, accept=PARTIAL).expect(200)
    assert obj["kind"] == "PartialObjectMetadata"
    assert obj["metadata"]["uid"] == made["metadata"]["uid"]
    assert "data" not in obj
    many = admin.send(
        "GET",
        admin.path("computes"),
        accept=PARTIAL.replace("Metadata", "MetadataList"),
    ).expect(200)
    assert many["kind"] == "PartialObjectMetadataList"
    assert name in [i["metadata"]["name"] for i in many["items"]]


def test_short_names(admin: User) -> None:
    found = admin.send("GET", "/api/v1").expect(200)["resources"]
    short = {r["name"]: r.get("shortNames") for r in found}
    assert short["namespaces"] == ["ns"]
    assert short["configmaps"] == ["cm"]
    assert short["pods"] == ["po"]
    assert short["nodes"] == ["no"]
    assert short["events"] == ["ev"]
    assert short["services"] == ["svc"]
    found = admin.send("GET", "/apis/apiextensions.k8s.io/v1").expect(200)
    names = {r["name"]: r.get("shortNames") for r in found["resources"]}
    assert names["customresourcedefinitions"] == ["crd", "crds"]


# -- what clients send and accept ------------------------------------------------


def test_what_nobody_can_give(admin: User) -> None:
    answer = admin.send("GET", admin.path("computes"), accept="text/plain")
    text = answer.refused(406, "NotAcceptable")
    assert text.startswith("only the following media types are accepted: ")
    # a typed client says so, and takes JSON second
    admin.send(
        "GET", admin.path("computes"), accept=f"{PROTOBUF},application/json"
    ).expect(200)


def test_bodies_of_no_known_type(admin: User) -> None:
    body = computes(unique("typed"))
    for path in (admin.path("computes"), CONFIGMAPS):
        answer = admin.send("POST", path, body, "text/plain")
        assert answer.refused(415, "UnsupportedMediaType") == (
            "the body of the request was in an unknown format - accepted media types "
            "include: application/json, application/yaml, "
            "application/vnd.kubernetes.protobuf"
        )
    answer = admin.send("PATCH", admin.path("computes", "none"), {}, STRATEGIC)
    assert answer.refused(415, "UnsupportedMediaType").endswith(
        "include: application/json-patch+json, application/merge-patch+json, "
        "application/apply-patch+yaml"
    )


def test_bodies_in_yaml(admin: User) -> None:
    name = unique("yaml")
    text = f"apiVersion: {DWS}/{VERSION}\nkind: Computes\nmetadata: {{name: {name}}}\n"
    body = f"{text}data:\n- name: a\n".encode()
    made = admin.send("POST", admin.path("computes"), body, "application/yaml")
    assert made.expect(201)["data"] == [{"name": "a"}]
    admin.delete("computes", name)


def field(number: int, value: bytes) -> bytes:
    return bytes([number << 3 | 2, len(value)]) + value


def test_protobuf_of_kubernetes_kinds(admin: User) -> None:
    name = unique("proto").encode()
    pair = field(1, b"key") + field(2, b"value")
    meta = field(1, name) + field(3, b"default") + field(8, b"") + field(11, pair)
    raw = field(1, meta) + field(2, pair)
    envelope = field(1, field(1, b"v1") + field(2, b"ConfigMap")) + field(2, raw)
    made = admin.send("POST", CONFIGMAPS, b"k8s\0" + envelope, PROTOBUF).expect(201)
    assert made["data"] == made["metadata"]["labels"] == {"key": "value"}
    assert made["metadata"]["name"] == name.decode()
    admin.send("DELETE", f"{CONFIGMAPS}/{name.decode()}").expect(200)
    for broken in (b"", b"k8s\0\xff", b"k8s\0" + envelope[:-3]):
        assert admin.send("POST", CONFIGMAPS, broken, PROTOBUF).code == 400


# -- unknown fields --------------------------------------------------------------

STRICT = {"fieldValidation": "Strict"}


def test_strict_clients(admin: User, made: Any) -> None:
    body = computes(unique("strict"), "a")
    body["data"][0]["wrong"] = body["bogus"] = 1
    answer = admin.send("POST", admin.path("computes"), body, **STRICT)
    assert answer.refused(400, "BadRequest") == (
        f'Computes in version "{VERSION}" cannot be handled as a Computes: strict '
        'decoding error: unknown field "bogus", unknown field "data[0].wrong"'
    )
    obj = {**made, "bogus": 1}
    path = admin.path("computes", made["metadata"]["name"])
    answer = admin.send("PUT", path, obj, **STRICT)
    assert 'unknown field "bogus"' in answer.refused(400, "BadRequest")
    answer = admin.send("PATCH", path, {"bogus": 1}, MERGE, **STRICT)
    text = answer.refused(422, "Invalid")
    assert text.startswith(
        ' "" is invalid: patch: Invalid value: "{\\"apiVersion\\":'
        f'\\"{DWS}/{VERSION}\\",\\"bogus\\":1,\\"data\\":[{{\\"name\\":\\"a\\"}}],'
    )
    assert text.endswith('": strict decoding error: unknown field "bogus"')
    answer = admin.send("PATCH", path, {"bogus": 1}, MERGE, fieldValidation="No")
    assert "fieldValidation: Unsupported value" in answer.refused(422, "Invalid")


def test_other_clients_are_warned(admin: User, made: Any) -> None:
    path = admin.path("computes", made["metadata"]["name"])
    body = {"bogus": 1}
    answer = admin.send("PATCH", path, body, MERGE)
    answer.expect(200)
    assert answer.warnings == '299 - "unknown field \\"bogus\\""'
    answer = admin.send("PATCH", path, body, MERGE, fieldValidation="Ignore")
    answer.expect(200)
    assert answer.warnings == ""


def test_kubectl_finds_out_that_the_server_checks(admin: User) -> None:
    place = f"apis/{DWS}/{VERSION}"
    document = admin.send("GET", f"/openapi/v3/{place}").expect(200)
    item = document["paths"][f"/{place}/namespaces/{{namespace}}/workflows/{{name}}"]
    names = [p["name"] for p in item["patch"]["parameters"]]
    assert "fieldValidation" in names
    assert APPLY in item["patch"]["requestBody"]["content"]


# -- server-side apply -----------------------------------------------------------


def managers(obj: Any) -> dict[str, Any]:
    found = obj["metadata"]["managedFields"]
    return {e["manager"]: e["fieldsV1"] for e in found if e["operation"] == "Apply"}


def test_apply(admin: User) -> None:
    name = unique("applied")
    labels = {"a": "1", "b": "2"}
    made = applying(admin, computes(name, "x", labels=labels), "one", 201)
    assert managers(made) == {
        "one": {"f:data": {}, "f:metadata": {"f:labels": {"f:a": {}, "f:b": {}}}}
    }
    again = applying(admin, computes(name, "x", labels=labels), "one")
    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    # a field that is no longer applied is removed
    fewer = applying(admin, computes(name, "x", labels={"a": "1"}), "one")
    assert fewer["metadata"]["labels"] == {"a": "1"}
    # another one may have what it wants, unless it is another's
    body = computes(name, labels={"c": "3"})
    del body["data"]
    both = applying(admin, body, "two")
    assert both["metadata"]["labels"] == {"a": "1", "c": "3"}
    assert both["data"] == [{"name": "x"}]
    body = computes(name, "y", labels={"c": "3"})
    path = admin.path("computes", name)
    answer = admin.send("PATCH", path, body, APPLY, fieldManager="two")
    assert answer.refused(409, "Conflict") == (
        'Apply failed with 1 conflict: conflict with "one": .data'
    )
    assert answer.object["details"]["causes"] == [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "one"',
            "field": ".data",
        }
    ]
    forced = applying(admin, body, "two", force="true")
    assert forced["data"] == [{"name": "y"}]
    assert managers(forced)["one"] == {"f:metadata": {"f:labels": {"f:a": {}}}}
    # a write that is no apply takes the field over
    admin.merge("computes", name, {"data": [{"name": "z"}]}).expect(200)
    left = admin.get("computes", name).expect(200)
    assert "f:data" not in managers(left)["two"]
    admin.delete("computes", name)


def test_apply_needs_a_manager(admin: User) -> None:
    path = admin.path("computes", unique("nobody"))
    answer = admin.send("PATCH", path, computes("x"), APPLY)
    assert answer.refused(422, "Invalid") == (
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is '
        "required for apply patch"
    )


def test_apply_of_fields_that_are_not_declared(admin: User) -> None:
    name = unique("undeclared")
    body = {**computes(name, "a"), "bogus": 1}
    path = admin.path("computes", name)
    answer = admin.send("PATCH", path, body, APPLY, fieldManager="one")
    assert answer.refused(500, None) == (
        f"failed to create typed patch object (default/{name}; {DWS}/{VERSION}, "
        "Kind=Computes): .bogus: field not declared in schema"
    )


# -- strategic merge patches -----------------------------------------------------


def test_strategic_merge(admin: User, settings: Any) -> None:
    path = f"{CONFIGMAPS}/{settings['metadata']['name']}"
    patch: Any = {"metadata": {"finalizers": ["parity/b"]}, "data": {"a": None}}
    obj = admin.send("PATCH", path, patch, STRATEGIC).expect(200)
    assert sorted(obj["metadata"]["finalizers"]) == ["parity/a", "parity/b"]
    assert obj["data"] == {"b": "2"}
    patch = {
        "metadata": {"$deleteFromPrimitiveList/finalizers": ["parity/a"]},
        "data": {"$patch": "replace", "c": "3"},
    }
    obj = admin.send("PATCH", path, patch, STRATEGIC).expect(200)
    assert obj["metadata"]["finalizers"] == ["parity/b"]
    assert obj["data"] == {"c": "3"}


def test_strategic_merge_of_lists_with_keys(admin: User) -> None:
    name = unique("node")
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    admin.send("POST", "/api/v1/nodes", body).expect(201)
    path = f"/api/v1/nodes/{name}"

    def conditions(*patch: Any) -> Any:
        status = {"status": {"conditions": list(patch)}}
        obj = admin.send("PATCH", f"{path}/status", status, STRATEGIC).expect(200)
        found = obj["status"].get("conditions", [])
        return {c["type"]: (c["status"], c.get("reason")) for c in found}

    a = {"type": "A", "status": "True", "reason": "First"}
    b = {"type": "B", "status": "True"}
    assert conditions(a) == {"A": ("True", "First")}
    assert conditions(b) == {"A": ("True", "First"), "B": ("True", None)}
    changed = conditions({"type": "A", "status": "False"})
    assert changed == {"A": ("False", "First"), "B": ("True", None)}
    assert conditions({"type": "A", "$patch": "delete"}) == {"B": ("True", None)}
    assert conditions({"$patch": "replace"}, a) == {"A": ("True", "First")}
    # a list whose entries have no key is one value
    taint = {"key": "a", "effect": "NoSchedule"}
    for other in ("b", "c"):
        spec = {"spec": {"taints": [{**taint, "key": other}]}}
        obj = admin.send("PATCH", path, spec, STRATEGIC).expect(200)
        assert [t["key"] for t in obj["spec"]["taints"]] == [other]
    admin.send("DELETE", path).expect(200)


# -- questions about oneself -----------------------------------------------------


def ask(user: User, group: str, kind: str, **body: Any) -> Any:
    path = f"/apis/{group}/v1/{kind.lower()}s"
    head = {"apiVersion": f"{group}/v1", "kind": kind}
    return user.send("POST", path, {**head, **body}).expect(201)["status"]


def test_who_one_is(admin: User, wlm: User) -> None:
    info = ask(admin, "authentication.k8s.io", "SelfSubjectReview")["userInfo"]
    assert info["groups"] == ["system:masters", "system:authenticated"]
    info = ask(wlm, "authentication.k8s.io", "SelfSubjectReview")["userInfo"]
    assert info["username"] == "system:serviceaccount:default:flux-wlm"
    assert "system:authenticated" in info["groups"]


def test_what_one_may_do(wlm: User) -> None:
    status = ask(
        wlm,
        "authorization.k8s.io",
        "SelfSubjectRulesReview",
        spec={"namespace": "default"},
    )
    found = [r for r in status["resourceRules"] if "workflows" in r["resources"]]
    assert sorted(found[0]["verbs"]) == sorted(
        ["create", "delete", "get", "list", "patch", "update", "watch"]
    )
    urls = {u for r in status["nonResourceRules"] for u in r["nonResourceURLs"]}
    assert {"/apis", "/healthz", "/openapi/*"} <= urls


# -- versions that are still to come ---------------------------------------------


def test_lists_do_not_wait_long_for_the_future(admin: User) -> None:
    now = int(admin.list("computes").expect(200)["metadata"]["resourceVersion"])
    answer = admin.list("computes", resourceVersion=str(now + 1000000))
    text = answer.refused(504, "Timeout")
    assert text.startswith(f"Timeout: Too large resource version: {now + 1000000}")
    assert answer.object["details"]["causes"] == [
        {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    ]


# -- kinds of Kubernetes' own ----------------------------------------------------


def test_namespaces_are_active(admin: User) -> None:
    name = unique("space")
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    made = admin.send("POST", "/api/v1/namespaces", body).expect(201)
    assert made["status"] == {"phase": "Active"}
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": name}
    admin.send("DELETE", f"/api/v1/namespaces/{name}")


def test_secrets_in_plain_text(admin: User) -> None:
    name = unique("secret")
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "stringData": {"a": "b"},
    }
    path = "/api/v1/namespaces/default/secrets"
    made = admin.send("POST", path, body).expect(201)
    assert made["data"] == {"a": "Yg=="}
    assert "stringData" not in made
    assert made["type"] == "Opaque"
    admin.send("DELETE", f"{path}/{name}").expect(200)


def test_events(admin: User) -> None:
    name = unique("event")
    body = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {"kind": "Workflow", "name": name, "namespace": "default"},
        "reason": "Seen",
        "message": "it was",
        "type": "Normal",
    }
    path = "/api/v1/namespaces/default/events"
    admin.send("POST", path, body).expect(201)
    about = f"involvedObject.name={name},involvedObject.kind=Workflow"
    found = admin.send("GET", path, fieldSelector=about).expect(200)
    assert [e["metadata"]["name"] for e in found["items"]] == [name]
    other = "involvedObject.kind=Pod"
    found = admin.send("GET", path, fieldSelector=other).expect(200)
    assert name not in [e["metadata"]["name"] for e in found["items"]]
    admin.send("DELETE", f"{path}/{name}").expect(200)


def test_what_deleting_answers(admin: User, made: Any) -> None:
    path = admin.path("computes", made["metadata"]["name"])
    assert admin.send("DELETE", path).expect(200)["kind"] == "Status"
    name = unique("pod")
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    admin.send("POST", "/api/v1/namespaces/default/pods", body).expect(201)
    path = f"/api/v1/namespaces/default/pods/{name}"
    answer = admin.send("DELETE", path, gracePeriodSeconds=0)
    assert answer.expect(200)["kind"] == "Pod"
