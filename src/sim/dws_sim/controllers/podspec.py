# The pods that NNF makes of a container profile: variables, volumes, ports, and
# the user as whom they run.
# SPDX-License-Identifier: LGPL-3.0-only
"""Pod specifications of user containers."""

from __future__ import annotations

from dataclasses import dataclass, field

from dws_sim.controllers.common import TLS_SECRET
from dws_sim.jsontree import Object

NODE_LABEL = "kubernetes.io/hostname"
TAINT = "cray.nnf.node"
# Capabilities that sshd needs in a worker of an MPI program.
CAPABILITIES = ("NET_BIND_SERVICE", "SYS_CHROOT", "AUDIT_WRITE", "SETUID", "SETGID")


@dataclass(frozen=True)
class Volume:
    """A storage of the workflow, or a global file system, in a container."""

    name: str
    variable: str
    path: str
    # of a global file system
    claim: str = ""
    # of the workflow's storage
    command: str = ""
    index: int = -1

    def source(self) -> Object:
        if self.claim:
            return {"persistentVolumeClaim": {"claimName": self.claim}}
        return {"hostPath": {"path": self.path, "type": "Directory"}}


@dataclass
class Pods:
    """Common settings of all pods of a container directive."""

    workflow: Object
    volumes: list[Volume]
    # hostnames, in the order of the containers' variables
    hosts: list[str]
    # of each container by its name
    ports: dict[str, list[int]] = field(default_factory=dict)
    auth: bool = False
    user: str = "user"

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables that the job's tasks get, too."""
        name, namespace = self._name()
        out = {
            "NNF_CONTAINER_SUBDOMAIN": name,
            "NNF_CONTAINER_DOMAIN": f"{namespace}.svc.cluster.local",
            "NNF_CONTAINER_HOSTNAMES": ",".join(self.hosts),
        }
        if self.ports:
            every = [port for ports in self.ports.values() for port in ports]
            out["NNF_CONTAINER_PORTS"] = _listed(every)
        for container, ports in self.ports.items():
            key = f"NNF_CONTAINER_PORTS_{container.replace('-', '_')}"
            out[key] = _listed(ports)
        return out

    def _name(self) -> tuple[str, str]:
        meta = self.workflow["metadata"]
        return meta["name"], meta["namespace"]

    def spec(self, template: Object, worker: bool = False) -> Object:
        """A pod by a template of the profile. A worker of an MPI program runs as root,
        for its ssh daemon, and has no ports outside."""
        group = self.workflow["spec"]["groupID"]
        pod: Object = {**template, "restartPolicy": "Never"}
        if not worker:
            pod["securityContext"] = {
                **template.get("securityContext", {}),
                "fsGroup": group,
            }
        taint = {"key": TAINT, "operator": "Equal", "value": "true"}
        taint["effect"] = "NoSchedule"
        pod["tolerations"] = [*template.get("tolerations", ()), taint]
        containers = template.get("containers", [])
        if containers:
            pod["initContainers"] = [
                *template.get("initContainers", ()),
                self._passwd(containers[0]),
            ]
        pod["containers"] = [self._container(c, worker) for c in containers]
        pod["volumes"] = [*template.get("volumes", ()), *self._sources(worker)]
        return pod

    def _passwd(self, first: Object) -> Object:
        """The init container that adds the user to passwd. The simulator never runs
        it."""
        return {
            "name": f"{self.user}-init-passwd",
            "image": first.get("image", ""),
            "volumeMounts": [
                {"name": "passwd", "mountPath": "/config"},
                {"name": "shadow", "mountPath": "/config-shadow"},
                {
                    "name": "host-passwd",
                    "mountPath": "/host/passwd",
                    "readOnly": True,
                },
            ],
        }

    def _secrets(self) -> list[tuple[str, str, dict[str, str]]]:
        """Name, Secret, and the variables that have paths of its files."""
        if not self.auth:
            return []
        certificate = {"TLS_CERT_PATH": "tls.crt", "TLS_KEY_PATH": "tls.key"}
        token = f"{self._name()[0]}-token-server"
        return [
            ("usercontainer-tls", TLS_SECRET, certificate),
            ("usercontainer-token", token, {"TOKEN_KEY_PATH": "token.key"}),
        ]

    def _sources(self, worker: bool) -> list[Object]:
        host = {"path": "/etc/passwd", "type": "File"}
        out: list[Object] = [
            {"name": "passwd", "emptyDir": {}},
            {"name": "shadow", "emptyDir": {}},
            {"name": "host-passwd", "hostPath": host},
        ]
        out += [{"name": v.name, **v.source()} for v in self.volumes]
        if not worker:
            out += [
                {"name": name, "secret": {"secretName": secret}}
                for name, secret, _ in self._secrets()
            ]
        return out

    def _container(self, template: Object, worker: bool) -> Object:
        mounts: list[Object] = [
            {"name": name, "mountPath": f"/etc/{name}", "subPath": name}
            for name in ("passwd", "shadow")
        ]
        mounts += [{"name": v.name, "mountPath": v.path} for v in self.volumes]
        env = [
            _variable(key, value)
            for key, value in self.variables.items()
            if key.startswith("NNF_CONTAINER_PORTS")
        ]
        env += [_variable(v.variable, v.path) for v in self.volumes]
        for name, _, files in self._secrets() if not worker else ():
            place = f"/etc/{name}"
            mounts.append({"name": name, "mountPath": place, "readOnly": True})
            env += [_variable(key, f"{place}/{file}") for key, file in files.items()]
        out = {
            **template,
            "securityContext": self._security(template, worker),
            "volumeMounts": [*template.get("volumeMounts", ()), *mounts],
            "env": [*template.get("env", ()), *env, *self._common()],
        }
        own = self.ports.get(template.get("name", ""), [])
        if own and not worker:
            out["ports"] = [
                *template.get("ports", ()),
                *({"containerPort": p, "hostPort": p} for p in own),
            ]
        return out

    def _common(self) -> list[Object]:
        name, namespace = self._name()
        out = [
            _variable(key, value)
            for key, value in self.variables.items()
            if not key.startswith("NNF_CONTAINER_PORTS")
        ]
        out += [
            _variable("DW_WORKFLOW_NAME", name),
            _variable("DW_WORKFLOW_NAMESPACE", namespace),
            {"name": "ENVIRONMENT"},
        ]
        place = {"apiVersion": "v1", "fieldPath": "spec.nodeName"}
        out.append({"name": "NNF_NODE_NAME", "valueFrom": {"fieldRef": place}})
        return out

    def _security(self, template: Object, worker: bool) -> Object:
        out = dict(template.get("securityContext", {}))
        if worker:
            out["allowPrivilegeEscalation"] = True
            out.setdefault("capabilities", {"drop": ["ALL"], "add": list(CAPABILITIES)})
            return out
        spec = self.workflow["spec"]
        out.update(
            runAsUser=spec["userID"],
            runAsGroup=spec["groupID"],
            runAsNonRoot=True,
            allowPrivilegeEscalation=False,
        )
        return out


def _listed(ports: list[int]) -> str:
    return ",".join(map(str, ports))


def _variable(name: str, value: str) -> Object:
    return {"name": name, "value": value}
