# SPDX-License-Identifier: LGPL-3.0-only
#
# flux rabbitmapping: ask Kubernetes which compute nodes hang on which rabbit
# and how large the rabbits are.
"""Write the rabbitmapping file."""

from __future__ import annotations

import argparse
import json
import sys
import threading
from typing import Any

from flux_k8s import errors, kube, program, rabbitmap

PATIENCE_S = 1.0


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="flux rabbitmapping",
        description="Write the mapping between compute nodes and rabbits, as "
        "JSON, from what Kubernetes knows of them.",
    )
    parser.add_argument(
        "-k",
        "--kubeconfig",
        metavar="FILE",
        help="kubeconfig file (default: $KUBECONFIG or ~/.kube/config)",
    )
    parser.add_argument(
        "-i",
        "--indent",
        type=int,
        metavar="N",
        help="indent by N spaces (default: everything on one line)",
    )
    parser.add_argument(
        "--nosort", action="store_true", help="leave the keys in their order"
    )
    parser.add_argument(
        "--raw",
        action="store_true",
        help="write what the drives hold, not what storage can have of them",
    )
    parser.add_argument(
        "--ignore-external-allocations",
        action="store_true",
        help="accepted, but without effect: nothing is subtracted",
    )
    return parser.parse_args()


class Progress:
    """Says on a terminal what is being waited for, after a second."""

    def __init__(self, what: str) -> None:
        self._timer = threading.Timer(
            PATIENCE_S,
            print,
            (f"flux-rabbitmapping: waiting for {what}",),
            {"file": sys.stderr},
        )
        self._timer.daemon = True

    def __enter__(self) -> None:
        if sys.stderr.isatty():
            self._timer.start()

    def __exit__(self, *_exc: object) -> None:
        self._timer.cancel()


def fetch(client: kube.Kube, plural: str) -> list[dict[str, Any]]:
    with Progress(f"{plural} from the Kubernetes API"):
        try:
            return client.list_all(plural)[0]
        except errors.ApiError as exc:
            raise rabbitmap.MappingError(f"Kubernetes API: {exc}") from exc


def main() -> None:
    args = parse_args()
    client = kube.Kube(args.kubeconfig)
    configurations = [
        obj
        for obj in fetch(client, "systemconfigurations")
        if obj["metadata"]["name"] == "default"
    ]
    if not configurations:
        raise rabbitmap.MappingError("there is no SystemConfiguration 'default'")
    mapping = rabbitmap.build(configurations[0], fetch(client, "storages"), args.raw)
    json.dump(mapping, sys.stdout, indent=args.indent, sort_keys=not args.nosort)
    print()


if __name__ == "__main__":
    faults = (rabbitmap.MappingError, kube.ConfigError)
    sys.exit(program.run("flux-rabbitmapping", main, faults))
