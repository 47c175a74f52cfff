# SPDX-License-Identifier: LGPL-3.0-only
"""Send each request with one field at fault: request_fields.py <TOPICS

A request is sent once without each field that it must have, and once with each value
that the field cannot have. Each answer must name that field. TOPICS, a line each, are
all that there are: one without a row here is an error. Prints how many were sent.
"""

import errno
import sys
import typing

import flux
import flux.constants

# Values of every type, by the types that take them.
VALUES: list = [
    (None, {"null"}),
    (True, {"bool"}),
    (-1, {"integer", "number"}),
    (0, {"integer", "number", "userid", "count"}),
    (7, {"integer", "number", "userid", "count", "id"}),
    (2**31, {"integer", "number", "userid", "id"}),
    (2**32, {"integer", "number", "id"}),
    (1.5, {"number"}),
    ("x", {"string"}),
    ([], {"array", "strings"}),
    (["x"], {"array", "strings"}),
    ([7], {"array"}),
    ({}, {"object", "variables", "objects"}),
    ({"x": "y"}, {"object", "variables"}),
    ({"x": 7}, {"object"}),
]


class Field(typing.NamedTuple):
    good: typing.Any
    type: str
    optional: bool = False
    nullable: bool = False


LIMIT_S = 60  # which only a failure reaches

JOB = 2**60  # of which no job manager knows

JOBID = {"jobid": Field(JOB, "id")}
ID = {"id": Field(JOB, "id")}

REQUESTS: dict = {
    "dws.create": {
        **JOBID,
        "userid": Field(1, "userid"),
        "dw_directives": Field([], "strings"),
        "resources": Field([], "array"),
        "failure_tolerance": Field(0, "count"),
        "group": Field("users", "string", optional=True),
        "bank": Field("a", "string", optional=True),
        "queue": Field("a", "string", optional=True),
        "rabbits": Field("rabbit0", "string", optional=True),
        "near": Field("a", "string", optional=True),
        "first": Field(True, "bool", optional=True, nullable=True),
        "constraints": Field({}, "object", optional=True),
        "waits": Field(False, "bool", optional=True),
    },
    "dws.setup": {**JOBID, "R": Field({}, "object")},
    "dws.post_run": {**JOBID, "run_started": Field(True, "bool")},
    "dws.teardown": JOBID,
    "dws.abort": JOBID,
    "dws.plugin": {"loaded": Field(True, "bool")},
    "dws.user": {"userid": Field(1, "userid")},
    "dws.rabbit": {
        "rabbit": Field("none", "string"),
        "state": Field("Enabled", "string"),
        "reason": Field("a", "string", optional=True),
        "user": Field("a", "string", optional=True),
    },
    "dws.kubeconfig": {"path": Field("/none", "string", optional=True)},
    "dws.agent": {
        "version": Field(2, "count"),
        "oldest": Field(1, "count", optional=True),
        "release": Field("1", "string", optional=True),
        "batches": Field(True, "bool", optional=True),
    },
    "dws.report": {"reports": Field([], "array")},
    "dws.status": {
        "jobid": Field(JOB, "id", optional=True),
        "list": Field("jobs", "string", optional=True),
        "after": Field(0, "integer", optional=True),
        "max": Field(1, "count", optional=True),
    },
    "dws.expiry": {"name": Field("none", "string"), "expires": Field(0, "number")},
    "dws.logs": {**JOBID, "since": Field(0, "count", optional=True)},
    "dws.losses": {"ack": Field(JOB, "id", optional=True)},
    "dws.retry": JOBID,
    "dws.quota": {
        "userid": Field(1, "userid", optional=True),
        "all": Field(True, "bool", optional=True),
    },
    "dws.profiles": {"kind": Field("storage", "string")},
    "dws.token": JOBID,
    "dws.disconnect": {},  # has no answer
    "dws.config-reload": {},  # a [rabbit] table: t1100
    "job-manager.dws.resource-update": {
        **ID,
        "resources": Field([], "array"),
        "exclude": Field({}, "object", nullable=True),
        "errmsg": Field("a", "string", optional=True),
        "first": Field(True, "bool", optional=True),
    },
    "job-manager.dws.prolog-remove": {
        **ID,
        "variables": Field({}, "variables"),
        "token": Field(True, "bool", optional=True),
    },
    "job-manager.dws.epilog-remove": ID,
    "job-manager.dws.validate": {"jobspec": Field({}, "object")},
    "job-manager.dws.sync": {},
    "job-manager.dws.nodes": {
        "up": Field(1, "integer", optional=True),
        "all": Field(1, "integer", optional=True),
    },
    "sched-rabbit.health": {
        "rabbits": Field({}, "objects", optional=True),
        "properties": Field({}, "variables", optional=True),
    },
    "sched-rabbit.hold": {
        "jobs": Field({}, "objects"),
        "complete": Field(False, "bool", optional=True),
    },
    "sched-rabbit.notify": {},
    "sched-rabbit.stats-get": {},
    "sched-rabbit.config-reload": {},  # a [rabbit] table: t1006
}
OURS = ("dws.", "job-manager.dws.", "sched-rabbit.")


def at_fault(fields: dict) -> typing.Iterator:
    """Payloads, and the field that is at fault in each."""
    for name, field in fields.items():
        good = {key: other.good for key, other in fields.items()}
        for value, types in VALUES:
            if field.type in types or (field.nullable and value is None):
                continue
            yield name, {**good, name: value}
        if not field.optional:
            del good[name]
            yield name, good


def answer(handle: flux.Flux, topic: str, payload: dict) -> str:
    streaming = topic == "dws.agent"
    flags = flux.constants.FLUX_RPC_STREAMING if streaming else 0
    try:
        future = handle.rpc(topic, payload, flags=flags)
        return f"answered: {future.wait_for(LIMIT_S).get()}"
    except OSError as exc:
        return f"{errno.errorcode[exc.errno]} {exc.strerror}"


def main() -> int:
    topics = set(sys.stdin.read().split())
    ours = {topic for topic in topics if topic.startswith(OURS)}
    if ours != set(REQUESTS):
        print(f"not in both lists: {ours ^ set(REQUESTS)}", file=sys.stderr)
        return 1
    handle = flux.Flux()
    sent = wrong = 0
    for topic, fields in REQUESTS.items():
        refusal = "EINVAL" if topic.startswith("sched-rabbit.") else "EPROTO"
        for name, payload in at_fault(fields):
            said = answer(handle, topic, payload)
            sent += 1
            if not said.startswith(
                (f"{refusal} {name}: is required", f"{refusal} {name}: expected ")
            ):
                wrong += 1
                print(f"{topic}: {name}: {payload}: {said}", file=sys.stderr)
    print(sent)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
