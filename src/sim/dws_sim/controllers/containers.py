# container: user containers on the rabbits of a job, with ports, a token,
# variables, and time limits for start and end.
# SPDX-License-Identifier: LGPL-3.0-only
"""The container command."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
from typing import Any

from dws_sim.controllers.common import (
    CONTAINER_LABEL,
    NNF_NAMESPACE,
    WORKFLOW_UID,
    ResourceError,
    child,
    fatal,
    missing,
    owner_reference,
    whole_labels,
)
from dws_sim.controllers.datamovement import GLOBAL_ROOTS
from dws_sim.controllers.pods import SHUTDOWN
from dws_sim.controllers.ports import ports_of, release_ports, request_ports
from dws_sim.controllers.profiles import pin_profile
from dws_sim.controllers.step import Command, Step, Wait
from dws_sim.jsontree import Object, edit, parse_time

PROFILES = "nnfcontainerprofiles"
_PREFIXES = ("DW_JOB_", "DW_PERSISTENT_", "DW_GLOBAL_")
_COMMANDS = {"DW_JOB_": "jobdw", "DW_PERSISTENT_": "persistentdw"}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _pem(key: bytes) -> bytes:
    """A key as text. NNF has an EC key here; any key can sign."""
    kind = "EC PRIVATE KEY"
    text = base64.encodebytes(key).decode()
    return f"-----BEGIN {kind}-----\n{text}-----END {kind}-----\n".encode()


def make_token(key: bytes) -> str:
    """A JSON web token (HS256): who has it may use the containers."""

    def part(value: Any) -> bytes:
        text = value if isinstance(value, bytes) else json.dumps(value).encode()
        return base64.urlsafe_b64encode(text).rstrip(b"=")

    head = part({"alg": "HS256", "typ": "JWT"})
    body = part({"sub": "user-container", "iat": int(time.time())})
    signed = head + b"." + body
    mark = part(hmac.new(key, signed, hashlib.sha256).digest())
    return (signed + b"." + mark).decode()


def _no_global(path: str) -> str:
    return f"global Lustre file system containing '{path}' not found"


def not_mounted(step: Step, access: str) -> ResourceError:
    """The storage of a container is not mounted, and may still be."""
    debug = f"could not retrieve the NnfAccess '{access}'"
    name = step.workflow["metadata"]["name"]
    fault = ResourceError("", "Internal", "Major", debug).within(
        "could not determine the list of volumes needed to create container job for "
        f"workflow: {name}"
    )
    text = f"unable to create/update Container Jobs: internal error: {fault.story}"
    return fault.within("", text)


class Container(Command):
    """#DW container."""

    async def start(self, state: str, step: Step) -> Wait | None:
        if state == "Proposal":
            await self._propose(step)
        elif state == "Setup":
            await self._setup(step)
        elif state == "PreRun":
            return await self._launch(step)
        elif state == "PostRun":
            for job in await self._jobs(step):
                if SHUTDOWN not in job["metadata"].get("annotations", {}):
                    new = edit(job, "metadata")
                    new["metadata"].setdefault("annotations", {})[SHUTDOWN] = "1"
                    await step.cluster.update("jobs", new)
        elif state == "Teardown":
            return await self.remove(step)
        return None

    async def finish(self, state: str, step: Step) -> Wait | None:
        if state == "Setup":
            return await self._ports_ready(step)
        if state == "PreRun":
            return await self._running(step)
        if state == "PostRun":
            return await self._ended(step)
        return None

    async def remove(self, step: Step) -> Wait | None:
        left = False
        for job in await self._jobs(step):
            left |= not await step.gone("jobs", step.namespace, job["metadata"]["name"])
        # the Service goes with the workflow that owns it
        await release_ports(step.cluster, self._requester(step))
        return Wait("delete") if left else None

    # -- Proposal ---------------------------------------------------------

    async def _profile(self, step: Step) -> Object:
        """The profile that a directive names, for its user."""
        name = step.directive.get("profile") or ""
        profile = await step.cluster.get(PROFILES, NNF_NAMESPACE, name)
        if profile is None:
            text = missing("NnfContainerProfile", name)
            user = "no valid container profile found"
            raise fatal(user, "Internal", f"{text}: {text}")
        for key, word in (("userID", "UserID"), ("groupID", "GroupID")):
            only = profile["data"].get(key)
            if only is not None and only != step.workflow["spec"][key]:
                text = f"container profile '{name}' is restricted to {word} {only}"
                raise fatal(text, "User", f"{text}: {text}")
        return profile

    async def check(self, step: Step) -> None:
        await self._check_storages(step, await self._profile(step))

    async def _propose(self, step: Step) -> None:
        if await step.cluster.get(PROFILES, step.namespace, step.name) is None:
            profile = await self._profile(step)
            await pin_profile(
                step.cluster, PROFILES, profile, step.workflow, step.name, step.labels
            )

    async def _check_storages(self, step: Step, profile: Object) -> None:
        of = f"container profile '{profile['metadata']['name']}'"
        given = {k: v for k, v in step.directive.args if k.startswith(_PREFIXES)}
        known = {s["name"]: s for s in profile["data"].get("storages", ())}
        for name in given:
            await self._check_type(step, name, given[name] or "")
            if name not in known:
                raise fatal(f"storage '{name}' not found in {of}")
        for name, storage in known.items():
            if not storage["optional"] and name not in given:
                raise fatal(
                    f"storage '{name}' in {of} is not optional: storage argument not "
                    "found in the supplied arguments"
                )

    @staticmethod
    async def _check_type(step: Step, key: str, name: str) -> None:
        command = next((c for p, c in _COMMANDS.items() if key.startswith(p)), None)
        if command is None:
            if not name.startswith(GLOBAL_ROOTS):
                raise fatal(_no_global(name))
            return
        instance = None
        if command == "persistentdw":
            instance = await step.cluster.get(
                "persistentstorageinstances", step.namespace, name
            )
            if instance is None:
                text = f"PersistentStorageInstance '{name}' not found"
                raise fatal(text, "User", missing("PersistentStorageInstance", name))
        for directive in step.directives():
            if directive.command != command or directive.get("name") != name:
                continue
            fs_type = directive.get("type")
            if instance is not None:
                fs_type = instance["spec"]["fsType"]
            if fs_type == "xfs":
                raise fatal(f"unsupported container filesystem: {fs_type}")
            return
        raise fatal(f"{command} directive mentioning '{name}' not found")

    # -- Setup ------------------------------------------------------------

    @staticmethod
    def _requester(step: Step) -> dict[str, str]:
        meta = step.workflow["metadata"]
        return {
            "kind": "Workflow",
            "name": meta["name"],
            "namespace": meta["namespace"],
            "uid": meta["uid"],
        }

    async def _data(self, step: Step) -> Object:
        profile = await step.cluster.get(PROFILES, step.namespace, step.name)
        if profile is None:
            raise ResourceError(debug=missing("NnfContainerProfile", step.name))
        data: Object = profile["data"]
        return data

    @staticmethod
    def _templates(data: Object) -> Object:
        """Pod specs: of each rabbit, or of the launcher and the workers."""
        if "mpiSpec" in data:
            return {
                "launcher": data["mpiSpec"]["launcher"],
                "worker": data["mpiSpec"]["worker"],
            }
        return {"": data.get("spec") or {"containers": []}}

    def _port_users(self, data: Object) -> list[str]:
        """Names of the containers that get ports."""
        templates = self._templates(data)
        template = templates.get("launcher") or templates.get("") or {}
        return [c.get("name", "") for c in template.get("containers", ())]

    async def _setup(self, step: Step) -> None:
        data = await self._data(step)
        count = (data.get("numPorts") or 0) * len(self._port_users(data))
        if count:
            await request_ports(step.cluster, self._requester(step), count)
        if "container-auth" in step.workflow["status"].get("requires", ()):
            await self._make_token(step)

    async def _make_token(self, step: Step) -> None:
        name = f"{step.workflow['metadata']['name']}-token"
        if await step.cluster.get("secrets", step.namespace, name) is None:
            key = secrets.token_bytes(32)
            token = make_token(key).encode()
            await self._keep(step, f"{name}-server", "token.key", _pem(key))
            await self._keep(step, name, "token", token)
        step.workflow["status"]["workflowToken"] = {
            "secretName": name,
            "secretNamespace": step.namespace,
        }

    @staticmethod
    async def _keep(step: Step, name: str, key: str, value: bytes) -> None:
        """A Secret of the workflow: of it as a whole, not of a directive."""
        meta = step.workflow["metadata"]
        body = child(
            step.workflow,
            meta["namespace"],
            name,
            whole_labels(step.workflow),
            type="Opaque",
            immutable=True,
            data={key: _base64(value)},
        )
        await step.cluster.create("secrets", body)

    async def _ports_ready(self, step: Step) -> Wait | None:
        data = await self._data(step)
        if not (data.get("numPorts") and self._port_users(data)):
            return None
        entry = await ports_of(step.cluster, self._requester(step))
        if entry is None:
            # the port manager is not tied to one workflow
            return Wait("NnfPortManager allocation not ready", 0.05)
        if entry["status"] != "InUse":
            text = "could not request ports for container workflow"
            raise fatal(f"{text}: {entry['status']}", "Internal")
        return None

    # -- PreRun -----------------------------------------------------------

    async def _rabbits(self, step: Step) -> list[str]:
        """The rabbits of the job's computes, as the configuration has them."""
        config = await step.cluster.get("systemconfigurations", "default", "default")
        near = {
            access["name"]: node["name"]
            for node in (config or {}).get("spec", {}).get("storageNodes", ())
            for access in node.get("computesAccess", ())
        }
        meta = step.workflow["metadata"]
        computes = await step.cluster.get("computes", step.namespace, meta["name"])
        rabbits: dict[str, None] = {}
        for node in (computes or {}).get("data", ()):
            if node["name"] not in near:
                raise fatal(f"compute node {node['name']} has no rabbit", "WLM")
            rabbits[near[node["name"]]] = None
        return list(rabbits)

    async def _volumes(self, step: Step, data: Object) -> list[Object] | Wait:
        """What containers see of the workflow's storage: the mounts of the
        rabbits, which have to be there."""
        modes = {s["name"]: s.get("pvcMode") for s in data.get("storages", ())}
        directives = step.directives()
        volumes: list[Object] = []
        for key, value in step.directive.args:
            prefix = next((p for p in _PREFIXES if key.startswith(p)), None)
            if prefix is None:
                continue
            volume: Object = {
                "name": key[len(prefix) :].replace("_", "-"),
                "variable": key,
            }
            if prefix == "DW_GLOBAL_":
                root = next(
                    (r for r in GLOBAL_ROOTS if (value or "").startswith(r)), ""
                )
                if not root:
                    raise fatal(_no_global(value or ""))
                mode = (modes.get(key) or "ReadWriteMany").lower()
                claim = f"{root.strip('/').replace('/', '-')}-default-{mode}-pvc"
                volume.update(mountPath=root, claim=claim)
            else:
                command = _COMMANDS[prefix]
                index = next(
                    i
                    for i, d in enumerate(directives)
                    if d.command == command and d.get("name") == value
                )
                name = f"{step.workflow['metadata']['name']}-{index}-servers"
                access = await step.cluster.get("nnfaccesses", step.namespace, name)
                if access is None:
                    raise not_mounted(step, name)
                if not access.get("status", {}).get("ready"):
                    return Wait(
                        f"NnfAccess '{name}' is not ready to be mounted into container"
                    )
                volume.update(
                    mountPath=access["spec"]["mountPath"],
                    command=command,
                    directiveIndex=index,
                )
            volumes.append(volume)
        return volumes

    @staticmethod
    def _with_volumes(template: Object, volumes: list[Object]) -> Object:
        """A pod specification whose containers have the volumes."""
        places: list[Object] = []
        for volume in volumes:
            place: Object = {"name": volume["name"]}
            if "claim" in volume:
                place["persistentVolumeClaim"] = {"claimName": volume["claim"]}
            else:
                place["hostPath"] = {"path": volume["mountPath"], "type": "Directory"}
            places.append(place)
        mounts = [{k: v[k] for k in ("name", "mountPath")} for v in volumes]
        env = [{"name": v["variable"], "value": v["mountPath"]} for v in volumes]
        containers = [
            {
                **c,
                "volumeMounts": [*c.get("volumeMounts", ()), *mounts],
                "env": [*c.get("env", ()), *env],
            }
            for c in template.get("containers", ())
        ]
        volumes_of = [*template.get("volumes", ()), *places]
        return {**template, "containers": containers, "volumes": volumes_of}

    async def _launch(self, step: Step) -> Wait | None:
        data, rabbits = await self._data(step), await self._rabbits(step)
        if not rabbits:
            raise fatal("there are no computes to run containers for", "WLM")
        name = step.workflow["metadata"]["name"]
        volumes = await self._volumes(step, data)
        if isinstance(volumes, Wait):
            return volumes
        await self._environment(step, data, rabbits)
        if not data["createContainer"]:
            keys = ("name", "command", "directiveIndex", "mountPath")
            body = child(
                step.workflow,
                step.namespace,
                step.name,
                step.labels,
                data={
                    "volumes": [
                        {k: v[k] for k in keys} for v in volumes if "command" in v
                    ]
                },
            )
            await step.cluster.create("nnfcontainerdata", body)
            return None
        service = {"clusterIP": "None", "selector": {CONTAINER_LABEL: name}}
        meta = {
            "name": name,
            "namespace": step.namespace,
            "ownerReferences": [owner_reference(step.workflow)],
        }
        await step.cluster.create("services", {"metadata": meta, "spec": service})
        labels = {**step.labels, CONTAINER_LABEL: name}
        templates = self._templates(data)
        if "launcher" in templates:
            jobs = {f"{name}-launcher": (rabbits[0], templates["launcher"])}
            for i, rabbit in enumerate(rabbits):
                jobs[f"{name}-worker-{i}"] = (rabbit, templates["worker"])
        else:
            jobs = {f"{name}-{rabbit}": (rabbit, templates[""]) for rabbit in rabbits}
        spec = step.workflow["spec"]
        for job, (rabbit, template) in jobs.items():
            pod = {
                **self._with_volumes(template, volumes),
                "nodeName": rabbit,
                "hostname": job if "launcher" in templates else rabbit,
                "subdomain": name,
                "restartPolicy": "Never",
                "securityContext": {
                    "runAsUser": spec["userID"],
                    "runAsGroup": spec["groupID"],
                },
            }
            body = {"backoffLimit": data["retryLimit"], "template": {"spec": pod}}
            await step.cluster.create(
                "jobs",
                child(step.workflow, step.namespace, job, labels, spec=body),
            )
        return None

    async def _environment(self, step: Step, data: Object, rabbits: list[str]) -> None:
        name = step.workflow["metadata"]["name"]
        env = step.workflow["status"].setdefault("env", {})
        env["NNF_CONTAINER_SUBDOMAIN"] = name
        env["NNF_CONTAINER_DOMAIN"] = f"{step.namespace}.svc.cluster.local"
        hosts = rabbits
        if "mpiSpec" in data:
            env["NNF_CONTAINER_LAUNCHER"] = rabbits[0]
            workers = [f"{name}-worker-{i}" for i in range(len(rabbits))]
            hosts = [f"{name}-launcher", *workers]
        env["NNF_CONTAINER_HOSTNAMES"] = ",".join(hosts)
        entry = await ports_of(step.cluster, self._requester(step))
        ports = [str(p) for p in (entry or {}).get("ports", ())]
        if not ports:
            return
        env["NNF_CONTAINER_PORTS"] = ",".join(ports)
        each = data["numPorts"]
        for i, container in enumerate(self._port_users(data)):
            own = ports[i * each : (i + 1) * each]
            key = f"NNF_CONTAINER_PORTS_{container.replace('-', '_')}"
            env[key] = ",".join(own)

    @staticmethod
    async def _jobs(step: Step) -> list[Object]:
        uid = step.workflow["metadata"]["uid"]
        return await step.cluster.find("jobs", {WORKFLOW_UID: uid})

    @staticmethod
    def _time_left(step: Step, limit: int) -> float:
        began = parse_time(step.workflow["status"]["desiredStateChange"])
        return began + limit - time.time()

    async def _running(self, step: Step) -> Wait | None:
        data = await self._data(step)
        pending = []
        for job in await self._jobs(step):
            status = job.get("status", {})
            if status.get("failed", 0) > job["spec"]["backoffLimit"]:
                continue
            if not (status.get("ready") or status.get("succeeded")):
                pending.append(job["metadata"]["name"])
        if not pending:
            return None
        text = f"pending container start for job '{pending[0]}'"
        if "mpiSpec" in data:
            text = f"pending MPIJob start for {self._of(step)}"
        return self._limit(step, data["preRunTimeoutSeconds"], "start", text)

    @staticmethod
    def _of(step: Step) -> str:
        name = step.workflow["metadata"]["name"]
        return f"workflow '{name}', index: {step.index}"

    def _limit(self, step: Step, limit: int, what: str, text: str) -> Wait:
        if not limit:
            return Wait(text)
        left = self._time_left(step, limit)
        if left <= 0:
            user = f"user container(s) failed to {what} after {limit} seconds"
            raise fatal(user, "Internal", "job(s) timeout set")
        return Wait(text, left)

    # -- PostRun ----------------------------------------------------------

    async def _ended(self, step: Step) -> Wait | None:
        data = await self._data(step)
        limit = data["postRunTimeoutSeconds"]
        open_jobs = False
        for job in await self._jobs(step):
            status = job.get("status", {})
            if status.get("failed", 0) > job["spec"]["backoffLimit"]:
                attempts = job["spec"]["backoffLimit"] + 1
                raise fatal(
                    "user container(s) failed to run successfully after "
                    f"{attempts} attempts",
                    "Internal",
                )
            open_jobs |= not status.get("succeeded")
        if not open_jobs or not limit:
            return None
        text = "pending container finish"
        if "mpiSpec" in data:
            text = f"pending MPIJob completion for {self._of(step)}"
        return self._limit(step, limit, "complete", text)
