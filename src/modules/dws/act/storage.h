/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The storage of a job's directives, as libdws computes it from the module's
 * facts about job, rabbits and configuration.
 */

#ifndef DWS_STORAGE_H
#define DWS_STORAGE_H

#include <stdbool.h>
#include <jansson.h>

#include "libdws/util/error.h"
#include "facts/jobs.h"

struct action;

/* The demands on scheduler and compute nodes, each a new reference.
 */
struct demand {
    json_t *resources;      // of the jobspec
    json_t *constraint;     // RFC 31, or a JSON null
    json_t *units;          // systemd units, an array
};

/* Compute the demand from the breakdowns of the job; with 'staged' its nodes must be
 * next to its own storage. Fails with EINVAL or ENOSPC (text for the user), EAGAIN (a
 * breakdown is not ready) or ENOMEM.
 */
int storage_demand (struct job *job, bool staged, struct demand *demand,
                    dws_error_t *error);
void demand_clear (struct demand *demand);

/* The hosts left out of the job, NULL if none, and the remaining ones: a hostlist that
 * the caller frees.
 */
const char *storage_left_out (const struct job *job);
char *storage_hosts (const struct job *job);

/* Write Computes with the remaining hosts, as the command 'index' of an action.
 */
int storage_send_computes (struct job *job, const struct action *action, int index);

/* May unbound storage lie on any rabbit? For a data-first job it always may.
 */
bool storage_anywhere (const struct job *job);

/* Does the job have unbound storage?
 */
bool storage_unbound (const struct job *job);

/* The rabbits of the job's hosts, as dws_allocation_nodes() counts them; if storage may
 * lie anywhere, also all others except suspects, with 0.
 */
json_t *storage_nodes (struct job *job, dws_error_t *error);

/* The same for a data-first job (libdws/storage/data_first.h), with the present state of
 * rabbits or, with 'ever', as if all were up and empty.
 */
json_t *storage_data_first_nodes (struct job *job, bool ever, dws_error_t *error);

/* The exclusive keys that the job wants, and those that others hold, or get first, on
 * the same rabbits, as libdws/storage/allocation.h has it. Holders that may stay for
 * ever come last. A job whose storage was laid out before ('again') does not wait
 * behind jobs on the waitlist. Fails as dws_allocation_sets() does.
 */
struct rivals {
    json_t *wanted;         // {KEY: true}
    json_t *list;
};

int storage_rivals (struct job *job, json_t *nodes, bool again,
                    struct rivals *rivals, dws_error_t *error);
void rivals_clear (struct rivals *rivals);

/* The text about the first rival, or ('lasting') the first that may stay for ever: the
 * caller frees it. NULL: out of memory.
 */
char *storage_rival (struct job *job, json_t *nodes,
                     const struct rivals *rivals, bool lasting);

/* Lay the storage out on the rabbits in 'nodes', in their present state or
 * as if they were in another. Returns as dws_allocation_sets() does.
 */
enum layout_state {
    LAYOUT_NOW,
    LAYOUT_LASTING,         // without exclusive keys of jobs
    LAYOUT_SHARED,          // without any exclusive keys
    LAYOUT_EMPTY,           // without any other storage
    LAYOUT_EVER,            // and with all rabbits up
};

json_t *storage_layout (struct job *job, json_t *nodes,
                        const struct rivals *rivals, enum layout_state state,
                        dws_error_t *error);

#endif /* !DWS_STORAGE_H */
