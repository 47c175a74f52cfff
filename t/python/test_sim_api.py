# The API half of dws-sim, seen by the unmodified kubernetes client.
# SPDX-License-Identifier: LGPL-3.0-only
"""CRUD, patches, versions, lists, watches, refusals."""

from __future__ import annotations

import base64
import json
import stat
from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client, config, watch
from sim_support import DWS, Api, Sim, error_of, workflow

V = "v1alpha7"


@pytest.fixture
def api(sim: Sim) -> Iterator[Api]:
    api = Api(sim)
    yield api
    for plural in ("computes", "servers", "directivebreakdowns"):
        for name in api.names(plural):
            finalizers = {"metadata": {"finalizers": None}}
            api.patch(plural, name, finalizers)
            api.custom.delete_namespaced_custom_object(DWS, V, "default", plural, name)


def computes(name: str, *nodes: str, **metadata: Any) -> dict[str, Any]:
    """The simplest kind that no controller touches."""
    return {
        "kind": "Computes",
        "metadata": {"name": name, **metadata},
        "data": [{"name": n} for n in nodes],
    }


def version_of(obj: dict[str, Any]) -> str:
    version: str = obj["metadata"]["resourceVersion"]
    return version


def events(api: Api, plural: str = "computes", **options: Any) -> Iterator[Any]:
    """A watch as (type, name) until the server ends it."""
    options.setdefault("timeout_seconds", 1)
    stream = watch.Watch().stream(
        api.custom.list_namespaced_custom_object, DWS, V, "default", plural, **options
    )
    for event in stream:
        yield event["type"], event["object"]


def names(found: Iterator[Any]) -> list[tuple[str, str]]:
    return [(t, o["metadata"].get("name", "")) for t, o in found]


def refusal(call: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
    with pytest.raises(client.ApiException) as info:
        call(*args, **kwargs)
    return error_of(info.value)


# -- the server as such ---------------------------------------------------


def test_kubeconfig_is_private_and_mapping_is_complete(sim: Sim) -> None:
    assert stat.S_IMODE(sim.kubeconfig.stat().st_mode) == 0o600
    mapping = json.loads(sim.mapping.read_text())
    assert mapping["computes"]["node2"] == "rabbit1"
    rabbit = Api(sim).get("storages", "rabbit1")
    sizes = sorted(d["capacity"] for d in rabbit["status"]["devices"])
    # what a pool on 16 of the 18 drives can have
    assert mapping["rabbits"]["rabbit1"] == {
        "capacity": sizes[2] // 4096 * 4096 * 16,
        "hostlist": "node[2-3]",
    }


def test_discovery(api: Api) -> None:
    groups = {
        g.name: g for g in client.ApisApi(api.api_client).get_api_versions().groups
    }
    assert groups[DWS].preferred_version.version == V
    assert [v.version for v in groups[DWS].versions] == [V, "v1alpha6"]
    found = api.custom.get_api_resources(DWS, V).resources
    kinds = {r.name: r.kind for r in found}
    assert kinds["workflows"] == "Workflow"
    assert "workflows/status" not in kinds
    assert "servers/status" in kinds


def test_unserved_version_is_not_found(api: Api) -> None:
    status = refusal(
        api.custom.list_cluster_custom_object, DWS, "v1alpha5", "workflows"
    )
    assert (status["code"], status["reason"]) == (404, "NotFound")


def test_no_token_no_answer(api: Api) -> None:
    text = json.loads(api.sim.kubeconfig.read_text())
    for user in text["users"]:
        user["user"]["token"] = "wrong"
    other = config.new_client_from_config_dict(text)
    custom = client.CustomObjectsApi(other)
    status = refusal(custom.list_cluster_custom_object, DWS, V, "workflows")
    assert (status["code"], status["reason"]) == (401, "Unauthorized")


def test_secrets_and_namespaces(api: Api) -> None:
    secret = client.V1Secret(
        metadata=client.V1ObjectMeta(name="token"),
        data={"token": base64.b64encode(b"abc").decode()},
    )
    api.core.create_namespaced_secret("default", secret)
    found = api.core.read_namespaced_secret("token", "default")
    assert base64.b64decode(found.data["token"]) == b"abc"
    assert "node3" in [n.metadata.name for n in api.core.list_namespace().items]
    status = refusal(api.create, "computes", computes("x"), ns="nowhere")
    assert status["message"] == 'namespaces "nowhere" not found'
    api.core.delete_namespaced_secret("token", "default")


# -- create, read, update, delete -----------------------------------------


def test_create_read_delete(api: Api) -> None:
    made = api.create("computes", computes("one", "node0"))
    meta = made["metadata"]
    assert meta["namespace"] == "default"
    assert meta["generation"] == 1
    assert {"uid", "creationTimestamp", "resourceVersion"} <= set(meta)
    assert api.get("computes", "one") == made
    gone = api.delete("computes", "one")
    assert (gone["kind"], gone["status"]) == ("Status", "Success")
    status = refusal(api.get, "computes", "one")
    assert status["message"] == f'computes.{DWS} "one" not found'
    assert status["details"] == {"name": "one", "kind": "computes", "group": DWS}


def test_name_taken(api: Api) -> None:
    api.create("computes", computes("one"))
    status = refusal(api.create, "computes", computes("one"))
    assert (status["code"], status["reason"]) == (409, "AlreadyExists")


def test_replace_needs_the_current_version(api: Api) -> None:
    old = api.create("computes", computes("one"))
    api.patch("computes", "one", {"data": [{"name": "node1"}]})
    status = refusal(api.replace, "computes", old)
    assert (status["code"], status["reason"]) == (409, "Conflict")
    assert "the object has been modified" in status["message"]
    del old["metadata"]["resourceVersion"]
    status = refusal(api.replace, "computes", old)
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert "must be specified for an update" in status["message"]
    assert api.replace("computes", api.get("computes", "one"))


def test_no_change_no_new_version(api: Api) -> None:
    made = api.create("computes", computes("one", "node0"))
    assert api.patch("computes", "one", {"data": [{"name": "node0"}]}) == made


def test_merge_patch(api: Api) -> None:
    api.create("computes", computes("one", "node0", labels={"a": "1", "b": "2"}))
    patch = {"metadata": {"labels": {"a": None, "c": "3"}}, "data": [{"name": "node1"}]}
    obj = api.patch("computes", "one", patch)
    assert obj["metadata"]["labels"] == {"b": "2", "c": "3"}
    assert obj["data"] == [{"name": "node1"}]
    assert obj["metadata"]["generation"] == 2


def patch_status(api: Api, body: Any, content_type: str) -> int:
    """PATCH over the client's own connection pool: the client's methods
    choose the content type themselves."""
    url = api.api_client.configuration.host
    settings = api.api_client.configuration.auth_settings().values()
    headers = {s["key"]: s["value"] for s in settings}
    response = api.api_client.rest_client.pool_manager.request(
        "PATCH",
        f"{url}/apis/{DWS}/{V}/namespaces/default/computes/one",
        body=json.dumps(body),
        headers={"Content-Type": content_type, **headers},
    )
    return int(response.status)


def test_patch_types(api: Api) -> None:
    api.create("computes", computes("one", "node0"))
    add = [{"op": "add", "path": "/data/-", "value": {"name": "node1"}}]
    assert patch_status(api, add, "application/json-patch+json") == 200
    assert api.get("computes", "one")["data"][1] == {"name": "node1"}
    test = [{"op": "test", "path": "/data/0/name", "value": "other"}]
    assert patch_status(api, test, "application/json-patch+json") == 422
    assert patch_status(api, add, "application/merge-patch+json") == 400
    strategic = "application/strategic-merge-patch+json"
    assert patch_status(api, {"data": []}, strategic) == 415


def test_status_subresource(api: Api) -> None:
    # of a rabbit that is not there: no controller touches it
    storage = {
        "kind": "Storage",
        "metadata": {"name": "s"},
        "spec": {"state": "Enabled"},
        "status": {"message": "m"},
    }
    made = api.create("storages", storage)
    assert "status" not in made
    same = api.patch("storages", "s", {"status": {"message": "m"}})
    assert version_of(same) == version_of(made)
    done = api.custom.patch_namespaced_custom_object_status(
        DWS,
        V,
        "default",
        "storages",
        "s",
        {"status": {"message": "m"}, "spec": {"state": "Disabled"}},
    )
    assert done["status"]["message"] == "m"
    assert done["spec"]["state"] == "Enabled"
    assert done["metadata"]["generation"] == 1
    obj = api.patch("storages", "s", {"spec": {"state": "Disabled"}})
    assert obj["metadata"]["generation"] == 2
    assert obj["status"]["message"] == "m"
    api.delete("storages", "s")


def test_workflows_have_no_status_subresource(api: Api) -> None:
    status = refusal(
        api.custom.get_namespaced_custom_object_status,
        DWS,
        V,
        "default",
        "workflows",
        "any",
    )
    assert status["code"] == 404


def test_older_version_carries_the_whole_object(api: Api) -> None:
    api.create("computes", computes("one", "node0"))
    old = api.custom.get_namespaced_custom_object(
        DWS, "v1alpha6", "default", "computes", "one"
    )
    assert old["apiVersion"] == f"{DWS}/v1alpha6"
    whole = old["metadata"]["annotations"][f"{DWS}/conversion-data"]
    assert json.loads(whole)["data"] == [{"name": "node0"}]
    api.custom.patch_namespaced_custom_object(
        DWS, "v1alpha6", "default", "computes", "one", {"data": [{"name": "node1"}]}
    )
    new = api.get("computes", "one")
    assert new["data"] == [{"name": "node1"}]
    assert "annotations" not in new["metadata"]
    items = api.custom.list_namespaced_custom_object(
        DWS, "v1alpha6", "default", "computes"
    )["items"]
    whole = items[0]["metadata"]["annotations"][f"{DWS}/conversion-data"]
    assert json.loads(whole)["data"] == [{"name": "node1"}]


def test_a_dry_run_changes_nothing(api: Api) -> None:
    where, dry = (DWS, V, "default", "computes"), {"dry_run": "All"}
    call = api.custom.create_namespaced_custom_object
    made = call(*where, computes("dry"), **dry)
    assert made["metadata"]["uid"]
    assert "resourceVersion" not in made["metadata"]
    assert "dry" not in api.names("computes")
    kept = api.create("computes", computes("dry", "node0"))
    # refused as if it were meant
    assert refusal(call, *where, computes("dry"), **dry)["code"] == 409
    change = {"data": [{"name": "node1"}]}
    new = api.custom.patch_namespaced_custom_object(*where, "dry", change, **dry)
    assert new["data"] == change["data"]
    new = api.custom.replace_namespaced_custom_object(
        *where, "dry", {**kept, **change}, **dry
    )
    assert new["data"] == change["data"]
    assert version_of(new) == version_of(kept)
    api.custom.delete_namespaced_custom_object(*where, "dry", **dry)
    body = {"dryRun": ["All"]}
    api.custom.delete_namespaced_custom_object(*where, "dry", body=body)
    api.custom.delete_collection_namespaced_custom_object(*where, **dry)
    assert api.get("computes", "dry") == kept


def test_a_dry_run_of_an_unknown_kind(api: Api) -> None:
    status = refusal(
        api.custom.create_namespaced_custom_object,
        *(DWS, V, "default", "computes", computes("dry")),
        dry_run="Some",
    )
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert status["message"] == (
        'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: '
        '[]string{"Some"}: supported values: "All"'
    )
    assert "dry" not in api.names("computes")


# -- faults in objects ----------------------------------------------------


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"desiredState": "Later"}, 'spec.desiredState: Unsupported value: "Later"'),
        ({"dwDirectives": None}, "spec.dwDirectives: Required value"),
    ],
)
def test_schema_faults(api: Api, change: dict[str, Any], text: str) -> None:
    status = refusal(api.create, "workflows", workflow("bad", **change))
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert status["message"].startswith(f'Workflow.{DWS} "bad" is invalid: ')
    assert text in status["message"]
    assert status["details"]["causes"]


def test_names_and_labels(api: Api) -> None:
    status = refusal(api.create, "computes", computes("No_Good"))
    assert "metadata.name" in status["message"]
    status = refusal(api.create, "computes", computes("a", labels={"x": "y" * 64}))
    assert "must be no more than 63 bytes" in status["message"]


def test_unknown_fields_are_pruned(api: Api) -> None:
    obj = computes("one", "node0")
    obj["data"][0]["color"] = "red"
    obj["more"] = 1
    made = api.create("computes", obj)
    assert made["data"] == [{"name": "node0"}]
    assert "more" not in made


def test_wlm_role(api: Api) -> None:
    wlm = Api(api.sim, "wlm")
    status = refusal(wlm.create, "computes", computes("one"))
    assert (status["code"], status["reason"]) == (403, "Forbidden")
    assert 'cannot create resource "computes"' in status["message"]
    assert "admission webhook" not in status["message"]
    assert refusal(wlm.list, "nnfstorages")["code"] == 403
    assert wlm.names("storages") == ["rabbit0", "rabbit1"]
    status = refusal(
        wlm.custom.patch_namespaced_custom_object_status,
        DWS,
        V,
        "default",
        "storages",
        "rabbit0",
        {"status": {"capacity": 1}},
    )
    assert status["code"] == 403


# -- finalizers and owners ------------------------------------------------


def test_finalizers(api: Api) -> None:
    api.create("computes", computes("one", finalizers=["x.io/a", "x.io/b"]))
    since = version_of(api.get("computes", "one"))
    marked = api.delete("computes", "one")
    assert "deletionTimestamp" in marked["metadata"]
    status = refusal(
        api.patch, "computes", "one", {"metadata": {"finalizers": ["x.io/c"]}}
    )
    assert status["code"] == 422
    assert (
        "metadata.finalizers: Forbidden: no new finalizers can be added if the "
        "object is being deleted" in status["message"]
    )
    api.patch("computes", "one", {"metadata": {"finalizers": ["x.io/a"]}})
    api.patch("computes", "one", {"metadata": {"finalizers": None}})
    assert refusal(api.get, "computes", "one")["code"] == 404
    kinds = [t for t, _ in events(api, resource_version=since)]
    assert kinds == ["MODIFIED", "MODIFIED", "DELETED"]


def test_owned_objects_go_with_their_last_owner(api: Api) -> None:
    owners = [api.create("computes", computes(n)) for n in ("a", "b")]
    refs = [
        {
            "apiVersion": f"{DWS}/{V}",
            "kind": "Computes",
            "name": o["metadata"]["name"],
            "uid": o["metadata"]["uid"],
        }
        for o in owners
    ]
    child = api.create("computes", computes("child", ownerReferences=refs))
    api.delete("computes", "a")
    assert "child" in api.names("computes")
    api.delete("computes", "b")
    found = names(events(api, resource_version=version_of(child)))
    assert ("DELETED", "child") in found


# -- lists ----------------------------------------------------------------


def test_label_selectors(api: Api) -> None:
    api.create("computes", computes("a", labels={"job": "1", "site": "x"}))
    api.create("computes", computes("b", labels={"job": "2", "site": "x"}))
    api.create("computes", computes("c"))
    for selector, found in (
        ("job=1", ["a"]),
        ("site=x,job!=1", ["b"]),
        ("job in (1,2)", ["a", "b"]),
        ("job notin (1)", ["b", "c"]),
        ("!job", ["c"]),
        ("site", ["a", "b"]),
        ("job=3", []),
    ):
        assert api.names("computes", label_selector=selector) == found, selector
    status = refusal(api.list, "computes", label_selector="a=b=c")
    assert status["code"] == 400


def test_pages_are_one_snapshot(api: Api) -> None:
    for name in "abcde":
        api.create("computes", computes(name))
    first = api.list("computes", limit=2)
    api.delete("computes", "d")
    second = api.list("computes", limit=2, _continue=first["metadata"]["continue"])
    assert [o["metadata"]["name"] for o in second["items"]] == ["c", "d"]
    assert version_of(first) == version_of(second)
    api.sim.ctl("api", "--expire")
    status = refusal(
        api.list, "computes", limit=2, _continue=second["metadata"]["continue"]
    )
    assert (status["code"], status["reason"]) == (410, "Expired")


# -- watches --------------------------------------------------------------


def test_watch_replays_in_name_order(api: Api) -> None:
    for name in ("b", "a", "c"):
        api.create("computes", computes(name))
    want = [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]
    assert names(events(api, resource_version="0")) == want


def test_watch_goes_on_where_a_list_ended(api: Api) -> None:
    api.create("computes", computes("a"))
    since = version_of(api.list("computes"))
    api.patch("computes", "a", {"data": [{"name": "node0"}]})
    api.create("computes", computes("b"))
    api.delete("computes", "a")
    want = [("MODIFIED", "a"), ("ADDED", "b"), ("DELETED", "a")]
    assert names(events(api, resource_version=since)) == want


def test_watch_with_a_selector_sees_objects_come_and_go(api: Api) -> None:
    since = version_of(api.list("computes"))
    api.create("computes", computes("a"))
    for value in ("1", "1", None):
        labels = {"metadata": {"labels": {"job": value}}}
        api.patch("computes", "a", labels)
    want = [("ADDED", "a"), ("DELETED", "a")]
    found = list(events(api, resource_version=since, label_selector="job=1"))
    assert names(iter(found)) == want
    # as it was, at the version of the change
    gone = found[-1][1]["metadata"]
    assert gone["labels"] == {"job": "1"}
    assert gone["resourceVersion"] == version_of(api.get("computes", "a"))


def test_bookmarks_only_if_asked(api: Api) -> None:
    api.create("computes", computes("a"))
    since = version_of(api.list("computes"))
    # of another kind, so the bookmark is all there is to see
    api.create("servers", {"kind": "Servers", "metadata": {"name": "s"}})
    assert names(events(api, resource_version=since)) == []
    found = list(events(api, resource_version=since, allow_watch_bookmarks=True))
    assert [t for t, _ in found] == ["BOOKMARK"]
    assert int(version_of(found[0][1])) > int(since)
    assert set(found[0][1]) == {"kind", "apiVersion", "metadata"}


def test_watch_from_too_long_ago(api: Api) -> None:
    since = version_of(api.create("computes", computes("a")))
    api.patch("computes", "a", {"data": [{"name": "node0"}]})
    api.sim.ctl("api", "--expire")
    with pytest.raises(client.ApiException) as info:
        list(events(api, resource_version=since))
    assert info.value.status == 410


def test_running_watch_is_expired(api: Api) -> None:
    api.create("computes", computes("a"))
    found = events(api, resource_version="0", timeout_seconds=30)
    assert next(found)[0] == "ADDED"
    api.sim.ctl("api", "--expire")
    with pytest.raises(client.ApiException) as info:
        next(found)
    assert info.value.status == 410


def test_running_watch_is_dropped(api: Api) -> None:
    api.create("computes", computes("a"))
    stream = watch.Watch().stream(
        api.custom.list_namespaced_custom_object,
        *(DWS, V, "default", "computes"),
        resource_version="0",
        timeout_seconds=30,
    )
    assert next(stream)["type"] == "ADDED"
    assert api.sim.state()["watches"] == 1
    api.sim.ctl("api", "--drop-watches")
    assert list(stream) == []


def test_simulated_faults_spare_the_admin(api: Api) -> None:
    wlm = Api(api.sim, "wlm")
    api.sim.ctl("api", "--status", "500", "--count", "2")
    for _ in range(2):
        assert refusal(wlm.list, "storages")["code"] == 500
    assert wlm.names("storages")
    assert api.names("storages")


def test_stale_reads(sim: Sim, api: Api) -> None:
    wlm = Api(sim, "wlm")
    # history begins here
    sim.ctl("api", "--expire")
    api.create("computes", computes("aa", "n0"))
    listed = wlm.list("computes")["metadata"]["resourceVersion"]
    api.create("computes", computes("bb"))
    api.patch("computes", "aa", {"data": [{"name": "n1"}]})
    api.delete("computes", "aa")
    sim.ctl("api", "--stale", "600")
    assert wlm.names("computes") == []
    # a get is answered from etcd
    assert wlm.get("computes", "bb")
    with pytest.raises(client.ApiException) as info:
        wlm.get("computes", "aa")
    assert error_of(info.value)["reason"] == "NotFound"
    # a watch from now sees the past first, and then how it went on
    assert names(events(wlm)) == [
        ("ADDED", "aa"),
        ("ADDED", "bb"),
        ("MODIFIED", "aa"),
        ("DELETED", "aa"),
    ]
    # writes are not stale
    assert refusal(wlm.patch, "computes", "aa", {})["code"] == 404
    assert api.names("computes") == ["bb"]
    sim.ctl("api", "--clear")
    assert wlm.names("computes") == ["bb"]
    assert names(events(wlm, resource_version=listed))[0] == ("ADDED", "bb")


def test_token_that_is_no_longer_valid(sim: Sim) -> None:
    wlm = Api(sim, "wlm")
    assert wlm.names("computes") == []
    sim.ctl("token", "wlm")
    assert refusal(wlm.names, "computes")["code"] == 401
    # the kubeconfig has the new one
    assert Api(sim, "wlm").names("computes") == []
    sim.ctl("token", "wlm", "--keep-file")
    assert refusal(Api(sim, "wlm").names, "computes")["code"] == 401
    sim.ctl("token", "wlm")


def test_webhook_that_is_down(sim: Sim, api: Api) -> None:
    sim.ctl("api", "--webhook-down")
    error = refusal(api.create, "workflows", workflow("aa"))
    assert (error["code"], error["reason"]) == (500, "InternalError")
    assert 'failed calling webhook "mworkflow.kb.io"' in error["message"]
    # other kinds have none
    api.create("computes", computes("aa"))
    sim.ctl("api", "--clear")
    api.create("workflows", workflow("aa"))
    sim.ctl("wait-state", "aa", "Proposal", "--ready", "--timeout", "30")
    sim.ctl("api", "--webhook-down")
    change = {"spec": {"desiredState": "Teardown"}}
    error = refusal(api.patch, "workflows", "aa", change)
    assert 'failed calling webhook "vworkflow.kb.io"' in error["message"]
    sim.ctl("api", "--clear")
    # the controllers go on by themselves
    api.patch("workflows", "aa", change)
    sim.ctl("wait-state", "aa", "Teardown", "--ready", "--timeout", "30")
    api.delete("workflows", "aa")
    sim.ctl("wait-state", "aa", "gone", "--timeout", "30")
