/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See contention.h. A job is contended if two consecutive checks say so: idle nodes at
 * a single check may be about to be allocated.
 */

#include <stdlib.h>

#include "libdws/decide/reconcile.h"
#include "libdws/directive/command.h"
#include "libdws/health/usable.h"
#include "libdws/storage/resources.h"
#include "libdws/util/jsontext.h"
#include "libutil/safelog.h"
#include "act/action.h"
#include "act/contention.h"
#include "base/timer.h"
#include "facts/config.h"
#include "facts/jobs.h"
#include "facts/space.h"
#include "facts/storages.h"
#include "sched/pool.h"
#include "tell/queued.h"

/* Seconds between checks, and the upper bound on jobs parsed in each.
 */
#define LOOK 10.
#define PARSED_MAX 100

/* What is known of a job from earlier checks.
 */
struct looked {
    bool in_the_way;            // of others, at the last check
    int64_t nodes;              // that the job requests; 0: unknown
};

struct look {
    struct dws_topology *topo;
    int64_t *idle;              // nodes of each rabbit
    int64_t all;                // idle nodes
    int parsed;
    bool rival;                 // a job could start there, but for its storage
    struct dws_bytes wanted;    // of rabbits where jobs with nodes wait for storage
};

static bool has_data (const struct job *job)
{
    return job->facts->phase == DWS_PHASE_PENDING
        && dws_is_data_first (job->facts, job->wf)
        && job->wf->desired == DWS_STATE_DATAIN && job->wf->ready;
}

static struct looked *looked_of (struct job *job)
{
    return job_slot_make (job, SLOT_CONTENTION, sizeof (struct looked),
                          slot_free);
}

static int64_t nodes_of (struct job *job, struct look *look)
{
    struct looked *looked = looked_of (job);
    json_t *resources;

    if (!looked)
        return INT64_MAX;
    if (looked->nodes == 0 && look->parsed < PARSED_MAX) {
        look->parsed++;
        resources = dws_jsontext_get (job->facts->resources);
        looked->nodes = dws_resources_nodes (resources);
        json_decref (resources);
    }
    return looked->nodes > 0 ? looked->nodes : INT64_MAX;
}

static void find_rival (struct job *job, void *arg)
{
    const unsigned int storage = DWS_COMMAND_JOBDW | DWS_COMMAND_CREATE_PERSISTENT;
    struct look *look = arg;

    if (!look->rival && job->facts->phase == DWS_PHASE_PENDING
        && (job->facts->commands & storage) && !job->facts->waits
        && !queued_is_stopped (job->ctx->queued, job) && !has_data (job))
        look->rival = nodes_of (job, look) <= look->all;
}

/* Is the job's reservation on the rabbit taken by others?
 */
static bool is_taken (const struct job *job, const struct dws_bytes_of *reserved)
{
    const struct dws_topology *topo = job->ctx->config->topology;
    json_t *storage = json_object_get (storages_by_name (job->ctx->storages),
                                       reserved->rabbit);
    int index = dws_topology_find (topo, reserved->rabbit);

    return index >= 0
        && dws_bytes_get (space_used (job->ctx->space), reserved->rabbit)
           > dws_health_capacity (storage, dws_topology_capacity (topo, index))
             - reserved->bytes;
}

static void find_wanted (struct job *job, void *arg)
{
    struct look *look = arg;
    bool awaits = job->facts->awaits != NULL;
    const struct act_job *own = act_own (job);

    if (job->facts->phase != DWS_PHASE_PROLOG
        || (!awaits && (!own || own->t_down == 0.))
        || job->claim.bytes.count > 0)
        return;
    for (size_t i = 0; i < job->reserved.count; i++) {
        const struct dws_bytes_of *reserved = &job->reserved.list[i];

        if (awaits || is_taken (job, reserved))
            dws_bytes_add (&look->wanted, reserved->rabbit, reserved->bytes);
    }
}

/* Has the job storage where others with nodes wait for theirs?
 */
static bool is_wanted (const struct job *job, const struct look *look)
{
    const struct dws_bytes *bytes = &job->claim.bytes;

    for (size_t i = 0; i < bytes->count; i++) {
        if (dws_bytes_get (&look->wanted, bytes->list[i].rabbit) > 0)
            return true;
    }
    return false;
}

/* Are enough nodes idle next to the job's storage?
 */
static bool could_start (struct job *job, struct look *look)
{
    const struct dws_bytes *bytes = &job->claim.bytes;
    int64_t count = 0;

    for (size_t i = 0; i < bytes->count; i++) {
        int index = dws_topology_find (look->topo, bytes->list[i].rabbit);

        if (index >= 0)
            count += look->idle[index];
    }
    return count >= nodes_of (job, look);
}

static void judge (struct job *job, void *arg)
{
    struct look *look = arg;
    struct looked *looked = job_slot (job, SLOT_CONTENTION);
    bool before = looked && looked->in_the_way;
    bool now;
    char label[JOB_LABEL_SIZE];

    /* A job in its prolog that wants the same rabbits holds nodes, so it goes
     * first. */
    now = has_data (job)
        && (is_wanted (job, look)
            || (look->rival && could_start (job, look)));
    if (now != before && (looked = looked_of (job)))
        looked->in_the_way = now;
    if (job->facts->contended == (before && now))
        return;
    job->facts->contended = before && now;
    if (job->facts->contended)
        safe_log (job->ctx->h, LOG_INFO, "%s: waits for nodes, and others for its"
                  " storage", job_label (job, label));
    jobs_changed (job);
}

static int count_idle (struct look *look, const struct dws_pool *nodes,
                       dws_error_t *error)
{
    json_t *null = json_null ();
    json_t *goodness = dws_pool_nodes (nodes, NULL, null, error);
    const char *host;
    json_t *value;

    if (!goodness)
        return -1;
    json_object_foreach (goodness, host, value) {
        const char *rabbit = dws_topology_rabbit (look->topo, host);

        if (json_integer_value (value) != DWS_POOL_IDLE)
            continue;
        look->all++;
        if (rabbit)
            look->idle[dws_topology_find (look->topo, rabbit)]++;
    }
    json_decref (goodness);
    return 0;
}

static void pool_cb (struct dws_ctx *ctx, const struct dws_pool *nodes)
{
    struct look look = { .topo = ctx->config->topology };
    dws_error_t error = { "out of memory" };

    if (!look.topo)
        return;
    if (!(look.idle = calloc (dws_topology_count (look.topo) + 1,
                              sizeof (*look.idle)))
        || count_idle (&look, nodes, &error) < 0)
        safe_log (ctx->h, LOG_ERR, "idle nodes: %s", error.text);
    else {
        jobs_each (ctx->jobs, find_rival, &look);
        jobs_each (ctx->jobs, find_wanted, &look);
        jobs_each (ctx->jobs, judge, &look);
    }
    dws_bytes_clear (&look.wanted);
    free (look.idle);
}

static void see_job (struct job *job, void *arg)
{
    bool *any = arg;

    *any = *any || has_data (job);
}

static void look_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                     void *arg)
{
    struct dws_ctx *ctx = arg;
    bool any = false;

    jobs_each (ctx->jobs, see_job, &any);
    if (any)
        pool_ask (ctx->pool, pool_cb);
}

flux_watcher_t *contention_create (struct dws_ctx *ctx)
{
    return timer_every (ctx->h, LOOK, look_cb, ctx);
}
