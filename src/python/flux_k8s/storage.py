# SPDX-License-Identifier: LGPL-3.0-only
#
# Rabbits for programs of sites, by the names of flux-coral2. These functions ask
# dws.so, or read the mapping. `flux rabbit` uses them too, so slow imports are inside
# functions.
"""Rabbits, the jobs that hold them, and their nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flux_k8s import names, workflow
from flux_k8s.workflow import Object

if TYPE_CHECKING:
    from flux.hostlist import Hostlist

# The rabbit of each compute node, and the compute nodes of each rabbit. The file
# rabbit.mapping is read at the first access to either, and by populate_rabbits_dict();
# later changes to the file have no effect.
HOSTNAMES_TO_RABBITS: dict[str, str]
RABBITS_TO_HOSTLISTS: dict[str, Hostlist]

_tables: Object = {"HOSTNAMES_TO_RABBITS": {}, "RABBITS_TO_HOSTLISTS": {}}


def __getattr__(name: str) -> Any:
    if name not in _tables:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    populate_rabbits_dict()
    return _tables[name]


def populate_rabbits_dict(k8s_api: Any = None) -> None:
    """Fill HOSTNAMES_TO_RABBITS and RABBITS_TO_HOSTLISTS, or fill them anew.

    Args:
        k8s_api: a kubernetes.client.CustomObjectsApi whose SystemConfiguration replaces
            the file rabbit.mapping, which dws.so uses.
    Raises:
        rabbitmap.MappingError: the mapping is missing or contradicts itself; the
            dictionaries stay unchanged.
    """
    from flux.hostlist import Hostlist

    from flux_k8s import crd, rabbitmap

    if k8s_api is None:
        mapping = rabbitmap.load(rabbitmap.configured_path())
    else:
        mapping = rabbitmap.build(
            k8s_api.get_namespaced_custom_object(
                *crd.SYSTEMCONFIGURATION_CRD, "default"
            ),
            (),
        )
    hosts = {
        rabbit: Hostlist(entry.get("hostlist") or "")
        for rabbit, entry in mapping["rabbits"].items()
    }
    for name, table in zip(_tables, (mapping["computes"], hosts)):
        _tables[name].clear()
        _tables[name].update(table)
    globals().update(_tables)


def rabbits(handle: Any) -> list[Object]:
    """All rabbits: the list "rabbits" of dws.status in doc/protocol.md. Raises
    OSError."""
    answer = handle.rpc(names.TOPIC_STATUS, {"list": "rabbits"}).get()
    return list(answer["rabbits"])


class RabbitManager:
    """The rabbits, and the jobs that hold them, by requests to dws.so.

    The manager has no state, and needs no notice of changes: dws.so watches the
    Storages, marks nodes with `badrabbit`, drains them, and reads the claims of jobs
    from Servers objects. Every method raises OSError: ENOSYS without dws.so.
    """

    def __init__(self, handle: Any = None, allowlist: Any = None) -> None:
        """Args:
        handle: a flux.Flux, or None to open one.
        allowlist: None. rabbit.drain_queues selects the nodes that dws.so may drain
            when they have lost their rabbit.
        Raises:
            ValueError: allowlist is not None.
        """
        if allowlist is not None:
            raise ValueError("rabbit.drain_queues says which nodes may be drained")
        self.handle = workflow.open_handle(handle)

    def rabbits(self) -> dict[str, Object]:
        """All rabbits by name: see rabbits()."""
        return {rabbit["name"]: rabbit for rabbit in rabbits(self.handle)}

    def jobids_to_rabbits(self) -> dict[int, list[str]]:
        """The rabbits of each job with storage. Only the instance owner sees jobs of
        other users."""
        from flux_k8s import dws

        return {
            job["id"]: dws.expand_hosts(job["rabbits"])
            for page in workflow.job_pages(self.handle)
            for job in page
            if job.get("rabbits")
        }

    def set_state(
        self, rabbit: str, state: str, reason: str = "", user: str = ""
    ) -> Any:
        """Disable or enable allocations on a rabbit for new jobs.

        Args:
            state: "Disabled" or "Enabled".
            reason, user: why, and on whose behalf, for flux rabbit list.
        Returns:
            the pending request: its get() raises OSError if Kubernetes refuses.
        """
        request = {"rabbit": rabbit, "state": state, "reason": reason, "user": user}
        return self.handle.rpc(names.TOPIC_RABBIT, request)
