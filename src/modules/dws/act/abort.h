/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * dws.abort: the epilog of a job has timed out. The plugin ends the epilog when it gets
 * the answer. The answer is success once nodes with mounts are drained, rabbits with
 * storage of the job are disabled and the scheduler knows of these rabbits; it is an
 * error as soon as that is impossible, upon which the plugin drains all nodes of the
 * job.
 */

#ifndef DWS_ABORT_H
#define DWS_ABORT_H

#include <flux/core.h>

#include "base/ctx.h"
#include "facts/jobs.h"

struct aborts *aborts_create (struct dws_ctx *ctx);
void aborts_destroy (struct aborts *aborts);

/* Take a request about a job and answer it, now or later. 'job' is NULL if unknown.
 */
void aborts_add (struct aborts *aborts, const flux_msg_t *msg, struct job *job);

/* The job has changed, or its record is about to be destroyed.
 */
void aborts_see_job (struct aborts *aborts, struct job *job);
void aborts_forget_job (struct aborts *aborts, const struct job *job);

/* The scheduler has acknowledged the state of rabbits.
 */
void aborts_see_scheduler (struct aborts *aborts);

/* A job's nodes could not be drained. errno says why.
 */
void aborts_failed (struct aborts *aborts, const struct job *job);

/* Answer all requests with an error: without an agent nothing reports which
 * nodes have mounts.
 */
void aborts_agent_lost (struct aborts *aborts);

#endif /* !DWS_ABORT_H */
