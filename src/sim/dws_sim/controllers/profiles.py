# Storage profiles: the site's choices that shape every breakdown, found by
# name or as the one default, and pinned to a workflow as a copy.
# SPDX-License-Identifier: LGPL-3.0-only
"""NnfStorageProfile lookup."""

from __future__ import annotations

import math
import re

from dws_sim.controllers.cluster import Cluster
from dws_sim.controllers.common import NNF_NAMESPACE, child, fatal
from dws_sim.directive import capacity_bytes
from dws_sim.jsontree import Object


async def find_profile(cluster: Cluster, plural: str, name: str | None) -> Object:
    """The profile that a directive asks for.

    Raises:
        ResourceError: there is none, or no single default.
    """
    if name is not None:
        profile = await cluster.get(plural, NNF_NAMESPACE, name)
        if profile is None:
            raise fatal(f"Unable to find profile '{name}'")
        return profile
    profiles = [
        p
        for p in await cluster.find(plural, namespace=NNF_NAMESPACE)
        if p.get("data", {}).get("default")
    ]
    if not profiles:
        raise fatal("Unable to find a default profile to use", "Internal")
    if len(profiles) > 1:
        raise fatal("More than one default profile", "Internal")
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
        if not padding:
            return size
        match = re.match(r"^(\d+(?:\.\d+)?)%$", padding)
        if match:
            return size + math.ceil(size * float(match.group(1)) / 100)
        return size + capacity_bytes(padding)
    except ValueError as exc:
        raise fatal(f"Invalid storage profile: {exc}", "Internal") from exc
