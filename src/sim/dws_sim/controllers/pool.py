# Lustre management targets that several file systems share: persistent storage
# that carries the name of its pool, one member of which each file system uses.
# SPDX-License-Identifier: LGPL-3.0-only
"""Pools of standalone MGTs."""

from __future__ import annotations

import random

from dws_sim.controllers.cluster import Cluster
from dws_sim.controllers.common import ResourceError, fatal, ref
from dws_sim.jsontree import Object, edit
from dws_sim.schema.resources import NNF_GROUP

PLURAL = "persistentstorageinstances"
POOL_LABEL = f"{NNF_GROUP}/standalone_mgt"
_PREFIX = "pool:"


def wanted_pool(profile: Object) -> str:
    """The pool that file systems of a profile take their MGT from, or ""."""
    lustre = profile.get("lustreStorage", {})
    if lustre.get("combinedMgtMdt"):
        return ""
    text = str(lustre.get("mgtOptions", {}).get("externalMgs") or "")
    return text[len(_PREFIX) :] if text.startswith(_PREFIX) else ""


async def _state(cluster: Cluster, member: Object) -> str:
    """The state of a member, or "" when it cannot be used."""
    meta = member["metadata"]
    storage = await cluster.get("nnfstorages", meta["namespace"], meta["name"])
    if storage is None or not storage.get("status", {}).get("ready"):
        return ""
    rabbit = storage["spec"]["allocationSets"][0]["nodes"][0]["name"]
    place = await cluster.get("storages", "default", rabbit)
    if (place or {}).get("status", {}).get("status") != "Ready":
        return ""
    return str(member.get("status", {}).get("state", ""))


async def choose(cluster: Cluster, pool: str, seed: str) -> Object:
    """A reference to a member of a pool: one of the healthy ones, or else of
    the degraded ones.

    Args:
        seed: makes the choice one that can be repeated.
    Raises:
        ResourceError: Fatal, there is no member; Major, none can be used.
    """
    members = await cluster.find(PLURAL, {POOL_LABEL: pool})
    if not members:
        raise fatal(f"no MGSs found for pool: {pool}")
    by_state: dict[str, list[Object]] = {}
    for member in members:
        by_state.setdefault(await _state(cluster, member), []).append(member)
    usable = by_state.get("Active") or by_state.get("Degraded")
    if not usable:
        raise ResourceError(f"no MGSs found for pool: {pool}", "Internal", "Major")
    return ref(random.Random(seed).choice(usable))


def note_consumer(instance: Object, mine: dict[str, str], use: bool) -> Object:
    """An instance with or without one of its users; none is no list."""
    users = instance["spec"].get("consumerReferences", [])
    if (mine in users) == use:
        return instance
    new = edit(instance, "spec")
    new["spec"]["consumerReferences"] = [u for u in users if u != mine]
    if use:
        new["spec"]["consumerReferences"].append(mine)
    if not new["spec"]["consumerReferences"]:
        del new["spec"]["consumerReferences"]
    return new


async def note_user(cluster: Cluster, storage: Object, use: bool) -> None:
    """Enter an NnfStorage among the users of the MGT that it has from a pool,
    or strike it off."""
    mgs = storage["spec"].get("persistentMgs")
    instance = mgs and await cluster.get(PLURAL, mgs["namespace"], mgs["name"])
    if not instance:
        return
    new = note_consumer(instance, ref(storage), use)
    if new != instance:
        await cluster.update(PLURAL, new)
