# The simulated machine: rabbits, the computes that they serve, and the objects of a
# real system before the first job.
# SPDX-License-Identifier: LGPL-3.0-only
"""The machine and its configuration objects."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from typing import Any

from dws_sim import hostlist, nodes
from dws_sim.controllers.common import (
    NNF_NAMESPACE,
    STORAGE_LABEL,
    TLS_SECRET,
    owner_labels,
    owner_reference,
)
from dws_sim.directive import TESTER, nnf_rules, tester_rules
from dws_sim.drives import drive_sizes, usable
from dws_sim.jsontree import Object
from dws_sim.schema.crd import custom_resources, established
from dws_sim.schema.resources import DEFINITIONS, RESOURCES
from dws_sim.store import Store

NAMESPACES_OF_A_SYSTEM = (
    "default",
    "kube-system",
    "dws-system",
    "nnf-system",
    "nnf-dm-system",
)
_SIZE = re.compile(r"^(\d+(?:\.\d+)?)\s*([KMGTP]?)(i?)B?$")
# File systems for all jobs, and their mount points.
GLOBAL_LUSTRE = {"lus-global": "/lus/global", "p-lustre": "/p/lustre"}
# NNF's labels and taints never let a SystemConfiguration get ready.
SYSTEM_STATUS = {"ready": False}


def parse_size(text: str) -> int:
    """Bytes of a size such as 1TiB, 20GB or 4096.

    Raises:
        ValueError: it is no size.
    """
    match = _SIZE.match(text)
    if not match:
        raise ValueError(f"no size: {text!r}")
    number, letter, binary = match.groups()
    power = " KMGTP".index(letter) if letter else 0
    return int(float(number) * (1024 if binary else 1000) ** power)


@dataclass
class Machine:
    """Rabbits in order, each with its computes in slot order.

    Attributes:
        capacity_bytes: what the drives of one rabbit hold in all.
    """

    capacity_bytes: int
    rabbits: dict[str, list[str]] = field(default_factory=dict)
    external: list[str] = field(default_factory=list)

    @classmethod
    def build(
        cls, nodes: str, rabbits: str, nodes_per_rabbit: int, capacity_bytes: int
    ) -> Machine:
        """Distribute nodes over rabbits; the remaining nodes have none.

        Raises:
            ValueError: a name twice, or a number that makes no sense.
        """
        computes, names = hostlist.expand(nodes), hostlist.expand(rabbits)
        if not 0 < nodes_per_rabbit <= 16:
            raise ValueError("a rabbit serves 1 to 16 nodes")
        if len(set(computes + names)) != len(computes) + len(names):
            raise ValueError("a node or rabbit is named twice")
        machine = cls(capacity_bytes)
        for i, name in enumerate(names):
            first = i * nodes_per_rabbit
            machine.rabbits[name] = computes[first : first + nodes_per_rabbit]
        machine.external = computes[len(names) * nodes_per_rabbit :]
        return machine

    @property
    def nodes(self) -> list[str]:
        return [n for names in self.rabbits.values() for n in names] + self.external

    def mapping(self) -> Object:
        """The rabbitmapping that flux-dws reads."""
        return {
            "computes": {n: r for r, names in self.rabbits.items() for n in names},
            "rabbits": {
                r: {
                    "capacity": usable(self.capacity_bytes),
                    "hostlist": hostlist.compress(names),
                }
                for r, names in self.rabbits.items()
            },
        }


def storage_status(machine: Machine, rabbit: str, free: int) -> Object:
    """Storage.status of a healthy rabbit that has so many bytes free."""
    return {
        "type": "NVMe",
        "capacity": free,
        "status": "Ready",
        "access": {
            "protocol": "PCIe",
            "servers": [{"name": rabbit, "status": "Ready"}],
            "computes": [
                {"name": n, "status": "Ready"} for n in machine.rabbits[rabbit]
            ],
        },
        "devices": [
            {
                "slot": str(slot),
                "status": "Ready",
                "model": "SIM-NVME",
                "serialNumber": f"{rabbit}-{slot:02d}",
                "firmwareVersion": "1.0",
                "capacity": size,
                "wearLevel": 0,
            }
            for slot, size in drive_sizes(machine.capacity_bytes).items()
        ],
    }


def template_profile(default: bool = True) -> Object:
    """The storage profile that systems start from."""
    block: Object = {
        "allocationPadding": "300MiB",
        "capacityScalingFactor": "1.0",
        "blockDeviceCommands": {"sharedVg": True},
    }
    target = {"colocateComputes": False}
    return {
        "default": default,
        "xfsStorage": dict(block),
        "gfs2Storage": dict(block),
        "rawStorage": dict(block),
        "lustreStorage": {
            "combinedMgtMdt": True,
            "mgtOptions": {**target, "count": 1},
            "mdtOptions": {**target, "count": 1},
            "mgtMdtOptions": {**target, "count": 1},
            "ostOptions": {"colocateComputes": True, "scale": 5},
        },
    }


# The program of doc/user/containers.rst.
FOO = """\
cd "$DW_JOB_foo_local_storage"
for node in $NNF_NODE_NAME-*; do
  until test -e $node/data; do sleep 0.1; done
  echo "$node: $(cat $node/data)"
done
"""


def container_profiles() -> dict[str, Object]:
    """Examples of container profiles."""
    storages = [
        {"name": "DW_JOB_foo_local_storage", "optional": False},
        {"name": "DW_PERSISTENT_foo_persistent_storage", "optional": True},
        {"name": "DW_GLOBAL_foo_global_lustre", "optional": True},
    ]
    common = {"storages": storages, "retryLimit": 6, "createContainer": True}

    def pod(name: str, script: str = "") -> Object:
        container: Object = {"name": name, "image": "alpine:latest"}
        if script:
            container["command"] = ["/bin/sh", "-c", script]
        return {"containers": [container]}

    def mpi(name: str, *command: str) -> Object:
        launcher, worker = pod(name), pod(name)
        for each in (launcher, worker):
            each["containers"][0]["image"] = "nnf-mfu:latest"
        if command:
            launcher["containers"][0]["command"] = ["mpirun", *command]
        return {"launcher": launcher, "worker": worker}

    def local(*more: Object) -> Object:
        """With storage of the job and, if there is, persistent storage."""
        return {**common, "storages": [*storages[:2], *more]}

    everywhere = {**storages[2], "pvcMode": "ReadWriteMany"}
    forever = pod("example-forever", "while true; do date; sleep 5; done")
    coin = "sleep 10; exit $(($RANDOM % 2))"
    copy = ("dcmp", "$(DW_JOB_foo_local_storage)/0", "$(DW_JOB_foo_local_storage)/1")
    server = ("python3", "-m", "http.server", "$(NNF_CONTAINER_PORTS)")
    offload = mpi("copy-offload", "copy-offload-server")
    # the one of the user guide
    foo = [{**storage, "optional": False} for storage in storages[:2]]
    return {
        "copy-offload-default": {
            **common,
            "storages": [
                {"name": "DW_JOB_my_storage", "optional": True},
                {"name": "DW_PERSISTENT_my_storage", "optional": True},
                {**everywhere, "name": "DW_GLOBAL_my_storage"},
            ],
            "numPorts": 1,
            "mpiSpec": {**offload, "copyOffload": True},
        },
        "example-fail": {
            "createContainer": True,
            "spec": pod("example-fail", "sleep 10 && exit 1"),
        },
        "example-forever": {**local(), "spec": forever, "postRunTimeoutSeconds": 5},
        "example-forever-nowait": {
            **local(),
            "spec": forever,
            "postRunTimeoutSeconds": 0,
        },
        "example-mpi": {
            **local(everywhere),
            "mpiSpec": mpi("example-mpi", *copy),
            "numPorts": 1,
        },
        "example-mpi-fail": {
            "createContainer": True,
            "mpiSpec": mpi("example-mpi-fail", "/bin/sh", "-c", "sleep 10 && exit 1"),
            "numPorts": 1,
        },
        "example-mpi-webserver": {
            **local(everywhere),
            "mpiSpec": mpi("example-mpi-webserver", *server),
            "numPorts": 1,
        },
        "example-randomly-fail": {
            **local(),
            "spec": pod("example-randomly-fail", coin),
        },
        "example-success": {
            **common,
            "spec": pod("example-success", "sleep 10 && exit 0"),
        },
        "example-server": {**common, "spec": pod("example-server"), "numPorts": 1},
        "foo": {**common, "storages": foo, "spec": pod("foo", FOO), "numPorts": 1},
    }


def _system_configuration(machine: Machine) -> Object:
    return {
        "storageNodes": [
            {
                "type": "Rabbit",
                "name": rabbit,
                "computesAccess": [
                    {"name": n, "index": i} for i, n in enumerate(names)
                ],
            }
            for rabbit, names in machine.rabbits.items()
        ],
        "externalComputeNodes": [{"name": n} for n in machine.external],
        "ports": ["4000-4999"],
        "portsCooldownInSeconds": 60,
    }


def _named(name: str, namespace: str = "", **body: Any) -> Object:
    meta = {"name": name}
    if namespace:
        meta["namespace"] = namespace
    return {"metadata": meta, **body}


# A certificate and its key, in PEM.
Certificate = tuple[bytes, bytes]


def objects(
    machine: Machine,
    system_status: bool = True,
    tester: bool = False,
    certificate: Certificate = (b"", b""),
) -> list[tuple[str, Object]]:
    """Initial objects of a system, but for its Storages: kind and object, in the order
    in which they can be created.

    Args:
        certificate: of containers that run processes.
    """
    files = zip(("tls.crt", "tls.key"), certificate)
    names = [*NAMESPACES_OF_A_SYSTEM, *machine.rabbits, *machine.nodes]
    reference = {
        "kind": "SystemConfiguration",
        "name": "default",
        "namespace": "default",
    }
    out = [("namespaces", _named(name, status={"phase": "Active"})) for name in names]
    out += [
        ("dwdirectiverules", _named("nnf", "dws-system", spec=nnf_rules())),
        (
            "nnfstorageprofiles",
            _named("default", NNF_NAMESPACE, data=template_profile()),
        ),
        (
            "nnfdatamovementprofiles",
            _named("default", NNF_NAMESPACE, data={"default": True}),
        ),
    ]
    # one that copies no extended attributes
    out.append(("nnfdatamovementprofiles", _named("no-xattr", NNF_NAMESPACE, data={})))
    for rabbit in machine.rabbits:
        out += [("nodes", nodes.node(rabbit)), ("nnfnodes", nodes.nnf_node(rabbit))]
    for name, root in GLOBAL_LUSTRE.items():
        spec = {
            "name": name.split("-")[1],
            "mgsNids": "10.0.0.1@tcp",
            "mountRoot": root,
            "namespaces": {
                space: {"modes": ["ReadWriteMany"]}
                for space in ("default", "nnf-dm-system")
            },
        }
        out.append(("lustrefilesystems", _named(name, "default", spec=spec)))
    for name, data in container_profiles().items():
        out.append(("nnfcontainerprofiles", _named(name, NNF_NAMESPACE, data=data)))
    out += [
        (
            "systemconfigurations",
            _named("default", "default", spec=_system_configuration(machine)),
        ),
        (
            "nnfportmanagers",
            _named(
                "nnf-port-manager",
                NNF_NAMESPACE,
                spec={"systemConfiguration": reference, "allocations": []},
            ),
        ),
        (
            "secrets",
            _named(
                TLS_SECRET,
                "default",
                type="kubernetes.io/tls",
                data={name: base64.b64encode(pem).decode() for name, pem in files},
            ),
        ),
    ]
    if tester:
        rules = tester_rules()
        out.append(("dwdirectiverules", _named(TESTER, "dws-system", spec=rules)))
    if system_status:
        out.append(("systemstatuses", _named("default", "default", data={"nodes": {}})))
    return out


def storages(machine: Machine, config: Object) -> list[Object]:
    """The Storages, which the SystemConfiguration owns."""
    out = []
    for rabbit in machine.rabbits:
        obj = _named(rabbit, "default", spec={"state": "Enabled", "mode": "Live"})
        obj["metadata"].update(
            labels={STORAGE_LABEL: "Rabbit", **owner_labels(config)},
            ownerReferences=[owner_reference(config)],
        )
        out.append(obj)
    return out


def populate(
    store: Store,
    machine: Machine,
    system_status: bool = True,
    tester: bool = False,
    certificate: Certificate = (b"", b""),
) -> None:
    """Create what a system has before the first job: objects()."""
    for custom in custom_resources():
        store.create(DEFINITIONS, "", established(custom))
    for plural, obj in objects(machine, system_status, tester, certificate):
        namespace = obj["metadata"].get("namespace", "")
        store.create(RESOURCES[plural], namespace, obj)
    res = RESOURCES["systemconfigurations"]
    config = store.get(res, "default", "default")
    for obj in storages(machine, config):
        store.create(RESOURCES["storages"], "default", obj)
    config = {**config, "status": SYSTEM_STATUS}
    store.update(res, "default", "default", config, "status")
