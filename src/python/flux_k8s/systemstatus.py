# SPDX-License-Identifier: LGPL-3.0-only
#
# SystemStatus for programs of sites, by the name of flux-coral2: to be read. dws.so
# writes it.
"""Which nodes DWS takes to be out of use."""

from __future__ import annotations

from typing import Any

from flux_k8s import crd


class SystemStatusManager:
    """The SystemStatus object, as Kubernetes has it now.

    dws.so has DWS leave out nodes that are offline or stuck. A program that wants a
    node left out drains it with `flux rabbit drain`.
    """

    def __init__(self, handle: Any, k8s_api: Any) -> None:
        """Args:
        handle: not used: the object is not written here.
        k8s_api: a kubernetes.client.CustomObjectsApi.
        """
        self.k8s_api = k8s_api

    def nodes(self) -> dict[str, str]:
        """The state of each node that is in it: "Enabled" or "Disabled". Others are
        Enabled, and all are without the object.

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
