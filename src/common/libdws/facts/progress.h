/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * How far a workflow has come within its state, read from the Servers,
 * ClientMount and NnfDataMovement objects that carry its labels.
 */

#ifndef LIBDWS_PROGRESS_H
#define LIBDWS_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <jansson.h>

#include "workflow.h"

struct dws_progress {
    enum dws_state state;       // the state it was read in, NONE: never
    size_t hosts;               // compute nodes that have mounts to do or undo
    size_t hosts_done;
    size_t movements;           // of this state
    size_t movements_done;      // ended, well or not
    double percent;             // of the bytes; where these are not known, mean
                                //  over the movements
    double rate;                // bytes/s, the sum over those that run
    double left;                // seconds until the last one ends, 0: not known
    double files;               // moved so far
    char behind[128];           // rabbits that have not made their storage, a
                                //  hostlist; "" if it is too long
    char failure[512];          // of the first movement that failed, or ""
};

/* Count the nodes whose mounts are where 'state' (PreRun or PostRun) wants
 * them. Objects that are not understood are not counted.
 * Fails with ENOMEM; '*p' is then unchanged.
 */
int dws_progress_mounts (json_t *clientmounts,
                         enum dws_state state,
                         struct dws_progress *p);

/* Name the rabbits that keep a workflow in Setup. Fails with ENOMEM; '*p' is then
 * unchanged.
 */
int dws_progress_servers (json_t *servers, struct dws_progress *p);

/* Add up the movements that the copy directives of 'state' (DataIn or DataOut) have
 * made. Movements that a job has begun itself do not count.
 */
void dws_progress_movements (json_t *movements,
                             enum dws_state state,
                             struct dws_progress *p);

#endif /* !LIBDWS_PROGRESS_H */
