/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Sends the state of rabbits to the scheduler, sched-rabbit or Fluxion,
 * whichever is loaded. A scheduler that is loaded again gets all of it again.
 */

#ifndef DWS_SCHEDULER_H
#define DWS_SCHEDULER_H

#include <stdbool.h>
#include <jansson.h>

#include "libdws/health/health.h"
#include "base/ctx.h"

struct scheduler *scheduler_create (struct dws_ctx *ctx);
void scheduler_destroy (struct scheduler *sched);

/* Look for a scheduler.
 */
void scheduler_start (struct scheduler *sched);

/* Send 'health', which is copied, to the scheduler, now or when one is loaded.
 * 'version' is that of the latest leaving job counted in it (withheld.h).
 */
void scheduler_tell (struct scheduler *sched,
                     const struct dws_health *health, unsigned int version);

/* Has the loaded scheduler acknowledged this version or a later one?
 */
bool scheduler_knows (const struct scheduler *sched, unsigned int version);

/* Is the scheduler certain not to allocate storage of this rabbit, because it has
 * acknowledged that the rabbit is down, or does not know it? True if the search has
 * found no scheduler.
 */
bool scheduler_bars (const struct scheduler *sched, const char *rabbit);

/* The name of the loaded scheduler, or NULL. scheduler_sought() is false until the
 * first search after the start.
 */
const char *scheduler_name (const struct scheduler *sched);
bool scheduler_sought (const struct scheduler *sched);
bool scheduler_is_fluxion (const struct scheduler *sched);

/* True if the scheduler is Fluxion and its resource graph has no rabbits, so that no
 * job with storage can start.
 */
bool scheduler_lacks_rabbits (const struct scheduler *sched);

/* True if jobs have to ask for nodes without the property badrabbit. sched-rabbit keeps
 * jobs with storage off such nodes by itself, because Flux moves a pending job to another
 * queue only if the job has no constraint but that of its queue. Fluxion with queue-policy
 * fcfs or easy refuses jobs with any constraint, while nodes that satisfy it are busy with
 * jobs that have no time limit. Under Fluxion jobs ask only if a node has the property, or
 * may get it while they wait.
 */
bool scheduler_wants_constraint (const struct scheduler *sched);

/* True if the scheduler has acknowledged all updates, or none is loaded.
 */
bool scheduler_settled (const struct scheduler *sched);

#endif /* !DWS_SCHEDULER_H */
