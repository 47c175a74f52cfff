# SPDX-License-Identifier: LGPL-3.0-only
#
# Checks that selftest makes before it runs jobs: Flux, the configuration, the API
# server, the agent's rights there, and whether Flux and DWS agree on the machine.
"""The checks of an installation."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Union

from flux_rabbit import rpc, status

Object = dict[str, Any]

OLDEST_CORE = (0, 80)
# Rights that flux-dws uses, all of them part of NNF's role for workload managers.
RIGHTS = {
    "workflows": "create delete get list patch watch",
    "servers": "get list patch",
    "computes": "get patch",
    "storages": "get list patch watch",
    "directivebreakdowns": "get",
    "clientmounts": "list",
    "persistentstorageinstances": "get list watch",
    "secrets": "get",
    "systemconfigurations": "get list",
    "systemstatuses": "get patch",
    "nnfdatamovements": "list",
    "pods": "list",
    "pods/log": "get",
}
# Rights beyond that role, which rabbit.stage_out_retry needs.
RETRY_RIGHTS = {"nnfdatamovements": "delete"}
# The role has the rights to these kinds in one namespace, not everywhere.
NAMESPACES = {"pods": "default"}
SCHEDULERS = ("sched-rabbit", "sched-fluxion-resource")
# Other formats, such as Fluxion's default, omit the rabbits of a job from R.
MATCH_FORMATS = ("rv1", "rv1_shorthand")
# Queue policies under which Fluxion rejects a job with a constraint if it finds no time
# at which the requested nodes become free.
IMPATIENT_POLICIES = {"fcfs", "easy"}


@dataclass(frozen=True)
class Verdict:
    """The outcome of one check. `good` is None for one that was not made."""

    name: str
    good: bool | None
    text: str
    hint: str = ""

    def as_json(self) -> Object:
        word = {True: "passed", False: "failed", None: "skipped"}[self.good]
        return {
            "check": self.name,
            "verdict": word,
            "text": self.text,
            "hint": self.hint,
        }


@dataclass
class Site:
    """Findings of earlier checks, for later ones."""

    handle: rpc.Handle
    config: Object = field(default_factory=dict)
    status: Object | None = None
    rabbits: list[Object] = field(default_factory=list)
    kube: Any = None

    @property
    def table(self) -> Object:
        table = self.config.get("rabbit")
        return table if isinstance(table, dict) else {}


class Skip(Exception):
    """The check cannot be made; the text says why."""


@dataclass(frozen=True)
class Advice:
    """A passed check with a recommendation."""

    text: str
    hint: str


class Wrong(Exception):
    """The check has found a fault; `hint` is the remedy."""

    def __init__(self, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.hint = hint


# Union: evaluated at run time, where Python 3.9 has no "str | Advice".
Check = Callable[[Site], Union[str, Advice]]
CHECKS: list[tuple[str, Check]] = []


def check(name: str) -> Callable[[Check], Check]:
    """Register a check. The check returns a text or Advice if it passes, and raises
    Wrong or Skip if not."""

    def add(function: Check) -> Check:
        CHECKS.append((name, function))
        return function

    return add


def run(site: Site) -> Iterator[Verdict]:
    """Make all checks in order; yields a verdict on each."""
    for name, function in CHECKS:
        try:
            found = function(site)
            if isinstance(found, Advice):
                yield Verdict(name, True, found.text, found.hint)
            else:
                yield Verdict(name, True, found)
        except Wrong as exc:
            yield Verdict(name, False, str(exc), exc.hint)
        except Skip as exc:
            yield Verdict(name, None, str(exc))
        except OSError as exc:
            yield Verdict(name, False, str(exc))
        except ImportError as exc:
            yield Verdict(
                name, False, f"{exc}", f"the Python of flux is {sys.executable}"
            )
        except Exception as exc:
            # What this check has met is not to hide the verdicts of the others.
            text = f"ended by an error of its own: {exc!r}"
            yield Verdict(name, False, text, "please report it")


# Flux


@check("Flux version")
def _version(site: Site) -> str:
    version = site.handle.attribute("version")
    parts = tuple(int(p) for p in version.split(".")[:2] if p.isdigit())
    if parts < OLDEST_CORE:
        oldest = ".".join(map(str, OLDEST_CORE))
        raise Wrong(f"this Flux is {version}", f"flux-dws needs {oldest} or newer")
    return version


@check("instance owner")
def _owner(site: Site) -> str:
    owner = site.handle.attribute("security.owner")
    if owner != str(os.getuid()):
        raise Wrong(
            f"the instance belongs to user id {owner}", "run selftest as that user"
        )
    return f"user id {owner}"


@check("leftovers")
def _leftovers(site: Site) -> str:
    import flux_k8s

    from flux_rabbit import leftovers

    confdir: Path | None
    try:
        from flux.conf_builtin import conf_builtin_get

        confdir = Path(conf_builtin_get("confdir"))
    except (ImportError, OSError, ValueError):
        confdir = None
    found = leftovers.find(confdir, Path(flux_k8s.__file__).parent)
    if found:
        raise Wrong(
            f"of flux-coral2 there is still {', '.join(map(str, found))}",
            "remove its rabbit part; doc/admin/moving.rst says how",
        )
    return "nothing of flux-coral2 is in the way"


@check("configuration")
def _configuration(site: Site) -> str:
    from flux_k8s import configcheck

    site.config = site.handle.call("config.get")
    if "rabbit" not in site.config:
        raise Wrong(
            "there is no table [rabbit]",
            "see flux-config-rabbit(5), then run: flux config reload",
        )
    # The kubeconfig has a check of its own.
    faults = [
        fault
        for fault in configcheck.faults({"queues": {}, **site.config})[0]
        if not fault.startswith("rabbit.kubeconfig: kubeconfig")
    ]
    if faults:
        raise Wrong("; ".join(faults), "see flux-config-rabbit(5)")
    return f"{len(site.table)} keys in [rabbit]"


def modules(site: Site) -> set[str]:
    """The modules that are loaded on rank 0."""
    answer = site.handle.rpc("module.list", {}, nodeid=0).get()
    return {str(module["name"]) for module in answer["mods"]}


@check("broker module")
def _module(site: Site) -> str:
    try:
        site.status = rpc.status(site.handle)
    except rpc.Absent:
        raise Wrong(
            "the broker module dws is not loaded",
            "run: flux module load dws; flux dmesg says why it refuses",
        ) from None
    return "dws is loaded"


@check("jobtap plugin")
def _plugin(site: Site) -> str:
    from flux_k8s.release import JOBTAP

    answer = site.handle.call("job-manager.jobtap", {"query_only": True})
    if "dws" in answer["plugins"]:
        raise Wrong(
            "the jobtap plugin of flux-coral2 is loaded",
            f"run: flux jobtap remove dws; flux jobtap load {JOBTAP}",
        )
    if not any(str(name).startswith("dws-jobtap") for name in answer["plugins"]):
        raise Wrong(
            "the jobtap plugin dws-jobtap.so is not loaded",
            f"run: flux jobtap load {JOBTAP}, or name it in job-manager.plugins",
        )
    if site.status is not None and not site.status["synced"]:
        raise Wrong("dws-jobtap.so is loaded, but does not answer the module")
    return "dws-jobtap.so is loaded"


@check("scheduler")
def _scheduler(site: Site) -> str | Advice:
    loaded = modules(site)
    found = [name for name in SCHEDULERS if name in loaded]
    if not found:
        others = sorted(name for name in loaded if name.startswith("sched"))
        raise Wrong(
            f"the scheduler ({', '.join(others) or 'none'}) knows no rabbits",
            "load sched-rabbit.py, or Fluxion with a graph of flux dws2jgf",
        )
    if found[0] != "sched-rabbit":
        return _fluxion(site)
    return "sched-rabbit"


def _limited(table: Object) -> bool:
    """Whether a policy table gives every job a time limit."""
    policy = table.get("policy") or {}
    system = ((policy.get("jobspec") or {}).get("defaults") or {}).get("system") or {}
    return bool((policy.get("limits") or {}).get("duration") or system.get("duration"))


def _refuses_busy(config: Object) -> bool:
    """Whether Fluxion rejects jobs with a constraint, such as nodes next to persistent
    storage, while jobs without a time limit run on these nodes."""
    table = config.get("sched-fluxion-qmanager") or {}
    policies = {str(table.get("queue-policy") or "fcfs")}
    for pair in str(table.get("queue-policy-per-queue") or "").split():
        policies.add(pair.rpartition(":")[2])
    queues = config.get("queues") or {}
    # A virtual queue inherits its parent's policy unless it sets its own.
    policies_of = [(q, queues.get(q.get("parent")) or {}) for q in queues.values()]
    limited = _limited(config) or (
        policies_of and all(any(map(_limited, both)) for both in policies_of)
    )
    return not limited and not policies.isdisjoint(IMPATIENT_POLICIES)


def _fluxion(site: Site) -> str | Advice:
    format = (site.config.get("sched-fluxion-resource") or {}).get("match-format")
    if format not in MATCH_FORMATS:
        raise Wrong(
            f'sched-fluxion-resource.match-format is "{format}"'
            if format
            else "sched-fluxion-resource.match-format is not set",
            f"with rabbits it has to be {' or '.join(MATCH_FORMATS)}",
        )
    resource = site.config.get("resource") or {}
    if not resource.get("scheduling") and not resource.get("path"):
        raise Wrong(
            "Fluxion has no graph with rabbits",
            "write one with flux dws2jgf, and name it in resource.scheduling",
        )
    if _refuses_busy(site.config):
        return Advice(
            "Fluxion; it may refuse jobs that use persistent storage while nodes are "
            "busy",
            'set sched-fluxion-qmanager.queue-policy = "conservative", or a limit in '
            "policy.limits.duration",
        )
    return "Fluxion"


def _seconds(value: Any) -> float:
    """The seconds of a duration in the configuration; 0 for an invalid one, which
    another check reports."""
    from flux.util import parse_fsd

    try:
        return float(parse_fsd(value) if isinstance(value, str) else value or 0)
    except (TypeError, ValueError, OverflowError):
        return 0.0


@check("time limits")
def _limits(site: Site) -> str:
    """Fail if epilogs time out before rabbit.teardown_after. Options given to flux
    jobtap load are not in the configuration, so they stay unchecked."""
    plugins = (site.config.get("job-manager") or {}).get("plugins") or []
    ours = [p for p in plugins if "dws-jobtap" in str(p.get("load"))]
    epilog = _seconds(ours[-1].get("conf", {}).get("epilog-timeout")) if ours else 0.0
    teardown = _seconds(site.table.get("teardown_after"))
    if 0 < epilog <= teardown:
        raise Wrong(
            f"epilog-timeout of dws-jobtap.so ({epilog:g} s) is not above "
            f"rabbit.teardown_after ({teardown:g} s): nodes are drained while data is "
            "still moved",
            "raise epilog-timeout in job-manager.plugins, or lower teardown_after",
        )
    return f"epilog-timeout is {epilog:g} s" if epilog else "epilogs have no limit"


@check("nodes in the mapping")
def _nodes(site: Site) -> str:
    from flux.hostlist import Hostlist

    if site.status is None:
        raise Skip("without the broker module")
    site.rabbits = rpc.rabbits(site.handle)
    answer = site.handle.rpc("resource.status", {}, nodeid=0).get()
    ours = set(Hostlist(",".join(answer["R"]["execution"]["nodelist"])))
    mapped = {h for rabbit in site.rabbits for h in Hostlist(rabbit["nodes"])}
    if not ours & mapped:
        raise Wrong(
            "no node of this Flux instance is in rabbit.mapping",
            "make it anew: flux rabbitmapping",
        )
    foreign = sorted(mapped - ours)
    if foreign:
        raise Wrong(
            f"rabbit.mapping has {Hostlist(foreign).encode()}, which this Flux "
            "instance does not have",
            "make it anew: flux rabbitmapping",
        )
    return f"{len(ours & mapped)} of {len(ours)} nodes have a rabbit"


# Kubernetes


@check("kubeconfig")
def _kubeconfig(site: Site) -> str:
    from flux_k8s.kube import Kube
    from flux_k8s.kubeconfig import ConfigError, InsecureError

    path = site.table.get("kubeconfig")
    try:
        site.kube = Kube(
            path if isinstance(path, str) else None,
            connections=4,
        )
    except InsecureError as exc:
        raise Skip(str(exc)) from None  # the agent may have been told to take it
    except ConfigError as exc:
        raise Wrong(f"rabbit.kubeconfig: {exc}", "the agent reads it, too") from None
    for file in site.kube.files():
        if os.stat(file).st_mode & 0o044:
            raise Wrong(
                f"{file} can be read by others, who may do then what the agent may",
                f"run: chmod go= {file}",
            )
    return str(site.kube.path)


def _kube(site: Site) -> Any:
    if site.kube is None:
        raise Skip("without a kubeconfig or an API server")
    return site.kube


@check("API server")
def _server(site: Site) -> str:
    from flux_k8s.crd import DWS_GROUP
    from flux_k8s.errors import BROKEN, ApiError

    kube = _kube(site)
    try:
        version = kube.version(DWS_GROUP)
    except ApiError as exc:
        site.kube = None
        if exc.status == 401:
            raise Wrong(
                "the API server refuses the token of the kubeconfig",
                "it has expired, or is of another cluster",
            ) from None
        if exc.reason == BROKEN and exc.message.startswith("API group"):
            raise Wrong(exc.message, "is DWS installed in that cluster?") from None
        if exc.status == 0:
            raise Wrong(
                f"the API server does not answer: {exc.message}",
                "is its address in the kubeconfig right, and the network up?",
            ) from None
        raise Wrong(f"the API server answers {exc.status}: {exc.message}") from None
    return f"{DWS_GROUP}/{version}"


@check("permissions")
def _permissions(site: Site) -> str:
    from flux_k8s.crd import RESOURCES
    from flux_k8s.errors import ApiError

    kube = _kube(site)

    def missing(rights: dict[str, str]) -> list[str]:
        return [
            f"{verb} {name}"
            for name, verbs in rights.items()
            for plural, _, sub in [name.partition("/")]
            for verb in verbs.split()
            if not kube.may(RESOURCES[plural], verb, NAMESPACES.get(plural, ""), sub)
        ]

    retry = _seconds(site.table.get("stage_out_retry")) > 0
    try:
        of_role = missing(RIGHTS)
        of_retry = missing(RETRY_RIGHTS) if retry else []
    except ApiError as exc:
        raise Wrong(f"cannot ask for rights: {exc.message}") from None
    hints = []
    if of_role:
        hints.append("give the user of the kubeconfig the role nnf-workload-manager")
    if of_retry:
        hints.append(
            "flux rabbit retry (rabbit.stage_out_retry) needs a role besides: kubectl "
            "create clusterrole flux-retry --verb=delete "
            "--resource=nnfdatamovements.nnf.cray.hpe.com, and a clusterrolebinding "
            "of it to that user"
        )
    if hints:
        raise Wrong(f"may not: {', '.join(of_role + of_retry)}", "; ".join(hints))
    count = sum(len(verbs.split()) for verbs in RIGHTS.values())
    return f"{count + retry} rights"


@check("mapping of the cluster")
def _mapping(site: Site) -> str:
    from flux_k8s import rabbitmap
    from flux_k8s.errors import ApiError

    kube = _kube(site)
    if not site.rabbits:
        raise Skip("without a mapping")
    try:
        system = kube.get("systemconfigurations", "default", "default")
        real = rabbitmap.build(system, kube.list_all("storages")[0])
    except (ApiError, rabbitmap.MappingError) as exc:
        raise Wrong(f"cannot be read: {exc}") from None
    wrong = []
    for rabbit in site.rabbits:
        there = real["rabbits"].get(rabbit["name"])
        if there is None:
            wrong.append(f"{rabbit['name']} is not in the cluster")
        elif there["hostlist"] != rabbit["nodes"]:
            wrong.append(
                f"{rabbit['name']} has {there['hostlist'] or 'no node'} there, "
                f"{rabbit['nodes'] or 'no node'} in the mapping"
            )
    mapped = {rabbit["name"] for rabbit in site.rabbits}
    absent = sorted(set(real["rabbits"]) - mapped)
    if absent:
        wrong.append(f"{', '.join(absent)} of the cluster not in the mapping")
    if wrong:
        raise Wrong(
            "; ".join(wrong[:4]) + ("; and more" if len(wrong) > 4 else ""),
            "rabbit.mapping is out of date, make it anew: flux rabbitmapping",
        )
    return f"{len(site.rabbits)} rabbits"


@check("agent")
def _agent(site: Site) -> str:
    if site.status is None:
        raise Skip("without the broker module")
    site.status = rpc.status(site.handle)
    good, text = status.health({**site.status, "synced": True})
    if not good:
        raise Wrong(text, "run: systemctl status flux-coral2-dws")
    return text


@check("releases")
def _releases(site: Site) -> str | Advice:
    from flux_k8s.release import RELEASE

    if site.status is None:
        raise Skip("without the broker module")
    # Releases before 0.1.0 do not say which they are.
    found = {"this command": RELEASE, **site.status.get("releases", {})}
    told = {part: release or "an older one" for part, release in found.items()}
    if not site.status["agent"]["attached"]:
        told.pop("agent", None)
    if set(told.values()) == {RELEASE} and "module" in told:
        return f"all parts are of {RELEASE}"
    told.setdefault("module", "an older one")
    return Advice(
        ", ".join(f"{part}: {release}" for part, release in told.items()),
        "they work together; reload or restart what is older when it suits",
    )


@check("rabbits")
def _rabbits(site: Site) -> str:
    if site.status is None:
        raise Skip("without the broker module")
    if not site.status["agent"]["synced"]:
        raise Skip("without an agent")
    states = site.status["rabbits"]["states"]
    ready = states.get("Ready", 0)
    text = ", ".join(f"{n} {word}" for word, n in sorted(states.items()))
    if not ready:
        raise Wrong(
            f"no rabbit is Ready: {text}",
            "flux rabbit list -o long says why, flux rabbit enable enables",
        )
    return text


def _label(obj: Object, name: str) -> str:
    return str(obj["metadata"].get("labels", {}).get(name, ""))


@check("mounts")
def _mounts(site: Site) -> str:
    from flux_k8s.crd import DWS_GROUP
    from flux_k8s.errors import ApiError

    kube = _kube(site)
    workflow_uid = f"{DWS_GROUP}/workflow.uid"

    def lives(mount: Object, persistent: set[str]) -> bool:
        """NNF mounts a new Lustre file system once to set its owner, and keeps that
        unmounted ClientMount for as long as the file system exists."""
        name, _, suffix = mount["metadata"]["name"].rpartition("-")
        return suffix == "ownergroup" and name in persistent

    def uids(objects: list[Object]) -> set[str]:
        return {obj["metadata"]["uid"] for obj in objects}

    try:
        mounts = kube.list_all("clientmounts")[0]
        workflows = uids(kube.list_all("workflows")[0])
        lost = [
            mount for mount in mounts if _label(mount, workflow_uid) not in workflows
        ]
        if lost:
            kept = kube.list_all("persistentstorageinstances")[0]
            persistent = {obj["metadata"]["name"] for obj in kept}
            lost = [mount for mount in lost if not lives(mount, persistent)]
        # a workflow and its mounts may have ended between the two lists
        there = uids(kube.list_all("clientmounts")[0]) if lost else set()
    except ApiError as exc:
        raise Wrong(f"cannot be listed: {exc.message}") from None
    names = sorted(
        f"{mount['metadata']['namespace']}/{mount['metadata']['name']}"
        for mount in lost
        if mount["metadata"]["uid"] in there
    )
    if names:
        raise Wrong(
            f"of no workflow any more: {', '.join(names[:4])}"
            + (f" and {len(names) - 4} more" if len(names) > 4 else ""),
            "nobody will unmount them: runbook, ClientMounts without a workflow",
        )
    return f"{len(mounts)} ClientMounts"
