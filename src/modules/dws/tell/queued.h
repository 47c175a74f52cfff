/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Why jobs in the queue have no nodes yet, for the annotation user.rabbit
 * (tell/annotate.h). The scheduler does not report it, so a check runs every ten
 * seconds while a job is queued: of the nodes, of the urgency and jobspec of the oldest
 * jobs, and of their queues. A reload keeps no results.
 */

#ifndef DWS_QUEUED_H
#define DWS_QUEUED_H

#include "base/ctx.h"
#include "facts/jobs.h"

struct queued *queued_create (struct dws_ctx *ctx);
void queued_destroy (struct queued *queued);

/* A job has changed: it may be in the queue now.
 */
void queued_see_job (struct queued *queued, const struct job *job);

/* Was the job's queue stopped at the latest check? False without one.
 */
bool queued_is_stopped (const struct queued *queued, const struct job *job);

#endif /* !DWS_QUEUED_H */
