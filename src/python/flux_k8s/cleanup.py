# SPDX-License-Identifier: LGPL-3.0-only
#
# Removal of workflows for programs of sites, by the names of flux-coral2. dws.so
# removes the workflows of its own instance. These functions remove only others: left by
# flux-coral2 or by an instance that no longer exists, or created by hand.
"""Remove workflows without an owner."""

from __future__ import annotations

import errno
from typing import Any

import kubernetes.client
from kubernetes.client import ApiException

from flux_k8s import kubeconfig, names
from flux_k8s.crd import WORKFLOW_CRD
from flux_k8s.workflow import NAME_PREFIX, Object, WorkflowState, open_handle

FINALIZER = names.FINALIZER
TEARDOWN = WorkflowState.TEARDOWN.value
# The argument of setup_cleanup_thread().
_kubeconfigs: list[str | None] = []


class CleanupError(RuntimeError):
    """A workflow must not be removed; the text names the reason and a remedy."""


def get_k8s_api(path: str | None = None) -> Any:
    """A kubernetes.client.CustomObjectsApi.

    Args:
        path: of the kubeconfig; None for the default one.
    Raises:
        kubeconfig.ConfigError: the file cannot be used; the text names it.
    """
    configuration = kubernetes.client.Configuration()
    path = path or kubeconfig.default()
    return kubernetes.client.CustomObjectsApi(kubeconfig.read(path, configuration))


def setup_cleanup_thread(path: str | None) -> None:
    """Use this kubeconfig for calls without k8s_api. Unlike flux-coral2, start no
    thread: the functions below complete or fail before they return."""
    _kubeconfigs[:] = [path]


def _api(k8s_api: Any, handle: Any) -> Any:
    if k8s_api is not None:
        return k8s_api
    if not _kubeconfigs:
        return get_k8s_api(handle.conf_get("rabbit.kubeconfig"))
    return get_k8s_api(_kubeconfigs[0])


def _check(workflow: Object, handle: Any, of_instance: str | None) -> None:
    """Raises CleanupError if the workflow has an owner, OSError if dws.so cannot
    tell."""
    metadata = workflow["metadata"]
    name = metadata["name"]
    status = handle.rpc(names.TOPIC_STATUS, {}).get()
    if not status["synced"]:
        raise CleanupError(f"{name}: dws.so does not know its jobs yet: try again")
    for where in ("annotations", "labels"):
        owner = (metadata.get(where) or {}).get(names.INSTANCE_LABEL)
        if owner == status["instance"]:
            raise CleanupError(
                f"{name} belongs to this Flux instance, which removes it after its "
                "job; flux rabbit release gives it up before that"
            )
        if owner and owner != of_instance:
            raise CleanupError(
                f"{name} belongs to the Flux instance {owner}: if that is no more, "
                f"give of_instance={owner!r}"
            )
    number = name.removeprefix(NAME_PREFIX)
    if number == name or not (number.isascii() and number.isdigit()):
        return
    try:
        handle.rpc(names.TOPIC_STATUS, {"jobid": int(number)}).get()
    except OSError as exc:
        if exc.errno != errno.ENOENT:
            raise
    else:
        raise CleanupError(f"{name}: dws.so knows its job, and removes it after that")


def _unless_gone(call: Any, name: str, *args: Any, **options: Any) -> Any:
    """The answer to a request about a workflow, None if it does not exist."""
    try:
        return call(*WORKFLOW_CRD, name, *args, **options)
    except ApiException as exc:
        if exc.status != 404:
            raise
        return None


def _read(
    workflow: Object, k8s_api: Any, handle: Any, of_instance: str | None
) -> tuple[Any, Object | None]:
    """The client to use, and the workflow as it is now, checked; None if it is gone."""
    handle = open_handle(handle)
    api = _api(k8s_api, handle)
    found = _unless_gone(api.get_namespaced_custom_object, workflow["metadata"]["name"])
    if found is not None:
        _check(found, handle, of_instance)
    return api, found


def _release(workflow: Object, api: Any, spec: Object) -> None:
    """Take Flux' finalizer off and change the spec, of exactly this version."""
    metadata = workflow["metadata"]
    kept = [f for f in metadata.get("finalizers") or [] if f != FINALIZER]
    version = {"resourceVersion": metadata["resourceVersion"], "finalizers": kept}
    patch = {"metadata": version, "spec": spec}
    _unless_gone(api.patch_namespaced_custom_object, metadata["name"], patch)


def teardown_workflow(
    workflow: Object,
    k8s_api: Any = None,
    handle: Any = None,
    of_instance: str | None = None,
) -> None:
    """Move a workflow without an owner to Teardown, where DWS unmounts and frees its
    storage and loses the data in it. A missing workflow is no error.

    Args:
        workflow: an object with the name of the workflow, which is read anew.
        k8s_api: a CustomObjectsApi; None for one of setup_cleanup_thread()'s
            kubeconfig, or of rabbit.kubeconfig.
        handle: a flux.Flux, or None to open one.
        of_instance: the id of a Flux instance that no longer exists, whose workflows
            may be removed.
    Raises:
        CleanupError: the workflow has an owner.
        OSError: dws.so cannot be asked (ENOSYS: it is not loaded).
        kubernetes.client.ApiException: Kubernetes refuses. 409: the workflow has
            changed meanwhile, so retry.
    """
    api, found = _read(workflow, k8s_api, handle, of_instance)
    if found is not None:
        _release(found, api, {"desiredState": TEARDOWN})


def delete_workflow(
    workflow: Object,
    k8s_api: Any = None,
    handle: Any = None,
    of_instance: str | None = None,
) -> None:
    """Delete a workflow without an owner, once its Teardown is ready.

    Arguments and errors are those of teardown_workflow().

    Raises:
        CleanupError: also if its Teardown is not ready.
    """
    api, found = _read(workflow, k8s_api, handle, of_instance)
    if found is None:
        return
    name = found["metadata"]["name"]
    status = found.get("status") or {}
    if status.get("state") != TEARDOWN or not status.get("ready"):
        raise CleanupError(
            f"{name} is in {status.get('state') or 'no state'}: teardown_workflow() "
            "first, and delete it when it is ready there"
        )
    _release(found, api, {})
    options = {"preconditions": {"uid": found["metadata"]["uid"]}}
    _unless_gone(api.delete_namespaced_custom_object, name, body=options)
