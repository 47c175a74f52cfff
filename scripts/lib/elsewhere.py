# A storage profile for Lustre file systems whose management target is none of a
# rabbit's: one that is persistent keeps no rabbit from other jobs' Lustre.
# SPDX-License-Identifier: LGPL-3.0-only
"""The profile "elsewhere"."""

from __future__ import annotations

import pathlib

from flux_k8s.crd import NNF_GROUP
from kubernetes import client, config

PROFILE = "elsewhere"
_VERSION = "v1alpha11"


def make_profile(kubeconfig: pathlib.Path) -> None:
    """Give it to a simulated cluster."""
    api = client.CustomObjectsApi(
        config.new_client_from_config(str(kubeconfig), context="admin")
    )
    body = {
        "apiVersion": f"{NNF_GROUP}/{_VERSION}",
        "kind": "NnfStorageProfile",
        "metadata": {"name": PROFILE, "namespace": "nnf-system"},
        "data": {"lustreStorage": {"mgtOptions": {"externalMgs": "10.0.0.1@tcp"}}},
    }
    api.create_namespaced_custom_object(
        NNF_GROUP, _VERSION, "nnf-system", "nnfstorageprofiles", body
    )
