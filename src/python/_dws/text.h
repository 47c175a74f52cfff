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
 * config_faults (table [rabbit], table [queues])
 *     {"faults", "notes"}: every fault of that table, and keys of it that do no harm,
 *     arrays of texts
 * config_describe ()
 *     the keys of that table:
 *     [{"name", "type", "default", "bounds", "help"}]
 * clean (text)
 *     the text as a log shows it (libdws/util/clean.h)
 * bounds (resources, constraints)
 *     null, unless the job asks for more than bounds.h allows
 * hosts (hostlist)
 *     an array of names
 * need (resources)
 *     what they ask for: {"groups", "nodes", "gib", "cores", "chassis"}, or null
 *     (libdws/tell/shortage.h)
 * shortage (answer to resource.sched-status,
 *           {"resources", "constraint", "rabbits"})
 *     why a queued job has no nodes yet: {"text", "places": [{"rabbit", "state",
 *     "space", "free", "busy", "down"}]}, or null
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

#endif /* !DWS_TEXT_H */
