# SPDX-License-Identifier: LGPL-3.0-only
#
# The broker's configuration for commands that need nothing else of Flux: the import of
# its Python bindings would take longer than their work.
"""Ask the broker for its configuration."""

from __future__ import annotations

import json
from typing import Any

NODEID_ANY = 0xFFFFFFFF


def fetch() -> Any:
    """The whole configuration, over the C functions alone.

    Raises:
        OSError: there is no instance to ask.
    """
    from _flux._core import ffi, lib

    handle = lib.flux_open(ffi.NULL, 0)
    if handle == ffi.NULL:
        raise OSError(ffi.errno, "cannot connect to a Flux instance")
    future = ffi.NULL
    try:
        future = lib.flux_rpc(handle, b"config.get", ffi.NULL, NODEID_ANY, 0)
        answer = ffi.new("char *[1]")
        if future == ffi.NULL or lib.flux_rpc_get(future, answer) < 0:
            raise OSError(ffi.errno, "cannot read the configuration of Flux")
        return json.loads(ffi.string(answer[0]))
    finally:
        if future != ffi.NULL:
            lib.flux_future_destroy(future)
        lib.flux_close(handle)


def get(key: str, default: Any = None) -> Any:
    """The value of a key like "resource.exclude".

    Raises:
        OSError: there is no instance to ask.
    """
    value = fetch()
    for part in key.split("."):
        if not isinstance(value, dict) or part not in value:
            return default
        value = value[part]
    return value
