/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Finding out more about a failure before the job's owner is told of it.
 */

#ifndef DWS_MODULE_EXPLAIN_H
#define DWS_MODULE_EXPLAIN_H

#include "libdws/tell/explain.h"
#include "facts/jobs.h"

/* Drop what is known or asked for about a job's failure: the record of the job
 * goes away; or the agent, which all questions went to, is lost.
 */
void explain_forget (struct job *job);
void explain_agent_lost (struct dws_ctx *ctx);

/* Returns true if all is known that can be found out about the failure.
 * Otherwise it has been asked for, and jobs_changed() is called when there is
 * an answer, or when it is not worth waiting for any more.
 */
bool explain_ready (struct job *job);

/* Make the note of an exception from 'text'.
 */
const char *explain_text (struct job *job, const char *text,
                          char buf[DWS_EXPLAIN_SIZE]);

#endif /* !DWS_MODULE_EXPLAIN_H */
