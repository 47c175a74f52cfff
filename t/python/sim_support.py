# A running dws-sim for tests, and the workload manager's part of a workflow,
# both through the unmodified kubernetes client.
# SPDX-License-Identifier: LGPL-3.0-only
"""Support for the tests of dws-sim."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
from typing import Any

from kubernetes import client, config, watch

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "src" / "sim"
sys.path.insert(0, str(SOURCE))

from dws_sim.cli import main  # noqa: E402

DWS = "dataworkflowservices.github.io"
NNF = "nnf.cray.hpe.com"
VERSIONS = {DWS: "v1alpha7", NNF: "v1alpha11"}
LIMIT_S = 30
GIB = 1 << 30
PADDING = 300 << 20
STATES = ["Proposal", "Setup", "DataIn", "PreRun", "PostRun", "DataOut", "Teardown"]
XFS = "#DW jobdw type=xfs capacity=10GiB name=scratch"


class Sim:
    """One dws-sim process."""

    def __init__(self, directory: pathlib.Path, *options: str) -> None:
        self.directory = directory
        self.root = directory / "root"
        self.kubeconfig = directory / "kubeconfig"
        self.mapping = directory / "mapping.json"
        reader, writer = os.pipe()
        command = [sys.executable, "-m", "dws_sim", "run"]
        command += ["--kubeconfig", str(self.kubeconfig), "--root", str(self.root)]
        command += ["--mapping", str(self.mapping), "--ready-fd", str(writer)]
        self.process = subprocess.Popen(
            [*command, *options],
            pass_fds=[writer],
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
        )
        os.close(writer)
        with os.fdopen(reader) as ready:
            assert ready.read() == "ready\n"

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(LIMIT_S)

    def ctl(self, *words: str, check: bool = True) -> str:
        """Run dws-sim ctl; returns what it prints."""
        text = io.StringIO()
        with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
            status = main(["ctl", "--kubeconfig", str(self.kubeconfig), *words])
        if check:
            assert status == 0, text.getvalue()
        return text.getvalue()

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.ctl("state"))
        return found

    @property
    def ca(self) -> pathlib.Path:
        """The certificate of the simulator's authority, as a file."""
        config = json.loads(self.kubeconfig.read_text())
        data = config["clusters"][0]["cluster"]["certificate-authority-data"]
        path = self.directory / "ca.crt"
        path.write_bytes(base64.b64decode(data))
        return path

    def client(self, context: str = "admin") -> client.ApiClient:
        return config.new_client_from_config(str(self.kubeconfig), context=context)


class Api:
    """Short names for the calls of CustomObjectsApi."""

    def __init__(self, sim: Sim, context: str = "admin") -> None:
        self.sim = sim
        self.api_client = sim.client(context)
        self.custom = client.CustomObjectsApi(self.api_client)
        self.core = client.CoreV1Api(self.api_client)

    @staticmethod
    def _where(plural: str) -> tuple[str, str]:
        if plural == "lustrefilesystems":
            return "lus.cray.hpe.com", "v1beta1"
        group = NNF if plural.startswith("nnf") else DWS
        return group, VERSIONS[group]

    def create(self, plural: str, obj: dict[str, Any], ns: str = "default") -> Any:
        group, version = self._where(plural)
        obj = {"apiVersion": f"{group}/{version}", **obj}
        return self.custom.create_namespaced_custom_object(
            group, version, ns, plural, obj
        )

    def get(self, plural: str, name: str, ns: str = "default") -> Any:
        return self.custom.get_namespaced_custom_object(
            *self._where(plural), ns, plural, name
        )

    def patch(self, plural: str, name: str, body: Any, ns: str = "default") -> Any:
        return self.custom.patch_namespaced_custom_object(
            *self._where(plural), ns, plural, name, body
        )

    def replace(self, plural: str, obj: dict[str, Any], ns: str = "default") -> Any:
        return self.custom.replace_namespaced_custom_object(
            *self._where(plural), ns, plural, obj["metadata"]["name"], obj
        )

    def delete(self, plural: str, name: str, ns: str = "default") -> Any:
        return self.custom.delete_namespaced_custom_object(
            *self._where(plural), ns, plural, name
        )

    def list(self, plural: str, **options: Any) -> Any:
        return self.custom.list_cluster_custom_object(
            *self._where(plural), plural, **options
        )

    def names(self, plural: str, **options: Any) -> list[str]:
        items = self.list(plural, **options)["items"]
        return [item["metadata"]["name"] for item in items]


def error_of(exc: client.ApiException) -> dict[str, Any]:
    """The Status object of a refusal."""
    status: dict[str, Any] = json.loads(exc.body)
    assert status["kind"] == "Status"
    assert status["code"] == exc.status
    return status


def workflow(name: str, *directives: str, **spec: Any) -> dict[str, Any]:
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


class Job:
    """A workflow and what a workload manager does with it."""

    def __init__(self, api: Api, name: str, *directives: str, **spec: Any) -> None:
        self.api = api
        self.name = name
        self.created = api.create("workflows", workflow(name, *directives, **spec))

    def wait(self, state: str, ready: bool = True) -> Any:
        """Wait for a state; returns the workflow."""
        words = ["--ready"] if ready else []
        limit = ["--timeout", str(LIMIT_S)]
        self.api.sim.ctl("wait-state", self.name, state, *words, *limit)
        return None if state == "gone" else self.get()

    def get(self) -> Any:
        return self.api.get("workflows", self.name)

    def to(self, state: str, ready: bool = True) -> Any:
        """Ask for a state and wait for it."""
        self.api.patch("workflows", self.name, {"spec": {"desiredState": state}})
        return self.wait(state, ready)

    def breakdown(self, index: int = 0) -> Any:
        return self.api.get("directivebreakdowns", f"{self.name}-{index}")

    def give(self, rabbits: dict[str, int], nodes: list[str], index: int = 0) -> None:
        """Fill in Servers, every set alike, and Computes."""
        wanted = self.breakdown(index)["status"]["storage"]
        sets = [
            {
                "label": need["label"],
                "allocationSize": need["minimumCapacity"],
                "storage": [
                    {"name": rabbit, "allocationCount": count}
                    for rabbit, count in rabbits.items()
                ],
            }
            for need in wanted["allocationSets"]
        ]
        servers = wanted["reference"]["name"]
        self.api.patch("servers", servers, {"spec": {"allocationSets": sets}})
        data = [{"name": node} for node in nodes]
        self.api.patch("computes", self.name, {"data": data})

    def through(self, last: str, first: str = "Setup") -> Any:
        """Go through the states from first to last."""
        obj = None
        for state in STATES[STATES.index(first) : STATES.index(last) + 1]:
            obj = self.to(state)
        return obj

    def remove(self) -> None:
        """Teardown and delete, whatever the state."""
        self.to("Teardown")
        self.api.delete("workflows", self.name)
        self.wait("gone")


def error_in(api: Api, name: str, word: str = "Error") -> str:
    """Wait for a workflow to have a status; returns the message."""
    stream = watch.Watch().stream(
        api.custom.list_namespaced_custom_object,
        *(DWS, "v1alpha7", "default", "workflows"),
        resource_version="0",
        field_selector=f"metadata.name={name}",
        timeout_seconds=LIMIT_S,
    )
    for event in stream:
        status = event["object"]["status"]
        if status.get("status") == word:
            return str(status["message"])
    raise AssertionError(f"not {word}")
