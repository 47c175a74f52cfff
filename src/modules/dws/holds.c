/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See holds.h. sched-rabbit reads in the KVS, too, what is held: when it starts
 * it allocates at once.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "calls.h"
#include "commits.h"
#include "holds.h"
#include "scheduler.h"
#include "usage.h"

#define KEY "dws.held"

static bool listens (struct dws_ctx *ctx)
{
    const char *name = scheduler_name (ctx->scheduler);

    return name && !strcmp (name, "sched-rabbit");
}

bool holds_needed (const struct job *job)
{
    return job->wf && job->wf->desired < DWS_STATE_TEARDOWN
        && json_object_size (job->space) > 0
        && !job->held && listens (job->ctx);
}

static int add (json_t *jobs, const struct job *job, json_t *space)
{
    char key[32];

    snprintf (key, sizeof (key), "%" PRIu64, job->facts->id);
    if (json_object_set (jobs, key, space) < 0) {
        errno = ENOMEM;
        return -1;
    }
    return 0;
}

static void committed (const struct call *call, flux_future_t *f)
{
    if (flux_future_get (f, NULL) < 0)
        flux_log (call->ctx->h, LOG_ERR, KEY ": %s",
                  future_strerror (f, errno));
}

static void commit (struct dws_ctx *ctx)
{
    flux_kvs_txn_t *txn;

    if (!(txn = commits_txn (ctx->commits))
        || flux_kvs_txn_pack (txn, 0, KEY, "O", ctx->held) < 0
        || calls_add (ctx, commits_wait (ctx->commits), 0, 0, committed) < 0)
        flux_log_error (ctx->h, KEY);
}

static flux_future_t *request (struct dws_ctx *ctx, json_t *jobs,
                               bool complete)
{
    return flux_rpc_pack (ctx->h, "sched-rabbit.hold", FLUX_NODEID_ANY, 0,
                          "{s:O s:b}",
                          "jobs", jobs,
                          "complete", complete);
}

static flux_future_t *tell_one (const struct job *job, json_t *space)
{
    json_t *jobs = json_object ();
    flux_future_t *f = NULL;

    if (add (jobs, job, space) == 0)
        f = request (job->ctx, jobs, false);
    json_decref (jobs);
    return f;
}

flux_future_t *holds_tell (struct job *job)
{
    flux_future_t *f;

    if (add (job->ctx->held, job, job->space) < 0)
        return NULL;
    commit (job->ctx);
    if ((f = tell_one (job, job->space)))
        job->held = true;
    return f;
}

/* A scheduler that is not there any more has nothing to forget.
 */
static void told (const struct call *call, flux_future_t *f)
{
    if (flux_future_get (f, NULL) < 0 && errno != ENOSYS)
        flux_log (call->ctx->h, LOG_ERR, "sched-rabbit: hold: %s",
                  future_strerror (f, errno));
}

void holds_end (struct job *job)
{
    json_t *none = NULL;
    char key[32];

    if (!job->held)
        return;
    job->held = false;
    snprintf (key, sizeof (key), "%" PRIu64, job->facts->id);
    (void)json_object_del (job->ctx->held, key);
    commit (job->ctx);
    none = json_object ();
    if (calls_add (job->ctx, tell_one (job, none), 0, 0, told) < 0)
        flux_log_error (job->ctx->h, "sched-rabbit: hold");
    json_decref (none);
}

/* Whoever is gone, or about to go, and still has storage there.
 */
static void collect (struct job *job, void *arg)
{
    json_t *jobs = arg;

    if ((job->held || (job->facts->phase == DWS_PHASE_GONE
                       && !job->facts->abandoned))
        && json_object_size (job->space) > 0
        && add (jobs, job, job->space) == 0)
        job->held = true;
}

void holds_learned (struct dws_ctx *ctx)
{
    if (!ctx->holds_due || !usage_known (ctx) || !listens (ctx))
        return;
    json_object_clear (ctx->held);
    jobs_each (ctx->jobs, collect, ctx->held);
    ctx->holds_due = false;
    commit (ctx);
    if (calls_add (ctx, request (ctx, ctx->held, true), 0, 0, told) < 0)
        flux_log_error (ctx->h, "sched-rabbit: hold");
}

void holds_arrived (struct dws_ctx *ctx)
{
    ctx->holds_due = true;
    holds_learned (ctx);
}
