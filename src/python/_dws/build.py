# SPDX-License-Identifier: LGPL-3.0-only
#
# Write the C source of the extension flux_k8s._dws (cffi, API mode).
# Usage: build.py OUTPUT. Run by meson, which also compiles the result.
"""Generate the source of flux_k8s._dws."""

import sys

import cffi

CDEF = """
struct dws_text_error {
    int errnum;
    char text[256];
};
void dws_text_free (char *s);
char *dws_text_directives (const char *dw,
                           const char *presets,
                           struct dws_text_error *error);
char *dws_text_breakdown_apply (const char *resources,
                                const char *breakdowns,
                                const char *opts,
                                struct dws_text_error *error);
char *dws_text_allocation_nodes (const char *R,
                                 const char *mapping,
                                 struct dws_text_error *error);
char *dws_text_allocation_sets (const char *breakdowns,
                                const char *nodes_per_rabbit,
                                const char *opts,
                                struct dws_text_error *error);
char *dws_text_location_constraint (const char *breakdowns,
                                    const char *servers,
                                    const char *mapping,
                                    struct dws_text_error *error);
char *dws_text_jgf (const char *R,
                    const char *mapping,
                    const char *opts,
                    int fd,
                    struct dws_text_error *error);
"""


def main() -> None:
    ffi = cffi.FFI()
    ffi.cdef(CDEF)
    ffi.set_source("flux_k8s._dws", '#include "text.h"')
    ffi.emit_c_code(sys.argv[1])


if __name__ == "__main__":
    main()
