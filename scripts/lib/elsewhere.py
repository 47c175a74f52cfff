# A storage profile for Lustre file systems with an external management target: a
# persistent one occupies no rabbit that other jobs' Lustre could use.
# SPDX-License-Identifier: LGPL-3.0-only
"""The profile "elsewhere"."""

from __future__ import annotations

import pathlib

from flux_k8s.crd import NNF_GROUP
from kubernetes import client, config

PROFILE = "elsewhere"
_VERSION = "v1alpha11"


def make_profile(kubeconfig: pathlib.Path) -> None:
    """Create the profile in a simulated cluster."""
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
