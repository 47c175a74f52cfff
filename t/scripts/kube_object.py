# Creates, patches, reads or deletes one Kubernetes object, with all rights.
# SPDX-License-Identifier: LGPL-3.0-only
#
# Usage: kube_object.py KUBECONFIG create|patch|get|delete PLURAL NAMESPACE NAME [JSON]
# For what a test wants the cluster to have that no command of ours makes.
import json
import sys

from flux_k8s.crd import DWS_GROUP, NNF_GROUP, RESOURCES
from kubernetes import client, config

# Kinds that flux-dws itself has no business with.
OTHERS = {
    "nnfcontainerprofiles": (NNF_GROUP, "NnfContainerProfile"),
    "nnfstorageprofiles": (NNF_GROUP, "NnfStorageProfile"),
}
VERSIONS = {DWS_GROUP: "v1alpha7", NNF_GROUP: "v1alpha11"}


def main() -> int:
    kubeconfig, verb, plural, namespace, name = sys.argv[1:6]
    body = json.loads(sys.argv[6]) if len(sys.argv) > 6 else None
    api = client.CustomObjectsApi(
        config.new_client_from_config(kubeconfig, context="admin")
    )
    if plural in RESOURCES:
        group, kind = RESOURCES[plural].group, RESOURCES[plural].kind
    else:
        group, kind = OTHERS[plural]
    place = (group, VERSIONS[group], namespace, plural)
    if verb == "create":
        metadata = {"name": name, "namespace": namespace, **body.pop("metadata", {})}
        head = {"apiVersion": f"{group}/{VERSIONS[group]}", "kind": kind}
        api.create_namespaced_custom_object(
            *place, {**head, "metadata": metadata, **body}
        )
    elif verb == "patch":
        api.patch_namespaced_custom_object(*place, name, body)
    elif verb == "get":
        print(json.dumps(api.get_namespaced_custom_object(*place, name)))
    elif verb == "delete":
        api.delete_namespaced_custom_object(*place, name)
    else:
        raise ValueError(verb)
    return 0


sys.exit(main())
