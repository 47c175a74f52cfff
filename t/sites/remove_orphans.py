# A site's clean-up, run by cron: workflows that nobody looks after go to Teardown and,
# the next time, away.
# SPDX-License-Identifier: LGPL-3.0-only
"""remove_orphans.py KUBECONFIG [INSTANCE]: also those of an instance that is gone."""

import sys

import flux
from flux_k8s import cleanup, crd
from flux_k8s.workflow import WorkflowInfo, WorkflowState


def main():
    handle = flux.Flux()
    api = cleanup.get_k8s_api(sys.argv[1])
    crd.determine_api_versions(handle, api)
    instance = sys.argv[2] if len(sys.argv) > 2 else None
    known = WorkflowInfo.known_workflows()
    names = [WorkflowInfo.get_name(jobid) for jobid in known]
    found = api.list_namespaced_custom_object(*crd.WORKFLOW_CRD)
    for workflow in found["items"]:
        name = workflow["metadata"]["name"]
        if name in names or not WorkflowInfo.is_recognized(name):
            continue
        status = workflow.get("status", {})
        done = status.get("ready") and status["state"] == WorkflowState.TEARDOWN
        remove = cleanup.delete_workflow if done else cleanup.teardown_workflow
        try:
            remove(workflow, api, handle, of_instance=instance)
            print(f"{name}: {remove.__name__}")
        except cleanup.CleanupError as exc:
            print(f"kept: {exc}")


main()
