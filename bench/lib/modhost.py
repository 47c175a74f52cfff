# Hosts the broker module dws.so in a process of its own, so that a benchmark can
# measure its memory and the turns of its reactor alone. Run by bench/lib/storm.py.
# SPDX-License-Identifier: LGPL-3.0-only
"""Usage: modhost.py /path/to/dws.so [FILE]

Each turn of the reactor that took more than a millisecond of CPU time is a line in
FILE.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from typing import Any, TextIO

import flux
from _flux._core import ffi

WATCHER = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, ctypes.c_int, ctypes.c_void_p)
LONG_NS = 1_000_000


def note_turns(core: ctypes.CDLL, reactor: ctypes.c_void_p, out: TextIO) -> list[Any]:
    """Record the CPU time from each wake-up of the reactor until it waits again. The
    caller keeps the returned callbacks alive while the reactor runs."""
    began = 0

    def begin(*_: object) -> None:
        nonlocal began
        began = time.thread_time_ns()

    def end(*_: object) -> None:
        took = time.thread_time_ns() - began
        if began and took > LONG_NS:
            print(f"{took / 1e6:.3f}", file=out, flush=True)

    kept: list[Any] = []
    for kind, function in (("check", begin), ("prepare", end)):
        create = getattr(core, f"flux_{kind}_watcher_create")
        create.restype = ctypes.c_void_p
        kept.append(WATCHER(function))
        watcher = ctypes.c_void_p(create(reactor, kept[-1], None))
        core.flux_watcher_start(watcher)
    return kept


def main() -> int:
    handle = flux.Flux()
    handle.service_register("dws").get()
    pointer = ctypes.c_void_p(int(ffi.cast("uintptr_t", handle.handle)))
    # Pass the configuration, as the broker does when it loads a module.
    core = ctypes.CDLL("libflux-core.so.2")
    core.flux_conf_pack.restype = ctypes.c_void_p
    words = ["rabbit"]
    for key in ("mapping", "kubeconfig"):
        words += [key, handle.conf_get(f"rabbit.{key}")]
    conf = core.flux_conf_pack(b"{s:{s:s s:s}}", *(w.encode() for w in words))
    core.flux_set_conf_new(pointer, ctypes.c_void_p(conf))
    module = ctypes.CDLL(sys.argv[1])
    module.mod_main.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    core.flux_get_reactor.restype = ctypes.c_void_p
    reactor = ctypes.c_void_p(core.flux_get_reactor(pointer))
    with open(sys.argv[2] if len(sys.argv) > 2 else os.devnull, "a") as out:
        kept = note_turns(core, reactor, out)
        failed = module.mod_main(pointer, 0, None) != 0
        kept.clear()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
