# The Kubernetes nodes of rabbits, and what the controllers on them report: NnfNode.
# SPDX-License-Identifier: LGPL-3.0-only
"""Node and NnfNode objects."""

from __future__ import annotations

from dws_sim.jsontree import Object, now_seconds

LABEL = "cray.nnf.node"
DRAIN = f"{LABEL}.drain"
HOSTNAME = "kubernetes.io/hostname"
# The name of each rabbit's NnfNode, in its namespace.
NNF_NODE = "nnf-nlc"
_READY = ("True", "KubeletReady", "kubelet is posting ready status")
_LOST = ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")


def node(rabbit: str) -> Object:
    """The Node of a rabbit: tainted, so that it runs no other pods than NNF's."""
    taint = {"key": LABEL, "value": "true", "effect": "NoSchedule"}
    return {
        "metadata": {"name": rabbit, "labels": {LABEL: "true", HOSTNAME: rabbit}},
        "spec": {"taints": [taint]},
    }


def is_drained(obj: Object | None) -> bool:
    """Whether a Node has one of the taints by which rabbits are drained."""
    taints = (obj or {}).get("spec", {}).get("taints", ())
    return any(str(t.get("key", "")).startswith(DRAIN) for t in taints)


def node_status(obj: Object, is_up: bool) -> Object:
    """The status of a Node whose kubelet reports, or does not."""
    word, reason, message = _READY if is_up else _LOST
    name = obj["metadata"]["name"]
    before = obj.get("status", {})
    found = before.get("conditions", [])
    was = next((c for c in found if c.get("type") == "Ready"), None)
    if was is not None and was.get("reason") == reason:
        ready = was
    else:
        now = now_seconds()
        ready = {
            "type": "Ready",
            "status": word,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
    others = [c for c in found if c is not was]
    return {
        **before,
        "conditions": [*others, ready],
        "addresses": [{"type": "Hostname", "address": name}],
    }


def nnf_node(rabbit: str) -> Object:
    """The NnfNode of a rabbit."""
    return {
        "metadata": {"name": NNF_NODE, "namespace": rabbit},
        "spec": {
            "name": rabbit,
            "pod": f"nnf-node-manager-{rabbit}",
            "state": "Enable",
        },
    }


def _health(word: str) -> str:
    return "OK" if word == "Ready" else "Critical"


def nnf_node_status(rabbit: str, storage: Object, is_fenced: bool) -> Object:
    """Status of an NnfNode, as the rabbit's controller reports it.

    Args:
        storage: the status of its Storage.
    """
    drives = []
    for number, device in enumerate(storage["devices"]):
        drives.append(
            {**device, "id": str(number), "health": _health(device["status"])}
        )
    access = storage["access"]
    servers = []
    for number, server in enumerate([*access["servers"], *access["computes"]]):
        servers.append(
            {
                "id": str(number),
                "name": "Rabbit" if number == 0 else f"Compute {number - 1}",
                "hostname": server["name"],
                "status": server["status"],
                "health": _health(server["status"]),
            }
        )
    total = sum(device.get("capacity", 0) for device in storage["devices"])
    status: Object = {
        "capacity": storage["capacity"],
        "capacityAllocated": max(0, total - storage["capacity"]),
        "drives": drives,
        "servers": servers,
        "health": _health(storage["status"]),
        "status": storage["status"],
        "lnetNid": f"{rabbit}@tcp",
    }
    if is_fenced:
        status["fenced"] = True
    return status
