/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * What the directives of a job come to: libdws asked with all that the
 * module knows about job, rabbits and configuration.
 */

#ifndef DWS_STORAGE_H
#define DWS_STORAGE_H

#include <stdbool.h>
#include <jansson.h>

#include "libdws/util/error.h"
#include "facts/jobs.h"

/* What the scheduler and the compute nodes have to give, each a new
 * reference.
 */
struct demand {
    json_t *resources;      // of the jobspec
    json_t *constraint;     // RFC 31, or a JSON null
    json_t *units;          // systemd units, an array
};

/* Work out the demand from the breakdowns of the job; with 'staged' its storage is there,
 * and nodes next to it are wanted. Fails with EINVAL or ENOSPC (text for the user),
 * EAGAIN (a breakdown is not ready) or ENOMEM.
 */
int storage_demand (struct job *job, bool staged, struct demand *demand,
                    dws_error_t *error);
void demand_clear (struct demand *demand);

/* The hosts that the job does without, NULL if none, and those that it has still:
 * a hostlist that the caller frees.
 */
const char *storage_left_out (const struct job *job);
char *storage_hosts (const struct job *job);

/* May storage that is not bound to nodes lie on any rabbit? That of a job that has it
 * before it has nodes always may.
 */
bool storage_anywhere (const struct job *job);

/* And has the job such storage?
 */
bool storage_unbound (const struct job *job);

/* The rabbits of the job's hosts, as dws_allocation_nodes() counts them; where storage
 * may lie anywhere, all others as well, with 0, but those that may be dead.
 */
json_t *storage_nodes (struct job *job, dws_error_t *error);

/* The same for a job that has no nodes yet: as they are to be (libdws/storage/first.h),
 * with all rabbits as they are, or 'ever' in order and empty.
 */
json_t *storage_first_nodes (struct job *job, bool ever, dws_error_t *error);

/* What the job wants to have rabbits for itself for, and what others have of that
 * there, or are to get first, as libdws/storage/allocation.h has it: those that may
 * have it for ever come last. A job that has had such storage before ('again') is not
 * behind any that waits. Fails as dws_allocation_sets() does.
 */
struct rivals {
    json_t *wanted;         // {KEY: true}
    json_t *held;
};

int storage_rivals (struct job *job, json_t *nodes, bool again,
                    struct rivals *rivals, dws_error_t *error);
void rivals_clear (struct rivals *rivals);

/* The text for the first of them, or of those that may be there for ever: the caller
 * frees it. NULL: no memory.
 */
char *storage_rival (struct job *job, json_t *nodes,
                     const struct rivals *rivals, bool lasting);

/* Lay the storage out on the rabbits in 'nodes', as they are, or as they would be.
 * Returns what dws_allocation_sets() does.
 */
enum layout_view {
    LAYOUT_NOW,
    LAYOUT_LASTING,         // without what jobs have for themselves
    LAYOUT_SHARED,          // without what anybody has for themselves
    LAYOUT_EMPTY,           // without what anybody has
    LAYOUT_EVER,            // and with all rabbits in order
};

json_t *storage_layout (struct job *job, json_t *nodes,
                        const struct rivals *rivals, enum layout_view view,
                        dws_error_t *error);

#endif /* !DWS_STORAGE_H */
