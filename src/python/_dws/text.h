/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The face that libdws shows to Python: JSON text in, JSON text out.
 */

#ifndef DWS_TEXT_H
#define DWS_TEXT_H

#include <stddef.h>

/* The smallest allocation on a rabbit, in GiB.
 */
enum { DWS_TEXT_MIN_GIB = 4 };

struct dws_text_error {
    int errnum;
    size_t line;          // of directives: where the fault is, and with what it does
    size_t other;         // not agree (see directive.h); 0 if on no line
    char text[256];
};

/* Call one of these functions with up to three arguments. One that is NULL
 * counts as absent. Returns text that dws_text_free() releases, or NULL with
 * 'error' filled in.
 *
 * directives (dw, presets)
 *     {"directives": [{"text", "command", "line", "bytes", "most", "args": {}}],
 *      "warnings": []}
 * breakdown_apply (resources, breakdowns,
 *                  {"min_gib"?, "maximums"?, "rabbit_bytes"?,
 *                   "anywhere"?, "total_bytes"?})
 * allocation_nodes (R or hostlist, rabbitmapping)
 * allocation_sets (breakdowns, nodes per rabbit,
 *                  {"min_gib"?, "storages"?, "used"?, "resources"?,
 *                   "reserved"?})
 * allocation_reserved (R, rabbitmapping)
 *     {RABBIT: BYTES} that Fluxion has set aside
 * location_constraint (breakdowns, servers, rabbitmapping)
 *     an RFC 31 constraint, or null
 * daemons_units (breakdowns, daemons)
 *     the systemd units of required daemons
 * drives (Storage.status)
 *     {"raw", "usable"}: bytes of a rabbit's drives, and of these what pools
 *     can have
 * taken (Servers)
 *     {RABBIT: BYTES} that it takes
 * config_faults (table [rabbit])
 *     every fault of that table, an array of texts
 * config_describe ()
 *     the keys of that table:
 *     [{"name", "type", "default", "bounds", "help"}]
 * jgf (R, rabbitmapping,
 *      {"cluster", "chunks"?, "exclude"?, "validate"?, "whole"?})
 *     {"vertices": N}, having written the value of R's "scheduling" key to
 *     'fd'; with "whole" R is written, with the graph in the place of what
 *     it had there.
 */
char *dws_text_call (const char *function,
                     const char *arg0,
                     const char *arg1,
                     const char *arg2,
                     int fd,
                     struct dws_text_error *error);

void dws_text_free (char *s);

/* dws_skim() of a Kubernetes object's text (libdws/util/skim.h). Fills in where
 * kind, name, namespace, resourceVersion, deletionTimestamp and managedFields
 * are: for each its beginning and its size. Returns -1 if that cannot be said.
 */
int dws_text_skim (const char *text, size_t size, size_t parts[12]);

#endif /* !DWS_TEXT_H */
