# The generic part of the API must be the same in dws-sim and in kube-apiserver.
# SPDX-License-Identifier: LGPL-3.0-only
"""Requests, refusals, lists and watches."""

from __future__ import annotations

import json
from typing import Any

import pytest
from flux_k8s.fields import project
from parity_support import (
    COMMAND,
    DWS,
    MERGE,
    OLDER,
    VERSION,
    User,
    computes,
    in_state,
    remove,
    unique,
    workflow,
)

JSON_PATCH = "application/json-patch+json"
COMPUTES = f"computes.{DWS}"
LABEL = "parity/run"


@pytest.fixture
def made(admin: User) -> Any:
    """A Computes with two nodes."""
    obj = admin.create("computes", computes(unique("made"), "a", "b")).expect(201)
    yield obj
    name = obj["metadata"]["name"]
    admin.merge("computes", name, {"metadata": {"finalizers": None}})
    admin.delete("computes", name)


def details(answer: Any) -> tuple[str, str, str]:
    found = answer.object["details"]
    return found.get("group"), found.get("kind"), found.get("name")


# -- one object ----------------------------------------------------------------


def test_what_is_missing_is_404(admin: User) -> None:
    name = unique("missing")
    text = f'{COMPUTES} "{name}" not found'
    for answer in (
        admin.get("computes", name),
        admin.delete("computes", name),
        admin.merge("computes", name, {"data": []}),
    ):
        assert answer.refused(404, "NotFound") == text
        assert details(answer) == (DWS, "computes", name)


def test_a_name_is_taken_once(admin: User, made: Any) -> None:
    name = made["metadata"]["name"]
    answer = admin.create("computes", computes(name))
    assert answer.refused(409, "AlreadyExists") == f'{COMPUTES} "{name}" already exists'
    assert details(answer) == (DWS, "computes", name)


def test_a_new_object_has_no_version(admin: User) -> None:
    body = computes(unique("versioned"), resourceVersion="5")
    message = admin.create("computes", body).refused(500, None)
    assert message == "resourceVersion should not be set on objects to be created"


def test_what_the_server_adds(made: Any) -> None:
    meta = made["metadata"]
    assert meta["generation"] == 1
    assert len(meta["uid"]) == 36
    assert meta["resourceVersion"].isdigit()
    assert meta["creationTimestamp"].endswith("Z")


def test_unknown_fields_are_dropped(admin: User) -> None:
    body = computes(unique("pruned"), "a")
    body["unknown"] = body["data"][0]["unknown"] = 1
    made = admin.create("computes", body).expect(201)
    assert "unknown" not in made
    assert made["data"] == [{"name": "a"}]
    admin.delete("computes", body["metadata"]["name"])


def test_a_namespace_must_be_there(admin: User) -> None:
    body = computes(unique("nowhere"), namespace="no-such")
    answer = admin.create("computes", body, "no-such")
    assert answer.refused(404, "NotFound") == 'namespaces "no-such" not found'
    body = computes(unique("elsewhere"), namespace="dws-system")
    message = admin.create("computes", body).refused(400, "BadRequest")
    assert message == (
        "the namespace of the provided object does not match the namespace sent on "
        "the request"
    )


@pytest.mark.parametrize("name", ["UPPER", "under_score", "-dash", "a" * 254])
def test_names_are_checked(admin: User, name: str) -> None:
    answer = admin.create("computes", computes(name))
    message = answer.refused(422, "Invalid")
    assert message.startswith(
        f'Computes.{DWS} "{name}" is invalid: metadata.name: Invalid value: "{name}"'
    )


def test_labels_are_checked(admin: User) -> None:
    body = computes(unique("label"), labels={"key": "x" * 64})
    message = admin.create("computes", body).refused(422, "Invalid")
    assert "metadata.labels: Invalid value: " in message
    assert "must be no more than 63 " in message


# -- updates -------------------------------------------------------------------


def test_put_needs_the_version(admin: User, made: Any) -> None:
    name = made["metadata"]["name"]
    obj = json.loads(json.dumps(made))
    del obj["metadata"]["resourceVersion"]
    answer = admin.put("computes", obj)
    assert answer.refused(422, "Invalid") == (
        f'{COMPUTES} "{name}" is invalid: metadata.resourceVersion: Invalid value: '
        "0: must be specified for an update"
    )


def test_put_of_a_stale_version_conflicts(admin: User, made: Any) -> None:
    name = made["metadata"]["name"]
    admin.merge("computes", name, {"data": []}).expect(200)
    answer = admin.put("computes", made)
    assert answer.refused(409, "Conflict") == (
        f'Operation cannot be fulfilled on {COMPUTES} "{name}": the object has been '
        "modified; please apply your changes to the latest version and try again"
    )
    assert details(answer) == (DWS, "computes", name)


def test_merge_conflicts_only_with_a_version(admin: User, made: Any) -> None:
    name, version = made["metadata"]["name"], made["metadata"]["resourceVersion"]
    admin.merge("computes", name, {"data": [{"name": "c"}]}).expect(200)
    body = {"metadata": {"resourceVersion": version}, "data": []}
    admin.merge("computes", name, body).refused(409, "Conflict")
    admin.merge("computes", name, {"data": []}).expect(200)


def test_merge_replaces_arrays_and_null_deletes(admin: User, made: Any) -> None:
    name = made["metadata"]["name"]
    body = {"metadata": {"labels": {"a": "1", "b": "2"}}, "data": [{"name": "z"}]}
    obj = admin.merge("computes", name, body).expect(200)
    assert obj["data"] == [{"name": "z"}]
    obj = admin.merge("computes", name, {"metadata": {"labels": {"a": None}}})
    assert obj.expect(200)["metadata"]["labels"] == {"b": "2"}


def test_what_changes_nothing_is_no_event(admin: User, made: Any) -> None:
    name = made["metadata"]["name"]
    same = admin.merge("computes", name, {"data": made["data"]}).expect(200)
    assert same["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    same = admin.put("computes", made).expect(200)
    assert same["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_patch_types(admin: User, made: Any) -> None:
    path = admin.path("computes", made["metadata"]["name"])
    operations = [{"op": "add", "path": "/data/-", "value": {"name": "c"}}]
    obj = admin.send("PATCH", path, operations, JSON_PATCH).expect(200)
    assert [d["name"] for d in obj["data"]] == ["a", "b", "c"]
    assert admin.send("PATCH", path, operations, MERGE).code in (400, 422)
    strategic = "application/strategic-merge-patch+json"
    admin.send("PATCH", path, {}, strategic).refused(415, "UnsupportedMediaType")
    failing = [{"op": "test", "path": "/kind", "value": "Servers"}]
    admin.send("PATCH", path, failing, JSON_PATCH).refused(422, "Invalid")


def test_generation(admin: User, made: Any) -> None:
    name = made["metadata"]["name"]
    obj = admin.merge("computes", name, {"metadata": {"labels": {"a": "1"}}})
    assert obj.expect(200)["metadata"]["generation"] == 1
    obj = admin.merge("computes", name, {"data": []}).expect(200)
    assert obj["metadata"]["generation"] == 2


def test_what_fields_are_managed(admin: User) -> None:
    """Lists treated as sets are keyed by value in managedFields, which every object
    that the server sends contains."""
    run = unique("run")
    owner = admin.create("computes", computes(unique("owner"))).expect(201)["metadata"]
    more = {
        "labels": {LABEL: run},
        "finalizers": ["parity/finalizer"],
        "ownerReferences": [
            {
                "apiVersion": f"{DWS}/{VERSION}",
                "kind": "Computes",
                "name": owner["name"],
                "uid": owner["uid"],
            }
        ],
    }
    obj = admin.create("computes", computes(unique("managed"), "a", **more)).expect(201)
    name = obj["metadata"]["name"]
    try:
        (entry,) = obj["metadata"]["managedFields"]
        assert entry["fieldsType"] == "FieldsV1" and entry["operation"] == "Update"
        fields = entry["fieldsV1"]
        assert fields["f:data"] == {}
        assert fields["f:metadata"] == {
            "f:labels": {".": {}, f"f:{LABEL}": {}},
            "f:finalizers": {".": {}, 'v:"parity/finalizer"': {}},
            "f:ownerReferences": {".": {}, f'k:{{"uid":"{owner["uid"]}"}}': {}},
        }
        here = {"labelSelector": f"{LABEL}={run}"}
        events = admin.watch("computes", resourceVersion="0", **here)
        past = next(events)["object"]
        (item,) = admin.list("computes", **here).expect(200)["items"]
        for seen in (admin.get("computes", name).expect(200), item, past):
            assert seen["metadata"] == obj["metadata"]
            # and the agent can read it
            assert project("computes", seen)["metadata"]["name"] == name
        new = admin.merge("computes", name, {"data": []}).expect(200)["metadata"]
        assert next(events)["object"]["metadata"] == new
        assert new["managedFields"]
    finally:
        admin.merge("computes", name, {"metadata": {"finalizers": None}})
        admin.delete("computes", name)
        admin.delete("computes", owner["name"])


def test_status_is_apart_where_there_is_a_subresource(admin: User) -> None:
    name = unique("servers")
    body = {
        "kind": "Servers",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {},
        "status": {"ready": True},
    }
    made = admin.create("servers", body).expect(201)
    assert "status" not in made
    sets = [{"label": "xfs", "allocationSize": 1, "storage": []}]
    both = {"spec": {"allocationSets": sets}, "status": {"ready": True}}
    obj = admin.merge("servers", name, both).expect(200)
    assert obj["spec"]["allocationSets"] == sets
    # what a controller wrote in the meantime may be there
    assert not obj.get("status", {}).get("ready")
    assert obj["metadata"]["generation"] == 2
    both["spec"] = {"allocationSets": []}
    obj = admin.merge("servers", name, both, "/status").expect(200)
    assert obj["spec"]["allocationSets"] == sets
    assert obj["status"]["ready"] is True
    assert obj["metadata"]["generation"] == 2
    admin.delete("servers", name)


def test_workflows_have_no_status_subresource(wlm: User, admin: User) -> None:
    name = unique("plain")
    wlm.create("workflows", workflow(name, COMMAND)).expect(201)
    obj = wlm.until("workflows", name, in_state("Proposal"))
    admin.send("GET", admin.path("workflows", name) + "/status").refused(
        404, "NotFound"
    )
    before = obj["metadata"]["generation"]
    env = {"status": {"env": {"MARK": "1"}}}
    obj = wlm.merge("workflows", name, env).expect(200)
    assert obj["status"]["env"]["MARK"] == "1"
    assert obj["metadata"]["generation"] > before
    remove(admin, name)


# -- deletion ------------------------------------------------------------------


def test_delete_answers_with_a_status(admin: User, made: Any) -> None:
    name = made["metadata"]["name"]
    answer = admin.delete("computes", name).expect(200)
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    assert answer["details"] == {
        "name": name,
        "group": DWS,
        "kind": "computes",
        "uid": made["metadata"]["uid"],
    }


def test_finalizers_hold_an_object(admin: User) -> None:
    name, own = unique("held"), "example.com/own"
    made = admin.create("computes", computes(name, finalizers=[own])).expect(201)
    obj = admin.delete("computes", name).expect(200)
    assert obj["kind"] == "Computes"
    assert obj["metadata"]["deletionTimestamp"]
    # asking again changes nothing
    again = admin.delete("computes", name).expect(200)
    assert again["metadata"]["resourceVersion"] == obj["metadata"]["resourceVersion"]
    added = {"metadata": {"finalizers": [own, "example.com/new"]}}
    answer = admin.merge("computes", name, added)
    assert answer.refused(422, "Invalid") == (
        f'Computes.{DWS} "{name}" is invalid: metadata.finalizers: Forbidden: no new '
        "finalizers can be added if the object is being deleted, found new "
        'finalizers []string{"example.com/new"}'
    )
    last = admin.merge("computes", name, {"metadata": {"finalizers": []}}).expect(200)
    assert last["metadata"]["deletionTimestamp"]
    admin.get("computes", name).refused(404, "NotFound")
    events = list(
        admin.watch(
            "computes",
            resourceVersion=made["metadata"]["resourceVersion"],
            fieldSelector=f"metadata.name={name}",
        )
    )
    assert [e["type"] for e in events] == ["MODIFIED", "DELETED"]


def test_what_is_owned_goes_too(admin: User, made: Any) -> None:
    meta = made["metadata"]
    owner = {
        "apiVersion": made["apiVersion"],
        "kind": made["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
    }
    name = unique("owned")
    admin.create("computes", computes(name, ownerReferences=[owner])).expect(201)
    admin.delete("computes", meta["name"]).expect(200)
    admin.gone("computes", name)


def test_preconditions(admin: User, made: Any) -> None:
    wrong = {"preconditions": {"uid": "00000000-0000-0000-0000-000000000000"}}
    answer = admin.delete("computes", made["metadata"]["name"], wrong)
    answer.refused(409, "Conflict")


# -- lists ---------------------------------------------------------------------


@pytest.fixture
def three(admin: User) -> Any:
    """Three objects with a label of their own, made in no order."""
    run = unique("run")
    names = [f"{run}-{letter}" for letter in "cab"]
    objects = [
        admin.create("computes", computes(name, labels={LABEL: run})).expect(201)
        for name in names
    ]
    yield run, objects
    for name in names:
        admin.delete("computes", name)


def test_lists_in_pages(admin: User, three: Any) -> None:
    run, _ = three
    selector = {"labelSelector": f"{LABEL}={run}"}
    page = admin.list("computes", None, limit=2, **selector).expect(200)
    assert page["kind"] == "ComputesList"
    names = [o["metadata"]["name"] for o in page["items"]]
    assert names == [f"{run}-a", f"{run}-b"]
    token = page["metadata"]["continue"]
    page = admin.list("computes", None, limit=2, **{"continue": token}, **selector)
    rest = page.expect(200)
    assert [o["metadata"]["name"] for o in rest["items"]] == [f"{run}-c"]
    assert not rest["metadata"].get("continue")
    admin.list("computes", None, limit=2, **{"continue": "nonsense"}).refused(
        400, "BadRequest"
    )


@pytest.mark.parametrize(
    ("selector", "count"),
    [
        (f"{LABEL}=RUN", 3),
        (f"{LABEL}==RUN", 3),
        (f"{LABEL} in (RUN,other)", 3),
        (f"{LABEL}=RUN,absent", 0),
        (f"{LABEL}=RUN,!absent", 3),
        (f"{LABEL}=RUN,{LABEL}!=RUN", 0),
        (f"{LABEL}=RUN,absent notin (x)", 3),
    ],
)
def test_label_selectors(admin: User, three: Any, selector: str, count: int) -> None:
    found = admin.list("computes", labelSelector=selector.replace("RUN", three[0]))
    assert len(found.expect(200)["items"]) == count


def test_a_bad_selector_is_refused(admin: User) -> None:
    admin.list("computes", labelSelector="a in (").refused(400, "BadRequest")


# -- watches -------------------------------------------------------------------


@pytest.mark.parametrize("version", [{}, {"resourceVersion": "0"}])
def test_a_watch_replays_in_name_order(
    admin: User, three: Any, version: dict[str, str]
) -> None:
    run, _ = three
    events = list(admin.watch("computes", labelSelector=f"{LABEL}={run}", **version))
    assert [e["type"] for e in events] == ["ADDED"] * 3
    names = [e["object"]["metadata"]["name"] for e in events]
    assert names == [f"{run}-{letter}" for letter in "abc"]


def test_a_watch_from_a_version_has_what_came_after(admin: User, three: Any) -> None:
    run, objects = three
    since = objects[0]["metadata"]["resourceVersion"]
    events = list(
        admin.watch("computes", resourceVersion=since, labelSelector=f"{LABEL}={run}")
    )
    seen = [(e["type"], e["object"]["metadata"]["name"]) for e in events]
    assert seen == [("ADDED", f"{run}-a"), ("ADDED", f"{run}-b")]
    versions = [int(e["object"]["metadata"]["resourceVersion"]) for e in events]
    assert versions == sorted(versions)


def test_a_selector_makes_objects_come_and_go(admin: User, three: Any) -> None:
    run, objects = three
    name = objects[0]["metadata"]["name"]
    since = admin.list("computes").expect(200)["metadata"]["resourceVersion"]
    for value in ("other", run):
        body = {"metadata": {"labels": {LABEL: value}}}
        admin.merge("computes", name, body).expect(200)
    events = admin.watch(
        "computes", resourceVersion=since, labelSelector=f"{LABEL}={run}"
    )
    assert [e["type"] for e in events] == ["DELETED", "ADDED"]


def test_too_old_a_version_is_gone(admin: User) -> None:
    path = admin.url + admin.path("computes", "")
    params = {"watch": "true", "resourceVersion": "1", "timeoutSeconds": "5"}
    answer = admin.session.get(path, params=params, timeout=30)
    # both ways are in use
    body = answer.json()
    if answer.status_code == 200:
        assert body["type"] == "ERROR"
        body = body["object"]
    else:
        assert answer.status_code == 410
    assert (body["code"], body["reason"]) == (410, "Expired")
    assert body["message"].startswith("too old resource version: 1 (")


def test_a_version_that_is_still_to_come_is_waited_for(admin: User, made: Any) -> None:
    """In silence, whatever happens until then: no change, no bookmark, no refusal."""
    now = int(admin.list("computes").expect(200)["metadata"]["resourceVersion"])
    events = admin.open_watch(
        "computes",
        seconds=4,
        resourceVersion=str(now + 1_000_000),
        allowWatchBookmarks="true",
    )
    admin.merge("computes", made["metadata"]["name"], {"data": []}).expect(200)
    assert list(events) == []


@pytest.mark.parametrize(
    ("version", "why"),
    [
        ("abc", "invalid syntax"),
        ("-1", "invalid syntax"),
        ("1.5", "invalid syntax"),
        ("9" * 30, "value out of range"),
    ],
)
def test_what_is_no_version_is_refused(admin: User, version: str, why: str) -> None:
    answer = admin.list("computes", watch="true", resourceVersion=version)
    assert answer.refused(500, None) == (
        f'resourceVersion: Invalid value: "{version}": strconv.ParseUint: parsing '
        f'"{version}": {why}'
    )


def test_the_version_of_now_is_in_the_shortest_list(admin: User, made: Any) -> None:
    """A list with limit 1 is cheap, and its version never older than a seen one."""
    name = made["metadata"]["name"]
    for nodes in ("a", "b"):
        obj = admin.merge("computes", name, {"data": [{"name": nodes}]}).expect(200)
        now = admin.list("computes", None, limit=1).expect(200)["metadata"]
        seen = obj["metadata"]["resourceVersion"]
        assert int(now["resourceVersion"]) >= int(seen)


def test_delete_options_that_say_nothing(admin: User) -> None:
    name = unique("options")
    admin.create("computes", computes(name)).expect(201)
    answer = admin.delete("computes", name, {}).expect(200)
    assert (answer["kind"], answer["status"]) == ("Status", "Success")


def test_no_bookmarks_unless_asked_for(admin: User, three: Any) -> None:
    # those who ask get one a minute, so nothing here waits for one
    events = admin.watch("computes", seconds=3, resourceVersion="0")
    assert {e["type"] for e in events} == {"ADDED"}


# -- versions ------------------------------------------------------------------


def test_versions_that_are_not_served(admin: User) -> None:
    path = admin.path("workflows", version="v1alpha4")
    assert admin.session.get(admin.url + path, timeout=30).status_code == 404


def test_an_older_version_carries_the_whole_object(wlm: User, admin: User) -> None:
    name = unique("older")
    wlm.create("workflows", workflow(name, COMMAND)).expect(201)
    wlm.until("workflows", name, in_state("Proposal"))
    obj = wlm.get("workflows", name, version=OLDER).expect(200)
    assert obj["apiVersion"] == f"{DWS}/{OLDER}"
    text = obj["metadata"]["annotations"][f"{DWS}/conversion-data"]
    assert json.loads(text)["spec"]["dwDirectives"] == [COMMAND]
    newest = wlm.get("workflows", name).expect(200)
    assert "annotations" not in newest["metadata"]
    remove(admin, name)


# -- rights --------------------------------------------------------------------


def test_nobody_is_unauthorized(admin: User) -> None:
    path = admin.url + admin.path("workflows")
    headers = {"Authorization": "Bearer nonsense"}
    answer = admin.session.get(path, headers=headers, timeout=30)
    body = answer.json()
    assert (answer.status_code, body["reason"]) == (401, "Unauthorized")
    assert body["message"] == "Unauthorized"


def test_what_the_role_does_not_have_is_forbidden(wlm: User) -> None:
    who = 'User "system:serviceaccount:default:flux-wlm" cannot'
    answer = wlm.delete("servers", "some")
    assert answer.refused(403, "Forbidden") == (
        f'servers.{DWS} "some" is forbidden: {who} delete resource "servers" in API '
        f'group "{DWS}" in the namespace "default"'
    )
    assert details(answer) == (DWS, "servers", "some")
    answer = wlm.list("nnfstorages", None)
    assert answer.refused(403, "Forbidden") == (
        f"nnfstorages.nnf.cray.hpe.com is forbidden: {who} list resource "
        '"nnfstorages" in API group "nnf.cray.hpe.com" at the cluster scope'
    )
    wlm.merge("servers", "some", {}, "/status").refused(403, "Forbidden")
    wlm.list("pods", "kube-system").refused(403, "Forbidden")


def test_what_the_role_has(wlm: User) -> None:
    for plural in (
        "workflows",
        "computes",
        "servers",
        "clientmounts",
        "directivebreakdowns",
        "persistentstorageinstances",
        "storages",
        "systemconfigurations",
        "systemstatuses",
        "nnfdatamovements",
        "secrets",
    ):
        wlm.list(plural, None, limit=1).expect(200)
    wlm.list("pods").expect(200)
