# Kubernetes' protobuf as typed Go clients send it: bodies of the core kinds that
# they write. Answers are JSON, which all of them read.
# SPDX-License-Identifier: LGPL-3.0-only
"""Protobuf bodies."""

from __future__ import annotations

import base64
import functools
import time
from collections.abc import Iterator
from typing import Any

from dws_sim.jsontree import Object

MAGIC = b"k8s\x00"


class UnknownFieldError(ValueError):
    """A field that the tables below do not have, with something in it."""


# Messages: field number to "name type". Types: str, bytes, int, bool, time, micro,
# quantity, int|str, or the name of a message; "[]" before it for a list, "{}" for
# a map of strings to it. Go sends fields that are zero, and JSON has them only
# where they can be absent too: those have "?". A message "-" belongs to its parent.
_TABLES = """
ObjectMeta: 1 name str, 2 generateName str, 3 namespace str, 5 uid str,
  6 resourceVersion str, 7 generation int, 8 creationTimestamp time,
  9 deletionTimestamp time, 10 deletionGracePeriodSeconds ?int, 11 labels {}str,
  12 annotations {}str, 13 ownerReferences []OwnerReference, 14 finalizers []str,
  17 managedFields []skip
OwnerReference: 1 kind str, 3 name str, 4 uid str, 5 apiVersion str,
  6 controller ?bool, 7 blockOwnerDeletion ?bool
DeleteOptions: 1 gracePeriodSeconds ?int, 2 preconditions Preconditions,
  3 orphanDependents ?bool, 4 propagationPolicy str, 5 dryRun []str
Preconditions: 1 uid str, 2 resourceVersion str
SelfSubjectReview: 1 metadata ObjectMeta, 2 status skip
SelfSubjectAccessReview: 1 metadata ObjectMeta, 2 spec AccessSpec, 3 status skip
AccessSpec: 1 resourceAttributes ResourceAttributes, 2 nonResourceAttributes PathSpec
ResourceAttributes: 1 namespace str, 2 verb str, 3 group str, 4 version str,
  5 resource str, 6 subresource str, 7 name str
PathSpec: 1 path str, 2 verb str
SelfSubjectRulesReview: 1 metadata ObjectMeta, 2 spec RulesSpec, 3 status skip
RulesSpec: 1 namespace str
Namespace: 1 metadata ObjectMeta, 2 spec NamespaceSpec, 3 status NamespaceStatus
NamespaceSpec: 1 finalizers []str
NamespaceStatus: 1 phase str
Secret: 1 metadata ObjectMeta, 2 data {}bytes, 3 type str, 4 stringData {}str,
  5 immutable ?bool
ConfigMap: 1 metadata ObjectMeta, 2 data {}str, 3 binaryData {}bytes, 4 immutable ?bool
Node: 1 metadata ObjectMeta, 2 spec NodeSpec, 3 status NodeStatus
NodeSpec: 1 podCIDR str, 3 providerID str, 4 unschedulable bool, 5 taints []Taint,
  7 podCIDRs []str
Taint: 1 key str, 2 value str, 3 effect str, 4 timeAdded time
NodeStatus: 1 capacity {}quantity, 2 allocatable {}quantity, 3 phase str,
  4 conditions []Condition, 5 addresses []Address, 6 daemonEndpoints Endpoints,
  7 nodeInfo NodeInfo
Endpoints: 1 kubeletEndpoint Endpoint
Endpoint: 1 Port int
Address: 1 type str, 2 address str
NodeInfo: 1 machineID str, 2 systemUUID str, 3 bootID str, 4 kernelVersion str,
  5 osImage str, 6 containerRuntimeVersion str, 7 kubeletVersion str,
  8 kubeProxyVersion str, 9 operatingSystem str, 10 architecture str
Condition: 1 type str, 2 status str, 3 lastHeartbeatTime time,
  4 lastTransitionTime time, 5 reason str, 6 message str
Event: 1 metadata ObjectMeta, 2 involvedObject Reference, 3 reason str, 4 message str,
  5 source Source, 6 firstTimestamp time, 7 lastTimestamp time, 8 count int,
  9 type str, 10 eventTime micro, 11 series Series, 12 action str,
  13 related Reference, 14 reportingComponent str, 15 reportingInstance str
Reference: 1 kind str, 2 namespace str, 3 name str, 4 uid str, 5 apiVersion str,
  6 resourceVersion str, 7 fieldPath str
Source: 1 component str, 2 host str
Series: 1 count int, 2 lastObservedTime micro
Service: 1 metadata ObjectMeta, 2 spec ServiceSpec, 3 status skip
ServiceSpec: 1 ports []ServicePort, 2 selector {}str, 3 clusterIP str, 4 type str,
  5 externalIPs []str, 7 sessionAffinity str, 13 publishNotReadyAddresses bool
ServicePort: 1 name str, 2 protocol str, 3 port int, 4 targetPort int|str,
  5 nodePort int
Pod: 1 metadata ObjectMeta, 2 spec PodSpec, 3 status PodStatus
PodSpec: 1 volumes []Volume, 2 containers []Container, 3 restartPolicy str,
  4 terminationGracePeriodSeconds ?int, 5 activeDeadlineSeconds ?int, 6 dnsPolicy str,
  7 nodeSelector {}str, 8 serviceAccountName str, 9 serviceAccount str,
  10 nodeName str, 11 hostNetwork bool, 12 hostPID bool, 13 hostIPC bool,
  14 securityContext PodSecurity, 15 imagePullSecrets []Named, 16 hostname str,
  17 subdomain str, 19 schedulerName str, 20 initContainers []Container,
  21 automountServiceAccountToken ?bool, 22 tolerations []Toleration,
  27 shareProcessNamespace ?bool, 30 enableServiceLinks ?bool
Named: 1 name str
Toleration: 1 key str, 2 operator str, 3 value str, 4 effect str,
  5 tolerationSeconds ?int
PodSecurity: 2 runAsUser ?int, 3 runAsNonRoot ?bool, 4 supplementalGroups []int,
  5 fsGroup ?int, 6 runAsGroup ?int
Container: 1 name str, 2 image str, 3 command []str, 4 args []str, 5 workingDir str,
  6 ports []ContainerPort, 7 env []EnvVar, 8 resources Resources,
  9 volumeMounts []VolumeMount, 13 terminationMessagePath str,
  14 imagePullPolicy str, 15 securityContext Security, 16 stdin bool,
  17 stdinOnce bool, 18 tty bool, 20 terminationMessagePolicy str
ContainerPort: 1 name str, 2 hostPort int, 3 containerPort int, 4 protocol str,
  5 hostIP str
EnvVar: 1 name str, 2 value str
Resources: 1 limits {}quantity, 2 requests {}quantity
VolumeMount: 1 name str, 2 readOnly bool, 3 mountPath str, 4 subPath str,
  5 mountPropagation str
Security: 2 privileged ?bool, 4 runAsUser ?int, 5 runAsNonRoot ?bool,
  6 readOnlyRootFilesystem ?bool, 7 allowPrivilegeEscalation ?bool, 8 runAsGroup ?int
Volume: 1 name str, 2 - VolumeSource
VolumeSource: 1 hostPath HostPath, 2 emptyDir EmptyDir, 6 secret SecretVolume,
  10 persistentVolumeClaim Claim, 19 configMap ConfigMapVolume
HostPath: 1 path str, 2 type str
EmptyDir: 1 medium str
SecretVolume: 1 secretName str, 3 defaultMode ?int, 4 optional ?bool
Claim: 1 claimName str, 2 readOnly bool
ConfigMapVolume: 1 - Named, 3 defaultMode ?int, 4 optional ?bool
PodStatus: 1 phase str, 2 conditions []PodCondition, 3 message str, 4 reason str,
  5 hostIP str, 6 podIP str, 7 startTime time, 9 qosClass str
PodCondition: 1 type str, 2 status str, 3 lastProbeTime time,
  4 lastTransitionTime time, 5 reason str, 6 message str
"""
Message = dict[int, tuple[str, str]]
Field = tuple[int, Any]


@functools.cache
def _messages() -> dict[str, Message]:
    out: dict[str, Message] = {}
    text = _TABLES.replace("\n  ", " ")
    for line in text.strip().splitlines():
        name, _, fields = line.partition(": ")
        entries = (field.split() for field in fields.split(", "))
        out[name] = {int(number): (key, kind) for number, key, kind in entries}
    return out


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number is too long")


def _fields(data: bytes) -> Iterator[Field]:
    """Numbers and values of a message: int, or bytes.

    Raises:
        ValueError: it is none.
    """
    at = 0
    try:
        while at < len(data):
            key, at = _varint(data, at)
            kind = key & 7
            if kind == 0:
                value, at = _varint(data, at)
                yield key >> 3, value
            elif kind == 2:
                length, at = _varint(data, at)
                if at + length > len(data):
                    raise ValueError("a field is longer than its message")
                yield key >> 3, data[at : at + length]
                at += length
            else:
                raise UnknownFieldError(f"wire type {kind}")
    except IndexError as exc:
        raise ValueError("the message ends too soon") from exc


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _time(data: bytes, micro: bool) -> str | None:
    parts = dict(_fields(data))
    if not parts:
        return None
    seconds = _signed(parts.get(1, 0))
    text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{text}.{parts.get(2, 0) // 1000:06}Z" if micro else f"{text}Z"


def _value(kind: str, raw: Any) -> Any:
    """A value as JSON has it. None: nothing is there."""
    if kind == "int":
        return _signed(raw)
    if kind == "bool":
        return bool(raw)
    if kind == "str":
        return raw.decode()
    if kind == "bytes":
        return base64.b64encode(raw).decode()
    if kind in ("time", "micro"):
        return _time(raw, kind == "micro")
    if kind == "quantity":
        return dict(_fields(raw)).get(1, b"").decode()
    if kind == "int|str":
        parts = dict(_fields(raw))
        return parts.get(3, b"").decode() if parts.get(1) else _signed(parts.get(2, 0))
    return _message(kind, raw)


def _message(name: str, data: bytes) -> Object:
    table = _messages()[name]
    out: Object = {}
    for number, raw in _fields(data):
        known = table.get(number)
        if known is None:
            # something empty has nothing to lose
            if raw and _has_value(raw):
                raise UnknownFieldError(f"field {number} of {name}")
            continue
        key, kind = known
        if kind.endswith("skip"):
            continue
        if isinstance(raw, int) != (kind.lstrip("[]?") in ("int", "bool")):
            raise ValueError(f"{name}.{key} is of another type")
        if kind.startswith("[]"):
            out.setdefault(key, []).append(_value(kind[2:], raw))
        elif kind.startswith("{}"):
            pair = dict(_fields(raw))
            found = _value(kind[2:], pair.get(2, b""))
            out.setdefault(key, {})[pair.get(1, b"").decode()] = found
        elif key == "-":
            out.update(_message(kind, raw))
        else:
            value = _value(kind.lstrip("?"), raw)
            if value or (kind[0] == "?" and value is not None) or kind == "EmptyDir":
                out[key] = value
    return out


def _has_value(raw: Any) -> bool:
    """Whether an unknown field has anything but zeros in it."""
    if isinstance(raw, int):
        return raw != 0
    try:
        return any(value and _has_value(value) for _, value in _fields(raw))
    except ValueError:
        return True


def decode(body: bytes) -> Object:
    """The object of a request's body.

    Raises:
        UnknownFieldError: of a kind, or with a field, that is not known here.
        ValueError: it is not protobuf of Kubernetes.
    """
    if not body.startswith(MAGIC):
        raise ValueError("the body does not begin as protobuf of Kubernetes does")
    try:
        envelope = dict(_fields(body[len(MAGIC) :]))
        names = dict(_fields(envelope.get(1, b"")))
        version, kind = names.get(1, b"").decode(), names.get(2, b"").decode()
        if kind not in _messages():
            raise UnknownFieldError(f"kind {kind}")
        out = _message(kind, envelope.get(2, b""))
    except (TypeError, AttributeError, UnicodeDecodeError) as exc:
        raise ValueError(f"malformed: {exc}") from exc
    return {"apiVersion": version, "kind": kind, **out}
