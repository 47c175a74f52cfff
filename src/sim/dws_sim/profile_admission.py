# The webhooks of NNF: contradictory profiles are rejected when they are written, not
# when a job uses them.
# SPDX-License-Identifier: LGPL-3.0-only
"""Admission of container and storage profiles."""

from __future__ import annotations

import re
from typing import Any

from dws_sim.controllers.common import NNF_NAMESPACE
from dws_sim.errors import ApiError, denied
from dws_sim.jsontree import Object, dig
from dws_sim.store import Admission, Store

_COPY_OFFLOAD = re.compile(r"(?i)\bcopy[- ]?offload\b")
_TARGETS = ("mgtOptions", "mdtOptions", "mgtMdtOptions", "ostOptions")


class ProfileAdmission(Admission):
    """Rules that all kinds of profiles share."""

    webhook: str

    def validate(self, obj: Object, old: Object | None) -> None:
        data = obj.get("data") or {}
        pinned = bool(data.get("pinned"))
        if old is None:
            if not pinned and obj["metadata"]["namespace"] != NNF_NAMESPACE:
                raise self.refusal(
                    "a profile that users may choose belongs into the namespace "
                    f"'{NNF_NAMESPACE}'"
                )
        else:
            before = old.get("data") or {}
            if bool(before.get("pinned")) != pinned:
                raise self.refusal("data.pinned is immutable")
            if pinned and data != before:
                raise self.refusal("the data of a pinned profile is immutable")
        self.check(data)

    def check(self, data: Object) -> None:
        """Raise ApiError for data that make no sense."""
        raise NotImplementedError

    def refusal(self, text: str) -> ApiError:
        return denied(self.webhook, text)


class ContainerProfileAdmission(ProfileAdmission):
    webhook = "vnnfcontainerprofile.kb.io"

    def check(self, data: Object) -> None:
        mpi, plain = data.get("mpiSpec"), data.get("spec")
        if (mpi is None) == (plain is None):
            raise self.refusal("exactly one of spec and mpiSpec must be set")
        if mpi is not None:
            offload = bool(mpi.get("copyOffload"))
            for name in self._containers(mpi.get("launcher")):
                if bool(_COPY_OFFLOAD.search(name)) != offload:
                    raise self.refusal(
                        f"launcher container '{name}' and copyOffload={offload} do "
                        "not go together"
                    )
        else:
            names = self._containers(plain)
            if not names:
                raise self.refusal("spec needs at least one container")
            for name in names:
                if _COPY_OFFLOAD.search(name):
                    raise self.refusal(
                        f"container '{name}' is for copy offload: that needs mpiSpec"
                    )
        for storage in data.get("storages") or ():
            name = storage.get("name", "")
            if storage.get("pvcMode") and not name.startswith("DW_GLOBAL_"):
                raise self.refusal(f"pvcMode is for DW_GLOBAL_ storages, not '{name}'")

    @staticmethod
    def _containers(template: Any) -> list[str]:
        """The names of a pod's containers, for a template of any shape."""
        containers = dig(template, "containers")
        if not isinstance(containers, list):
            return []
        return [str(c.get("name", "")) for c in containers if isinstance(c, dict)]


class StorageProfileAdmission(ProfileAdmission):
    webhook = "vnnfstorageprofile.kb.io"

    def check(self, data: Object) -> None:
        lustre = data.get("lustreStorage") or {}
        mgt = lustre.get("mgtOptions") or {}
        if mgt.get("externalMgs"):
            if lustre.get("combinedMgtMdt"):
                raise self.refusal("externalMgs excludes combinedMgtMdt")
            if mgt.get("standaloneMgtPoolName"):
                raise self.refusal("externalMgs excludes standaloneMgtPoolName")
        for target in _TARGETS:
            options = lustre.get(target) or {}
            if options.get("count") and options.get("scale"):
                raise self.refusal(f"{target} has count and scale: only one may be set")


def profile_hooks() -> dict[str, ProfileAdmission]:
    """The webhooks by kind."""
    return {
        "nnfcontainerprofiles": ContainerProfileAdmission(),
        "nnfstorageprofiles": StorageProfileAdmission(),
    }


def install(store: Store) -> None:
    """Put the webhooks in front of the store."""
    store.admission.update(profile_hooks())
