# Kinds of jobs of a soak run, and their possible outcomes. A job records all faults
# that have struck it; each of them permits more outcomes.
# SPDX-License-Identifier: LGPL-3.0-only
"""Kinds of jobs, and the verdict on one."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from typing import Any

import oracle.rules
from elsewhere import PROFILE
from flux.job import JobspecV1

# Tasks prove that their file systems are mounted: each argument is a directory
# that they can write to. Without braces, which flux submit --cc replaces.
SCRIPT = """
for dir in "$@"; do
    if ! test -d "$dir"; then echo "no directory: '$dir'"; exit 9; fi
    echo "$FLUX_TASK_RANK" >"$dir/task.$FLUX_TASK_RANK" || exit 8
done
sleep $SOAK_SLEEP
exit $SOAK_EXIT
"""
# Seconds that tasks take.
SLEEPS = ["0", "0.1", "1", "3"]
# Exception notes of jobs that ran when the engine was killed or stopped.
ENDED_WITH_INSTANCE = (
    "job shells were lost in a restart",
    "instance shutdown",
    "failed to create guest ns: No such file or directory",
    "job is not recoverable: no recoverable event",
)
# The same for jobs that ran on a killed broker; the node's name follows.
ENDED_WITH_NODE = "node failure on "
# The note of exceptions that are raised by hand.
RAISED = "raised by soak"
# NNF's error for a persistent file system that is being created or destroyed, without
# its name.
NOT_ACTIVE = "PersistentStorage is not active"


@dataclass(frozen=True)
class Kind:
    """A kind of jobs.

    Attributes:
        name: for reports.
        dw: the directives; LENT in it is replaced by the name of a file system that
            expires.
        variables: of the job's environment, that name its directories.
        status: exit code of its tasks.
        refused: a word of the message with which submit refuses it.
        fatal: a word of the fatal exception that ends it, if one must.
        node_gib: GiB requested on each of its nodes.
        gib: GiB requested besides, whatever its nodes.
        lends: it creates a file system that expires.
        borrows: it uses such a file system, if there is one.
        nodes: how many; 0: one or two.
        exclusive: no other job may share its nodes.
        system: more attributes.system of its jobspec.
        limit: "long" or "short", or "" for none.
        after: the scheme by which it depends on another job, or "".
        chassis: over how many its nodes are spread; 0: any.
        copies: how many jobs one submission makes.
        guest: its user is not the instance owner.
        features: its values of features.PARAMETERS.
    """

    name: str
    dw: str
    variables: tuple[str, ...] = ()
    status: int = 0
    refused: str = ""
    fatal: str = ""
    node_gib: int = 0
    gib: int = 0
    lends: bool = False
    borrows: bool = False
    nodes: int = 0
    exclusive: bool = False
    system: tuple[tuple[str, Any], ...] = ()
    limit: str = ""
    after: str = ""
    chassis: int = 0
    copies: int = 1
    guest: bool = False
    features: tuple[str, ...] = ()

    @property
    def staged(self) -> bool:
        """Whether other jobs may wait for its data."""
        ends = self.refused or self.fatal or self.status or self.limit == "short"
        return "jobdw" in self.dw and not ends


GIB = 1 << 30


def _jobdw(type_: str, name: str = "scratch") -> str:
    return f"#DW jobdw type={type_} capacity=10GiB name={name}"


SCRATCH = ("DW_JOB_scratch",)
# Variable of jobs with user-container-auth.
TOKEN = "DW_WORKFLOW_TOKEN"
# Seconds that jobs may run.
LIMITS = {"long": 3600.0, "short": 1.0}
# A persistent file system that exists for the whole run.
KEPT = "kept"
# Lease of file systems that expire, and how many of the latest ones jobs may use.
LENT_S = 8
LENT = 4
KINDS = [
    Kind("xfs", _jobdw("xfs"), SCRATCH, node_gib=10),
    Kind("gfs2", _jobdw("gfs2"), SCRATCH, node_gib=10),
    Kind("lustre", _jobdw("lustre"), SCRATCH, gib=10),
    Kind("raw", _jobdw("raw"), node_gib=10),
    Kind(
        "two file systems",
        f"{_jobdw('xfs')}\n{_jobdw('gfs2', 'more')}",
        ("DW_JOB_scratch", "DW_JOB_more"),
        node_gib=20,
    ),
    Kind(
        "copies",
        f"{_jobdw('gfs2')}\n"
        "#DW copy_in source=/lus/global/in destination=$DW_JOB_scratch/in\n"
        "#DW copy_out source=$DW_JOB_scratch/out destination=/lus/global/out",
        SCRATCH,
        node_gib=10,
    ),
    Kind(
        "container",
        f"{_jobdw('gfs2')}\n"
        "#DW container name=cc profile=example-success "
        "DW_JOB_foo_local_storage=scratch",
        SCRATCH,
        node_gib=10,
    ),
    Kind("persistent", f"#DW persistentdw name={KEPT}", (f"DW_PERSISTENT_{KEPT}",)),
    Kind("task fails", _jobdw("xfs"), SCRATCH, status=3, node_gib=10),
    Kind(
        "lends",
        "#DW create_persistent type=lustre capacity=1GiB name=LENT "
        f"profile={PROFILE} expires={LENT_S}s",
        gib=1,
        lends=True,
    ),
    Kind(
        "borrows",
        "#DW persistentdw name=LENT",
        ("DW_PERSISTENT_LENT",),
        borrows=True,
    ),
    Kind(
        "too much",
        "#DW jobdw type=xfs capacity=101GiB name=scratch",
        refused="rabbit.limits.everybody.job",
    ),
    Kind("mistyped", "#DW jobdw type=xfz capacity=10GiB name=a", refused="xfz"),
    Kind(
        "no such file system",
        "#DW persistentdw name=nowhere",
        ("DW_PERSISTENT_nowhere",),
        fatal="nowhere",
    ),
]


CREATE = Kind(
    "create",
    f"#DW create_persistent type=lustre capacity=9GiB name={KEPT} profile={PROFILE}",
)
DESTROY = Kind("destroy", f"#DW destroy_persistent name={KEPT}")


@dataclass
class Job:
    """A submitted job, and all events from outside that may change its outcome."""

    id: int
    kind: Kind
    # bytes, as limits count them
    asked: int
    # the file system with a lease that it creates, or uses
    makes: str = ""
    uses: str = ""
    cancelled: bool = False
    # a fatal exception was raised by hand
    raised: bool = False
    # the job whose data it waits for
    awaits: Job | None = None
    # its state and its oracle record, noted before Flux purged it
    record: dict[str, Any] | None = None
    seen: oracle.rules.Job | None = None
    # the instance was restarted while the job was active
    restarted: bool = False
    # Flux may have lost some of its last events: its tasks have run, its storage is
    # gone, and the tasks are started again
    taken_back: bool = False
    # a broker was killed while the job was active
    node_lost: bool = False
    # the plugin was not loaded while the job was active
    unplugged: bool = False
    # an engine that was killed has lost the job
    forgotten: bool = False
    # a restore may have brought its workflow back after its end
    brought_back: bool = False
    # faults that may have ended it
    struck: list[str] = field(default_factory=list)

    @property
    def workflow(self) -> str:
        return f"fluxjob-{self.id}"

    @property
    def stands(self) -> bool:
        """Whether no fault may have ended the job, or run it twice. Restarts and lost
        nodes do not count."""
        ended = self.struck or self.cancelled or self.raised
        return not (ended or self.taken_back or self.forgotten)

    @property
    def unharmed(self) -> bool:
        """Whether no fault at all may have ended the job."""
        return self.stands and not (self.restarted or self.node_lost)


@dataclass(frozen=True)
class Draft:
    """A job to submit.

    Attributes:
        spec: the jobspec.
        number: of the job in the sequence of the seed.
        lent: the file system with a lease that it creates or uses, or "".
        asked: bytes, as limits count them.
        back: distance to the earlier job whose data it waits for.
    """

    number: int
    kind: Kind
    spec: JobspecV1
    lent: str
    asked: int
    back: int

    def submitted(self, jobid: int) -> Job:
        makes, uses = self.lent if self.kind.lends else "", ""
        if self.kind.borrows:
            uses = self.lent
        return Job(jobid, self.kind, self.asked, makes, uses)


def _spread(spec: JobspecV1, chassis: int) -> None:
    """Spread nodes over chassis, as --coral2-chassis does."""
    (node,) = spec.jobspec["resources"]
    inside = {**node, "count": node["count"] // chassis}
    spec.jobspec["resources"] = [
        {"type": "chassis", "count": chassis, "with": [inside]}
    ]


def draft(number: int, kind: Kind, rng: random.Random, lent: str) -> Draft:
    """Draw a job of a kind.

    Args:
        number: of the job.
        lent: replaces LENT in the kind.
    """
    wanted = [name for name in kind.variables if name != TOKEN]
    paths = " ".join(f'"${name}"' for name in wanted).replace("LENT", lent)
    script = f"set -- {paths}; {SCRIPT}"
    if TOKEN in kind.variables:
        script = f'test -n "${TOKEN}" || exit 7; {script}'
    nodes = kind.nodes or rng.randint(1, 2)
    spec = JobspecV1.from_command(
        ["sh", "-c", script],
        num_tasks=nodes,
        num_nodes=nodes,
        exclusive=kind.exclusive,
    )
    if kind.chassis:
        _spread(spec, kind.chassis)
    if kind.limit:
        spec.duration = LIMITS[kind.limit]
    for key, value in kind.system:
        spec.setattr(f"system.{key}", value)
    spec.setattr("system.dw", kind.dw.replace("LENT", lent))
    spec.setattr("system.job.name", kind.name)
    spec.cwd = "/"
    spec.environment = {
        "PATH": os.environ["PATH"],
        "SOAK_SLEEP": "60" if kind.limit == "short" else rng.choice(SLEEPS),
        "SOAK_EXIT": str(kind.status),
    }
    asked = (kind.node_gib * nodes + kind.gib) * GIB
    return Draft(number, kind, spec, lent, asked, rng.randint(1, 8))


def verdict(job: Job, record: dict[str, Any]) -> str:
    """Error in the outcome of a job; "" if the outcome is right.

    Args:
        record: state, result, returncode and exception note of the job.
    """
    if record["state"] != "INACTIVE":
        return f"is not inactive but in {record['state']}"
    result, code, note = record["result"], record["returncode"], record["note"]
    said = f"{result} ({code}) {note}"
    if job.struck or job.taken_back or (job.cancelled and result == "CANCELED"):
        return ""
    if job.raised and result == "FAILED" and RAISED in note:
        return ""
    if job.awaits and not job.awaits.unharmed and f"{job.kind.after}:" in note:
        return ""  # the data does not exist
    if job.restarted and note in ENDED_WITH_INSTANCE:
        return ""
    if job.node_lost and note.startswith(ENDED_WITH_NODE):
        return ""
    if (
        job.uses
        and result == "FAILED"
        and (f"'{job.uses}'" in note or NOT_ACTIVE in note)
    ):
        return ""  # the file system does not exist yet, or no longer
    if job.kind.fatal:
        good = result == "FAILED" and job.kind.fatal in note
        wanted = f"failed with an exception about {job.kind.fatal}"
    elif job.kind.limit == "short":
        good, wanted = result == "TIMEOUT", "reached its time limit"
    elif job.kind.status:
        good = result == "FAILED" and code == job.kind.status
        wanted = f"failed with exit code {job.kind.status}"
    else:
        good = result == "COMPLETED"
        wanted = "completed"
    return "" if good else f"should have {wanted}: {said}"
