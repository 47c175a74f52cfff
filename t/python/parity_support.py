# The parity tests run the same requests on dws-sim, or on the API server and DWS that
# DWS_PARITY_KUBECONFIG names. Requests are made by hand here: a client library would
# hide headers, codes and the order of fields.
# SPDX-License-Identifier: LGPL-3.0-only
"""Support for the parity tests."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import pathlib
import tempfile
from collections.abc import Iterator
from typing import Any, Callable

import requests
import yaml

DWS = "dataworkflowservices.github.io"
NNF = "nnf.cray.hpe.com"
VERSION = "v1alpha7"
OLDER = "v1alpha6"
MERGE = "application/merge-patch+json"
LIMIT_S = 120
STATES = ["Proposal", "Setup", "DataIn", "PreRun", "PostRun", "DataOut", "Teardown"]
XFS = "#DW jobdw type=xfs capacity=10GiB name=scratch"
# Kinds that are neither DWS' nor NNF's.
OTHERS = {
    **dict.fromkeys(("secrets", "pods", "namespaces", "nodes", "services"), "/api/v1"),
    "jobs": "/apis/batch/v1",
    "mpijobs": "/apis/kubeflow.org/v2beta1",
    "lustrefilesystems": "/apis/lus.cray.hpe.com/v1beta1",
}
# A directive whose driver is the test.
COMMAND = "#DW parity name=one"
DRIVER = "parity"

Object = dict[str, Any]
_numbers = itertools.count()


def unique(stem: str) -> str:
    """A name that no other test, nor an earlier run, has used."""
    return f"{stem}-{os.getpid()}-{next(_numbers)}"


class Answer:
    """A response: its code and the object in it."""

    def __init__(self, response: requests.Response) -> None:
        self.code = response.status_code
        self.warnings = response.headers.get("Warning", "")
        self.object: Any = response.json()

    def expect(self, code: int) -> Any:
        assert self.code == code, self.object
        return self.object

    def refused(self, code: int, reason: str | None) -> str:
        """Check the Status object of a refusal; returns the message."""
        body = self.expect(code)
        assert body["kind"] == "Status"
        assert body["apiVersion"] == "v1"
        assert body["status"] == "Failure"
        assert body["code"] == code
        assert body.get("reason") == reason, body
        return str(body["message"])


class User:
    """Requests to the server as one user."""

    def __init__(self, kubeconfig: pathlib.Path, context: str) -> None:
        config = yaml.safe_load(kubeconfig.read_text())

        def named(what: str, name: str) -> Object:
            found: Object = next(i for i in config[what] if i["name"] == name)
            return found

        chosen = named("contexts", context)["context"]
        cluster = named("clusters", chosen["cluster"])["cluster"]
        self.url = cluster["server"]
        self.session = requests.Session()
        # or a CA bundle in the environment would take the place of ours
        self.session.trust_env = False
        token = named("users", chosen["user"])["user"]["token"]
        self.session.headers["Authorization"] = f"Bearer {token}"
        ca = cluster.get("certificate-authority-data")
        if ca:
            with tempfile.NamedTemporaryFile(delete=False) as file:
                file.write(base64.b64decode(ca))
            self.session.verify = file.name

    @staticmethod
    def path(
        plural: str, name: str = "", ns: str | None = "default", version: str = ""
    ) -> str:
        """The path of a kind or an object; ns None: of all namespaces."""
        group = NNF if plural.startswith("nnf") else DWS
        version = version or ("v1alpha11" if group == NNF else VERSION)
        parts = [OTHERS.get(plural, f"/apis/{group}/{version}")]
        if ns is not None:
            parts += ["namespaces", ns]
        return "/".join([*parts, plural, *([name] if name else [])])

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "application/json",
        accept: str = "",
        **params: Any,
    ) -> Answer:
        data = json.dumps(body) if not isinstance(body, (bytes, type(None))) else body
        headers = {"Content-Type": content_type} if body is not None else {}
        if accept:
            headers["Accept"] = accept
        return Answer(
            self.session.request(
                method,
                self.url + path,
                data=data,
                headers=headers,
                params=params,
                timeout=LIMIT_S,
            )
        )

    # -- shorter ----------------------------------------------------------

    def get(self, plural: str, name: str, ns: str = "default", **where: str) -> Answer:
        return self.send("GET", self.path(plural, name, ns, **where))

    def list(self, plural: str, ns: str | None = "default", **params: Any) -> Answer:
        return self.send("GET", self.path(plural, "", ns), **params)

    def create(self, plural: str, obj: Object, ns: str = "default") -> Answer:
        group = NNF if plural.startswith("nnf") else DWS
        version = "v1alpha11" if group == NNF else VERSION
        body = {"apiVersion": f"{group}/{version}", **obj}
        return self.send("POST", self.path(plural, "", ns), body)

    def put(self, plural: str, obj: Object, sub: str = "") -> Answer:
        meta = obj["metadata"]
        path = self.path(plural, meta["name"], meta["namespace"])
        return self.send("PUT", path + sub, obj)

    def merge(self, plural: str, name: str, body: Any, sub: str = "") -> Answer:
        return self.send("PATCH", self.path(plural, name) + sub, body, MERGE)

    def delete(self, plural: str, name: str, body: Any = None) -> Answer:
        return self.send("DELETE", self.path(plural, name), body)

    # -- watches ----------------------------------------------------------

    def watch(
        self, plural: str, ns: str | None = "default", seconds: int = 1, **params: Any
    ) -> Iterator[Object]:
        """Events until the server ends the watch after this many seconds."""
        yield from self.open_watch(plural, ns, seconds, **params)

    def open_watch(
        self, plural: str, ns: str | None = "default", seconds: int = 1, **params: Any
    ) -> Iterator[Object]:
        """The same of one that has begun when this returns."""
        response = self.session.get(
            self.url + self.path(plural, "", ns),
            params={"watch": "true", "timeoutSeconds": seconds, **params},
            stream=True,
            timeout=seconds + LIMIT_S,
        )

        def events() -> Iterator[Object]:
            with response:
                for line in response.iter_lines():
                    yield json.loads(line)

        assert response.status_code == 200, response.text
        return events()

    def history(
        self, plural: str, name: str, since: str, done: Callable[[Object], Any]
    ) -> list[Object]:
        """The events of one object after a version, up to one that is done."""
        out = []
        for event in self.watch(
            plural,
            seconds=LIMIT_S,
            resourceVersion=since,
            fieldSelector=f"metadata.name={name}",
        ):
            out.append(event)
            if done(event):
                return out
        raise AssertionError(f"{plural} {name} does not get there: {out[-1:]}")

    def until(self, plural: str, name: str, done: Callable[[Object], Any]) -> Object:
        """Wait for an object to be as asked for."""
        found = self.get(plural, name)
        if found.code == 200 and done(found.object):
            return found.expect(200)
        since = self.list(plural).expect(200)["metadata"]["resourceVersion"]
        found = self.get(plural, name)
        if found.code == 200 and done(found.object):
            return found.expect(200)
        events = self.history(plural, name, since, lambda e: done(e["object"]))
        obj: Object = events[-1]["object"]
        return obj

    def gone(self, plural: str, name: str) -> None:
        """Wait until an object is gone."""
        since = self.list(plural).expect(200)["metadata"]["resourceVersion"]
        if self.get(plural, name).code != 404:
            self.history(plural, name, since, lambda e: e["type"] == "DELETED")


def workflow(name: str, *directives: str, **spec: Any) -> Object:
    """A Workflow to create."""
    return {
        "kind": "Workflow",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "desiredState": "Proposal",
            "wlmID": "flux",
            "jobID": "f23",
            "userID": os.getuid(),
            "groupID": os.getgid(),
            "dwDirectives": list(directives),
            **spec,
        },
    }


def computes(name: str, *nodes: str, **meta: Any) -> Object:
    """An object of a kind without webhooks and controllers."""
    return {
        "apiVersion": f"{DWS}/{VERSION}",
        "kind": "Computes",
        "metadata": {"name": name, "namespace": "default", **meta},
        "data": [{"name": node} for node in nodes],
    }


def rules() -> Object:
    """The rule that makes the test a driver in some states."""
    string = {"type": "string", "isRequired": False, "isValueRequired": True}
    return {
        "kind": "DWDirectiveRule",
        "metadata": {"name": DRIVER, "namespace": "dws-system"},
        "spec": [
            {
                "command": "parity",
                "watchStates": "Proposal,Setup,Teardown",
                "ruleDefs": [
                    {**string, "key": "^name$", "pattern": "^[a-z]+$"},
                    {
                        "key": "^number$",
                        "type": "integer",
                        "min": 2,
                        "max": 5,
                        "isRequired": False,
                        "isValueRequired": True,
                    },
                    {
                        "key": "^flag$",
                        "type": "bool",
                        "pattern": "^(true|false)$",
                        "isRequired": False,
                        "isValueRequired": True,
                    },
                ],
            }
        ],
    }


def reached(state: str) -> Callable[[Object], bool]:
    """Whether a workflow is ready in a state, with no doubt about which."""

    def done(obj: Object) -> bool:
        status = obj.get("status", {})
        there = obj["spec"]["desiredState"] == status.get("state") == state
        return bool(there and status["ready"])

    return done


def in_state(state: str) -> Callable[[Object], bool]:
    """Whether a workflow has begun a state."""
    return lambda obj: obj.get("status", {}).get("state") == state


def drive(user: User, name: str, index: int = 0, **fields: Any) -> Object:
    """Change these fields of the test's own driver entry for the workflow's present
    state."""
    while True:
        obj = user.get("workflows", name).expect(200)
        for entry in obj["status"]["drivers"]:
            if (entry["driverID"], entry["dwdIndex"]) == (DRIVER, index) and entry[
                "watchState"
            ] == obj["status"]["state"]:
                entry.update(fields)
        answer = user.put("workflows", obj)
        if answer.code != 409:
            done: Object = answer.expect(200)
            return done


def complete(user: User, name: str) -> Object:
    """Complete the entry of the state; returns the workflow when ready."""
    state = drive(user, name, completed=True, status="Completed")["status"]["state"]
    return user.until("workflows", name, reached(state))


def to_state(user: User, name: str, state: str) -> Object:
    """Ask for a state and wait until it has begun."""
    user.merge("workflows", name, {"spec": {"desiredState": state}}).expect(200)
    return user.until("workflows", name, in_state(state))


def remove(user: User, name: str) -> None:
    """Delete a workflow that may be gone already."""
    assert user.delete("workflows", name).code in (200, 404)
    user.gone("workflows", name)


@contextlib.contextmanager
def profiles(admin: User, kind: str) -> Iterator[Callable[[Object], str]]:
    """A function that makes a profile of a kind with some data, and returns its
    name; they are gone in the end."""
    resource, namespace = f"{kind.lower()}s", "nnf-system"
    made: list[str] = []

    def make(data: Object) -> str:
        name = unique("profile")
        body = {
            "kind": kind,
            "metadata": {"name": name, "namespace": namespace},
            "data": data,
        }
        admin.create(resource, body, namespace).expect(201)
        made.append(name)
        return name

    yield make
    for name in made:
        admin.send("DELETE", admin.path(resource, name, namespace)).expect(200)
