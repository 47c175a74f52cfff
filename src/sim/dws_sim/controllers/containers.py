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
    INDEX_LABEL,
    NNF_NAMESPACE,
    WORKFLOW_UID,
    ResourceError,
    child,
    fatal,
    missing,
    owner_reference,
    whole_labels,
)
from dws_sim.controllers.lustre import claim, find_global
from dws_sim.controllers.podspec import NODE_LABEL, Pods, Volume
from dws_sim.controllers.ports import ports_of, release_ports, request_ports
from dws_sim.controllers.profiles import pin_profile
from dws_sim.controllers.shutdown import AGAIN_S, ask_to_end
from dws_sim.controllers.step import Command, Step, Wait
from dws_sim.jsontree import Object, edit, parse_time
from dws_sim.schema.resources import NNF_GROUP

PROFILES = "nnfcontainerprofiles"
_PINNED = f"{NNF_GROUP}/pinned_container_profile"
_MPI_USER = "mpiuser"
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
    """A JSON web token (HS256), with which clients may use the containers."""

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
            return await self._end(step)
        elif state == "Teardown":
            return await self.remove(step)
        return None

    async def finish(self, state: str, step: Step) -> Wait | None:
        if state == "Setup":
            return await self._ports_ready(step)
        if state == "PreRun":
            return await self._running(step)
        if state == "PostRun":
            await self._results(step)
        return None

    async def remove(self, step: Step) -> Wait | None:
        left = False
        for job in await self._jobs(step):
            left |= not await step.gone("jobs", step.namespace, job["metadata"]["name"])
        # Kubernetes deletes the Service with the workflow that owns it
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
            if await find_global(step.cluster, name) is None:
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
        text = "could not request ports for container workflow"
        if entry["status"] == "InvalidConfiguration":
            raise fatal(f"{text}: Invalid NnfPortManager configuration")
        if entry["status"] != "InUse":
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

    async def _volumes(self, step: Step, data: Object) -> list[Volume] | Wait:
        """The workflow's storage in the containers: mounts of the rabbits, which have
        to exist."""
        modes = {s["name"]: s.get("pvcMode") for s in data.get("storages", ())}
        volumes: list[Volume] = []
        for key, value in step.directive.args:
            prefix = next((p for p in _PREFIXES if key.startswith(p)), None)
            if prefix is None:
                continue
            name = key[len(prefix) :].replace("_", "-")
            if prefix == "DW_GLOBAL_":
                lustre = await find_global(step.cluster, value or "")
                if lustre is None:
                    raise fatal(_no_global(value or ""))
                of = lustre["metadata"]["name"]
                mode = modes.get(key) or "ReadWriteMany"
                root = lustre["spec"]["mountRoot"]
                volumes.append(Volume(name, key, root, claim(of, step.namespace, mode)))
                continue
            command = _COMMANDS[prefix]
            index = next(
                i
                for i, d in enumerate(step.directives())
                if d.command == command and d.get("name") == value
            )
            of = f"{step.workflow['metadata']['name']}-{index}-servers"
            access = await step.cluster.get("nnfaccesses", step.namespace, of)
            if access is None:
                raise not_mounted(step, of)
            if not access.get("status", {}).get("ready"):
                return Wait(
                    f"NnfAccess '{of}' is not ready to be mounted into container"
                )
            path = access["spec"]["mountPath"]
            volumes.append(Volume(name, key, path, "", command, index))
        return volumes

    async def _pods(
        self, step: Step, data: Object, rabbits: list[str], volumes: list[Volume]
    ) -> Pods:
        """The common settings of the pods."""
        hosts, user = rabbits, Pods.user
        if "mpiSpec" in data:
            name = step.workflow["metadata"]["name"]
            workers = [f"{name}-worker-{i}" for i in range(len(rabbits))]
            hosts, user = [f"{name}-launcher", *workers], _MPI_USER
        entry = await ports_of(step.cluster, self._requester(step))
        every, each = (entry or {}).get("ports", []), data.get("numPorts") or 0
        ports = {
            container: every[i * each : (i + 1) * each]
            for i, container in enumerate(self._port_users(data))
            if every
        }
        auth = "container-auth" in step.workflow["status"].get("requires", ())
        return Pods(step.workflow, volumes, hosts, ports, auth, user)

    async def _launch(self, step: Step) -> Wait | None:
        data, rabbits = await self._data(step), await self._rabbits(step)
        if not rabbits:
            raise fatal("there are no computes to run containers for", "WLM")
        volumes = await self._volumes(step, data)
        if isinstance(volumes, Wait):
            return volumes
        pods = await self._pods(step, data, rabbits, volumes)
        step.workflow["status"].setdefault("env", {}).update(pods.variables)
        if "mpiSpec" not in data:
            # mpi-operator makes its own
            await self._make_service(step)
        if data["createContainer"]:
            await self._make_jobs(step, data, rabbits, pods)
        else:
            await self._make_data(step, volumes)
        return None

    @staticmethod
    async def _make_data(step: Step, volumes: list[Volume]) -> None:
        """Create the data for programs that start containers themselves. Owned by the
        workflow, not by a directive, so that it lives as long as the workflow."""
        known = [
            {
                "name": v.name,
                "command": v.command,
                "directiveIndex": v.index,
                "mountPath": v.path,
            }
            for v in volumes
            if v.command
        ]
        body = child(
            step.workflow,
            step.namespace,
            step.name,
            whole_labels(step.workflow),
            data={"volumes": known},
        )
        await step.cluster.create("nnfcontainerdata", body)

    @staticmethod
    async def _make_service(step: Step) -> None:
        name = step.workflow["metadata"]["name"]
        service = {"clusterIP": "None", "selector": {CONTAINER_LABEL: name}}
        meta = {
            "name": name,
            "namespace": step.namespace,
            "ownerReferences": [owner_reference(step.workflow)],
        }
        await step.cluster.create("services", {"metadata": meta, "spec": service})

    async def _make_jobs(
        self, step: Step, data: Object, rabbits: list[str], pods: Pods
    ) -> None:
        """Create a Job for each rabbit; for an MPI program those that mpi-operator
        creates for NNF's MPIJob, which is left out here."""
        name, templates = step.workflow["metadata"]["name"], self._templates(data)
        if "launcher" in templates:
            launcher = pods.spec(templates["launcher"])
            worker = pods.spec(templates["worker"], worker=True)
            jobs = {f"{name}-launcher": (rabbits[0], launcher)}
            for i, rabbit in enumerate(rabbits):
                jobs[f"{name}-worker-{i}"] = (rabbit, worker)
        else:
            pod = pods.spec(templates[""])
            jobs = {
                f"{name}-{rabbit}": (rabbit, {**pod, "hostname": rabbit})
                for rabbit in rabbits
            }
        labels = {
            **whole_labels(step.workflow),
            CONTAINER_LABEL: name,
            INDEX_LABEL: str(step.index),
            f"{_PINNED}_name": step.name,
            f"{_PINNED}_namespace": step.namespace,
        }
        for job, (rabbit, pod) in jobs.items():
            body = child(step.workflow, step.namespace, job, labels)
            spec = {
                **pod,
                "subdomain": name,
                "nodeSelector": {**pod.get("nodeSelector", {}), NODE_LABEL: rabbit},
            }
            meta = {"labels": body["metadata"]["labels"]}
            body["spec"] = {
                "backoffLimit": data["retryLimit"],
                "template": {"metadata": meta, "spec": spec},
            }
            await step.cluster.create("jobs", body)

    @staticmethod
    async def _jobs(step: Step) -> list[Object]:
        uid = step.workflow["metadata"]["uid"]
        return await step.cluster.find("jobs", {WORKFLOW_UID: uid})

    @staticmethod
    async def _set_limit(step: Step, job: Object, seconds: float) -> None:
        """Set the deadline of a Job to this many seconds from now."""
        if "activeDeadlineSeconds" in job["spec"]:
            return
        age = time.time() - parse_time(job["metadata"]["creationTimestamp"])
        new = edit(job, "spec")
        new["spec"]["activeDeadlineSeconds"] = int(age + seconds)
        await step.cluster.update("jobs", new)

    async def _running(self, step: Step) -> Wait | None:
        data = await self._data(step)
        jobs = await self._jobs(step)
        limit = data["preRunTimeoutSeconds"]
        left: float | None = None
        if limit:
            began = parse_time(step.workflow["status"]["desiredStateChange"])
            left = began + limit - time.time()
            if left <= 0 and jobs:
                await self._too_late(step, jobs, limit)
        for job in jobs:
            status = job.get("status", {})
            if not (status.get("conditions") or status.get("ready")):
                text = f"pending container start for job '{job['metadata']['name']}'"
                if "mpiSpec" in data:
                    text = f"pending MPIJob start for {self._of(step)}"
                return Wait(text, left)
            if job["metadata"]["name"].endswith("-launcher"):
                selected = job["spec"]["template"]["spec"]["nodeSelector"]
                env = step.workflow["status"]["env"]
                env["NNF_CONTAINER_LAUNCHER"] = selected[NODE_LABEL]
        return None

    async def _too_late(self, step: Step, jobs: list[Object], limit: int) -> None:
        """End all Jobs, also those that have started meanwhile.

        Raises:
            ResourceError: always.
        """
        for job in jobs:
            await self._set_limit(step, job, 0.001)
        user = f"user container(s) failed to start after {limit} seconds"
        raise fatal(user, "Internal", "job(s) timeout set")

    @staticmethod
    def _of(step: Step) -> str:
        name = step.workflow["metadata"]["name"]
        return f"workflow '{name}', index: {step.index}"

    # -- PostRun ----------------------------------------------------------

    async def _end(self, step: Step) -> Wait | None:
        """Wait for the Jobs, up to the profile's time limit."""
        data = await self._data(step)
        limit = data["postRunTimeoutSeconds"]
        if not limit:
            return None
        left = [
            job
            for job in await self._jobs(step)
            if not job.get("status", {}).get("conditions")
        ]
        for job in left:
            await self._set_limit(step, job, limit)
        if not left:
            return None
        again_s = AGAIN_S if await ask_to_end(step) else None
        if "mpiSpec" in data:
            return Wait(f"pending MPIJob completion for {self._of(step)}", again_s)
        return Wait("pending container finish", again_s)

    async def _results(self, step: Step) -> None:
        """Raise ResourceError if a Job has failed. Only a Job that took too long, or
        an MPI program, has a text for users."""
        data = await self._data(step)
        for job in await self._jobs(step):
            for each in job.get("status", {}).get("conditions", ()):
                if each["type"] in ("Complete", "SuccessCriteriaMet"):
                    continue
                user, kind = "", "MPIJob" if "mpiSpec" in data else "job"
                if each["reason"] == "DeadlineExceeded":
                    limit = data["postRunTimeoutSeconds"]
                    user = f"user container(s) failed to complete after {limit} seconds"
                elif kind == "MPIJob":
                    tries = data["retryLimit"] + 1
                    user = (
                        f"user container(s) failed to run successfully after {tries} "
                        "attempts"
                    )
                words = f"{each['type']} ({each['reason']}): {each['message']}"
                story = f"container {kind} {words}"
                raise ResourceError(user, "Internal", "Fatal", story)
