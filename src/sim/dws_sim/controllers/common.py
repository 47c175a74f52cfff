# Names, labels and errors that the controllers share.
# SPDX-License-Identifier: LGPL-3.0-only
"""Shared facts of the controllers."""

from __future__ import annotations

from dws_sim.controllers.cluster import Cluster
from dws_sim.faults import Faults
from dws_sim.jsontree import Object
from dws_sim.schema.resources import BY_KIND, DWS_GROUP, NNF_GROUP

DWS_FINALIZER = f"{DWS_GROUP}/workflow"
NNF_FINALIZER = f"{NNF_GROUP}/nnf_workflow"
BREAKDOWN_FINALIZER = f"{NNF_GROUP}/directiveBreakdown"
SERVERS_FINALIZER = f"{NNF_GROUP}/nnf-servers"
STORAGE_FINALIZER = f"{NNF_GROUP}/nnf_storage"
ACCESS_FINALIZER = f"{NNF_GROUP}/nnf_access"
MOUNT_FINALIZER = f"{NNF_GROUP}/nnf_clientmount"
PSI_FINALIZER = f"{NNF_GROUP}/persistentStorage"

_WORKFLOW = f"{DWS_GROUP}/workflow"
_OWNER = f"{DWS_GROUP}/owner"
INDEX_LABEL = f"{NNF_GROUP}/directive_index"
TARGET_LABEL = f"{NNF_GROUP}/target_directive_index"
TEARDOWN_LABEL = f"{NNF_GROUP}/teardown_state"
JOB_LABEL = f"{NNF_GROUP}/job_id"
CONTAINER_LABEL = f"{NNF_GROUP}/container"
OWNER_UID = f"{_OWNER}.uid"
WORKFLOW_UID = f"{_WORKFLOW}.uid"
STORAGE_LABEL = f"{DWS_GROUP}/storage"
NNF_NAMESPACE = "nnf-system"
# Secret with the certificate of containers that request a token.
TLS_SECRET = "nnf-dm-usercontainer-server-tls"


class ResourceError(Exception):
    """A fault that users see: its type, and whether waiting may help.

    Attributes:
        user: the text for the workflow's message.
        debug: the error chain, to which each level prepends a text; "": the same as
            user.
    """

    def __init__(
        self,
        user: str = "",
        type_: str = "Internal",
        severity: str = "Minor",
        debug: str = "",
    ) -> None:
        super().__init__(debug or user)
        self.user = user
        self.type = type_
        self.severity = severity
        self.debug = debug

    @property
    def story(self) -> str:
        return self.debug or self.user

    @classmethod
    def of(cls, error: Object) -> ResourceError:
        """The error in a status."""
        return cls(
            error.get("userMessage", ""),
            error["type"],
            error["severity"],
            error["debugMessage"],
        )

    def within(self, place: str = "", user: str = "") -> ResourceError:
        """The fault for the caller to raise: with the place added, and with a text for
        users if there is none yet."""
        debug = f"{place}: {self.story}" if place else self.story
        return ResourceError(self.user or user, self.type, self.severity, debug)

    def to_object(self) -> Object:
        out: Object = {"userMessage": self.user} if self.user else {}
        return {
            **out,
            "debugMessage": self.story,
            "type": self.type,
            "severity": self.severity,
        }


def met(exc: Exception, place: str = "", user: str = "") -> ResourceError:
    """Convert an exception to a fault at a place. Exceptions other than ResourceError
    are Internal and may pass."""
    if isinstance(exc, ResourceError):
        return exc.within(place, user)
    return ResourceError(debug=str(exc)).within(place, user)


def not_picked_up(node: str, kind: str, faults: Faults) -> ResourceError:
    """The fault that no daemon on a node has reconciled a child in time."""
    debug = (
        f"Node: {node}: {kind} has not been reconciled after "
        f"{faults.child_timeout_s:g} seconds"
    )
    return ResourceError("", "Internal", "Major", debug)


def missing(kind: str, name: str) -> str:
    """The controllers' error text for a missing object."""
    return f'{kind}.{BY_KIND[kind].group} "{name}" not found'


def fatal(text: str, type_: str = "User", debug: str = "") -> ResourceError:
    return ResourceError(text, type_, "Fatal", debug)


def ref(obj: Object) -> dict[str, str]:
    """A reference by kind, namespace and name."""
    meta = obj["metadata"]
    return {"kind": obj["kind"], "name": meta["name"], "namespace": meta["namespace"]}


def whole_labels(workflow: Object) -> dict[str, str]:
    """Labels of what belongs to a workflow as a whole."""
    meta = workflow["metadata"]
    return {
        f"{_WORKFLOW}.name": meta["name"],
        f"{_WORKFLOW}.namespace": meta["namespace"],
        WORKFLOW_UID: meta["uid"],
    }


def workflow_labels(workflow: Object, index: int | None = None) -> dict[str, str]:
    """Labels of what belongs to a workflow."""
    labels = {
        **whole_labels(workflow),
        JOB_LABEL: str(workflow["spec"]["jobID"]).replace(" ", "-"),
    }
    if index is not None:
        labels[INDEX_LABEL] = str(index)
    return labels


def inherited_labels(obj: Object) -> dict[str, str]:
    """The labels that a child copies from its owner: all but the owner's owner."""
    labels = obj["metadata"].get("labels", {})
    return {k: v for k, v in labels.items() if not k.startswith(f"{_OWNER}.")}


def owner_labels(owner: Object) -> dict[str, str]:
    """Labels that tie a child to its owner, across namespaces too."""
    meta = owner["metadata"]
    return {
        f"{_OWNER}.kind": owner["kind"],
        f"{_OWNER}.name": meta["name"],
        f"{_OWNER}.namespace": meta["namespace"],
        OWNER_UID: meta["uid"],
    }


def owner_reference(owner: Object) -> Object:
    """A controller reference, for children in the same namespace."""
    meta = owner["metadata"]
    return {
        "apiVersion": BY_KIND[owner["kind"]].api_version,
        "kind": owner["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def child(
    owner: Object,
    namespace: str,
    name: str,
    labels: dict[str, str],
    finalizer: str = "",
    **body: object,
) -> Object:
    """A new object that belongs to another one."""
    meta: Object = {
        "name": name,
        "namespace": namespace,
        "labels": {**labels, **owner_labels(owner)},
    }
    if namespace == owner["metadata"]["namespace"]:
        meta["ownerReferences"] = [owner_reference(owner)]
    if finalizer:
        meta["finalizers"] = [finalizer]
    return {"metadata": meta, **body}


def owner_of(obj: Object, kind: str) -> list[str] | None:
    """Namespace and name of the owner of a kind, by label."""
    labels = obj["metadata"].get("labels", {})
    if labels.get(f"{_OWNER}.kind") != kind:
        return None
    return [labels[f"{_OWNER}.namespace"], labels[f"{_OWNER}.name"]]


def is_deleting(obj: Object) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def has_finalizer(obj: Object, finalizer: str) -> bool:
    return finalizer in obj["metadata"].get("finalizers", ())


async def add_finalizer(
    cluster: Cluster, plural: str, obj: Object, finalizer: str
) -> Object:
    """Put a finalizer on an object; returns the stored one."""
    if has_finalizer(obj, finalizer):
        return obj
    meta = obj["metadata"]
    finalizers = [*meta.get("finalizers", ()), finalizer]
    new = {**obj, "metadata": {**meta, "finalizers": finalizers}}
    return await cluster.update(plural, new)


async def drop_finalizer(
    cluster: Cluster, plural: str, obj: Object, finalizer: str
) -> None:
    """Take a finalizer off an object."""
    if not has_finalizer(obj, finalizer):
        return
    meta = obj["metadata"]
    finalizers = [f for f in meta["finalizers"] if f != finalizer]
    new = {**obj, "metadata": {**meta, "finalizers": finalizers}}
    await cluster.update(plural, new)
