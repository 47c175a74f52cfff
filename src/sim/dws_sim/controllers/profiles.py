# Storage profiles: the site's choices that shape every breakdown, found by
# name or as the one default, and pinned to a workflow as a copy.
# SPDX-License-Identifier: LGPL-3.0-only
"""NnfStorageProfile lookup."""

from __future__ import annotations

from dws_sim.controllers.cluster import Cluster
from dws_sim.controllers.common import NNF_NAMESPACE, child, fatal
from dws_sim.directive import capacity_bytes
from dws_sim.jsontree import Object
from dws_sim.schema.resources import RESOURCES


async def find_profile(cluster: Cluster, plural: str, name: str | None) -> Object:
    """The profile that a directive asks for.

    Raises:
        ResourceError: there is none, or no single default.
    """
    kind = RESOURCES[plural].kind
    if name is not None:
        profile = await cluster.get(plural, NNF_NAMESPACE, name)
        if profile is None:
            raise fatal(f"Unable to find {kind}: {name}")
        return profile
    profiles = [
        p
        for p in await cluster.find(plural, namespace=NNF_NAMESPACE)
        if p.get("data", {}).get("default")
    ]
    if not profiles:
        raise fatal(f"Unable to find a default {kind} to use", "Internal")
    if len(profiles) > 1:
        names = " ".join(p["metadata"]["name"] for p in profiles)
        raise fatal(
            f"More than one default {kind} found; unable to pick one: [{names}]",
            "Internal",
        )
    return profiles[0]


async def pin_profile(
    cluster: Cluster,
    plural: str,
    profile: Object,
    owner: Object,
    name: str,
    labels: dict[str, str],
) -> Object:
    """A copy of a profile that later changes of the original do not touch."""
    data = {**profile.get("data", {}), "default": False, "pinned": True}
    return await cluster.create(
        plural, child(owner, owner["metadata"]["namespace"], name, labels, data=data)
    )


def padded(capacity: int, scaling: str, padding: str | None) -> int:
    """Bytes to ask for: scaled, then with the padding in bytes or percent.

    Raises:
        ResourceError: the profile has no numbers there.
    """
    try:
        size = int(float(scaling) * capacity)
    except ValueError as exc:
        # NNF's text for every type
        user = "invalid capacityScalingFactor for gfs2 allocation"
        raise fatal(user, "Internal", _no_number(scaling)) from exc
    if not padding:
        return size
    if padding.endswith("%"):
        try:
            return size + int(float(padding[:-1]) * 0.01 * size)
        except ValueError as exc:
            user = "invalid allocationPadding percentage"
            raise fatal(user, "Internal", _no_number(padding[:-1])) from exc
    try:
        return size + capacity_bytes(padding)
    except ValueError as exc:
        debug = f"invalid capacity string, {padding}"
        raise fatal("invalid allocationPadding value", "Internal", debug) from exc


def _no_number(text: str) -> str:
    return f'strconv.ParseFloat: parsing "{text}": invalid syntax'
