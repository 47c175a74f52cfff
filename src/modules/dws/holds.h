/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Storage of jobs that give their nodes back before it is torn down
 * (rabbit.release_nodes): sched-rabbit is told not to give it away. Fluxion
 * cannot be told.
 */

#ifndef DWS_HOLDS_H
#define DWS_HOLDS_H

#include <stdbool.h>
#include <flux/core.h>

#include "jobs.h"

/* There is storage of this job that the scheduler has to be told of before
 * the job is let go.
 */
bool holds_needed (const struct job *job);

/* Tell it. Returns the future of its answer, or NULL with errno set.
 */
flux_future_t *holds_tell (struct job *job);

/* The job's storage is free.
 */
void holds_end (struct job *job);

/* Tell a scheduler that has just come of all of them, now or when they are
 * known.
 */
void holds_arrived (struct dws_ctx *ctx);
void holds_learned (struct dws_ctx *ctx);

#endif /* !DWS_HOLDS_H */
