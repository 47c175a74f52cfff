/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The face that libdws shows to Python: JSON text in, JSON text out. Every
 * function returns text that dws_text_free() releases, or NULL with 'errbuf'
 * holding an errno and a message. An argument that is NULL counts as absent.
 */

#ifndef DWS_TEXT_H
#define DWS_TEXT_H

#include <stddef.h>

struct dws_text_error {
    int errnum;
    char text[256];
};

void dws_text_free (char *s);

/* {"directives": [{"text", "command", "args": {}}], "warnings": []}
 */
char *dws_text_directives (const char *dw,
                           const char *presets,
                           struct dws_text_error *error);

/* opts: {"min_gib"?, "maximums"?}
 */
char *dws_text_breakdown_apply (const char *resources,
                                const char *breakdowns,
                                const char *opts,
                                struct dws_text_error *error);

/* R is an R object or a hostlist string
 */
char *dws_text_allocation_nodes (const char *R,
                                 const char *mapping,
                                 struct dws_text_error *error);

/* opts: {"min_gib"?, "storages"?, "used"?, "resources"?, "reserved"?}
 */
char *dws_text_allocation_sets (const char *breakdowns,
                                const char *nodes_per_rabbit,
                                const char *opts,
                                struct dws_text_error *error);

/* An RFC 31 constraint, or "null"
 */
char *dws_text_location_constraint (const char *breakdowns,
                                    const char *servers,
                                    const char *mapping,
                                    struct dws_text_error *error);

/* {RABBIT: BYTES} that Fluxion has set aside, from R
 */
char *dws_text_allocation_reserved (const char *R,
                                    const char *mapping,
                                    struct dws_text_error *error);

/* The systemd units of required daemons
 */
char *dws_text_daemons_units (const char *breakdowns,
                              const char *daemons,
                              struct dws_text_error *error);

/* Every fault of the [rabbit] table, an array of texts
 */
char *dws_text_config_faults (const char *table, struct dws_text_error *error);

/* The keys of that table: [{"name", "type", "default", "bounds", "help"}]
 */
char *dws_text_config_describe (struct dws_text_error *error);

/* Write the value of R's "scheduling" key to a file descriptor.
 * opts: {"cluster", "chunks"?, "exclude"?, "validate"?, "whole"?}: with
 * "whole" R is written, with the graph in the place of what it had there.
 * Returns {"vertices": N}.
 */
char *dws_text_jgf (const char *R,
                    const char *mapping,
                    const char *opts,
                    int fd,
                    struct dws_text_error *error);

#endif /* !DWS_TEXT_H */
