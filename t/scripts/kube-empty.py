# Waits until an API server has no object of some kinds in any namespace.
# Usage: kube-empty.py KUBECONFIG PLURAL...
# SPDX-License-Identifier: LGPL-3.0-only
"""Wait for the end of what a test has made.

The storage controller of NNF can orphan a ClientMount that it creates while the
NnfAccess is deleted: nothing refers to the ClientMount, and nothing ever deletes it.
This program names such an orphan on stderr and deletes it, as an admin has to. The
finalizer is removed first, because NNF cannot unmount storage that is gone.
"""

from __future__ import annotations

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

from parity_support import DWS, LIMIT_S, MERGE, Object, User

MOUNTS = "clientmounts"
ACCESSES = "nnfaccesses"


def lost(user: User, mounts: list[Object]) -> list[Object]:
    """The ClientMounts whose end nobody has begun, and whose owner is no more."""
    accesses = user.list(ACCESSES, None).expect(200)["items"]
    owners = {access["metadata"]["uid"] for access in accesses}

    def is_lost(mount: Object) -> bool:
        meta = mount["metadata"]
        labels = meta.get("labels", {})
        return (
            "deletionTimestamp" not in meta
            and labels.get(f"{DWS}/owner.kind") == "NnfAccess"
            and labels.get(f"{DWS}/owner.uid") not in owners
        )

    return [mount for mount in mounts if is_lost(mount)]


def take_away(user: User, mount: Object) -> None:
    meta = mount["metadata"]
    path = user.path(MOUNTS, meta["name"], meta["namespace"])
    found = user.send("DELETE", path, {"preconditions": {"uid": meta["uid"]}})
    if found.code == 404:
        return
    found.expect(200)
    name = f"{meta['namespace']}/{meta['name']}"
    print(f"{MOUNTS}: NNF has lost {name}, taken away", file=sys.stderr)
    # it may have gone meanwhile
    user.send("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)


def wait(user: User, plural: str) -> None:
    while True:
        found = user.list(plural, None).expect(200)
        if not found["items"]:
            return
        version = found["metadata"]["resourceVersion"]
        if plural == MOUNTS:
            for mount in lost(user, found["items"]):
                take_away(user, mount)
        events = user.watch(plural, None, seconds=LIMIT_S, resourceVersion=version)
        if not any(e["type"] == "DELETED" for e in events):
            names = [o["metadata"]["name"] for o in found["items"]]
            sys.exit(f"{plural}: still there: {' '.join(names)}")


def main() -> None:
    user = User(pathlib.Path(sys.argv[1]), "admin")
    # that of an NnfAccess comes before that of its ClientMounts
    for plural in sorted(sys.argv[2:], key=lambda kind: kind == MOUNTS):
        wait(user, plural)


main()
