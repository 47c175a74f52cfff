# SPDX-License-Identifier: LGPL-3.0-only
#
# The check of selftest for compute nodes: the unit nnf-clientmount, which mounts and
# unmounts file systems there. flux exec asks systemd on each node.
"""The check of nnf-clientmount, registered on import."""

from __future__ import annotations

import re
import shlex
import socket
import subprocess
from collections.abc import Iterator
from urllib.parse import urlsplit

from flux_rabbit.checks import Advice, Site, Skip, Wrong, check

UNIT = "nnf-clientmount"
PROPERTIES = "LoadState,ActiveState,SubState,WantedBy,RequiredBy,ExecStart,Environment"
TIMEOUT_S = 60.0

Units = dict[str, dict[str, str]]


def ask(ranks: str) -> tuple[dict[int, list[str]], str]:
    """The lines of systemctl show by rank, and the error text of flux exec.

    Raises:
        Skip: flux exec fails or does not end in time.
    """
    command = ["flux", "exec", "--noinput", "--label-io", "-r", ranks]
    show = ["systemctl", "show", f"--property={PROPERTIES}", UNIT]
    try:
        done = subprocess.run(
            command + show,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise Skip(f"the nodes cannot be asked: {exc}") from None
    answers: dict[int, list[str]] = {}
    for line in done.stdout.splitlines():
        rank, _, text = line.partition(": ")
        if rank.isdigit():
            answers.setdefault(int(rank), []).append(text)
    return answers, done.stderr.strip()


def _nodes(site: Site) -> tuple[dict[int, str], set[str]]:
    """The online nodes of the mapping, by rank, and the nodes allocated to jobs."""
    from flux.hostlist import Hostlist
    from flux.idset import IDset
    from flux.resource import ResourceSet

    mapped = {host for rabbit in site.rabbits for host in Hostlist(rabbit["nodes"])}
    status = site.handle.rpc("resource.status", {}, nodeid=0).get()
    up = set(IDset(status["online"]))
    hosts = Hostlist(",".join(status["R"]["execution"]["nodelist"]))
    names = {n: host for n, host in enumerate(hosts) if n in up and host in mapped}
    jobs = site.handle.call("resource.sched-status").get("allocated")
    return names, set(ResourceSet(jobs).nodelist) if jobs else set()


def options(unit: dict[str, str]) -> dict[str, str]:
    """The options of the program in the unit. An option that is not given has its value
    from the unit's environment, if it is one that can be set there."""
    found = {}
    for word in shlex.split(unit.get("Environment", "")):
        name, _, value = word.partition("=")
        if name.startswith("KUBERNETES_SERVICE_") or name == "NODE_NAME":
            found[name.lower().replace("_", "-")] = value
    start = re.search(r"argv\[\]=(.*?) ; ignore_errors=", unit.get("ExecStart", ""))
    words = start.group(1).split() if start else []
    for number, word in enumerate(words):
        if word.startswith("-"):
            name, given, value = word.lstrip("-").partition("=")
            following = words[number + 1 : number + 2]
            found[name] = value if given else "".join(following)
    return found


def _addresses(server: str) -> set[tuple[str, str]]:
    """The addresses of a server HOST:PORT, empty if its name cannot be resolved."""
    parts = urlsplit(f"//{server}")
    port = str(parts.port or 443)
    try:
        found = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    except OSError:
        return set()
    return {(str(address[0]), port) for *_, address in found}


def server_of(unit: dict[str, str]) -> str:
    """The API server as HOST:PORT, "" if a kubeconfig names it."""
    given = options(unit)
    host = given.get("kubernetes-service-host", "")
    port = given.get("kubernetes-service-port", "443")
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}" if host else ""


def _by(words: dict[str, str]) -> list[tuple[str, str]]:
    """The distinct words, each with the hostlist of its nodes."""
    from flux.hostlist import Hostlist

    return [
        (word, str(Hostlist(sorted(h for h in words if words[h] == word)).encode()))
        for word in sorted(set(words.values()))
    ]


def _faults(units: Units, busy: set[str]) -> Iterator[tuple[str, str]]:
    """Faults of the units, each with its remedy."""
    for state, nodes in _by({h: unit["LoadState"] for h, unit in units.items()}):
        if state == "not-found":
            yield (
                f"no unit {UNIT} on {nodes}",
                "install it; a unit of another name, such as clientmountd, needs "
                f"Alias={UNIT}.service below [Install], and systemctl enable",
            )
        elif state != "loaded":
            yield f"{UNIT} is {state} on {nodes}", f"there: systemctl status {UNIT}"
    loaded = {h: unit for h, unit in units.items() if unit["LoadState"] == "loaded"}
    # The prolog script stops the unit, the epilog script starts it.
    idle = {h: unit["ActiveState"] for h, unit in loaded.items() if h not in busy}
    for state, nodes in _by(idle):
        if state != "active":
            yield (
                f"{UNIT} is {state} on {nodes} without a job",
                f"there: systemctl status {UNIT}; systemctl start {UNIT}",
            )
    starters = {
        h: unit.get("WantedBy", "") + unit.get("RequiredBy", "")
        for h, unit in loaded.items()
    }
    for starter, nodes in _by(starters):
        if not starter:
            yield (
                f"nothing starts {UNIT} when {nodes} boots",
                "let flux.service do it: flux.service.d/flux-dws.conf has to be in a "
                f"folder that systemd reads; or: systemctl enable {UNIT}",
            )
    for host, unit in loaded.items():
        name = options(unit).get("node-name") or host
        if name != host:
            yield (
                f"{UNIT} on {host} has the node name {name} and mounts nothing for "
                f"{host}",
                "correct --node-name or NODE_NAME in the unit",
            )


def judge(units: Units, busy: set[str], server: str) -> str | Advice:
    """The verdict.

    Args:
        units: the properties of the unit on each node.
        busy: nodes with jobs.
        server: the agent's API server as HOST:PORT, "" if that is not known.
    """
    faults = list(_faults(units, busy))
    if faults:
        texts, hints = zip(*faults)
        raise Wrong("; ".join(texts), "; ".join(dict.fromkeys(hints)))
    text = f"{UNIT} is ready on {len(units)} nodes"
    own = _addresses(server) if server else set()
    for theirs, nodes in _by({host: server_of(unit) for host, unit in units.items()}):
        if server and theirs and not own & _addresses(theirs):
            return Advice(
                f"{text}; on {nodes} its API server is {theirs}, "
                f"that of the agent {server}",
                "are these the same cluster?",
            )
    return text


@check(UNIT)
def _clientmount(site: Site) -> str | Advice:
    if not site.rabbits:
        raise Skip("without a mapping")
    names, busy = _nodes(site)
    if not names:
        raise Skip("no node with a rabbit is up")
    answers, error = ask(",".join(map(str, sorted(names))))
    reason = error.splitlines()[0] if error else "no answer"
    if not answers:
        raise Skip(f"systemd of the nodes cannot be asked: {reason}")
    for rank, host in names.items():
        if rank not in answers:
            raise Wrong(
                f"systemd of {host} cannot be asked: {reason}",
                f"look on {host}: systemctl show {UNIT}",
            )
    units: Units = {
        host: dict(line.partition("=")[::2] for line in answers[rank])
        for rank, host in names.items()
    }
    server = urlsplit(site.kube.server).netloc if site.kube is not None else ""
    return judge(units, busy, server)
