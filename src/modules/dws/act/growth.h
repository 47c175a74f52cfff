/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Storage that is to be as large as there is room (capacity=10TiB..40TiB). It is laid
 * out at its lower bound first, which is what the scheduler has set aside. How much it
 * grows is decided so:
 *
 * 1. What it could have by all that is known is the wish. If that is within what the
 *    scheduler has given to the job, it is what the job gets.
 * 2. Otherwise sched-rabbit is told of the wish, and gives nothing of it away from then
 *    on. Until now it may have given some to jobs that are not known here yet. With
 *    Fluxion it is no more than that has given: under some of its policies it refuses
 *    jobs that would have to wait for the rest (doc/dev/upstream/fluxion-rabbits.rst).
 * 3. It answers with what it has given to each job on those rabbits. What is left of the
 *    wish is what the job gets.
 *
 * All that time the ledger (facts/space.h) has the lower bound. Nothing of it is kept:
 * after a restart it begins anew, until Servers are written.
 */

#ifndef DWS_GROWTH_H
#define DWS_GROWTH_H

#include <stdbool.h>
#include <jansson.h>

#include "act/action.h"
#include "act/storage.h"
#include "facts/jobs.h"

/* Has the job a directive with two sizes?
 */
bool growth_wanted (const struct job *job);

/* '*sets' is what was laid out at the lower bound. Returns 1 if it has been replaced
 * by what the job gets; 0 if something has been asked for, as part of the action: the
 * job is decided on again when that has come; or -1 with errno set.
 */
int growth_decide (struct job *job, const struct action *action,
                   json_t *nodes, const struct rivals *rivals, json_t **sets);

/* It could not be laid out, or others come first: begin anew.
 */
void growth_forget (struct job *job);

/* Add DW_CAPACITY_name, which says how large each is. Fails with ENOMEM, or EAGAIN if
 * that is not known yet.
 */
int growth_variables (struct job *job, json_t *variables);

#endif /* !DWS_GROWTH_H */
