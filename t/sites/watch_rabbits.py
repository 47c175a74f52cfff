# A site's watcher: what becomes of rabbits, and who asks for more than the site likes.
# SPDX-License-Identifier: LGPL-3.0-only
"""watch_rabbits.py KUBECONFIG: one line for each, until it is killed."""

import sys

import flux
from flux_k8s import cleanup, crd
from flux_k8s.directivebreakdown import (
    ResourceLimits,
    check_is_lustre,
    fetch_breakdowns,
)
from flux_k8s.systemstatus import SystemStatusManager
from flux_k8s.watch import Watch, Watchers


class Limits(ResourceLimits):
    xfs = 20


def rabbit_changed(event, states):
    name = event["object"]["metadata"]["name"]
    state = event["object"].get("status", {}).get("status", "not up yet")
    if states.get(name) != state:
        states[name] = state
        print(name, state, flush=True)


def workflow_changed(event, api, seen):
    workflow = event["object"]
    name = workflow["metadata"]["name"]
    status = workflow.get("status", {})
    if event["type"] == "DELETED":
        print(name, "deleted", flush=True)
    if name in seen or status.get("state") != "Proposal" or not status.get("ready"):
        return
    seen.add(name)
    limits = Limits()
    for breakdown in fetch_breakdowns(api, workflow):
        sets = breakdown["status"]["storage"]["allocationSets"]
        print(name, "Lustre" if check_is_lustre(sets) else "local", flush=True)
        for allocation in sets:
            limits.increment(allocation["label"], allocation["minimumCapacity"] >> 30)
    try:
        limits.validate(1)
    except ValueError as exc:
        print(f"{name}: {exc}", flush=True)


def main():
    handle = flux.Flux()
    api = cleanup.get_k8s_api(sys.argv[1])
    print("disabled:", SystemStatusManager(handle, api).disabled(), flush=True)
    with Watchers(handle, watch_interval=5) as watchers:
        watchers.add_watch(Watch(api, crd.RABBIT_CRD, 0, rabbit_changed, {}))
        watchers.add_watch(
            Watch(api, crd.WORKFLOW_CRD, 0, workflow_changed, api, set())
        )
        handle.reactor_run()


main()
