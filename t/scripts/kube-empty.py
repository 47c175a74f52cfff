# Waits until an API server has no object of some kinds in any namespace.
# Usage: kube-empty.py KUBECONFIG PLURAL...
# SPDX-License-Identifier: LGPL-3.0-only
"""Wait for the end of what a test has made."""

from __future__ import annotations

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

from parity_support import LIMIT_S, User


def wait(user: User, plural: str) -> None:
    while True:
        found = user.list(plural, None).expect(200)
        if not found["items"]:
            return
        version = found["metadata"]["resourceVersion"]
        events = user.watch(plural, None, seconds=LIMIT_S, resourceVersion=version)
        if not any(e["type"] == "DELETED" for e in events):
            names = [o["metadata"]["name"] for o in found["items"]]
            sys.exit(f"{plural}: still there: {' '.join(names)}")


def main() -> None:
    user = User(pathlib.Path(sys.argv[1]), "admin")
    for plural in sys.argv[2:]:
        wait(user, plural)


main()
