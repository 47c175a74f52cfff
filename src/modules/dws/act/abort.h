/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * dws.abort: the epilog timeout lets a job go. The plugin waits for the answer before
 * it does, so that is given when the nodes that are mounted are drained, the rabbits that
 * are still taken disabled, and the scheduler knows of these; or as an error as soon as
 * that cannot be done: the plugin then drains all nodes of the job.
 */

#ifndef DWS_ABORT_H
#define DWS_ABORT_H

#include <flux/core.h>

#include "base/ctx.h"
#include "facts/jobs.h"

struct aborts *aborts_create (struct dws_ctx *ctx);
void aborts_destroy (struct aborts *aborts);

/* A request about a job, which is to be answered now or later. 'job' is NULL if it
 * is not known.
 */
void aborts_add (struct aborts *aborts, const flux_msg_t *msg, struct job *job);

/* A job has changed, or its record is destroyed next.
 */
void aborts_see_job (struct aborts *aborts, struct job *job);
void aborts_forget_job (struct aborts *aborts, const struct job *job);

/* The scheduler has taken in what it was told of rabbits.
 */
void aborts_see_scheduler (struct aborts *aborts);

/* A job's nodes could not be drained. errno says why.
 */
void aborts_failed (struct aborts *aborts, const struct job *job);

/* Nobody can say any more which nodes are mounted.
 */
void aborts_agent_lost (struct aborts *aborts);

#endif /* !DWS_ABORT_H */
