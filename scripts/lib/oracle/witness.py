# Reads a job's records from Flux, for the oracle.
# SPDX-License-Identifier: LGPL-3.0-only
"""Eventlog, directives and nodes of a job."""

from __future__ import annotations

import json
from typing import Any

import flux
import flux.hostlist
import flux.kvs

from oracle.rules import Job


def _look(handle: flux.Flux, jobid: int, *keys: str) -> dict[str, str]:
    request = {"id": jobid, "keys": list(keys), "flags": 0}
    found: dict[str, str] = handle.rpc("job-info.lookup", request).get()
    return found


def job(handle: flux.Flux, jobid: int) -> Job:
    """The job as Flux records it now. Raises OSError if there is no such job."""
    found = _look(handle, jobid, "eventlog", "jobspec")
    eventlog = [json.loads(line) for line in found["eventlog"].splitlines()]
    jobspec = json.loads(found["jobspec"])
    # The directives may have come from a preset, or from a plugin.
    dw: Any = jobspec["attributes"]["system"].get("dw", [])
    for event in eventlog:
        if event["name"] == "jobspec-update":
            dw = event["context"].get("attributes.system.dw", dw)
    lines = "\n".join([dw] if isinstance(dw, str) else dw).splitlines()
    nodes: tuple[str, ...] = ()
    if any(event["name"] == "alloc" for event in eventlog):
        R = json.loads(_look(handle, jobid, "R")["R"])
        nodes = tuple(flux.hostlist.decode(R["execution"]["nodelist"]))
    exclusive = '"exclusive": true' in json.dumps(jobspec["resources"])
    return Job(jobid, lines, eventlog, nodes, exclusive)


def events(handle: flux.Flux) -> list[dict[str, Any]]:
    """The instance's resource.eventlog, each event with a list of its nodes."""
    # The binding decodes a value that is JSON: an eventlog of one line.
    value = flux.kvs.get_key_direct(handle, "resource.eventlog") or ""
    lines = value.splitlines() if isinstance(value, str) else [json.dumps(value)]
    found = [json.loads(line) for line in lines]
    for event in found:
        nodes = event.get("context", {}).get("nodelist", "")
        event["nodes"] = list(flux.hostlist.decode(nodes))
    return found
