/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See pool.h. At most one request is under way; all jobs share its answer.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errno_safe.h"
#include "libutil/safelog.h"
#include "base/calls.h"
#include "base/timeline.h"
#include "sched/pool.h"

/* The greatest age of an answer, and the delay before an absent scheduler is asked
 * again (s).
 */
#define FRESH 1.
#define AGAIN 1.

/* Upper bound on callbacks of pool_ask().
 */
#define ASKED_MAX 4

struct pool {
    struct dws_ctx *ctx;
    struct dws_pool *last;
    double t_last;
    bool asking;
    pool_f asked[ASKED_MAX];    // callbacks for the next answer
    bool failing;               // that it has been logged
};

static void learn (struct pool *pool, flux_future_t *f)
{
    struct dws_pool *fresh = NULL;
    dws_error_t error = { "" };
    json_t *o;

    if (flux_rpc_get_unpack (f, "o", &o) < 0)
        dws_error (&error, errno, "%s", future_strerror (f, errno));
    else
        fresh = dws_pool_create (o, &error);
    if (fresh) {
        dws_pool_destroy (pool->last);
        pool->last = fresh;
        pool->t_last = monotonic_now ();
    }
    else if (!pool->failing)
        safe_log (pool->ctx->h, LOG_ERR, "resource.sched-status: %s",
                  error.text);
    pool->failing = !fresh;
}

static void see_job (struct job *job, void *arg)
{
    if (!job_slot (job, SLOT_POOL))
        return;
    job_slot_clear (job, SLOT_POOL);
    if (job->ctx->pool->failing)
        jobs_wake (job, AGAIN);
    else
        jobs_changed (job);
}

static void status_cb (const struct call *call, flux_future_t *f)
{
    struct pool *pool = call->ctx->pool;
    pool_f asked[ASKED_MAX];

    memcpy (asked, pool->asked, sizeof (asked));
    memset (pool->asked, 0, sizeof (asked));
    pool->asking = false;
    learn (pool, f);
    jobs_each (call->ctx->jobs, see_job, NULL);
    for (int i = 0; i < ASKED_MAX && asked[i] && !pool->failing; i++)
        asked[i] (call->ctx, pool->last);
}

static int ask (struct pool *pool)
{
    flux_t *h = pool->ctx->h;

    if (pool->asking)
        return 0;
    if (calls_add (pool->ctx, flux_rpc (h, "resource.sched-status", NULL,
                                        FLUX_NODEID_ANY, 0),
                   0, 0, status_cb) < 0) {
        safe_log_error (h, "resource.sched-status");
        return -1;
    }
    pool->asking = true;
    return 0;
}

const struct dws_pool *pool_get (struct pool *pool, struct job *job)
{
    if (pool->last && monotonic_now () < pool->t_last + FRESH)
        return pool->last;
    if (ask (pool) < 0)
        jobs_wake (job, AGAIN);
    else
        job_slot_mark (job, SLOT_POOL);
    return NULL;
}

void pool_ask (struct pool *pool, pool_f cb)
{
    int i = 0;

    if (ask (pool) < 0)
        return;
    while (i < ASKED_MAX - 1 && pool->asked[i] && pool->asked[i] != cb)
        i++;
    pool->asked[i] = cb;
}

const struct dws_pool *pool_last (const struct pool *pool)
{
    return pool->last;
}

struct pool *pool_create (struct dws_ctx *ctx)
{
    struct pool *pool;

    if ((pool = calloc (1, sizeof (*pool))))
        pool->ctx = ctx;
    return pool;
}

void pool_destroy (struct pool *pool)
{
    if (pool) {
        ERRNO_SAFE_BLOCK;
        dws_pool_destroy (pool->last);
        free (pool);
    }
}
