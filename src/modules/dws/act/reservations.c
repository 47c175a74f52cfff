/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See reservations.h.
 */

#include <stdlib.h>

#include "libdws/directive/command.h"
#include "libdws/storage/reserved.h"
#include "libutil/safelog.h"
#include "act/reservations.h"
#include "act/kvs.h"
#include "base/calls.h"
#include "base/timeline.h"
#include "facts/config.h"

struct sum {
    const struct job *job;
    struct dws_bytes *bytes;
};

/* Has the job taken its reservation? From then on its bytes, if it still holds
 * any, are in the ledger.
 */
static bool has_taken (const struct job *job)
{
    return job->claim.bytes.count > 0
        || job->facts->phase > DWS_PHASE_PROLOG;
}

/* Add the reservation of a job that has not taken it yet.
 */
static void add_reserved (struct job *job, void *arg)
{
    struct sum *sum = arg;

    if (job != sum->job && !has_taken (job))
        dws_bytes_add_map (sum->bytes, &job->reserved, 1);
}

void reservations_add (struct job *job, struct dws_bytes *bytes)
{
    struct sum sum = { .job = job, .bytes = bytes };

    jobs_each (job->ctx->jobs, add_reserved, &sum);
}

void reservations_learn_R (struct job *job, json_t *R)
{
    dws_error_t error;

    job->t_alloc = 0.;
    (void)json_unpack (R, "{s:{s:F}}", "execution", "starttime",
                       &job->t_alloc);
    job->t_alloc = timeline_of (job->ctx->timeline, job->t_alloc);
    dws_bytes_clear (&job->reserved);
    json_decref (job->ssds);
    job->ssds = NULL;
    job->R_read = dws_reserved (R, job->ctx->config->topology, &job->reserved,
                                &error) == 0;
    if (!job->R_read
        || !(job->ssds = dws_reserved_ssds (R, &error))) {
        char label[JOB_LABEL_SIZE];

        safe_log (job->ctx->h, LOG_ERR, "%s: R: %s", job_label (job, label),
                  error.text);
    }
}

/* Jobs that an earlier life of the module has let run
 */

static void recalled (struct dws_ctx *ctx)
{
    if (--ctx->recalling == 0)
        ctx->events->jobs_recalled (ctx);
}

/* Without R nothing is known of the job's ssds, as with sched-rabbit. A job in phase
 * gone holds no reservation any more, but its ssds may still be kept.
 */
static void recalled_cb (const struct call *call, flux_future_t *f)
{
    struct job *job = jobs_find (call->ctx->jobs, call->jobid);
    json_t *R = kvs_lookup_R_get (f);

    if (job && R && job->facts->phase == DWS_PHASE_GONE) {
        json_decref (job->ssds);
        job->ssds = dws_reserved_ssds (R, NULL);
    }
    else if (job && R) {
        reservations_learn_R (job, R);
        (void)dws_job_set_R (job->facts, R, NULL);
    }
    json_decref (R);
    recalled (call->ctx);
}

static bool is_recalled (const struct job *job)
{
    if (job->facts->phase == DWS_PHASE_GONE)
        return job->ssds || !job->wf || job_torn_down (job);
    return job->R_read || job->facts->phase < DWS_PHASE_PROLOG;
}

static void recall_job (struct job *job, void *arg)
{
    struct dws_ctx *ctx = arg;

    if (is_recalled (job))
        return;
    ctx->recalling++;
    if (calls_add (ctx, kvs_lookup_job (ctx->h, job->facts->id, "R"),
                   job->facts->id, 0, recalled_cb) < 0) {
        safe_log_error (ctx->h, "R");
        ctx->recalling--;
    }
}

void reservations_recall (struct dws_ctx *ctx)
{
    ctx->recalling++;
    jobs_each (ctx->jobs, recall_job, ctx);
    recalled (ctx);
}

static void find_unread (struct job *job, void *arg)
{
    const unsigned int storage = DWS_COMMAND_JOBDW
                               | DWS_COMMAND_CREATE_PERSISTENT;
    bool *unread = arg;

    if (job->facts->phase == DWS_PHASE_PROLOG && !has_taken (job)
        && (job->facts->commands & storage) && !job->facts->hosts)
        *unread = true;
}

bool reservations_known (struct dws_ctx *ctx)
{
    bool unread = ctx->recalling > 0;

    jobs_each (ctx->jobs, find_unread, &unread);
    return !unread;
}
