/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See annotate.h.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errno_safe.h"
#include "libutil/safelog.h"
#include "agent/agent.h"
#include "agent/commands.h"
#include "base/calls.h"
#include "base/timeline.h"
#include "base/timer.h"
#include "facts/config.h"
#include "facts/totals.h"
#include "tell/annotate.h"

/* Upper bounds on memos per interval and on pending queries.
 */
#define MEMOS_MAX 200
#define QUERIES_MAX 8

/* Upper bound on jobs annotated per reactor turn.
 */
#define JOBS_PER_TURN 64

/* The cost of a query grows with the number of objects: pause one interval for
 * each of this many.
 */
#define OBJECTS_PER_INTERVAL 256

/* The shortest interval between two annotations of a job (s).
 */
#define INTERVAL 2.

struct annotate {
    struct dws_ctx *ctx;
    flux_watcher_t *timer;
    bool running;
    struct job *list;           // to be looked at: they have changed, or may
    struct job *due;            // those of this interval
    int memos;                  // still allowed in this interval
    int queries;                // under way
    bool again;                 // there is more to do at the next interval
};

/* List only changed jobs, as ten thousand may wait.
 */
static void enter_list (struct job **list, struct job *job)
{
    if (job->look_at)
        return;
    if ((job->look_next = *list))
        job->look_next->look_at = &job->look_next;
    job->look_at = list;
    *list = job;
}

static void leave_list (struct job *job)
{
    if (!job->look_at)
        return;
    if ((*job->look_at = job->look_next))
        job->look_next->look_at = job->look_at;
    job->look_at = NULL;
}

static void forget_note (struct job *job)
{
    if (job->note) {
        ERRNO_SAFE_BLOCK;
        free (job->note->text);
        free (job->note);
        job->note = NULL;
    }
}

void annotate_leave (struct job *job)
{
    leave_list (job);
    forget_note (job);
    ERRNO_SAFE (free (job->shortage));
    job->shortage = NULL;
}

static void memo_done_cb (const struct call *call, flux_future_t *f)
{
    if (flux_future_get (f, NULL) < 0)
        safe_log (call->ctx->h, LOG_DEBUG, "memo: %s",
                  future_strerror (f, errno));
}

void annotate_memos (struct job *job, json_t *memos, bool volat)
{
    flux_future_t *f;

    f = calls_rpc (job->ctx->h, "job-manager.memo", "{s:I s:b s:o}",
                   "id", (json_int_t)job->facts->id,
                   "volatile", volat,
                   "memo", memos);
    if (calls_add (job->ctx, f, job->facts->id, 0, memo_done_cb) < 0)
        safe_log_error (job->ctx->h, "memo");
}

static void set_note (struct job *job, const char *text)
{
    annotate_memos (job, json_pack ("{s:s?}", "rabbit", text), true);
}

static void show_note (struct job *job, const char *text)
{
    char *cpy;

    if (!(cpy = strdup (text)))
        return;
    free (job->note->text);
    job->note->text = cpy;
    set_note (job, cpy);
}

/* Destroy the note, which is too large to keep for each job that has ever
 * waited.
 */
void annotate_clear (struct job *job)
{
    job->waited = false;
    if (job->note && job->note->text)
        set_note (job, NULL);
    forget_note (job);
}

const char *annotate_text (struct job *job, char buf[DWS_WAITING_SIZE])
{
    dws_waiting_text (job->facts, job->wf,
                      job->note ? &job->note->progress : NULL,
                      agent_link (job->ctx->agent), job->trouble,
                      timeline_now (job->ctx->timeline), buf);
    if (!*buf && job->shortage && job->facts->phase == DWS_PHASE_PENDING)
        snprintf (buf, DWS_WAITING_SIZE, "rabbit: waiting for %s",
                  job->shortage);
    return buf;
}

/* Progress
 */

static void learn_progress (struct job *job, json_t *objects)
{
    struct dws_progress *p = &job->note->progress;
    enum dws_state state = job->wf->state;

    int rc = 0;

    if (state == DWS_STATE_DATAIN || state == DWS_STATE_DATAOUT)
        dws_progress_movements (objects, state, p);
    else if (state == DWS_STATE_SETUP)
        rc = dws_progress_servers (objects, p);
    else
        rc = dws_progress_mounts (objects, state, p);
    if (rc < 0)
        safe_log (job->ctx->h, LOG_ERR, "progress: out of memory");
}

static void progress_cb (struct dws_ctx *ctx, struct job *job,
                         const struct command *cmd, json_t *report)
{
    json_t *objects = json_object_get (report, "objects");

    ctx->annotate->queries--;
    if (!job || !job->note)
        return;
    job->note->asking = false;
    job->note->age = json_array_size (objects) / OBJECTS_PER_INTERVAL;
    if (objects && job->wf && cmd->generation == job->generation)
        learn_progress (job, objects);
}

static void look_again (struct annotate *annotate, struct job *job)
{
    enter_list (&annotate->list, job);
    annotate->again = true;
}

static void ask_progress (struct annotate *annotate, struct job *job)
{
    const char *kind = dws_waiting_kind (job->facts, job->wf);
    json_t *command;

    if (!kind || !agent_ready (job->ctx->agent))
        return;
    look_again (annotate, job);
    if (job->note->asking || annotate->queries >= QUERIES_MAX)
        return;
    if (job->note->age > 0) {
        job->note->age--;
        return;
    }
    if (!(command = command_list (job->wf, kind))
        || json_object_set_new (command, "fields",
                                json_pack ("[s,s,s,s,s]",
                                           "spec.allocationSets",
                                           "metadata.name",
                                           "metadata.labels",
                                           "spec.node", "status")) < 0) {
        json_decref (command);
        return;
    }
    if (agent_query (job->ctx->agent, job, progress_cb, command) == 0) {
        annotate->queries++;
        job->note->asking = true;
    }
}

/* The interval
 */

static void tick_job (struct annotate *annotate, struct job *job)
{
    char text[DWS_WAITING_SIZE];
    const char *shown = job->note ? job->note->text : NULL;

    if (totals_update_text (job->ctx->totals, job))     // others have a part in it
        enter_list (&annotate->list, job);
    annotate_text (job, text);
    if (job->wf && job->wf->t_trouble > 0.)     // it may last
        look_again (annotate, job);
    if (*text && !job->waited) {    // it may be over by the next time
        job->waited = true;
        look_again (annotate, job);
        return;
    }
    if (strcmp (text, shown ? shown : "") != 0) {
        if (annotate->memos == 0) {
            look_again (annotate, job);
            return;
        }
        annotate->memos--;
    }
    if (!*text) {
        annotate_clear (job);
        return;
    }
    if (!job->note && !(job->note = calloc (1, sizeof (*job->note))))
        return;
    if (!shown || strcmp (text, shown) != 0)
        show_note (job, text);
    ask_progress (annotate, job);
}

static void start (struct annotate *annotate)
{
    if (annotate->running) {
        annotate->again = true;
        return;
    }
    timer_start (annotate->timer, INTERVAL);
    annotate->running = true;
}

static void annotate_tick_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                              void *arg)
{
    struct annotate *annotate = arg;
    struct job *job;

    if (!annotate->due) {
        annotate->again = false;
        annotate->memos = MEMOS_MAX;
        if ((annotate->due = annotate->list))
            annotate->due->look_at = &annotate->due;
        annotate->list = NULL;
    }
    for (int i = 0; i < JOBS_PER_TURN && (job = annotate->due); i++) {
        leave_list (job);
        tick_job (annotate, job);
    }
    if (annotate->due) {
        timer_start (annotate->timer, 0.);
        return;
    }
    annotate->running = false;
    if (annotate->again)
        start (annotate);
}

void annotate_see_job (struct annotate *annotate, struct job *job)
{
    if (annotate) {
        enter_list (&annotate->list, job);
        start (annotate);
    }
}

static void see_cb (struct job *job, void *arg)
{
    annotate_see_job (arg, job);
}

void annotate_see_all (struct annotate *annotate)
{
    jobs_each (annotate->ctx->jobs, see_cb, annotate);
}

static void annotate_lost_cb (struct job *job, void *arg)
{
    if (job->note)
        job->note->asking = false;
}

void annotate_agent_lost (struct annotate *annotate)
{
    annotate->queries = 0;
    jobs_each (annotate->ctx->jobs, annotate_lost_cb, NULL);
    annotate_see_all (annotate);
}

struct annotate *annotate_create (struct dws_ctx *ctx)
{
    struct annotate *annotate;

    if (!(annotate = calloc (1, sizeof (*annotate))))
        return NULL;
    annotate->ctx = ctx;
    if (!(annotate->timer =
              flux_timer_watcher_create (flux_get_reactor (ctx->h), 0., 0.,
                                         annotate_tick_cb, annotate))) {
        annotate_destroy (annotate);
        return NULL;
    }
    return annotate;
}

void annotate_destroy (struct annotate *annotate)
{
    if (annotate) {
        ERRNO_SAFE_BLOCK;
        while (annotate->list)
            leave_list (annotate->list);
        while (annotate->due)
            leave_list (annotate->due);
        flux_watcher_destroy (annotate->timer);
        free (annotate);
    }
}
