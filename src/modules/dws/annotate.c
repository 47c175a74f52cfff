/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See annotate.h.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "annotate.h"
#include "calls.h"
#include "config.h"
#include "objects.h"

/* At most so many memos per interval, and queries under way.
 */
#define MEMOS_MAX 200
#define QUERIES_MAX 8

/* So many jobs are looked at before the reactor looks at messages again.
 */
#define JOBS_PER_TURN 64

/* A query costs more the more there is to read: so many objects are worth one
 * interval of waiting before the next.
 */
#define OBJECTS_PER_INTERVAL 256

/* No shorter interval (s), whatever the configuration says: each is a walk over
 * all jobs.
 */
#define INTERVAL_MIN 0.05

struct annotate {
    struct dws_ctx *ctx;
    flux_watcher_t *timer;
    bool running;
    size_t place;               // in the jobs, 0: at the next interval
    int memos;                  // still allowed in this interval
    int queries;                // under way
    bool again;                 // there is more to do at the next interval
};

void note_destroy (struct note *note)
{
    if (note) {
        int saved_errno = errno;
        free (note->text);
        free (note);
        errno = saved_errno;
    }
}

static void ignore_result (const struct call *call, flux_future_t *f)
{
    if (flux_future_get (f, NULL) < 0)
        flux_log (call->ctx->h, LOG_DEBUG, "memo: %s",
                  future_strerror (f, errno));
}

void annotate_memo (struct job *job, const char *key, const char *value,
                    bool volat)
{
    flux_future_t *f;

    f = flux_rpc_pack (job->ctx->h, "job-manager.memo", FLUX_NODEID_ANY, 0,
                       "{s:I s:b s:{s:s?}}",
                       "id", (json_int_t)job->facts->id,
                       "volatile", volat,
                       "memo", key, value);
    if (calls_add (job->ctx, f, job->facts->id, 0, ignore_result) < 0)
        flux_log_error (job->ctx->h, "memo");
}

static void show (struct job *job, const char *text)
{
    char *cpy;

    if (!(cpy = strdup (text)))
        return;
    free (job->note->text);
    job->note->text = cpy;
    annotate_memo (job, "rabbit", cpy, true);
}

/* The note is too large to be kept with each job that has waited once.
 */
void annotate_clear (struct job *job)
{
    job->waited = false;
    if (job->note && job->note->text)
        annotate_memo (job, "rabbit", NULL, true);
    note_destroy (job->note);
    job->note = NULL;
}

const char *annotate_text (struct job *job, char buf[DWS_WAITING_SIZE])
{
    return dws_waiting_text (job->facts, job->wf,
                             job->note ? &job->note->progress : NULL,
                             agent_link (job->ctx->agent), job->trouble,
                             buf);
}

/* Progress
 */

static void learn_progress (struct job *job, json_t *objects)
{
    struct dws_progress *p = &job->note->progress;
    enum dws_state state = job->wf->state;

    if (state == DWS_STATE_DATAIN || state == DWS_STATE_DATAOUT)
        dws_progress_movements (objects, state, p);
    else if (dws_progress_mounts (objects, state, p) < 0)
        flux_log (job->ctx->h, LOG_ERR, "progress: out of memory");
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

static void ask_progress (struct annotate *annotate, struct job *job)
{
    const char *kind = dws_waiting_kind (job->facts, job->wf);
    json_t *command;

    if (!kind || !agent_ready (job->ctx->agent))
        return;
    annotate->again = true;
    if (job->note->asking || annotate->queries >= QUERIES_MAX)
        return;
    if (job->note->age > 0) {
        job->note->age--;
        return;
    }
    if (!(command = command_list (job->wf, kind))
        || json_object_set_new (command, "fields",
                                json_pack ("[s,s,s,s]",
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

static void tick_job (struct job *job, void *arg)
{
    struct annotate *annotate = arg;
    char text[DWS_WAITING_SIZE];
    const char *shown = job->note ? job->note->text : NULL;

    annotate_text (job, text);
    if (*text && !job->waited) {    // it may be over by the next time
        job->waited = true;
        annotate->again = true;
        return;
    }
    if (strcmp (text, shown ? shown : "") != 0) {
        if (annotate->memos == 0) {
            annotate->again = true;
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
        show (job, text);
    ask_progress (annotate, job);
}

static void tick_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                     void *arg)
{
    struct annotate *annotate = arg;

    if (annotate->place == 0) {
        annotate->again = false;
        annotate->memos = MEMOS_MAX;
    }
    if (jobs_each_part (annotate->ctx->jobs, &annotate->place, JOBS_PER_TURN,
                        tick_job, annotate)) {
        flux_timer_watcher_reset (annotate->timer, 0., 0.);
        flux_watcher_start (annotate->timer);
        return;
    }
    annotate->place = 0;
    annotate->running = false;
    if (annotate->again)
        annotate_start (annotate);
}

void annotate_start (struct annotate *annotate)
{
    double interval;

    if (!annotate)
        return;
    if (annotate->running) {
        annotate->again = true;
        return;
    }
    interval = annotate->ctx->config->progress_interval;
    if (interval < 0.)
        return;
    if (interval < INTERVAL_MIN)
        interval = INTERVAL_MIN;
    flux_timer_watcher_reset (annotate->timer, interval, 0.);
    flux_watcher_start (annotate->timer);
    annotate->running = true;
}

static void lost_cb (struct job *job, void *arg)
{
    if (job->note)
        job->note->asking = false;
}

void annotate_agent_lost (struct annotate *annotate)
{
    annotate->queries = 0;
    jobs_each (annotate->ctx->jobs, lost_cb, NULL);
    annotate_start (annotate);
}

struct annotate *annotate_create (struct dws_ctx *ctx)
{
    struct annotate *annotate;

    if (!(annotate = calloc (1, sizeof (*annotate))))
        return NULL;
    annotate->ctx = ctx;
    if (!(annotate->timer =
              flux_timer_watcher_create (flux_get_reactor (ctx->h), 0., 0.,
                                         tick_cb, annotate))) {
        annotate_destroy (annotate);
        return NULL;
    }
    return annotate;
}

void annotate_destroy (struct annotate *annotate)
{
    if (annotate) {
        int saved_errno = errno;
        flux_watcher_destroy (annotate->timer);
        free (annotate);
        errno = saved_errno;
    }
}
