/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See queue.h.
 */

#include <errno.h>
#include <string.h>
#include <syslog.h>

#include "libdws/health/health.h"
#include "libdws/storage/resources.h"
#include "libutil/safelog.h"

#include "queue.h"

#define ANSWER_S 1.

/* Are fewer nodes up than the job needs, although all nodes would suffice? The scheduler
 * refuses a job that needs more nodes than there are, and judges resources that do not
 * tell a number.
 */
static bool too_few (const struct jobtap_job *job)
{
    int64_t nodes = dws_resources_nodes (job->resources);

    return nodes < INT32_MAX && nodes > job->ctx->up && nodes <= job->ctx->all;
}

/* An instance that has just begun may not have found its nodes yet.
 */
static void set_nodes (struct jobtap *ctx, int64_t up, int64_t all)
{
    ctx->up = up;
    ctx->all = all > 0 ? all : JOBTAP_QUEUE_OPEN;
}

void jobtap_queue_set (struct jobtap *ctx, int64_t up, int64_t all)
{
    bool changed = false;

    set_nodes (ctx, up, all);
    for (struct jobtap_job *job = ctx->jobs; job && !changed; job = job->next)
        changed = job->kept != too_few (job) && jobtap_job_is_queued (job);
    /* Only other plugins know the priorities of jobs that are not kept. */
    if (changed && flux_jobtap_reprioritize_all (ctx->p) < 0)
        safe_log_error (ctx->h, "dws: priorities of jobs that wait for nodes");
}

/* Waits for the answer, as the job manager asks for all priorities next. No answer comes
 * where the job manager loads the plugin before there is a resource module.
 */
void jobtap_queue_start (struct jobtap *ctx)
{
    flux_future_t *f = flux_rpc (ctx->h, "resource.status", NULL, 0, 0);
    struct dws_nodes *nodes = NULL;
    dws_error_t error;
    json_t *o;

    ctx->all = JOBTAP_QUEUE_OPEN;
    if (!f || flux_future_wait_for (f, ANSWER_S) < 0
        || flux_rpc_get_unpack (f, "o", &o) < 0)
        safe_log (ctx->h, LOG_DEBUG, "dws: resource.status: %s",
                  strerror (errno));
    else if (!(nodes = dws_nodes_create (o, &error)))
        safe_log (ctx->h, LOG_ERR, "dws: %s", error.text);
    else
        set_nodes (ctx, dws_nodes_up (nodes), dws_nodes_all (nodes));
    dws_nodes_destroy (nodes);
    flux_future_destroy (f);
}

int jobtap_queue_priority_cb (flux_plugin_t *p,
                              const char *topic,
                              flux_plugin_arg_t *args,
                              void *arg)
{
    struct jobtap *ctx = arg;
    struct jobtap_job *job = jobtap_job_lookup (ctx, FLUX_JOBTAP_CURRENT_JOB);

    if (!job)
        return 0;
    job->kept = too_few (job);
    if (!job->kept)
        return 0;
    return flux_plugin_arg_pack (args, FLUX_PLUGIN_ARG_OUT, "{s:I}",
                                 "priority",
                                 (json_int_t)FLUX_JOB_PRIORITY_MIN);
}
