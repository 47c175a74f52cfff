# The broker module dws.so in a process of its own, so that its memory can be
# told from everybody else's. Run by bench/lib/storm.py.
# SPDX-License-Identifier: LGPL-3.0-only
"""Usage: modhost.py /path/to/dws.so"""

from __future__ import annotations

import ctypes
import sys

import flux
from _flux._core import ffi


def main() -> int:
    handle = flux.Flux()
    handle.service_register("dws").get()
    pointer = ctypes.c_void_p(int(ffi.cast("uintptr_t", handle.handle)))
    # What the broker does for a module: give it the configuration.
    core = ctypes.CDLL("libflux-core.so.2")
    core.flux_conf_pack.restype = ctypes.c_void_p
    words = ["rabbit"]
    for key in ("mapping", "kubeconfig"):
        words += [key, handle.conf_get(f"rabbit.{key}")]
    conf = core.flux_conf_pack(b"{s:{s:s s:s}}", *(w.encode() for w in words))
    core.flux_set_conf_new(pointer, ctypes.c_void_p(conf))
    module = ctypes.CDLL(sys.argv[1])
    module.mod_main.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    return int(module.mod_main(pointer, 0, None) != 0)


if __name__ == "__main__":
    sys.exit(main())
