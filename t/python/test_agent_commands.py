# The agent's command queue: order, repetition, answers that count as success.
# SPDX-License-Identifier: LGPL-3.0-only
import json
import threading
import time

import pytest
from faulty_server import LIMIT_S, Results
from flux_k8s import commands
from flux_k8s.errors import UNREACHABLE, ApiError
from flux_k8s.loop import Loop
from flux_k8s.outage import Outage
from flux_k8s.stats import Stats


class FakeKube:
    """An API server of one dict; `faults` are raised first, in order."""

    def __init__(self, objects=None, faults=()):
        self.objects = dict(objects or {})
        self.faults = list(faults)
        self.calls = []
        self.stats = Stats()
        self.outage = Outage()
        self.lock = threading.Lock()

    def _enter(self, *call):
        with self.lock:
            self.calls.append(call)
            if self.faults:
                fault = self.faults.pop(0)
                if fault is not None:
                    raise fault

    async def aget(self, plural, namespace, name):
        self._enter("get", name)
        if name not in self.objects:
            raise ApiError(404, "NotFound", f"{plural} {name} not found")
        return self.objects[name]

    async def acreate(self, plural, namespace, obj):
        name = obj["metadata"]["name"]
        self._enter("create", name)
        if name in self.objects:
            raise ApiError(409, "AlreadyExists", f"{name} already exists")
        self.objects[name] = obj
        return obj

    async def apatch(self, plural, namespace, name, patch):
        self._enter("patch", name, patch)
        metadata = self.objects[name]["metadata"]
        metadata.update(patch.get("metadata", {}))
        return self.objects[name]

    async def apatch_json(self, plural, namespace, name, operations):
        test, remove, *writes = operations
        assert (test["op"], remove["op"]) == ("test", "remove")
        assert test["path"] == remove["path"] == "/metadata/finalizers/0"
        self._enter("patch-json", name)
        if name not in self.objects:
            raise ApiError(404, "NotFound", f"{plural} {name} not found")
        finalizers = self.objects[name]["metadata"]["finalizers"]
        if finalizers[:1] != [test["value"]]:
            raise ApiError(422, "Invalid", "the test of a JSON patch has failed")
        del finalizers[0]
        for write in writes:
            key = write["path"].removeprefix("/spec/")
            self.objects[name].setdefault("spec", {})[key] = write["value"]
        return self.objects[name]

    async def adelete(self, plural, namespace, name):
        self._enter("delete", name)
        if name not in self.objects:
            raise ApiError(404, "NotFound", f"{name} not found")
        return {"kind": "Status", "status": "Success"} if self.objects.pop(name) else {}


def execute(kube, cmd):
    return Loop().run(commands.execute(kube, cmd))


def command(op, name="w", **keys):
    return {"op": op, "kind": "workflows", "namespace": "default", "name": name, **keys}


def workflow(name="w", finalizers=(), version="1"):
    return {
        "kind": "Workflow",
        "metadata": {
            "name": name,
            "resourceVersion": version,
            "finalizers": list(finalizers),
            "managedFields": [{"manager": "x"}],
        },
    }


def test_create_reports_the_existing_object():
    kube = FakeKube({"w": workflow()})
    result = execute(kube, command("create", object=workflow()))
    assert (result["ok"], result["status"]) == (False, 409)
    assert result["object"]["name"] == "w"


def test_results_carry_no_managed_fields():
    kube = FakeKube({"w": workflow()})
    for kind in ("workflows", "servers", "nnfstorageprofiles"):
        result = execute(kube, {**command("get"), "kind": kind})
        assert result["ok"] and "managedFields" not in json.dumps(result)


@pytest.mark.parametrize("op", ["get", "list"])
def test_an_answer_that_is_not_as_it_should_be_is_a_failure(op, caplog):
    """The agent logs the object once, with its name and the field."""

    class Odd(FakeKube):
        async def alist_all(self, plural, selector):
            return [servers], "7"

    servers = {"metadata": {"name": "s"}, "status": {"ready": "yes"}}
    kube = Odd({"s": servers})
    cmd = command(op, "s", selector="a=b")
    result = execute(kube, {**cmd, "kind": "servers"})
    assert (result["ok"], result["status"]) == (False, 500)
    text = "servers s: status.ready: expected true or false"
    assert result["message"].endswith(text)
    assert kube.stats.refused == {"servers": 1}
    assert [record.message for record in caplog.records] == [text]


@pytest.mark.parametrize("op,keys", [("delete", {}), ("drop-finalizer", {})])
def test_what_is_gone_already_is_success(op, keys):
    result = execute(FakeKube(), command(op, finalizer="ours", **keys))
    assert result == {"ok": True}


def test_patch_of_a_missing_object_is_an_error():
    kube = FakeKube(faults=[ApiError(404, "NotFound", "gone")])
    result = execute(kube, command("patch", patch={}))
    assert (result["ok"], result["status"], result["message"]) == (False, 404, "gone")


def test_drop_finalizer_is_one_request():
    kube = FakeKube({"w": workflow(finalizers=["ours", "b"])})
    execute(kube, command("drop-finalizer", finalizer="ours"))
    assert kube.objects["w"]["metadata"]["finalizers"] == ["b"]
    assert kube.calls == [("patch-json", "w")]


TEARDOWN = {"spec": {"desiredState": "Teardown", "hurry": True}}


def test_a_patch_takes_the_finalizer_along():
    kube = FakeKube({"w": workflow(finalizers=["ours", "b"])})
    execute(kube, command("patch", finalizer="ours", patch=TEARDOWN))
    assert kube.objects["w"]["metadata"]["finalizers"] == ["b"]
    assert kube.objects["w"]["spec"] == TEARDOWN["spec"]
    assert kube.calls == [("patch-json", "w")]


@pytest.mark.parametrize("finalizers", [["a", "ours"], ["a"], []])
def test_a_patch_is_made_without_the_finalizer_too(finalizers):
    kube = FakeKube({"w": workflow(finalizers=finalizers)})
    execute(kube, command("patch", finalizer="ours", patch=TEARDOWN))
    assert kube.objects["w"]["metadata"]["finalizers"] == finalizers
    assert kube.calls == [("patch-json", "w"), ("patch", "w", TEARDOWN)]


@pytest.mark.parametrize(
    "patch", [{}, {"metadata": {"labels": {}}}, {**TEARDOWN, "metadata": {}}]
)
def test_a_patch_of_more_than_the_spec_leaves_the_finalizer(patch):
    kube = FakeKube({"w": workflow(finalizers=["ours"])})
    assert execute(kube, command("patch", finalizer="ours", patch=patch))["ok"]
    assert [c[0] for c in kube.calls] == ["patch"]


def test_a_patch_that_is_refused_is_not_made_without_the_finalizer():
    kube = FakeKube({"w": workflow()}, faults=[ApiError(403, "Forbidden", "no")])
    result = execute(kube, command("patch", finalizer="ours", patch=TEARDOWN))
    assert (result["ok"], result["status"]) == (False, 403)
    assert kube.calls == [("patch-json", "w")]


def test_drop_finalizer_of_an_object_without_it():
    kube = FakeKube({"w": workflow(finalizers=["a"])})
    assert "object" in execute(kube, command("drop-finalizer", finalizer="ours"))
    assert kube.objects["w"]["metadata"]["finalizers"] == ["a"]
    assert [c[0] for c in kube.calls] == ["patch-json", "get"]


def test_drop_finalizer_keeps_the_others():
    kube = FakeKube({"w": workflow(finalizers=["a", "ours", "b"], version="7")})
    execute(kube, command("drop-finalizer", finalizer="ours"))
    assert kube.objects["w"]["metadata"]["finalizers"] == ["a", "b"]
    assert kube.calls[-1][2]["metadata"]["resourceVersion"] == "7"


def test_drop_finalizer_reads_again_after_a_conflict():
    kube = FakeKube(
        {"w": workflow(finalizers=["a", "ours"])},
        faults=[None, None, ApiError(409, "Conflict", "changed"), None, None],
    )
    result = execute(kube, command("drop-finalizer", finalizer="ours"))
    assert result["ok"]
    assert [c[0] for c in kube.calls] == ["patch-json", "get", "patch", "get", "patch"]


@pytest.mark.parametrize(
    "data,value",
    [
        ({"token": "YS5iLmM="}, "a.b.c"),
        ({"token": "@@"}, None),
        ({"token": ""}, None),
        ({"token": "/w=="}, None),  # not ASCII
        ({"token": "YQBi"}, None),  # a NUL in it
        ({"token": 5}, None),
        ({}, None),
        (None, None),
    ],
)
def test_a_secret_is_text_or_nothing(caplog, data, value):
    result = read_token({**token_secret(), "data": data})
    assert result.get("value") == value
    if value is None:
        assert result["status"] == 400 and "no text in token" in result["message"]
    assert caplog.records == []


DWS = "dataworkflowservices.github.io"
OF = {"name": "fluxjob-1", "namespace": "default", "uid": "u-1"}


def token_secret():
    """As NNF makes it (makeWorkflowTokenName, AddWorkflowLabels, AddOwnerLabels)."""
    owner = {"apiVersion": f"{DWS}/v1alpha7", "kind": "Workflow", "controller": True}
    labels = {f"{DWS}/workflow.{k}": v for k, v in OF.items()}
    labels.update({f"{DWS}/owner.{k}": v for k, v in OF.items()})
    labels[f"{DWS}/owner.kind"] = "Workflow"
    return {
        "metadata": {
            "name": "s",
            "namespace": "default",
            "labels": labels,
            "ownerReferences": [{**owner, "name": OF["name"], "uid": OF["uid"]}],
        },
        "data": {"token": "YS5iLmM="},
    }


def read_token(secret, **args):
    cmd = command("secret", "s", key="token", workflow=OF)
    return execute(FakeKube({"s": secret}), {**cmd, "kind": "secrets", **args})


def spoil(secret, *path, to=None):
    """Another value at a path, or none."""
    *above, last = path
    for key in above:
        secret = secret[key]
    if to is None:
        del secret[last]
    else:
        secret[last] = to


OWNER = ("metadata", "ownerReferences", 0)


@pytest.mark.parametrize(
    "path, to, said",
    [
        ((*OWNER, "uid"), "u-2", "owner"),
        ((*OWNER, "name"), "fluxjob-2", "owner"),
        ((*OWNER, "kind"), "Computes", "owner"),
        ((*OWNER, "controller"), None, "owner"),
        ((*OWNER, "apiVersion"), "example.com/v1", "owner"),
        ((*OWNER, "apiVersion"), 1, "owner"),
        (OWNER, "no object", "owner"),
        (OWNER[:2], None, "owner"),
        (OWNER[:2], "no list", "owner"),
        (("metadata", "labels"), None, "label"),
        (("metadata", "labels"), "no object", "label"),
        *(
            (("metadata", "labels", f"{DWS}/{label}"), to, label)
            for label in (
                *(f"{whose}.{key}" for whose in ("workflow", "owner") for key in OF),
                "owner.kind",
            )
            for to in ("other", None)
        ),
    ],
)
def test_a_secret_of_something_else_is_not_read(path, to, said):
    secret = token_secret()
    spoil(secret, *path, to=to)
    result = read_token(secret)
    assert "value" not in result and result["status"] == 403
    assert "fluxjob-1" in result["message"] and said in result["message"]


def test_nor_one_in_another_namespace():
    kube = FakeKube({"s": token_secret()})
    cmd = {**command("secret", "s", key="token", workflow=OF), "namespace": "other"}
    result = execute(kube, {**cmd, "kind": "secrets"})
    assert "value" not in result and result["status"] == 403
    assert "namespace" in result["message"] and kube.calls == []


@pytest.mark.parametrize("of", [None, {}, {**OF, "uid": ""}, {**OF, "name": 1}, "x"])
def test_nor_for_a_workflow_that_is_not_named(of):
    result = read_token(token_secret(), workflow=of)
    assert "value" not in result and result["status"] == 400


def run_queue(kube, todo, workers=4):
    results = Results()
    pool = commands.CommandQueue(kube, results.loop, workers, results.put)
    for seq, cmd in enumerate(todo):
        pool.submit({**cmd, "seq": seq})
    got = [results.get(timeout=LIMIT_S) for _ in todo]
    pool.stop()
    return got


def test_commands_on_one_object_keep_their_order():
    kube = FakeKube({"w": workflow(), "v": workflow("v")})
    todo = [command("patch", patch={"n": i}) for i in range(50)]
    results = run_queue(kube, todo)
    assert [r["seq"] for r in results] == list(range(50))
    assert [c[2]["n"] for c in kube.calls] == list(range(50))


def test_trouble_is_repeated_until_it_passes(monkeypatch):
    monkeypatch.setattr(commands, "BACKOFF_FIRST_S", 0.001)
    faults = [ApiError(s, "x", "x") for s in (0, 500, 503, 429)]
    kube = FakeKube({"w": workflow()}, faults=faults)
    results = run_queue(kube, [command("get"), command("get")])
    assert [r["ok"] for r in results] == [True, True]
    assert len(kube.calls) == 6


@pytest.mark.parametrize("status", [0, 409, 429, 503])
def test_what_can_be_left_out_is_not_repeated(status):
    kube = FakeKube({"w": workflow()}, faults=[ApiError(status, "x", "no")])
    todo = [{**command("patch", patch={"n": 1}), "once": True}, command("get")]
    refused, read = run_queue(kube, todo)
    assert refused == {
        "type": "result",
        "seq": 0,
        "ok": False,
        "status": status,
        "reason": "x",
        "message": "no",
    }
    assert read["ok"]
    assert len(kube.calls) == 2


def test_nor_does_it_tell_of_an_outage():
    down = ApiError(0, UNREACHABLE, "no route")
    results, told = Results(), []
    kube = FakeKube({"w": workflow()}, faults=[down])
    pool = commands.CommandQueue(
        kube, results.loop, 1, results.put, told.append, told.append
    )
    pool.submit({**command("patch", patch={}), "seq": 1, "once": True})
    assert not results.get(timeout=LIMIT_S)["ok"]
    pool.stop()
    assert told == []


def test_one_object_in_trouble_does_not_hold_another(monkeypatch):
    monkeypatch.setattr(commands, "BACKOFF_FIRST_S", 0.001)
    stuck = threading.Event()

    class HalfDead(FakeKube):
        async def aget(self, plural, namespace, name):
            if name == "bad" and not stuck.is_set():
                raise ApiError(500, "InternalError", "no")
            return workflow(name)

    results = Results()
    pool = commands.CommandQueue(HalfDead(), results.loop, 1, results.put)
    pool.submit({**command("get", "bad"), "seq": 1})
    pool.submit({**command("get", "good"), "seq": 2})
    assert results.get(timeout=LIMIT_S)["seq"] == 2
    stuck.set()
    assert results.get(timeout=LIMIT_S)["seq"] == 1
    pool.stop()
    assert pool.depth() == 0


def test_a_conflict_of_writers_is_nobodys_business(monkeypatch):
    monkeypatch.setattr(commands, "BACKOFF_FIRST_S", 0.001)
    faults = [ApiError(409, "Conflict", "the object has been modified")]
    kube = FakeKube({"w": workflow()}, faults=faults)
    assert run_queue(kube, [command("patch", patch={})])[0]["ok"]


def test_trouble_is_told_once_for_each_reason(monkeypatch):
    monkeypatch.setattr(commands, "BACKOFF_FIRST_S", 0.001)
    faults = [ApiError(s, "x", m) for s, m in ((500, "a"), (500, "a"), (503, "b"))]
    results, told = Results(), []
    kube = FakeKube({"w": workflow()}, faults=faults)
    pool = commands.CommandQueue(kube, results.loop, 1, results.put, told.append)
    pool.submit({**command("get"), "seq": 7})
    assert results.get(timeout=LIMIT_S)["ok"]
    pool.stop()
    assert [(t["seq"], t["status"], t["message"]) for t in told] == [
        (7, 500, "a"),
        (7, 503, "b"),
    ]
    assert kube.stats.summary()["retries"] == 3


def test_in_an_outage_one_tries_for_all(monkeypatch, caplog):
    monkeypatch.setattr(commands, "BACKOFF_FIRST_S", 0.001)
    monkeypatch.setattr(commands, "PROBE_CAP_S", 0.01)
    names = [f"fluxjob-{i}" for i in range(200)]

    class Dead(FakeKube):
        def _enter(self, *call):
            super()._enter(*call)
            # those that were under way when it began, and then some
            if len(self.calls) < 20:
                raise ApiError(0, UNREACHABLE, "connection refused")

    kube = Dead({name: workflow(name) for name in names})
    results, outage, told = Results(), [], []
    pool = commands.CommandQueue(
        kube, results.loop, 4, results.put, told.append, outage=outage.append
    )
    for seq, name in enumerate(names):
        pool.submit({**command("get", name), "seq": seq})
    got = [results.get(timeout=LIMIT_S) for _ in names]
    pool.stop()
    assert all(r["ok"] for r in got)
    assert len(kube.calls) == 19 + len(names)
    assert outage[0] == "connection refused" and outage[-1] is None
    assert len(outage) % 2 == 0
    # one line when it began, one when it was over
    assert len(caplog.records) == len(outage)
    assert told == []  # which is for the trouble of one job
    # the objects that met it: the workers', not all that waited
    tried = {c[1] for c in kube.calls[:19]}
    assert len(tried) <= 4 * len(outage)


def test_who_waits_tries_again_when_somebody_gets_through(monkeypatch):
    monkeypatch.setattr(commands, "pause_s", lambda *args: 3600.0)
    kube = FakeKube({"w": workflow()}, faults=[ApiError(500, "x", "boom")] * 2)
    results, back = Results(), []
    trouble = Results(results.loop)
    kube.outage.listen(lambda: back.append(True))
    pool = commands.CommandQueue(kube, results.loop, 1, results.put, trouble.put)
    pool.submit({**command("get"), "seq": 1})
    trouble.get(timeout=LIMIT_S)
    kube.faults.clear()
    kube.outage.ended()
    assert results.get(timeout=LIMIT_S)["ok"]
    pool.submit({**command("get"), "seq": 2})
    assert results.get(timeout=LIMIT_S)["ok"]
    pool.stop()
    # of the two that succeeded the one that had failed is news
    assert len(back) == 2


def test_many_who_get_through_do_not_send_the_others_each_time(monkeypatch):
    """While a share of all requests fails, some command recovers all the time."""
    monkeypatch.setattr(commands, "pause_s", lambda *args: 3600.0)
    monkeypatch.setattr(commands, "HASTEN_S", 3600.0)
    kube = FakeKube({"w": workflow()}, faults=[ApiError(500, "x", "boom")] * 9)
    results = Results()
    trouble = Results(results.loop)
    pool = commands.CommandQueue(kube, results.loop, 1, results.put, trouble.put)
    pool.submit({**command("get"), "seq": 1})
    trouble.get(timeout=LIMIT_S)
    for _ in range(5):
        kube.outage.ended()
        results.loop.turn()
    pool.stop()
    assert len(kube.calls) == 2


def test_who_was_told_when_to_come_back_keeps_to_that(monkeypatch):
    monkeypatch.setattr(commands, "BACKOFF_FIRST_S", 0.001)
    fault = ApiError(429, "TooManyRequests", "later", retry_after_s=0.5)
    kube = FakeKube({"w": workflow()}, faults=[fault])
    results = Results()
    trouble = Results(results.loop)
    pool = commands.CommandQueue(kube, results.loop, 1, results.put, trouble.put)
    began = time.monotonic()
    pool.submit({**command("get"), "seq": 1})
    trouble.get(timeout=LIMIT_S)
    kube.outage.ended()
    assert results.get(timeout=LIMIT_S)["ok"]
    pool.stop()
    assert time.monotonic() - began >= 0.5


def test_a_slow_object_is_no_outage(monkeypatch):
    """A request that times out says nothing about the others."""
    monkeypatch.setattr(commands, "BACKOFF_FIRST_S", 0.001)
    stuck = threading.Event()

    class Slow(FakeKube):
        async def aget(self, plural, namespace, name):
            if name == "bad" and not stuck.is_set():
                raise ApiError(0, "Broken", "read timed out")
            return workflow(name)

    results, outage = Results(), []
    pool = commands.CommandQueue(
        Slow(), results.loop, 1, results.put, outage=outage.append
    )
    pool.submit({**command("get", "bad"), "seq": 1})
    pool.submit({**command("get", "good"), "seq": 2})
    assert results.get(timeout=LIMIT_S)["seq"] == 2
    stuck.set()
    assert results.get(timeout=LIMIT_S)["seq"] == 1
    pool.stop()
    assert outage == []


def test_log_lines_name_the_job(monkeypatch, caplog):
    monkeypatch.setattr(commands, "BACKOFF_FIRST_S", 0.001)
    name = "fluxjob-396563054592"
    kube = FakeKube({name: workflow(name)}, faults=[ApiError(500, "x", "boom")] * 5)
    run_queue(kube, [command("get", name)])
    lines = [r.getMessage() for r in caplog.records]
    assert len(lines) == 2
    assert name in lines[0] and "boom" in lines[0]
    assert str(commands.JobID(396563054592).f58) in lines[0]
    assert "over after 5" in lines[1]


class Held:
    """A response that arrives when the test calls done(None)."""

    done = None

    def __await__(self):
        yield self

    def start(self, loop, done):
        self.done = done


def test_nothing_is_reported_after_stop():
    held = Held()

    class Slow(FakeKube):
        async def aget(self, plural, namespace, name):
            await held
            return workflow(name)

    results = Results()
    pool = commands.CommandQueue(Slow(), results.loop, 1, results.put)
    pool.submit({**command("get"), "seq": 1})
    pool.stop()
    held.done(None)
    assert results.empty()


def test_a_list_can_be_cut_down_to_fields():
    class Lister(FakeKube):
        async def alist_all(self, plural, selector):
            obj = {
                "metadata": {"name": "m", "uid": "u", "managedFields": []},
                "spec": {"node": "n0", "mounts": [1, 2, 3]},
            }
            return [obj, {"metadata": {"name": "bare"}, "spec": None}], "7"

    wanted = {"fields": ["metadata.name", "spec.node", "status"]}
    profiles = {
        **command("list", selector="a=b", **wanted),
        "kind": "nnfstorageprofiles",
    }
    result = execute(Lister(), profiles)
    assert result["objects"] == [
        {"metadata": {"name": "m"}, "spec": {"node": "n0"}},
        {"metadata": {"name": "bare"}, "spec": {}},
    ]


def test_a_list_can_have_whole_objects():
    class Lister(FakeKube):
        async def alist_all(self, plural, selector):
            return [{"metadata": {"name": "m", "managedFields": []}, "x": [1]}], "7"

    result = execute(Lister(), command("list", selector="a=b", whole=True))
    assert [json.loads(text) for text in result["texts"]] == [
        {"metadata": {"name": "m"}, "x": [1]}
    ]
    assert "objects" not in result


def test_a_name_that_is_no_job_id_stops_no_worker(monkeypatch):
    """Users choose the names of persistent file systems."""
    monkeypatch.setattr(commands, "BACKOFF_FIRST_S", 0.001)
    name = "fluxjob-99999999999999999999999"
    kube = FakeKube({name: workflow(name)}, faults=[ApiError(500, "x", "boom")])
    (result,) = run_queue(kube, [command("get", name)], workers=1)
    assert result["ok"]


def test_the_last_word_about_an_outage_is_true(monkeypatch):
    """Two at a time: one has no connection, the other is answered meanwhile."""
    monkeypatch.setattr(commands, "BACKOFF_FIRST_S", 0.001)
    held, words = Held(), []

    class Flapping(FakeKube):
        async def aget(self, plural, namespace, name):
            if name == "slow":
                await held
            elif not words:
                raise ApiError(0, UNREACHABLE, "connection refused")
            return workflow(name)

    results = Results()
    pool = commands.CommandQueue(
        Flapping(), results.loop, 2, results.put, outage=words.append
    )
    pool.submit({**command("get", "slow"), "seq": 1})
    pool.submit({**command("get", "quick"), "seq": 2})
    held.done(None)
    assert words == ["connection refused", None]
    assert {results.get(timeout=LIMIT_S)["seq"] for _ in range(2)} == {1, 2}
    pool.stop()
    assert words == ["connection refused", None]


@pytest.mark.parametrize("answer", [{}, {"kind": "Workflow"}, {"metadata": {}}])
def test_an_answer_that_is_no_object_is_asked_for_again(monkeypatch, answer):
    """A proxy that answers instead of the API server sends no workflow."""
    monkeypatch.setattr(commands, "BACKOFF_FIRST_S", 0.001)

    class Odd(FakeKube):
        async def aget(self, plural, namespace, name):
            self._enter("get", name)
            return workflow(name) if len(self.calls) > 2 else answer

    (result,) = run_queue(Odd(), [command("get")], workers=1)
    assert result["object"]["name"] == "w"
