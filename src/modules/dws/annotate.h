/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * What a job waits for, as an annotation that flux jobs shows: user.rabbit.
 *
 * A job is annotated when it has waited for longer than one interval
 * (rabbit.progress_interval), and again no more often than that, when the text
 * changes. Jobs that are served quickly cost nothing. Annotations are volatile
 * memos: they do not go into the job's eventlog, and are gone when Flux
 * restarts, after which they are made again.
 */

#ifndef DWS_ANNOTATE_H
#define DWS_ANNOTATE_H

#include "libdws/progress.h"
#include "libdws/waiting.h"
#include "ctx.h"
#include "jobs.h"

/* Of a job that has, or had, an annotation.
 */
struct note {
    char *text;                     // as it is shown, or NULL
    struct dws_progress progress;
    bool asking;                    // for newer progress
    unsigned int age;               // intervals since the last answer
};

void note_destroy (struct note *note);

struct annotate *annotate_create (struct dws_ctx *ctx);
void annotate_destroy (struct annotate *annotate);

/* Something has changed: see to it at the next interval. NULL is allowed.
 */
void annotate_start (struct annotate *annotate);

/* Take the annotation away at once, as the job goes on.
 */
void annotate_clear (struct job *job);

/* Queries to the agent will not be answered any more.
 */
void annotate_agent_lost (struct annotate *annotate);

/* A memo that stays with the job, or, if 'volat' is set, as long as it is
 * active and Flux runs. 'value' may be NULL to remove the key. Nobody waits
 * for it.
 */
void annotate_memo (struct job *job, const char *key, const char *value,
                    bool volat);

/* The text for a job as it is now.
 */
const char *annotate_text (struct job *job, char buf[DWS_WAITING_SIZE]);

#endif /* !DWS_ANNOTATE_H */
