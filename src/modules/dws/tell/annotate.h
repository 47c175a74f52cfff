/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The annotation user.rabbit, which says in flux jobs what a job waits for.
 *
 * A job is annotated when it has waited for longer than one interval (2 s), and at most
 * once an interval when the text changes, so that jobs that wait less cost nothing.
 * Annotations are volatile memos, which are not in the job's eventlog: they vanish when
 * Flux restarts, and are then set again.
 */

#ifndef DWS_ANNOTATE_H
#define DWS_ANNOTATE_H

#include "libdws/tell/waiting.h"
#include "base/ctx.h"
#include "facts/jobs.h"

struct annotate *annotate_create (struct dws_ctx *ctx);
void annotate_destroy (struct annotate *annotate);

/* A job, or the link to Kubernetes, has changed: update that job's annotation, or all,
 * at the next interval.
 */
void annotate_see_job (struct annotate *annotate, struct job *job);
void annotate_see_all (struct annotate *annotate);

/* Remove the annotation at once, as the job goes on.
 */
void annotate_clear (struct job *job);

/* Note why the job has no nodes yet (tell/queued.h), or "".
 */
void annotate_shortage (struct job *job, const char *text);

/* The agent is gone: pending queries get no answer.
 */
void annotate_agent_lost (struct annotate *annotate);

/* Set the job's memos in the object 'memos', or remove those that are null. Memos stay
 * as long as Flux knows the job or, if 'volat' is set, as long as the job is active and
 * Flux runs. Errors are only logged. Takes over 'memos'.
 */
void annotate_memos (struct job *job, json_t *memos, bool volat);

/* The text that says what a job waits for now.
 */
const char *annotate_text (struct job *job, char buf[DWS_WAITING_SIZE]);

#endif /* !DWS_ANNOTATE_H */
