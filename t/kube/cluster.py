# A private Kubernetes cluster on the loopback interface: etcd, kube-apiserver,
# Kubernetes' garbage collector, and DWS and NNF. SIGTERM ends and removes all of them.
# SPDX-License-Identifier: LGPL-3.0-only
"""Run a real API server for the tests until SIGTERM."""

from __future__ import annotations

import argparse
import base64
import contextlib
import os
import pathlib
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import yaml
from dws_sim import kubeconfig, tls
from dws_sim.rbac import wlm_role
from dws_sim.sim import WLM_USER
from kubernetes import client, config

START_LIMIT_S = 120
POLL_S = 0.05
RBAC = "rbac.authorization.k8s.io"
DWS_STEM = "dataworkflowservices-github-io-v1alpha7-workflow"


class ClusterError(Exception):
    """The cluster did not start, or a part of it has died."""


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def wait_until(what: str, check: Any) -> None:
    """Poll a server until it serves, as it sends no notification."""
    end = time.monotonic() + START_LIMIT_S
    while not check():
        if time.monotonic() > end:
            raise ClusterError(f"{what} did not start in {START_LIMIT_S} s")
        time.sleep(POLL_S)


class Processes:
    """The parts, ended in the opposite order of their start."""

    def __init__(self, logs: pathlib.Path) -> None:
        self._logs = logs
        self._running: list[tuple[str, subprocess.Popen[bytes]]] = []

    def start(self, name: str, *command: Any, **more: Any) -> None:
        with open(self._logs / f"{name}.log", "wb") as log:
            process = subprocess.Popen(
                [str(c) for c in command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **more,
            )
        self._running.append((name, process))

    def check(self) -> None:
        for name, process in self._running:
            if process.poll() is not None:
                text = (self._logs / f"{name}.log").read_text(errors="replace")
                raise ClusterError(f"{name} has ended:\n{text[-2000:]}")

    def stop(self) -> None:
        for _, process in reversed(self._running):
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._running.clear()


class Cluster:
    """The parts of one cluster in a directory."""

    def __init__(self, directory: pathlib.Path, binaries: pathlib.Path) -> None:
        self.dir = directory
        self.bin = binaries
        self.processes = Processes(directory)
        self.authority = tls.Authority()
        self.tokens = {n: secrets.token_urlsafe(32) for n in ("wlm", "admin")}
        self.url = ""
        # both contexts, and the administrator's alone
        self.kubeconfig = directory / "kubeconfig"
        self.admin_kubeconfig = directory / "admin.kubeconfig"

    def _write(self, name: str, text: str | bytes) -> pathlib.Path:
        path = self.dir / name
        path.touch(0o600)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def _healthy(self, url: str) -> bool:
        self.processes.check()
        context = ssl.create_default_context(cadata=self.authority.pem.decode())
        secure = {"context": context} if url.startswith("https:") else {}
        try:
            with urllib.request.urlopen(url, timeout=5, **secure) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def start_etcd(self, data: str) -> str:
        url, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        self.processes.start(
            "etcd",
            *("etcd", "--data-dir", data, "--log-level", "warn"),
            *("--listen-client-urls", url, "--advertise-client-urls", url),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", f"default={peer}"),
        )
        wait_until("etcd", lambda: self._healthy(f"{url}/health"))
        return url

    def start_apiserver(self, etcd: str) -> None:
        identity = self.authority.server()
        certificate = self._write("tls.crt", identity.certificate)
        key = self._write("tls.key", identity.key)
        users = [
            f"{self.tokens['wlm']},{WLM_USER},wlm",
            f'{self.tokens["admin"]},admin,admin,"system:masters"',
        ]
        port = free_port()
        self.url = f"https://127.0.0.1:{port}"
        self.processes.start(
            "apiserver",
            self.bin / "apiserver",
            f"--etcd-servers={etcd}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={port}",
            "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.0.0.0/24",
            f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}",
            f"--token-auth-file={self._write('tokens.csv', chr(10).join(users))}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={certificate}",
            f"--service-account-signing-key-file={key}",
            # no controller creates service accounts here
            "--disable-admission-plugins=ServiceAccount",
            "--profiling=false",
            # needs progress notifications of etcd, which Debian's version lacks
            "--feature-gates=WatchList=false",
        )
        wait_until("kube-apiserver", lambda: self._healthy(f"{self.url}/readyz"))
        self._write_kubeconfigs()

    def _write_kubeconfigs(self) -> None:
        text = kubeconfig.render(
            self.url, self.tokens["wlm"], self.tokens["admin"], self.authority.pem
        )
        self._write("kubeconfig", text)
        whole = yaml.safe_load(text)
        whole["current-context"] = kubeconfig.ADMIN_CONTEXT
        self._write("admin.kubeconfig", yaml.safe_dump(whole))

    def api(self) -> client.ApiClient:
        return config.new_client_from_config(str(self.admin_kubeconfig))

    def grant(self) -> None:
        """Give the workload manager its role."""
        rbac = client.RbacAuthorizationV1Api(self.api())
        for obj in role_objects():
            space = obj["metadata"].get("namespace")
            kind = obj["kind"]
            if kind == "ClusterRole":
                rbac.create_cluster_role(obj)
            elif kind == "ClusterRoleBinding":
                rbac.create_cluster_role_binding(obj)
            elif kind == "Role":
                rbac.create_namespaced_role(space, obj)
            else:
                rbac.create_namespaced_role_binding(space, obj)

    def start_dws(self, manager: str, crds: pathlib.Path) -> None:
        """The DWS manager of the DWS project: its kinds, its webhooks and its
        controllers. The webhooks' port is not configurable there."""
        home = self.dir / "dws"
        certificates = home / "k8s-webhook-server" / "serving-certs"
        certificates.mkdir(parents=True)
        for name in ("tls.crt", "tls.key"):
            shutil.copy(self.dir / name, certificates)
        api = self.api()
        for path in sorted(crds.glob("dataworkflowservices.github.io_*.yaml")):
            body = yaml.safe_load(path.read_text())
            body["spec"]["conversion"] = {
                "strategy": "Webhook",
                "webhook": {
                    "clientConfig": self._hook("/convert"),
                    "conversionReviewVersions": ["v1"],
                },
            }
            client.ApiextensionsV1Api(api).create_custom_resource_definition(body)
        environment = {
            **os.environ,
            "KUBECONFIG": str(self.admin_kubeconfig),
            "POD_NAMESPACE": "dws-system",
            "TMPDIR": str(home),
        }
        for mode in ("webhook", "controller"):
            probe = f"127.0.0.1:{free_port()}"
            self.processes.start(
                f"dws-{mode}",
                *(manager, "--mode", mode),
                *("--metrics-bind-address", f"127.0.0.1:{free_port()}"),
                *("--health-probe-bind-address", probe),
                env=environment,
            )
            wait_until(f"DWS {mode}", lambda: self._healthy(f"http://{probe}/readyz"))  # noqa: B023
        wait_until("DWS webhooks", self._hooks_serve)
        self._add_webhooks(api)

    def _hooks_serve(self) -> bool:
        self.processes.check()
        with socket.socket() as sock:
            return sock.connect_ex(("127.0.0.1", 9443)) == 0

    def _hook(self, path: str) -> dict[str, str]:
        ca = base64.b64encode(self.authority.pem).decode()
        return {"url": f"https://127.0.0.1:9443{path}", "caBundle": ca}

    def _add_webhooks(self, api: client.ApiClient) -> None:
        admission = client.AdmissionregistrationV1Api(api)
        for what, operations, create in (
            ("mutate", ["CREATE"], admission.create_mutating_webhook_configuration),
            (
                "validate",
                ["CREATE", "UPDATE"],
                admission.create_validating_webhook_configuration,
            ),
        ):
            rule = {
                "apiGroups": ["dataworkflowservices.github.io"],
                "apiVersions": ["v1alpha7"],
                "operations": operations,
                "resources": ["workflows"],
            }
            hook = {
                "name": f"{what[0]}workflow.kb.io",
                "admissionReviewVersions": ["v1"],
                "clientConfig": self._hook(f"/{what}-{DWS_STEM}"),
                "failurePolicy": "Fail",
                "sideEffects": "None",
                "rules": [rule],
            }
            create({"metadata": {"name": f"dws-{what}"}, "webhooks": [hook]})

    def start_controllers(self, options: list[str]) -> None:
        """DWS and NNF as dws-sim plays them, or NNF alone."""
        reader, writer = os.pipe()
        self.processes.start(
            "controllers",
            *(sys.executable, "-m", "dws_sim", "controllers", "--install"),
            *("--kubeconfig", self.admin_kubeconfig, "--ready-fd", writer),
            *("--mapping", self.dir / "mapping.json", *options),
            pass_fds=[writer],
        )
        os.close(writer)
        with os.fdopen(reader) as ready:
            if ready.read() != "ready\n":
                time.sleep(POLL_S)
                self.processes.check()
                raise ClusterError("the controllers did not start")

    def start_collector(self) -> None:
        """Start the garbage collector after all kinds exist, as it discovers new ones
        only at intervals."""
        self.processes.start(
            "collector",
            *(self.bin / "collector", "--kubeconfig", self.admin_kubeconfig),
        )


def role_objects(name: str = "wlm", without: tuple[str, ...] = ()) -> list[Any]:
    """The workload manager's role and what binds it to the user.

    Args:
        without: "resource:verb" words to leave out.
    """
    places: dict[str, list[Any]] = {}
    for (group, resource, space), verbs in wlm_role(without).rules.items():
        rule = {
            "apiGroups": [group],
            "resources": [resource],
            "verbs": sorted(verbs),
        }
        # a role may be empty, a rule may not
        places.setdefault(space, []).extend([rule] if verbs else [])
    out: list[Any] = []
    for space, rules in places.items():
        meta = {"name": name, **({"namespace": space} if space else {})}
        kind = "Role" if space else "ClusterRole"
        head = {"apiVersion": f"{RBAC}/v1", "metadata": meta}
        out.append({**head, "kind": kind, "rules": rules})
        out.append(
            {
                **head,
                "kind": f"{kind}Binding",
                "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
                "subjects": [{"apiGroup": RBAC, "kind": "User", "name": WLM_USER}],
            }
        )
    return out


@contextlib.contextmanager
def running(args: argparse.Namespace) -> Iterator[Cluster]:
    """A cluster as the command line asks for it."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    cluster = Cluster(args.dir, args.bin)
    with tempfile.TemporaryDirectory(prefix="dws-etcd-", dir=memory) as data:
        try:
            cluster.start_apiserver(cluster.start_etcd(data))
            cluster.grant()
            options = ["--root", str(args.dir / "root"), "--nodes", args.nodes]
            if args.dws_manager:
                cluster.start_dws(args.dws_manager, args.dws_crds)
                options.append("--no-dws")
            cluster.start_controllers(options)
            cluster.start_collector()
            yield cluster
        finally:
            cluster.processes.stop()


def supervise(args: argparse.Namespace) -> None:
    """Run a cluster until a signal, or until a part of it ends by itself.

    Raises:
        ClusterError: it did not start, or a part has ended.
    """
    heard, hear = socket.socketpair()
    hear.setblocking(False)
    signal.set_wakeup_fd(hear.fileno())
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, lambda n, _: None)
    with running(args) as cluster:
        if args.ready_fd is not None:
            with os.fdopen(args.ready_fd, "w") as ready:
                ready.write("ready\n")
        while heard.recv(1)[0] == signal.SIGCHLD:
            cluster.processes.check()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--dir", type=pathlib.Path, required=True, help="kubeconfig, logs, mounts")
    add("--bin", type=pathlib.Path, required=True, help="apiserver and collector")
    add("--nodes", default="node[0-3]", help="compute nodes, two for each rabbit")
    add("--dws-manager", help="a DWS manager to use in place of dws-sim's part")
    add("--dws-crds", type=pathlib.Path, help="the manifests of its kinds")
    add("--ready-fd", type=int, help='write "ready" here when all is there')
    args = parser.parse_args()
    if args.dws_manager and not args.dws_crds:
        parser.error("--dws-manager needs --dws-crds")
    try:
        supervise(args)
    except ClusterError as exc:
        print(f"cluster: {exc}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
