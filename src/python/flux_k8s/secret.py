# Reads the Secret of a workflow, and rejects any other Secret that the workflow's
# status may name: the agent may read more Secrets than the job's user.
# SPDX-License-Identifier: LGPL-3.0-only
"""The Secret with a workflow's token (doc/protocol.md, command `secret`)."""

from __future__ import annotations

import base64
from typing import Any

from flux_k8s.crd import DWS_GROUP
from flux_k8s.kube import Kube


class SecretError(Exception):
    """A Secret that must not be passed on; the text names the part at fault."""

    def __init__(self, status: int, reason: str, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.reason = reason


def _expected_labels(workflow: dict[str, Any]) -> dict[str, Any]:
    """The labels that NNF sets on the Secret of a workflow."""
    labels = {f"{DWS_GROUP}/owner.kind": "Workflow"}
    for key in ("name", "namespace", "uid"):
        labels[f"{DWS_GROUP}/workflow.{key}"] = workflow[key]
        labels[f"{DWS_GROUP}/owner.{key}"] = workflow[key]
    return labels


def _is_controller(reference: Any, workflow: dict[str, Any]) -> bool:
    return (
        isinstance(reference, dict)
        and str(reference.get("apiVersion")).startswith(f"{DWS_GROUP}/")
        and reference.get("kind") == "Workflow"
        and reference.get("controller") is True
        and reference.get("name") == workflow["name"]
        and reference.get("uid") == workflow["uid"]
    )


def _objection(secret: dict[str, Any], workflow: dict[str, Any]) -> str:
    """Why this is not the workflow's Secret, "" if it is."""
    meta = secret["metadata"]
    references = meta.get("ownerReferences")
    if not isinstance(references, list) or not any(
        _is_controller(reference, workflow) for reference in references
    ):
        return "its controlling owner is not that workflow"
    labels = meta.get("labels")
    for label, value in _expected_labels(workflow).items():
        if not isinstance(labels, dict) or labels.get(label) != value:
            return f"its label {label} is not {value}"
    return ""


async def read_secret(
    kube: Kube, workflow: dict[str, Any], namespace: str, name: str, key: str
) -> str:
    """A value of a workflow's Secret, as text.

    Args:
        workflow: its name, namespace and uid.
        namespace, name: of the Secret, from the workflow's status.
        key: of the value in the Secret.
    Raises:
        SecretError: the Secret is not that workflow's, or the value is no text.
        ApiError: the API server refuses.
    """
    for word in ("name", "namespace", "uid"):
        if not isinstance(workflow.get(word), str) or not workflow[word]:
            raise SecretError(400, "BadRequest", f"command secret: workflow: no {word}")
    whose = f"Secret {namespace}/{name} is not of workflow {workflow['name']}"
    if namespace != workflow["namespace"]:
        raise SecretError(403, "Forbidden", f"{whose}: it is in another namespace")
    secret = await kube.aget("secrets", namespace, name)
    objection = _objection(secret, workflow)
    if objection:
        raise SecretError(403, "Forbidden", f"{whose}: {objection}")
    data = secret.get("data")
    try:
        encoded = data.get(key) if isinstance(data, dict) else None
        value = base64.b64decode(encoded or "", validate=True).decode("ascii")
    except (ValueError, TypeError):
        value = ""
    if not value or not value.isprintable():
        raise SecretError(400, "BadRequest", f"Secret {name}: no text in {key}")
    return value
