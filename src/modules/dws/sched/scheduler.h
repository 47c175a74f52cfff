/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * What the scheduler has to know of rabbits: sched-rabbit or Fluxion, whichever
 * is loaded. It is told again when it is loaded again.
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

/* Tell the scheduler, now or when one is loaded. 'health' is copied. 'version' says
 * which jobs of those that are let go it counts, see scheduler_knows().
 */
void scheduler_tell (struct scheduler *sched,
                     const struct dws_health *health, unsigned int version);

/* Has the scheduler that is loaded taken in all that it was told with this version or
 * a later one?
 */
bool scheduler_knows (const struct scheduler *sched, unsigned int version);

/* Is the scheduler sure not to give anything of this rabbit to a job, as it has taken in
 * that it is down, or does not know it? With none loaded it is.
 */
bool scheduler_bars (const struct scheduler *sched, const char *rabbit);

/* The name of the scheduler that is loaded, or NULL. Right after the start it may be
 * that nobody has looked yet.
 */
const char *scheduler_name (const struct scheduler *sched);
bool scheduler_sought (const struct scheduler *sched);
bool scheduler_is_fluxion (const struct scheduler *sched);

/* True if that is Fluxion, and its resource graph has no rabbits: it can start no job
 * that asks for storage.
 */
bool scheduler_lacks_rabbits (const struct scheduler *sched);

/* True if jobs have to ask for nodes without the property badrabbit. Fluxion with
 * queue-policy fcfs or easy refuses jobs with any constraint, while nodes that satisfy
 * it are busy with jobs that have no time limit. So there they ask only if a node has
 * the property, or may get it while they wait.
 */
bool scheduler_wants_constraint (const struct scheduler *sched);

/* True when the scheduler has been told everything, and has agreed.
 */
bool scheduler_settled (const struct scheduler *sched);

#endif /* !DWS_SCHEDULER_H */
