# The fields of Kubernetes objects that the agent passes to the broker module, and the
# objects that it rejects.
# SPDX-License-Identifier: LGPL-3.0-only
import json

import pytest
from flux_k8s import fields, names, objects
from flux_k8s.crd import RESOURCES
from flux_k8s.fields import FIELDS, FieldError, Reader, project
from flux_k8s.objects import parse, to_json
from hypothesis import given
from hypothesis import strategies as st

# As kube-apiserver 1.34 has it, where values are keys.
MANAGED = {
    "apiVersion": "dataworkflowservices.github.io/v1alpha7",
    "fieldsType": "FieldsV1",
    "fieldsV1": {
        "f:metadata": {
            "f:finalizers": {
                ".": {},
                'v:"dataworkflowservices.github.io/workflow"': {},
            },
            "f:ownerReferences": {".": {}, 'k:{"uid":"55b4b314"}': {}},
        },
        "f:status": {"f:ready": {}, "f:state": {}},
    },
    "manager": "manager",
    "operation": "Update",
    "time": "2026-11-26T05:50:22Z",
}


@pytest.fixture(params=["msgspec", "json"])
def library(request, monkeypatch):
    """The JSON library: Debian 12 has no msgspec."""
    if request.param == "json":
        monkeypatch.setattr(objects, "msgspec", None)


def servers(**halves):
    return {"metadata": {"name": "s", "namespace": "x"}, **halves}


def test_every_kind_of_the_tables_is_one():
    assert set(FIELDS) <= set(RESOURCES)


def test_only_what_is_read_goes_on():
    obj = servers(
        apiVersion="v1",
        kind="Servers",
        spec={"allocationSets": [{"label": "xfs", "allocationSize": 5, "x": []}]},
        status={
            "ready": True,
            "lastUpdate": "now",
            "allocationSets": [{"storage": {"r1": {"allocationSize": 7, "x": 1}}}],
        },
    )
    obj["metadata"].update(managedFields=[MANAGED], annotations={"a": "b"}, labels=None)
    assert project("servers", obj) == {
        "metadata": {"name": "s", "namespace": "x", "annotations": {}},
        "spec": {"allocationSets": [{"label": "xfs", "allocationSize": 5}]},
        "status": {
            "ready": True,
            "allocationSets": [{"storage": {"r1": {"allocationSize": 7}}}],
        },
    }


def test_of_a_kind_without_a_table_all_goes_on_but_managed_fields():
    obj = {"metadata": {"name": "p", "managedFields": [MANAGED]}, "data": {"x": [1]}}
    assert project("nnfstorageprofiles", obj) == {
        "metadata": {"name": "p"},
        "data": {"x": [1]},
    }
    assert "managedFields" in obj["metadata"]


def workflow(state, ready=True, **status):
    status.update(state=state, ready=ready)
    return {
        "kind": "Workflow",
        "metadata": {"name": "fluxjob-1", "managedFields": [MANAGED]},
        "spec": {"userID": 0, "hurry": False, "desiredState": "Proposal"},
        "status": status,
    }


def test_workflows_are_flat():
    obj = workflow("Setup", computes={"name": "c"}, message="", env={"A": "b"})
    obj["metadata"].update(
        labels={names.INSTANCE_LABEL: "", "x": "y"},
        annotations={names.FAILED_ANNOTATION: "a[1-2]"},
        finalizers=["f", names.FINALIZER],
    )
    assert project("workflows", obj) == {
        "kind": "Workflow",
        "name": "fluxjob-1",
        "label": "",
        "failed": "a[1-2]",
        "finalizers": [names.FINALIZER],
        "desired": "Proposal",
        "userid": 0,
        "state": "Setup",
        "ready": True,
        "message": "",
        "computes": "c",
    }


def test_of_what_flux_coral2_may_have_made_its_marks_go_on():
    obj = workflow("Setup")
    obj["spec"].update(wlmID="flux", jobID=7)
    found = project("workflows", obj)
    assert (found["wlm"], found["noted"]) == ("flux", 7)
    obj["metadata"]["annotations"] = {names.INSTANCE_LABEL: "x"}
    found = project("workflows", obj)
    assert found["maker"] == "x" and not {"wlm", "noted"} & set(found)
    obj["metadata"]["labels"] = {names.INSTANCE_LABEL: "x"}
    assert "maker" not in project("workflows", obj)


def test_variables_go_on_where_a_job_starts():
    env = {"DW_JOB_a": "/a"}
    assert project("workflows", workflow("PreRun", env=env))["env"] == env
    for state in ("Proposal", "Setup", "PostRun", "Teardown"):
        assert "env" not in project("workflows", workflow(state, env=env))


def test_of_drivers_those_that_say_something_of_the_state_go_on():
    silent = {"watchState": "Setup", "status": "Pending", "message": "", "error": ""}
    said = [
        {"watchState": "Setup", "status": "Running", "message": "m"},
        {"watchState": "Setup", "status": "Running", "error": "e"},
        {"watchState": "Setup", "status": "Error"},
        {"watchState": "Setup", "status": "TransientCondition"},
    ]
    others = [
        {**silent, "driverID": "x"},
        {"watchState": "PreRun", "status": "Error"},
        {"watchState": "Setup", "message": "m", "completed": True},
    ]
    drivers = [silent, *said, *others]
    found = project("workflows", workflow("Setup", drivers=drivers))
    assert found["drivers"] == said


def test_the_words_of_a_driver_are_told_once():
    """DWS repeats them as the workflow's, later."""
    waits = {"watchState": "Setup", "status": "Running", "message": "m"}
    mute = {"watchState": "Setup", "status": "Error", "error": "e"}
    words = "DW Directive 0: m"
    for drivers, message in (
        ([waits], None),
        ([waits, waits], None),
        ([mute], words),  # what is told may come from either
        ([waits, mute], words),
        ([{**waits, "watchState": "PreRun"}], words),
    ):
        obj = workflow("Setup", drivers=drivers, message=words)
        assert project("workflows", obj).get("message") == message


@pytest.mark.parametrize("state", ["Proposal", "Setup", "DataOut", "Teardown"])
@pytest.mark.parametrize("ready", [True, False])
@pytest.mark.parametrize("left", [True, False])
def test_of_a_workflow_that_may_be_kept_the_text_goes_on_too(state, ready, left):
    """But not when it has been told to leave that state."""
    obj = workflow(state, ready)
    obj["spec"]["desiredState"] = "Teardown" if left else state
    assert "text" not in project("workflows", obj, listed=True)
    text = project("workflows", obj).get("text")
    kept = ready and not left and state in ("Proposal", "DataOut")
    assert (text is not None) == kept
    if text is not None:
        del obj["metadata"]["managedFields"]
        assert json.loads(text) == obj


def test_and_of_any_object_that_is_asked_for_whole():
    obj = servers(x=[1.5, "\u00e9"])
    found = project("servers", obj, whole=True)
    assert json.loads(found["text"]) == obj
    with pytest.raises(FieldError, match="servers s: nested too deeply"):
        project("servers", servers(x=nested_in(100_000)), whole=True)


def nested_in(depth):
    value = []
    for _ in range(depth - 1):
        value = [value]
    return value


def test_what_is_null_is_not_there():
    obj = servers(spec=None, status={"ready": None, "allocationSets": None})
    assert project("servers", obj) == {**servers(), "status": {}}


@pytest.mark.parametrize(
    "kind, rest, said",
    [
        ("servers", {"spec": []}, "spec: expected an object"),
        (
            "servers",
            {"spec": {"allocationSets": {}}},
            "spec.allocationSets: expected an array",
        ),
        ("servers", {"status": {"ready": 1}}, "status.ready: expected true or false"),
        ("storages", {"spec": {"state": 5}}, "spec.state: expected a string"),
        (
            "workflows",
            {"status": {"drivers": [{"error": ""}, {"error": 7}]}},
            "status.drivers[1].error: expected a string",
        ),
        (
            "workflows",
            {"spec": {"dwDirectives": ["#DW", 5]}},
            "spec.dwDirectives[1]: expected a string",
        ),
        (
            "workflows",
            {"status": {"state": "PreRun", "env": []}},
            "status.env: expected an object",
        ),
        (
            "workflows",
            {"status": {"computes": "c"}},
            "status.computes: expected an object",
        ),
        (
            "workflows",
            {"status": {"computes": {"name": 5}}},
            "status.computes.name: expected a string",
        ),
        ("workflows", {"spec": 5}, "spec: expected an object"),
        (
            "storages",
            {"status": {"capacity": True}},
            "status.capacity: expected an integer of 64 bits",
        ),
        (
            "storages",
            {"status": {"capacity": 1.0}},
            "status.capacity: expected an integer of 64 bits",
        ),
        (
            "storages",
            {"status": {"devices": [{}, {"capacity": 2**63}]}},
            "status.devices[1].capacity: expected an integer of 64 bits",
        ),
        (
            "systemstatuses",
            {"data": {"nodes": {"a": "Enabled", "b": None, "c": {}}}},
            "data.nodes.c: expected a string",
        ),
        (
            "directivebreakdowns",
            {"status": {"storage": {"x": [2**64]}}},
            "status.storage: a number is too large",
        ),
    ],
)
def test_what_has_another_type_is_refused(kind, rest, said):
    """With its name, and that of the field."""
    with pytest.raises(FieldError) as error:
        project(kind, {"metadata": {"name": "n"}, **rest})
    assert str(error.value) == f"{kind} n: {said}"


def test_what_is_nested_too_deeply_is_refused():
    def nested(depth):
        return {"metadata": {"name": "n"}, "status": {"storage": nested_in(depth)}}

    assert project("directivebreakdowns", nested(fields.DEPTH)) == nested(fields.DEPTH)
    with pytest.raises(FieldError, match="status.storage: .*nested too deeply"):
        project("directivebreakdowns", nested(fields.DEPTH + 1))


@pytest.mark.parametrize(
    "text, value",
    [
        (b'["a\\u0000b"]', ["a\ufffdb"]),
        (b'["\\ud800", "\\ud83d\\ude00"]', ["\ufffd", "\U0001f600"]),
        (b'["\\\\u0000"]', ["\\u0000"]),
        (b'{"a": 1, "a": 2}', {"a": 2}),
        (b"[18446744073709551616]", [2.0**64]),
        (
            b'["\\u0000", 18446744073709551616, -9223372036854775808]',
            ["\ufffd", 2.0**64, -(2**63)],
        ),
    ],
)
def test_what_others_have_written_is_read(text, value, library):
    assert parse(text) == value


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b'["\xff"]', b"[NaN]", b'["\\u0000", NaN]', b"[1] x", b'["\x01"]']
    + [
        b'{"a":' * 100_000,
        b"[" * 5000 + b"]" * 5000,
        b'["\\u0000", ' + b"9" * 400 + b"]",
    ],
)
def test_what_is_no_json_is_refused(text, library):
    with pytest.raises(ValueError):
        parse(text)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


def near(table):
    """Objects of the form that a table describes, or with a few deviations."""
    if isinstance(table, dict):
        if fields.EACH in table:
            shape = st.dictionaries(st.text(max_size=3), near(table[fields.EACH]))
        else:
            keys = {key: near(entry) for key, entry in table.items()}
            shape = st.fixed_dictionaries({}, optional=keys)
    elif isinstance(table, list):
        shape = st.lists(near(table[0]), max_size=3)
    else:
        leaf = {str: st.text(), bool: st.booleans(), int: st.integers()}
        return leaf.get(table, values) | st.none()
    return st.one_of(shape, shape, shape, shape, shape, values)


def is_like(table, value):
    if isinstance(table, dict):
        each = table.get(fields.EACH)
        return isinstance(value, dict) and all(
            is_like(each or table[key], entry) for key, entry in value.items()
        )
    if isinstance(table, list):
        return isinstance(value, list) and all(is_like(table[0], e) for e in value)
    return type(value) is table or table is fields.ANY


READERS = {kind: Reader(kind) for kind in FIELDS}


@pytest.mark.parametrize(
    "kind, obj",
    [
        ("workflows", workflow("PreRun", env={"A": "b"}, drivers=[{"lastHB": 0}])),
        ("workflows", workflow("Proposal")),
        ("servers", servers(spec={"allocationSets": [{"allocationSize": 7}]})),
    ],
)
@pytest.mark.parametrize("event", ["ADDED", "MODIFIED", "DELETED"])
def test_an_object_is_read_in_one_go(kind, obj, event):
    line = to_json({"type": event, "object": obj})
    assert READERS[kind].event(line) == (event, project(kind, obj))
    assert READERS[kind].object(to_json(obj)) == project(kind, obj)


@given(st.data(), st.sampled_from(sorted(FIELDS)))
def test_what_goes_on_has_the_form_of_its_table(data, kind):
    """And JSON that any parser can read; or it is refused."""
    obj = data.draw(near(FIELDS[kind]))
    if not isinstance(obj, dict):
        return
    obj["metadata"] = {"name": "n", "labels": {names.INSTANCE_LABEL: "x"}}
    try:
        at_once = READERS[kind].event(to_json({"type": "ADDED", "object": obj}))[1]
        assert READERS[kind].object(to_json(obj)) == at_once
    except ValueError:
        at_once = None
    try:
        found = project(kind, obj)
    except FieldError as exc:
        assert str(exc).startswith(f"{kind} n: ")
        assert at_once is None
        return
    assert at_once in (found, None)
    table = FIELDS[kind]
    if kind == "workflows":
        table = {field: wants for field, (_, wants) in fields.WORKFLOW.items()}
        table["text"] = str
    assert is_like(table, found)
    assert json.loads(to_json(found)) == found
