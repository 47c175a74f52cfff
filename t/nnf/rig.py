# Admin commands of tier nnf on a cluster with the controllers of DWS and NNF: for
# objects, Kubernetes nodes, foreign workflows, and the rig's processes.
# SPDX-License-Identifier: LGPL-3.0-only
"""rig.py DIR COMMAND [ARGUMENT...]; DIR is the folder of a rig that runs.

get|delete KIND NAME            KIND is a plural, in namespace default
list KIND                       in all namespaces
create KIND JSON                in the namespace that it names
patch KIND NAME JSON
until KIND NAME FILTER          wait until the jq filter is true of the object
node RABBIT ready|offline|drained
foreign NAME RABBIT CAPACITY    a raw file system of that size in state Setup
remove NAME                     Teardown of a workflow, and its end
containers WORKFLOW running|done|failed|expired  what Kubernetes would say of its
                                Jobs, failed: as often as they may, or expired: at
                                the end of the time that NNF gives them
spoil WORKFLOW MESSAGE          its data movements have failed: nnf-dm (part dm) is dead
profile NAME JSON               a container profile: example-success with other data
ports [RANGE]                   what the SystemConfiguration has for containers
allow RESOURCE VERB             one more right for the workload manager
forbid RESOURCE VERB            and that taken back
tls                             the Secret that containers with a token ask for
kill|start PART [NAME=VALUE...] RABBIT, apiserver, or another of DIR/run/*.pid;
                                start with these changes of its environment
silence [NODE...]               only the mount daemons of these compute nodes are dead
stop                            end what start has started
tend                            until it is killed, free what NNF cannot end any
                                more: see README.md
"""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import requests

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

from parity_pods import RigPods
from parity_support import (
    DWS,
    LIMIT_S,
    MERGE,
    NNF,
    Object,
    User,
    reached,
    remove,
    to_state,
    workflow,
)

API_SERVER = "apiserver"
MOVEMENTS = "nnfdatamovements"
NODE_STORAGE = "nnf.cray.hpe.com/nnf_node_storage"
TEND_S = 1.0
TLS_SECRET = "nnf-dm-usercontainer-server-tls"
PROFILES = "nnfcontainerprofiles"
SYSTEM = "nnf-system"
DRAIN_KEY = "cray.nnf.node.drain"
PAUSE_S = 0.05


def matches(obj: Object, expression: str) -> bool:
    """Whether a jq filter is true of an object."""
    found = subprocess.run(
        ["jq", "-e", expression],
        input=json.dumps(obj),
        stdout=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    return found.returncode == 0


class Processes:
    """The parts of a rig: each can be killed, and started as it was."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self._run = folder / "run"
        self._started = self._run / "started-again"

    def pid(self, part: str) -> int:
        file = self._run / f"{part}.pid"
        if part != API_SERVER or file.exists():
            return int(file.read_text())
        # up has no file for this one: it is the child with that name
        up = int((self._folder / "up.pid").read_text())
        for child in pathlib.Path(f"/proc/{up}/task").glob("*/children"):
            for pid in child.read_text().split():
                if "kube-apiserver" in pathlib.Path(f"/proc/{pid}/cmdline").read_text():
                    return int(pid)
        raise ProcessLookupError(f"{self._folder}: no {part}")

    def kill(self, part: str) -> None:
        """Kill a part without a shutdown. Saves its command line for start()."""
        pid = self.pid(part)
        proc = pathlib.Path(f"/proc/{pid}")
        saved = {
            "command": (proc / "cmdline").read_text().rstrip("\0").split("\0"),
            "environment": (proc / "environ").read_text().rstrip("\0").split("\0"),
            "folder": os.readlink(proc / "cwd"),
        }
        (self._run / f"{part}.saved").write_text(json.dumps(saved))
        os.kill(pid, signal.SIGKILL)
        ended(pid)

    def start(self, part: str, *changes: str) -> None:
        """As kill has found it, but for some NAME=VALUE of the environment."""
        saved = json.loads((self._run / f"{part}.saved").read_text())
        with (self._folder / "log" / f"{part}.log").open("ab") as log:
            process = subprocess.Popen(
                saved["command"],
                env=dict(i.split("=", 1) for i in [*saved["environment"], *changes]),
                cwd=saved["folder"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        (self._run / f"{part}.pid").write_text(f"{process.pid}\n")
        with self._started.open("a") as stream:
            stream.write(f"{process.pid}\n")

    def silence(self, *nodes: str) -> None:
        """Restart the mount daemon, a single process for all nodes, without these."""
        file = self._run / "mounts.whole"
        self.kill("mounts")
        saved = json.loads((self._run / "mounts.saved").read_text())
        at = saved["command"].index("--nodes") + 1
        if not file.exists():
            file.write_text(saved["command"][at])
        left = [n for n in file.read_text().split(",") if n not in nodes]
        saved["command"][at] = ",".join(left)
        (self._run / "mounts.saved").write_text(json.dumps(saved))
        self.start("mounts")

    def stop(self) -> None:
        """Stop the processes that start() has started; "up" does not know them."""
        if not self._started.exists():
            return
        for word in self._started.read_text().split():
            proc = pathlib.Path(f"/proc/{word}")
            try:
                # the kernel may have reused the pid for a foreign process
                ours = str(self._folder) in (proc / "environ").read_text()
            except OSError:
                continue
            if ours:
                os.kill(int(word), signal.SIGKILL)
                ended(int(word))
        self._started.unlink()


def ended(pid: int) -> None:
    """Wait for the end of a process that need not be a child of this one."""
    limit = time.monotonic() + LIMIT_S
    while time.monotonic() < limit:
        try:
            state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")")[1]
        except OSError:
            return
        if state.split()[0] == "Z":
            return
        time.sleep(PAUSE_S)
    raise TimeoutError(f"process {pid} does not end")


def wait_ready(user: User) -> None:
    """Wait until an API server that was just started serves."""
    limit = time.monotonic() + LIMIT_S
    while time.monotonic() < limit:
        try:
            if user.session.get(user.url + "/readyz", timeout=LIMIT_S).ok:
                return
        except requests.ConnectionError:
            pass
        time.sleep(PAUSE_S)
    raise TimeoutError("the API server does not get ready")


def set_node(user: User, name: str, state: str) -> None:
    """Set a rabbit's node to a state, as its kubelet or an admin would."""
    path = user.path("nodes", name, None)
    node = user.send("GET", path).expect(200)
    for condition in node["status"]["conditions"]:
        if condition["type"] == "Ready":
            condition["status"] = "False" if state == "offline" else "True"
    node = user.send("PUT", f"{path}/status", node).expect(200)
    taint = {"key": DRAIN_KEY, "value": "true", "effect": "NoSchedule"}
    node["spec"]["taints"] = [taint] if state == "drained" else []
    user.send("PUT", path, node).expect(200)


def foreign(user: User, name: str, rabbit: str, capacity: str) -> None:
    """Create a foreign workflow, and drive it up to Setup."""
    line = f"#DW jobdw type=raw capacity={capacity} name=foreign"
    user.create("workflows", workflow(name, line)).expect(201)
    obj = user.until("workflows", name, reached("Proposal"))
    [reference] = obj["status"]["directiveBreakdowns"]
    breakdown = user.get("directivebreakdowns", reference["name"]).expect(200)
    [wanted] = breakdown["status"]["storage"]["allocationSets"]
    servers = breakdown["status"]["storage"]["reference"]["name"]
    allocation = {
        "label": wanted["label"],
        "allocationSize": wanted["minimumCapacity"],
        "storage": [{"name": rabbit, "allocationCount": 1}],
    }
    user.merge("servers", servers, {"spec": {"allocationSets": [allocation]}}).expect(
        200
    )
    to_state(user, name, "Setup")
    user.until("workflows", name, reached("Setup"))


def end_foreign(user: User, name: str) -> None:
    to_state(user, name, "Teardown")
    user.until("workflows", name, reached("Teardown"))
    remove(user, name)


def containers(user: User, name: str, state: str) -> None:
    """Play the pods, once the workflow waits for them."""
    awaited = "finish" if state in ("done", "expired") else "start"

    def waits(obj: Object) -> bool:
        message = obj.get("status", {}).get("message", "")
        return f"pending container {awaited}" in message

    user.until("workflows", name, waits)
    pods = RigPods(user)
    {
        "running": pods.run,
        "done": pods.succeed,
        "failed": pods.fail,
        "expired": pods.expire,
    }[state](name)


def spoil(user: User, name: str, message: str) -> None:
    """Write nnf-dm's status of failed movements, once these exist."""

    def waits(obj: Object) -> bool:
        status = obj.get("status", {})
        return status.get(
            "state"
        ) == "DataOut" and "pending data movement" in status.get("message", "")

    user.until("workflows", name, waits)
    path = user.path(MOVEMENTS).rsplit("/namespaces/", 1)[0] + "/" + MOVEMENTS
    for obj in user.send("GET", path).expect(200)["items"]:
        meta = obj["metadata"]
        if meta["labels"].get(f"{DWS}/workflow.name") == name:
            end = {"state": "Finished", "status": "Failed", "message": message}
            where = user.path(MOVEMENTS, meta["name"], meta["namespace"])
            user.send("PATCH", f"{where}/status", {"status": end}, MERGE).expect(200)


def profile(user: User, name: str, data: str) -> None:
    """Create a container profile. An existing one is an equal one of an earlier run."""
    base = user.get(PROFILES, "example-success", SYSTEM).expect(200)["data"]
    body = {
        "kind": "NnfContainerProfile",
        "metadata": {"name": name, "namespace": SYSTEM},
        "data": {**base, **json.loads(data)},
    }
    made = user.create(PROFILES, body, SYSTEM)
    assert made.code in (201, 409), made.object


def is_gone(user: User, plural: str, name: str, namespace: str) -> bool:
    """Whether the object is gone. A 404 for an unknown kind, as a server sends just
    after its start, does not count."""
    found = user.get(plural, name, namespace)
    details = found.object.get("details") or {} if found.code == 404 else {}
    return details.get("name") == name


def free_lost(user: User) -> None:
    """A NnfNodeBlockStorage is kept by its NnfNodeStorage, which may have gone
    without it when both were deleted as they were made."""
    plural = "nnfnodeblockstorages"
    found = user.list(plural, None)
    if found.code != 200:
        return
    for obj in found.object["items"]:
        meta = obj["metadata"]
        place = meta["name"], meta["namespace"]
        if (
            "deletionTimestamp" in meta
            and NODE_STORAGE in meta.get("finalizers", [])
            and is_gone(user, "nnfnodestorages", *place)
        ):
            left = [f for f in meta["finalizers"] if f != NODE_STORAGE]
            version = meta["resourceVersion"]
            change = {"metadata": {"finalizers": left, "resourceVersion": version}}
            if user.send("PATCH", user.path(plural, *place), change, MERGE).code == 200:
                name = "/".join(place[::-1])
                print(f"{plural}: NNF has lost {name}, freed", flush=True)


def tend(user: User) -> None:
    """Also while tests have the API server go and come back: see free_lost()."""
    while True:
        try:
            free_lost(user)
        except requests.ConnectionError:
            pass
        time.sleep(TEND_S)


def change_right(user: User, command: str, resource: str, verb: str) -> None:
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/nnf-workload-manager"
    role = user.send("GET", path).expect(200)
    group = NNF if resource.startswith("nnf") else DWS
    rule = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
    role["rules"] = [other for other in role["rules"] if other != rule]
    if command == "allow":
        role["rules"].append(rule)
    user.send("PUT", path, role).expect(200)


def make_tls(user: User) -> None:
    """An admin's certificate, once; nothing here speaks TLS with it."""
    if user.get("secrets", TLS_SECRET).code == 200:
        return
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": TLS_SECRET, "namespace": "default"},
        "type": "kubernetes.io/tls",
        "stringData": {"tls.crt": "none", "tls.key": "none"},
    }
    user.send("POST", user.path("secrets"), secret).expect(201)


def main() -> int:
    folder = pathlib.Path(sys.argv[1]).resolve()
    command, *args = sys.argv[2:]
    user = User(folder / "kubeconfig", "admin")
    parts = Processes(folder)
    if command == "get":
        print(json.dumps(user.get(*args).expect(200)))
    elif command == "list":
        print(json.dumps(user.list(args[0], None).expect(200)))
    elif command == "delete":
        user.delete(*args).expect(200)
    elif command == "create":
        obj = json.loads(args[1])
        place = obj["metadata"].get("namespace", "default")
        user.create(args[0], obj, place).expect(201)
    elif command == "patch":
        user.merge(args[0], args[1], json.loads(args[2])).expect(200)
    elif command == "until":
        user.until(args[0], args[1], lambda obj: matches(obj, args[2]))
    elif command == "node":
        set_node(user, *args)
    elif command == "foreign":
        foreign(user, *args)
    elif command == "remove":
        end_foreign(user, *args)
    elif command == "containers":
        containers(user, *args)
    elif command == "spoil":
        spoil(user, *args)
    elif command == "profile":
        profile(user, *args)
    elif command == "ports":
        change = {"spec": {"ports": args or None}}
        user.merge("systemconfigurations", "default", change).expect(200)
    elif command in ("allow", "forbid"):
        change_right(user, command, *args)
    elif command == "tls":
        make_tls(user)
    elif command == "kill":
        parts.kill(*args)
    elif command == "start":
        parts.start(*args)
        if args == [API_SERVER]:
            wait_ready(user)
    elif command == "silence":
        parts.silence(*args)
    elif command == "stop":
        parts.stop()
    elif command == "tend":
        tend(user)
    else:
        sys.exit(__doc__)
    return 0


if __name__ == "__main__":
    sys.exit(main())
