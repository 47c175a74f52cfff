/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The face that libdws shows to Python: JSON text in, JSON text out.
 */

#ifndef DWS_TEXT_H
#define DWS_TEXT_H

#include <stddef.h>

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
 *     {"directives": [{"text", "command", "line", "bytes", "args": {}}],
 *      "warnings": []}
 * breakdown_apply (resources, breakdowns,
 *                  {"min_gib"?, "maximums"?, "directives"?, "rabbit_bytes"?,
 *                   "anywhere"?, "total_bytes"?})
 * sizes (resources, directives)
 *     {"job": {"asked", "taken"}, "node": {"asked", "taken"}}: bytes that they
 *     ask for, and that these take of rabbits at least
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
 * clean (text)
 *     the text as a log shows it (libdws/util/clean.h)
 * bounds (resources, constraints)
 *     null, unless the job asks for more than bounds.h allows
 * hosts (hostlist)
 *     an array of names
 * pool_nodes (answer to resource.sched-status, constraint)
 *     an object with the hosts that satisfy it as keys
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

/* Where in a text an object is and, as dws_skim() has found it (libdws/util/skim.h),
 * kind, name, namespace, resourceVersion, deletionTimestamp and managedFields of it:
 * for each of the seven its beginning and its size.
 */
enum { DWS_TEXT_PARTS = 14 };

/* The object that a text is. Returns -1 if that cannot be said.
 */
int dws_text_skim (const char *text, size_t size, size_t parts[]);

/* dws_skim_events(): for each event its type and DWS_TEXT_PARTS more; there is room
 * for 'max' of them in 'parts'. With 'newest' only those of dws_events_newest().
 * Returns how many there are, or -1 without memory. Fills in how many there were, and
 * where the rest of the text begins.
 */
long dws_text_events (const char *text, size_t size, int newest, size_t parts[],
                      size_t max, size_t *seen, size_t *used);

/* dws_skim_list(): where resourceVersion and continue are of the list, and
 * DWS_TEXT_PARTS for each item; there is room for 'max' of them in 'parts'. Returns how
 * many items there are, or -1 if that cannot be said.
 */
long dws_text_list (const char *text, size_t size, size_t head[4], size_t parts[],
                    size_t max);

#endif /* !DWS_TEXT_H */
