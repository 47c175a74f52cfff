# SPDX-License-Identifier: LGPL-3.0-only
#
# Read access to SystemStatus for programs of sites, by the name of flux-coral2. dws.so
# writes the object.
"""The nodes that DWS ignores."""

from __future__ import annotations

from typing import Any

from flux_k8s import crd


class SystemStatusManager:
    """The present SystemStatus object in Kubernetes.

    dws.so disables nodes there that are offline or stuck, so that DWS ignores them. A
    program that wants to exclude a node drains it with `flux rabbit drain`.
    """

    def __init__(self, handle: Any, k8s_api: Any) -> None:
        """Args:
        handle: unused, as the object is only read.
        k8s_api: a kubernetes.client.CustomObjectsApi.
        """
        self.k8s_api = k8s_api

    def nodes(self) -> dict[str, str]:
        """The state of each listed node: "Enabled" or "Disabled". Unlisted nodes are
        Enabled, as are all nodes without the object.

        Raises:
            kubernetes.client.ApiException: Kubernetes refuses.
        """
        from kubernetes.client import ApiException

        try:
            found = self.k8s_api.get_namespaced_custom_object(
                *crd.SYSTEMSTATUS_CRD, "default"
            )
        except ApiException as exc:
            if exc.status != 404:
                raise
            found = {}
        return dict((found.get("data") or {}).get("nodes") or {})

    def disabled(self) -> list[str]:
        """The nodes that are Disabled."""
        return sorted(n for n, state in self.nodes().items() if state == "Disabled")
