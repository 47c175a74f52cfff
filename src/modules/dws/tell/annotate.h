/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * What a job waits for, as an annotation that flux jobs shows: user.rabbit.
 *
 * A job is annotated when it has waited for longer than one interval (2 s), and
 * again no more often than that, when the text changes. Jobs that are served
 * quickly cost nothing. Annotations are volatile memos: they do not go into the
 * job's eventlog, and are gone when Flux restarts, after which they are made again.
 */

#ifndef DWS_ANNOTATE_H
#define DWS_ANNOTATE_H

#include "libdws/facts/progress.h"
#include "libdws/tell/waiting.h"
#include "base/ctx.h"
#include "facts/jobs.h"

/* Part of the record of a job that has, or had, an annotation.
 */
struct note {
    char *text;                     // as it is shown, or NULL
    struct dws_progress progress;
    bool asking;                    // for newer progress
    unsigned int age;               // intervals since the last answer
};

struct annotate *annotate_create (struct dws_ctx *ctx);
void annotate_destroy (struct annotate *annotate);

/* A job, or the link to Kubernetes, has changed: look at that job, or at all, at the
 * next interval.
 */
void annotate_see_job (struct annotate *annotate, struct job *job);
void annotate_see_all (struct annotate *annotate);

/* Take the annotation away at once, as the job goes on.
 */
void annotate_clear (struct job *job);

/* The job's record goes away.
 */
void annotate_leave (struct job *job);

/* Queries to the agent will not be answered any more.
 */
void annotate_agent_lost (struct annotate *annotate);

/* Set memos of the job, an object, or remove those that are null. They stay as long as
 * the job is known, or, if 'volat' is set, as long as the job is active and Flux runs.
 * Nobody waits for them. Takes over 'memos'.
 */
void annotate_memos (struct job *job, json_t *memos, bool volat);

/* The text that says what a job waits for now.
 */
const char *annotate_text (struct job *job, char buf[DWS_WAITING_SIZE]);

#endif /* !DWS_ANNOTATE_H */
