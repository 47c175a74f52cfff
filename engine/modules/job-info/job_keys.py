# SPDX-License-Identifier: LGPL-3.0-only
"""Where the data of a job is in the KVS, for job-info and job-exec, and how it is put
there."""

import base64
import json
import time
from typing import Any

from _flux._core import ffi, lib

APPEND = lib.FLUX_KVS_APPEND


def kvs_key(jobid: int, key: str) -> str:
    buf = ffi.new("char[256]")
    if lib.flux_job_kvs_key(buf, len(buf), jobid, key.encode()) < 0:
        raise ValueError(key)
    return ffi.string(buf).decode()


def kvs_namespace(jobid: int) -> str:
    buf = ffi.new("char[64]")
    lib.flux_job_kvs_namespace(buf, len(buf), jobid)
    return ffi.string(buf).decode()


def f58(jobid: int) -> str:
    buf = ffi.new("char[32]")
    lib.flux_job_id_encode(jobid, b"f58", buf, len(buf))
    return ffi.string(buf).decode()


def entry(name: str, context: dict) -> str:
    """The line of an eventlog (RFC 18)."""
    line: dict = {"timestamp": time.time(), "name": name}
    if context:
        line["context"] = context
    return json.dumps(line) + "\n"


def commit(namespace: str, *ops: tuple) -> dict:
    """A kvs.commit request of (key, flags, text or symlink)."""
    return {
        "namespace": namespace,
        "flags": 0,
        "ops": [
            {"key": key, "flags": flags, "dirent": treeobj(value)}
            for key, flags, value in ops
        ],
    }


def treeobj(value: Any) -> dict:
    if isinstance(value, dict):
        return {"ver": 1, "type": "symlink", "data": value}
    data = base64.b64encode(value.encode()).decode()
    return {"ver": 1, "type": "val", "data": data}
