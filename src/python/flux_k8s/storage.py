# SPDX-License-Identifier: LGPL-3.0-only
#
# Rabbits for programs of sites, by the names of flux-coral2. dws.so looks after the
# rabbits; all that is here asks it, or the mapping. `flux rabbit` uses this too, so
# nothing is imported at the top that takes time.
"""Rabbits, who holds them, and which nodes they have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flux_k8s import names, workflow
from flux_k8s.workflow import Object

if TYPE_CHECKING:
    from flux.hostlist import Hostlist

# From each compute node to its rabbit, and from each rabbit to its compute nodes, by
# the file rabbit.mapping. It is read when one of them is first looked at, and again by
# populate_rabbits_dict(): what changes in it after that is not seen.
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
        k8s_api: a kubernetes.client.CustomObjectsApi: what its SystemConfiguration
            says, in place of the file rabbit.mapping, by which dws.so goes.
    Raises:
        rabbitmap.MappingError: there is no mapping, or it contradicts itself; the
            dictionaries are as they were.
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
    """Every rabbit as dws.so knows it: the list "rabbits" of dws.status in
    doc/protocol.md. Raises OSError."""
    answer = handle.rpc(names.TOPIC_STATUS, {"list": "rabbits"}).get()
    return list(answer["rabbits"])


class RabbitManager:
    """What dws.so knows of rabbits and of who holds what of them.

    Nothing is kept, and nothing has to be told to it: dws.so watches the Storages,
    marks nodes with `badrabbit`, drains them, and takes what jobs hold from Servers
    objects. All methods raise OSError: ENOSYS without dws.so.
    """

    def __init__(self, handle: Any = None, allowlist: Any = None) -> None:
        """Args:
        handle: a flux.Flux, or None to open one.
        allowlist: None. Of which nodes dws.so may drain those that have lost their
            rabbit, rabbit.drain_queues says.
        Raises:
            ValueError: there is an allowlist.
        """
        if allowlist is not None:
            raise ValueError("rabbit.drain_queues says which nodes may be drained")
        self.handle = workflow.open_handle(handle)

    def rabbits(self) -> dict[str, Object]:
        """Every rabbit by its name: see rabbits()."""
        return {rabbit["name"]: rabbit for rabbit in rabbits(self.handle)}

    def jobids_to_rabbits(self) -> dict[int, list[str]]:
        """On which rabbits each job has storage, if it has any: those of the caller,
        and for the instance owner all."""
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
        """Have a rabbit give no storage to new jobs, or give storage again.

        Args:
            state: "Disabled" or "Enabled".
            reason, user: why, and who says so, for flux rabbit list.
        Returns:
            the request under way: its get() raises OSError if Kubernetes refuses.
        """
        request = {"rabbit": rabbit, "state": state, "reason": reason, "user": user}
        return self.handle.rpc(names.TOPIC_RABBIT, request)
