# A Workflow's admission and states must be the same in dws-sim and in DWS.
# SPDX-License-Identifier: LGPL-3.0-only
"""Workflows, their webhooks and their state machine."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from parity_support import (
    COMMAND,
    DRIVER,
    DWS,
    LIMIT_S,
    STATES,
    User,
    complete,
    drive,
    in_state,
    reached,
    remove,
    to_state,
    unique,
    workflow,
)

FINALIZER = f"{DWS}/workflow"
DENIED = 'admission webhook "vworkflow.kb.io" denied the request: '
MICRO = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")


def refusal(user: User, *directives: str, **spec: Any) -> str:
    """The webhook's words about a new workflow."""
    answer = user.create("workflows", workflow(unique("refused"), *directives, **spec))
    message = answer.refused(403, "Forbidden")
    assert message.startswith(DENIED), message
    return message[len(DENIED) :]


def change(user: User, name: str, **spec: Any) -> str:
    """The webhook's words about a change."""
    message = user.merge("workflows", name, {"spec": spec}).refused(403, "Forbidden")
    assert message.startswith(DENIED), message
    return message[len(DENIED) :]


@pytest.fixture
def begun(wlm: User, admin: User) -> Any:
    """A workflow with a driver, in Proposal and not ready."""
    name = unique("begun")
    wlm.create("workflows", workflow(name, COMMAND)).expect(201)
    yield wlm.until(
        "workflows", name, lambda o: o.get("status", {}).get("computes", {}).get("name")
    )
    remove(admin, name)


@pytest.fixture
def ready(admin: User, begun: Any) -> Any:
    """A workflow that is ready in Proposal."""
    return complete(admin, begun["metadata"]["name"])


# -- admission -----------------------------------------------------------------


def test_ids_have_32_bits_without_sign(wlm: User, admin: User) -> None:
    """The schema says int32, which no API server enforces."""
    name, number = unique("ids"), 3000000001
    made = wlm.create("workflows", workflow(name, userID=number, groupID=number))
    spec = made.expect(201)["spec"]
    assert (spec["userID"], spec["groupID"]) == (number, number)
    remove(admin, name)


def test_a_new_object_has_a_status_without_state(wlm: User, admin: User) -> None:
    name = unique("fresh")
    made = wlm.create("workflows", workflow(name, COMMAND)).expect(201)
    entry = {
        "driverID": DRIVER,
        "taskID": "",
        "dwdIndex": 0,
        "lastHB": 0,
        "completed": False,
        "status": "Pending",
    }
    assert made["status"] == {
        "env": {"DW_WORKFLOW_NAME": name, "DW_WORKFLOW_NAMESPACE": "default"},
        "ready": False,
        "computes": {},
        "drivers": [
            {**entry, "watchState": s} for s in ("Proposal", "Setup", "Teardown")
        ],
    }
    spec = workflow(name, COMMAND)["spec"]
    assert made["spec"] == {**spec, "forceReady": False, "hurry": False}
    assert made["metadata"]["generation"] == 1
    remove(admin, name)


def test_without_directives_there_are_no_drivers(wlm: User, admin: User) -> None:
    name = unique("empty")
    made = wlm.create("workflows", workflow(name)).expect(201)
    assert sorted(made["status"]) == ["computes", "env", "ready"]
    remove(admin, name)


def test_creation_is_refused_in_these_words(wlm: User) -> None:
    assert refusal(wlm, desiredState="Setup") == (
        'Spec.DesiredState: Invalid value: "Setup": desired state must start in '
        "Proposal"
    )
    assert refusal(wlm, hurry=True) == (
        "Spec.Hurry: Forbidden: the hurry flag may not be set on creation"
    )
    body = workflow(unique("refused"))
    body["status"] = {"state": "Proposal", "ready": False}
    message = wlm.create("workflows", body).refused(403, "Forbidden")
    assert message == (
        f"{DENIED}Status.State: Forbidden: the status state may not be set on creation"
    )


@pytest.mark.parametrize(
    ("directive", "text"),
    [
        ("#BB parity", "missing '#DW' prefix in directive '{}'"),
        ("parity", "missing '#DW' prefix in directive '{}'"),
        ("", "missing '#DW' prefix in directive '{}'"),
        ("#DW nonsense", "invalid directive '{}'"),
        ("#DW parity name=a name=b", "repeated argument 'name' in directive '{}'"),
        ("#DW parity colour=red", "unsupported argument 'colour'"),
        ("#DW parity name", "argument 'name' requires value"),
        ("#DW parity name=UP", "argument 'name' invalid string 'UP'"),
        ("#DW parity name=", "argument 'name' invalid string ''"),
        ("#DW parity number=x", "argument 'number' invalid integer 'x'"),
        (
            "#DW parity number=6",
            "argument 'number' specified integer value 6 is greather than "
            "maximum value 5",
        ),
        (
            "#DW parity number=1",
            "argument 'number' specified integer value 1 is less than minimum value 2",
        ),
        ("#DW parity flag=maybe", "argument 'flag' invalid boolean 'maybe'"),
        ("#DW parity command=x", "repeated argument 'command' in directive '{}'"),
        ("#DW jobdw type=xfs name=one", "missing required argument '^capacity$'"),
        (
            "#DW jobdw type=zfs capacity=1GiB name=one",
            "argument 'type' invalid string 'zfs'",
        ),
        (
            "#DW jobdw type=xfs capacity=1G name=one",
            "argument 'capacity' invalid string '1G'",
        ),
        (
            "#DW jobdw type=xfs capacity=1GiB name=one requires=magic",
            "argument 'requires' invalid string 'magic' in list 'magic'",
        ),
        (
            "#DW jobdw type=xfs capacity=1GiB name=one "
            "requires=copy-offload,copy-offload",
            "argument 'requires' word 'copy-offload' repeated in list "
            "'copy-offload,copy-offload'",
        ),
    ],
)
def test_directives_are_refused_in_these_words(
    wlm: User, directive: str, text: str
) -> None:
    assert refusal(wlm, directive) == text.format(directive)


def test_without_rules_nothing_is_a_directive(wlm: User, admin: User) -> None:
    """Refused like a user's mistake, in other words."""

    def refused() -> str:
        name = unique("ruleless")
        answer = wlm.create("workflows", workflow(name, COMMAND))
        if answer.code != 201:
            return answer.refused(403, "Forbidden")
        remove(admin, name)
        return ""

    def wait(text: str) -> None:
        # the webhook hears of rules by a watch of its own
        end = time.monotonic() + LIMIT_S
        while refused() != text:
            assert time.monotonic() < end, refused()

    space = "dws-system"
    rules = admin.list("dwdirectiverules", space).expect(200)["items"]
    try:
        for rule in rules:
            path = admin.path("dwdirectiverules", rule["metadata"]["name"], space)
            admin.send("DELETE", path).expect(200)
        wait(f"{DENIED}unable to find ruleset in namespace: {space}")
        made = wlm.create("workflows", workflow(unique("bare"))).expect(201)
        remove(admin, made["metadata"]["name"])
    finally:
        for rule in rules:
            meta = {"name": rule["metadata"]["name"], "namespace": space}
            body = {"kind": rule["kind"], "metadata": meta, "spec": rule["spec"]}
            admin.create("dwdirectiverules", body, space)
        wait("")


def test_names_are_unique_within_a_workflow(wlm: User) -> None:
    one = "#DW jobdw type=xfs capacity=1GiB name=one"
    text = refusal(wlm, one, one)
    assert text == "value 'one' must be unique within 'jobdw_name'"


def test_a_directive_without_a_command_breaks_the_webhook(wlm: User) -> None:
    message = wlm.create("workflows", workflow(unique("broken"), "#DW")).refused(
        500, "InternalError"
    )
    assert 'failed calling webhook "mworkflow.kb.io"' in message


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"desiredState": "Bogus"}, "spec.desiredState"),
        ({"desiredState": None}, "spec.desiredState"),
        ({"dwDirectives": None}, "spec.dwDirectives"),
    ],
)
def test_schema_faults_name_the_field(
    wlm: User, spec: dict[str, Any], field: str
) -> None:
    name = unique("schema")
    body = workflow(name, COMMAND, **spec)
    body["spec"] = {k: v for k, v in body["spec"].items() if v is not None}
    answer = wlm.create("workflows", body)
    message = answer.refused(422, "Invalid")
    assert message.startswith(f'Workflow.{DWS} "{name}" is invalid: {field}: ')
    details = answer.object["details"]
    assert (details["group"], details["kind"], details["name"]) == (
        DWS,
        "Workflow",
        name,
    )
    assert [c["field"] for c in details["causes"]] == [field]


def test_enum_fault_lists_the_words(wlm: User) -> None:
    name = unique("enum")
    answer = wlm.create("workflows", workflow(name, desiredState="Bogus"))
    words = ", ".join(f'"{s}"' for s in STATES)
    assert answer.refused(422, "Invalid") == (
        f'Workflow.{DWS} "{name}" is invalid: spec.desiredState: Unsupported value: '
        f'"Bogus": supported values: {words}'
    )


def test_a_missing_number_is_zero(wlm: User, admin: User) -> None:
    body = workflow(unique("zero"), COMMAND)
    for key in ("userID", "groupID", "jobID", "wlmID"):
        del body["spec"][key]
    made = wlm.create("workflows", body).expect(201)
    spec = made["spec"]
    assert (spec["userID"], spec["groupID"], spec["jobID"]) == (0, 0, 0)
    assert spec["wlmID"] == ""
    remove(admin, made["metadata"]["name"])


@pytest.mark.parametrize(
    "spec", [{"userID": "root"}, {"jobID": True}, {"dwDirectives": "#DW"}, {"wlmID": 5}]
)
def test_a_wrong_type_cannot_be_decoded(wlm: User, spec: dict[str, Any]) -> None:
    answer = wlm.create("workflows", workflow(unique("type"), **spec))
    message = answer.refused(400, None)
    assert message.startswith('admission webhook "mworkflow.kb.io" denied the request')
    assert "json: cannot unmarshal" in message


def test_a_wrong_type_in_an_update_is_invalid(wlm: User, begun: Any) -> None:
    name = begun["metadata"]["name"]
    answer = wlm.merge("workflows", name, {"spec": {"userID": "root"}})
    message = answer.refused(422, "Invalid")
    assert "spec.userID: Invalid value: " in message
    assert 'spec.userID in body must be of type integer: "string"' in message


def test_updates_are_refused_in_these_words(wlm: User, ready: Any) -> None:
    name = ready["metadata"]["name"]
    assert change(wlm, name, hurry=True) == (
        "Spec.Hurry: Invalid value: true: the hurry flag may be set only in Teardown"
    )
    for key, value, word in (
        ("wlmID", "slurm", "WLMID"),
        ("jobID", 5, "JobID"),
        ("userID", 1, "UserID"),
        ("groupID", 1, "GroupID"),
        ("dwDirectives", [], "DWDirectives"),
    ):
        text = f"Spec.{word}: Forbidden: field is immutable"
        assert change(wlm, name, **{key: value}) == text
    assert change(wlm, name, desiredState="DataIn") == (
        'Spec.DesiredState: Invalid value: "DataIn": states cannot be skipped'
    )
    # the flag is looked at before the fields that cannot change
    assert change(wlm, name, hurry=True, wlmID="slurm").startswith("Spec.Hurry")


def test_too_early_and_backwards(wlm: User, admin: User, begun: Any) -> None:
    name = begun["metadata"]["name"]
    assert change(wlm, name, desiredState="Setup") == (
        'Status.State: Invalid value: "Proposal": current desired state not yet '
        "achieved"
    )
    complete(admin, name)
    to_state(wlm, name, "Setup")
    assert change(wlm, name, desiredState="Proposal") == (
        'Spec.DesiredState: Invalid value: "Proposal": DesiredState cannot progress '
        "backwards"
    )


def test_nothing_leaves_teardown(wlm: User, begun: Any) -> None:
    name = begun["metadata"]["name"]
    to_state(wlm, name, "Teardown")
    for state in STATES[:-1]:
        assert change(wlm, name, desiredState=state) == (
            f'Spec.DesiredState: Invalid value: "{state}": DesiredState cannot '
            "progress backwards"
        )
    # there the flag is allowed
    wlm.merge("workflows", name, {"spec": {"hurry": True}}).expect(200)


def _tamper(user: User, name: str, index: int, **fields: Any) -> str:
    while True:
        obj = user.get("workflows", name).expect(200)
        obj["status"]["drivers"][index].update(fields)
        answer = user.put("workflows", obj)
        if answer.code != 409:
            return answer.refused(403, "Forbidden")[len(DENIED) :]


def test_driver_entries_are_guarded(admin: User, begun: Any) -> None:
    name = begun["metadata"]["name"]
    assert _tamper(admin, name, 1, status="Running") == (
        "Status.Drivers[1]: Internal error: driver entry for non-current state "
        "cannot be changed"
    )
    assert _tamper(admin, name, 0, completed=True, status="Running") == (
        "Status.Drivers[0]: Internal error: driver cannot be completed without "
        "status=Completed"
    )
    assert _tamper(admin, name, 0, completed=True, status="Completed", error="x") == (
        "Status.Drivers[0]: Internal error: driver cannot be completed when error is "
        "present"
    )
    complete(admin, name)
    assert _tamper(admin, name, 0, completed=False) == (
        "Status.Drivers[0]: Internal error: driver cannot change from completed state"
    )


# -- the state machine ---------------------------------------------------------


def test_proposal_begins_in_this_order(wlm: User, admin: User) -> None:
    name = unique("order")
    made = wlm.create("workflows", workflow(name, COMMAND)).expect(201)
    events = wlm.history(
        "workflows",
        name,
        made["metadata"]["resourceVersion"],
        lambda e: e["object"]["status"].get("computes", {}).get("name"),
    )
    assert {e["type"] for e in events} == {"MODIFIED"}
    objects = [e["object"] for e in events]
    # the finalizer is there when the state is, and the state before the Computes
    for obj in objects:
        if "state" in obj["status"]:
            assert FINALIZER in obj["metadata"]["finalizers"]
    begun = [o for o in objects if o["status"].get("state") == "Proposal"]
    assert begun[0]["status"]["computes"] == {}
    status = objects[-1]["status"]
    assert status["computes"] == {
        "kind": "Computes",
        "name": name,
        "namespace": "default",
    }
    assert (status["status"], status["ready"]) == ("DriverWait", False)
    assert status.get("message", "") == ""
    assert MICRO.match(status["desiredStateChange"])
    assert "readyChange" not in status
    assert "elapsedTimeLastState" not in status
    computes = wlm.get("computes", name).expect(200)
    assert computes.get("data") in (None, [])
    owner = computes["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"], owner["controller"]) == (
        "Workflow",
        name,
        True,
    )
    assert owner["uid"] == made["metadata"]["uid"]
    remove(admin, name)


@pytest.mark.parametrize(
    ("fields", "status", "message"),
    [
        ({"status": "Queued"}, "DriverWait", ""),
        ({"status": "Running", "message": "busy"}, "DriverWait", "busy"),
        ({"status": "DriverWait", "message": "later"}, "DriverWait", "later"),
        (
            {"status": "TransientCondition", "message": "User error: full"},
            "TransientCondition",
            "User error: full",
        ),
        ({"status": "Error", "message": "bad", "error": "why"}, "Error", "bad"),
    ],
)
def test_drivers_are_rolled_up(
    admin: User, begun: Any, fields: dict[str, str], status: str, message: str
) -> None:
    name = begun["metadata"]["name"]
    drive(admin, name, **fields)
    text = f"DW Directive 0: {message}" if message else ""
    obj = admin.until(
        "workflows",
        name,
        lambda o: (
            (o["status"]["status"], o["status"].get("message", "")) == (status, text)
        ),
    )
    assert obj["status"]["ready"] is False
    # an error is not the end
    drive(admin, name, status="Completed", completed=True, error="", message="")
    admin.until("workflows", name, reached("Proposal"))


def test_the_worst_driver_counts(wlm: User, admin: User) -> None:
    name = unique("worst")
    wlm.create("workflows", workflow(name, COMMAND, "#DW parity name=two"))
    wlm.until("workflows", name, in_state("Proposal"))
    drive(admin, name, 0, status="TransientCondition", message="slow")
    drive(admin, name, 1, status="Error", message="broken")
    obj = admin.until("workflows", name, lambda o: o["status"]["status"] == "Error")
    assert obj["status"]["message"] == "DW Directive 1: broken"
    drive(admin, name, 1, status="Completed", completed=True)
    obj = admin.until(
        "workflows", name, lambda o: o["status"]["status"] == "TransientCondition"
    )
    assert obj["status"]["message"] == "DW Directive 0: slow"
    assert obj["status"]["ready"] is False
    remove(admin, name)


def test_ready_says_when(admin: User, ready: Any) -> None:
    status = ready["status"]
    assert (status["status"], status.get("message", "")) == ("Completed", "")
    assert MICRO.match(status["readyChange"])
    assert re.match(r"^[\d.hm]+(s|ms|µs)$", status["elapsedTimeLastState"])
    assert status["readyChange"] >= status["desiredStateChange"]


def test_a_change_of_state_shows_the_old_one_first(wlm: User, ready: Any) -> None:
    name, before = ready["metadata"]["name"], ready["status"]
    asked = wlm.merge("workflows", name, {"spec": {"desiredState": "Setup"}})
    obj = asked.expect(200)
    assert obj["spec"]["desiredState"] == "Setup"
    assert (obj["status"]["state"], obj["status"]["ready"]) == ("Proposal", True)
    events = wlm.history(
        "workflows",
        name,
        obj["metadata"]["resourceVersion"],
        lambda e: e["object"]["status"]["state"] == "Setup",
    )
    status = events[-1]["object"]["status"]
    assert (status["ready"], status["status"]) == (False, "DriverWait")
    assert status.get("message", "") == ""
    assert status["desiredStateChange"] > before["desiredStateChange"]
    # these are still the old state's
    for key in ("readyChange", "elapsedTimeLastState"):
        assert status[key] == before[key]


def test_a_state_without_drivers_completes_at_once(
    wlm: User, admin: User, ready: Any
) -> None:
    name = ready["metadata"]["name"]
    to_state(wlm, name, "Setup")
    complete(admin, name)
    to_state(wlm, name, "DataIn")
    obj = wlm.until("workflows", name, reached("DataIn"))
    assert obj["status"]["status"] == "Completed"


def test_no_directives_go_through_all_states(wlm: User, admin: User) -> None:
    name = unique("through")
    wlm.create("workflows", workflow(name)).expect(201)
    wlm.until("workflows", name, reached("Proposal"))
    for state in STATES[1:]:
        to_state(wlm, name, state)
        wlm.until("workflows", name, reached(state))
    remove(admin, name)


def test_ready_stays(admin: User, ready: Any) -> None:
    name = ready["metadata"]["name"]
    # a driver that is done may still say something, and no more
    drive(admin, name, message="afterthought")
    obj = admin.get("workflows", name).expect(200)
    assert obj["status"]["ready"] is True
    assert obj["status"]["status"] == "Completed"


def test_force_ready(wlm: User, admin: User, begun: Any) -> None:
    name = begun["metadata"]["name"]
    drive(admin, name, status="Error", message="stuck")
    wlm.merge("workflows", name, {"spec": {"forceReady": True}}).expect(200)
    obj = wlm.until("workflows", name, reached("Proposal"))
    status = obj["status"]
    assert (status["status"], status["message"]) == ("Completed", "Forced Ready")
    # the driver's entry stays as it was
    assert status["drivers"][0]["completed"] is False
    to_state(wlm, name, "Setup")
    obj = wlm.get("workflows", name).expect(200)
    assert obj["spec"]["forceReady"] is False
    assert obj["status"]["ready"] is False


def test_teardown_from_any_state(wlm: User, admin: User, begun: Any) -> None:
    name = begun["metadata"]["name"]
    drive(admin, name, status="Error", message="stuck")
    both = {"spec": {"desiredState": "Teardown", "hurry": True}}
    wlm.merge("workflows", name, both).expect(200)
    wlm.until("workflows", name, in_state("Teardown"))
    complete(admin, name)


# -- the end -------------------------------------------------------------------


def test_deletion_waits_for_the_workload_manager(wlm: User) -> None:
    name, own = unique("held"), "example.com/held"
    body = workflow(name, COMMAND)
    body["metadata"]["finalizers"] = [own]
    wlm.create("workflows", body).expect(201)
    wlm.until("workflows", name, lambda o: o["status"].get("computes", {}).get("name"))
    since = wlm.list("workflows").expect(200)["metadata"]["resourceVersion"]
    deleted = wlm.delete("workflows", name).expect(200)
    assert deleted["kind"] == "Workflow"
    assert deleted["metadata"]["deletionTimestamp"]
    assert deleted["metadata"]["deletionGracePeriodSeconds"] == 0
    # NNF lets go of it; DWS waits until it is the last
    obj = wlm.until(
        "workflows",
        name,
        lambda o: set(o["metadata"]["finalizers"]) == {own, FINALIZER},
    )
    wlm.get("computes", name).expect(200)
    stale = [*obj["metadata"]["finalizers"], "example.com/new"]
    message = wlm.merge("workflows", name, {"metadata": {"finalizers": stale}}).refused(
        422, "Invalid"
    )
    assert "metadata.finalizers: Forbidden: no new finalizers can be added if" in (
        message
    )
    wlm.merge("workflows", name, {"metadata": {"finalizers": [FINALIZER]}})
    events = wlm.history("workflows", name, since, lambda e: e["type"] == "DELETED")
    assert {e["type"] for e in events[:-1]} == {"MODIFIED"}
    wlm.gone("computes", name)
    wlm.get("workflows", name).refused(404, "NotFound")


def test_deletion_is_not_checked(wlm: User, begun: Any) -> None:
    wlm.delete("workflows", begun["metadata"]["name"]).expect(200)
