# SPDX-License-Identifier: LGPL-3.0-only
"""Run a Python broker module: python-module.py PATH

The broker starts this with FLUX_MODULE_URI set (RFC 5).  The module is
imported before the handle is set up: that takes longest, and the broker may
have started us ahead of the time when the module is wanted.
"""

import errno
import os
import sys
import traceback

import flux
import flux.brokermod
import flux.importer
from _flux._core import ffi, lib


def check(returned: int, what: str, error) -> None:
    """End the program if a libflux call has failed."""
    if returned < 0:
        text = ffi.string(error[0].text).decode(errors="replace")
        sys.exit(f"{what}: {text}")


def run(handle: flux.Flux, entry, args: list) -> int:
    """Run the module's entry point; returns 0 or an errno."""
    try:
        entry(handle, *args)
    except ValueError as exc:
        handle.log(3, str(exc))
        return errno.EINVAL
    except OSError as exc:
        return exc.errno or errno.ECONNRESET
    except Exception:  # pylint: disable=broad-except
        for line in traceback.format_exc().splitlines():
            handle.log(3, line)
        return errno.ECONNRESET
    return 0


def main() -> None:
    path = sys.argv[1]
    try:
        entry = flux.brokermod.resolve_entry_point(flux.importer.import_path(path))
    except (ImportError, SyntaxError, OSError, ValueError) as exc:
        sys.exit(f"{path}: {exc}")
    handle = flux.Flux(url=os.environ.pop("FLUX_MODULE_URI"))
    error = ffi.new("flux_error_t[1]")
    argp = ffi.new("char **")
    check(lib.flux_module_initialize(handle.handle, argp, error), path, error)
    args = []
    if argp[0] != ffi.NULL:
        args = ffi.string(argp[0]).decode().split()
        lib.free(argp[0])
    check(lib.flux_module_register_handlers(handle.handle, error), path, error)
    errnum = run(handle, entry, args)
    check(lib.flux_module_finalize(handle.handle, errnum, error), path, error)


if __name__ == "__main__":
    main()
