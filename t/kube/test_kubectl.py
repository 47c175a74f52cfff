# kubectl must print the same from dws-sim and from kube-apiserver with the same
# objects, but for times, versions and other values that differ between any two servers.
# SPDX-License-Identifier: LGPL-3.0-only
"""kubectl on dws-sim and on a real API server, command by command."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

from sim_support import Sim

KUBECONFIG = pathlib.Path(os.environ["DWS_PARITY_KUBECONFIG"])
KUBECTL = os.environ.get("DWS_KUBECTL", "")
LIMIT_S = 60
WORKFLOW = """\
apiVersion: dataworkflowservices.github.io/v1alpha7
kind: Workflow
metadata:
  name: kubectl-w
spec:
  desiredState: Proposal
  dwDirectives: ["#DW jobdw type=xfs capacity=10GiB name=scratch"]
  groupID: 100
  jobID: "7"
  userID: 100
  wlmID: flux
"""
COMPUTES = """\
apiVersion: dataworkflowservices.github.io/v1alpha7
kind: Computes
metadata: {name: kubectl-c, labels: {a: "1"}}
data: [{name: node0}]
"""
CONFIG = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: kubectl-m}
data: {a: "1"}
"""
SECRET = """\
apiVersion: v1
kind: Secret
metadata: {name: kubectl-t}
stringData: {a: b}
"""
NODE = """\
apiVersion: v1
kind: Node
metadata: {name: kubectl-node}
"""
WRONG = COMPUTES.replace("kubectl-c", "kubectl-d") + "bogus: 1\n"
TWO = COMPUTES.replace("node0", "node1")
# Each command's standard input, or "", and its words.
COMMANDS: list[tuple[str, str]] = [
    ("", "get namespace default rabbit0 -o name"),
    ("", "get ns default"),
    ("", "api-resources --api-group=dataworkflowservices.github.io"),
    ("", "api-resources --api-group=nnf.cray.hpe.com"),
    ("", "api-resources --api-group=lus.cray.hpe.com -o name"),
    ("", "get crd workflows.dataworkflowservices.github.io -o name"),
    ("", "explain workflow.spec.desiredState"),
    ("", "explain workflow.status.drivers.completed"),
    ("", "explain storages.spec"),
    ("", "auth can-i create workflows"),
    ("", "auth can-i --list --namespace=default"),
    ("", "--context=wlm auth whoami -o jsonpath={.status.userInfo.username}"),
    ("", "--context=wlm auth can-i delete storages"),
    ("", "--context=wlm auth can-i get pods --subresource=log"),
    ("", "get workflows"),
    (WORKFLOW, "create -f -"),
    (WORKFLOW, "create -f -"),
    ("", "wait --for=jsonpath={.status.ready}=true workflow/kubectl-w"),
    ("", "get workflow kubectl-w"),
    ("", "get workflows -o wide --no-headers"),
    ("", "get workflow kubectl-w -o jsonpath={.status.state}"),
    ("", "get workflow kubectl-w -o custom-columns=N:.metadata.name,J:.spec.jobID"),
    ("", "get workflow kubectl-w -o go-template={{.spec.wlmID}}"),
    ("", "get directivebreakdowns,servers,computes"),
    ("", "get storages"),
    ("", "get storages -A -l dataworkflowservices.github.io/storage=Rabbit"),
    ("", "get storages --field-selector metadata.name=rabbit0 -o name"),
    ("", "get nnfnodes -A"),
    ("", "get lustrefilesystems -o wide"),
    ("", "get nnfstorageprofiles,nnfdatamovementprofiles -n nnf-system"),
    ("", "get nnfcontainerprofiles -n nnf-system -o name"),
    (WRONG, "apply -f -"),
    (WRONG, "apply --validate=warn -f -"),
    ("", "delete computes kubectl-d"),
    (COMPUTES, "apply --dry-run=server -f -"),
    (COMPUTES, "apply -f -"),
    (COMPUTES, "apply -f -"),
    (TWO, "diff -f -"),
    (TWO, "apply -f -"),
    ("", "get computes kubectl-c -o yaml"),
    ("", "label computes kubectl-c b=2"),
    ("", "label computes kubectl-c b=3"),
    ("", "annotate computes kubectl-c note=here"),
    ("", "get computes -l a=1,b!=3 --show-labels"),
    ("", 'patch computes kubectl-c --type=merge -p {"data":[]}'),
    (
        "",
        'patch computes kubectl-c --type=json -p [{"op":"test","path":"/x","value":1}]',
    ),
    ("", "patch computes kubectl-c -p {}"),
    (COMPUTES, "replace -f -"),
    ("", "delete computes kubectl-c"),
    (COMPUTES, "apply --server-side --field-manager=a -f -"),
    (COMPUTES, "apply --server-side --field-manager=a -f -"),
    (TWO, "apply --server-side --field-manager=b -f -"),
    (TWO, "apply --server-side --field-manager=b --force-conflicts -f -"),
    ("", "describe computes kubectl-c"),
    ("", "edit computes kubectl-c"),
    ("", "delete computes kubectl-c"),
    ("", "get computes kubectl-c"),
    (CONFIG, "apply -f -"),
    (CONFIG.replace('"1"', '"2"'), "apply -f -"),
    ("", 'patch cm kubectl-m -p {"data":{"b":"2"}}'),
    ("", "get cm kubectl-m -o wide"),
    ("", "describe cm kubectl-m"),
    ("", "delete cm kubectl-m"),
    ("", "create namespace kubectl-n --dry-run=server"),
    ("", "create secret generic kubectl-s --from-literal=a=b"),
    (SECRET, "apply -f -"),
    ("", "get secret kubectl-s kubectl-t"),
    ("", "get secret kubectl-t -o jsonpath={.data}"),
    ("", "delete secret kubectl-s kubectl-t"),
    ("", "get events --field-selector involvedObject.name=kubectl-w"),
    ("", "taint node rabbit0 cray.nnf.node.drain=true:NoSchedule"),
    ("", "wait --for=jsonpath={.status.status}=Drained storage/rabbit0"),
    ("", "taint node rabbit0 cray.nnf.node.drain-"),
    ("", "wait --for=jsonpath={.status.status}=Ready storage/rabbit0"),
    ("", "cordon rabbit0"),
    ("", "uncordon rabbit0"),
    (NODE, "create -f -"),
    ("", "drain kubectl-node --ignore-daemonsets"),
    ("", "get node kubectl-node --no-headers"),
    ("", "uncordon kubectl-node"),
    ("", "delete node kubectl-node"),
    ("", "run kubectl-p --image=none --restart=Never"),
    ("", "get pod kubectl-p"),
    ("", "delete pod kubectl-p --now"),
    ("", "get workflows.v1alpha6.dataworkflowservices.github.io kubectl-w -o name"),
    ("", "get nothing"),
    ("", "get --raw /apis/nnf.cray.hpe.com/v1/x"),
    ("", "delete workflow kubectl-w"),
    ("", "get workflows --chunk-size=1"),
]
# Patterns of values that differ between any two servers, and their replacements.
_PARTS = [
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z?", "TIME"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
    (r"(?i)(resource ?version): *\"?\d+\"?", r"\1: N"),
    (r"(?i)(generation): *\d+", r"\1: N"),
    (r"https://127\.0\.0\.1:\d+", "SERVER"),
    (r"(?<![\w.])\d+(\.\d+)?(µs|ms|[smhd])(\d+[smh])?(?![\w.])", "AGE"),
    (r"/tmp/\S+", "FILE"),
    (r"(?m)^(---|\+\+\+|diff -u.*) .*$", r"\1"),
    (r"[ \t]+", " "),
    (r"(?m) $", ""),
]


class Cluster:
    """A server as kubectl's administrator sees it."""

    def __init__(self, directory: pathlib.Path, kubeconfig: pathlib.Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        self._path = directory / f"{kubeconfig.parent.name}.yaml"
        self._path.write_text(json.dumps({**config, "current-context": "admin"}))
        self._cache = directory / f"{kubeconfig.parent.name}.cache"

    def run(self, stdin: str, words: str) -> str:
        """Run kubectl. Returns its output and exit status."""
        result = subprocess.run(
            [KUBECTL, "--cache-dir", str(self._cache), *words.split(" ")],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
            env={
                **os.environ,
                "KUBECONFIG": str(self._path),
                "KUBE_EDITOR": "sed -i s/node1/node2/",
            },
        )
        text = f"{result.stdout}{result.stderr}exit {result.returncode}\n"
        for pattern, word in _PARTS:
            text = re.sub(pattern, word, text)
        return text


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Cluster]]:
    if not KUBECTL:
        pytest.skip("no kubectl (DWS_KUBECTL)")
    directory = tmp_path_factory.mktemp("kubectl")
    sim = Sim(directory)
    yield [Cluster(directory, sim.kubeconfig), Cluster(directory, KUBECONFIG)]
    assert sim.stop() == 0


def lines(text: str) -> list[str]:
    """Lines to compare. Lists of rights come in any order, and are sorted."""
    return (
        sorted(text.splitlines()) if "Non-Resource URLs" in text else text.splitlines()
    )


@pytest.mark.parametrize(
    ("stdin", "words"), COMMANDS, ids=[f"{i}: {w}" for i, (_, w) in enumerate(COMMANDS)]
)
def test_kubectl(clusters: list[Cluster], stdin: str, words: str) -> None:
    ours, theirs = (lines(cluster.run(stdin, words)) for cluster in clusters)
    assert ours == theirs


def test_there_are_enough_of_them() -> None:
    assert len(COMMANDS) >= 60
