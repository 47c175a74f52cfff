# SPDX-License-Identifier: LGPL-3.0-only
"""For tests of the engine, beyond an instance (t/python/instance_support).

The assertions of these tests hold for flux-core too: the tests run on whatever `flux`
is on PATH, but for those that say otherwise.
"""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import flux
from instance_support import FLUX, Instance, available

__all__ = [
    "Instance",
    "available",
    "is_solo",
    "load_module",
    "processes",
    "remove_module",
    "start",
]


def is_solo() -> bool:
    """True if the flux command on PATH is solo's."""
    out = subprocess.run([FLUX, "version"], capture_output=True, text=True)
    return "solo" in out.stdout


def start(*args: str, **kwargs) -> subprocess.CompletedProcess:
    """Run `flux start ARGS` to its end."""
    return subprocess.run(
        [FLUX, "start", *args], capture_output=True, text=True, timeout=60, **kwargs
    )


def load_module(handle: flux.Flux, path: str, args: Sequence[str] = ()) -> None:
    handle.rpc("module.load", {"path": path, "args": list(args)}).get()


def remove_module(handle: flux.Flux, name: str) -> None:
    handle.rpc("module.remove", {"name": name}).get()


def processes(handle: flux.Flux, name: str = "") -> list[int]:
    """The processes of an instance's Python modules, or those of one."""
    broker = int(handle.attr_get("broker.pid"))
    parents = {}
    names = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            before, _, after = stat.read_text().rpartition(")")
        except OSError:
            continue
        pid = int(stat.parent.name)
        parents[pid] = int(after.split()[1])
        names[pid] = before.partition("(")[2]
    return [
        pid
        for pid, parent in parents.items()
        if parents.get(parent) == broker and name in ("", names[pid])
    ]
