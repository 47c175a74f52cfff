/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * dws.so, the broker module between the jobtap plugin and the agent. It runs
 * on the leader only.
 *
 * Nothing outlives a reload but the name of the instance (KVS dws.instance):
 * the facts about jobs come from the plugin, those about workflows from the
 * agent's snapshot, and nothing is decided before both are complete.
 *
 * Order of creation: configuration and instance first, as they fail for
 * reasons that an admin can mend; then calls, which every other part uses;
 * jobs before agent and sync, which tell it things; handlers last.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <flux/core.h>

#include "agent.h"
#include "annotate.h"
#include "calls.h"
#include "commits.h"
#include "config.h"
#include "ctx.h"
#include "groups.h"
#include "health.h"
#include "jobs.h"
#include "kvs.h"
#include "losses.h"
#include "persistent.h"
#include "scheduler.h"
#include "service.h"
#include "sync.h"
#include "systemstatus.h"
#include "token.h"
#include "trouble.h"

static void ctx_destroy (struct dws_ctx *ctx)
{
    if (ctx) {
        int saved_errno = errno;
        flux_msg_handler_delvec (ctx->handlers);
        sync_destroy (ctx->sync);
        agent_destroy (ctx->agent);
        health_destroy (ctx->health);
        systemstatus_destroy (ctx->systemstatus);
        scheduler_destroy (ctx->scheduler);
        annotate_destroy (ctx->annotate);
        persistent_destroy (ctx->persistent);
        groups_destroy (ctx->groups);
        losses_destroy (ctx->losses);
        tokens_destroy (ctx->tokens);
        troubles_destroy (ctx->troubles);
        jobs_destroy (ctx->jobs);
        json_decref (ctx->used);
        json_decref (ctx->held);
        calls_destroy (ctx->calls);
        commits_destroy (ctx->commits);
        dws_config_destroy (ctx->config);
        free (ctx->instance);
        free (ctx);
        errno = saved_errno;
    }
}

static struct dws_ctx *ctx_create (flux_t *h)
{
    struct dws_ctx *ctx;
    dws_error_t error;

    if (!(ctx = calloc (1, sizeof (*ctx))))
        return NULL;
    ctx->h = h;
    if (!(ctx->config = config_create (flux_get_conf (h), &error))) {
        flux_log (h, LOG_ERR, "%s", error.text);
        goto error;
    }
    if (!(ctx->instance = kvs_instance (h))) {
        flux_log_error (h, "KVS dws.instance");
        goto error;
    }
    if (!(ctx->used = json_object ()) || !(ctx->held = json_object ()))
        errno = ENOMEM;
    if (!ctx->used || !ctx->held
        || !(ctx->commits = commits_create (h))
        || !(ctx->calls = calls_create ())
        || !(ctx->jobs = jobs_create (ctx))
        || !(ctx->annotate = annotate_create (ctx))
        || !(ctx->groups = groups_create ())
        || !(ctx->losses = losses_create (ctx))
        || !(ctx->persistent = persistent_create ())
        || !(ctx->tokens = tokens_create (ctx))
        || !(ctx->scheduler = scheduler_create (ctx))
        || !(ctx->systemstatus = systemstatus_create (ctx))
        || !(ctx->health = health_create (ctx))
        || !(ctx->troubles = troubles_create (ctx))
        || !(ctx->agent = agent_create (ctx))
        || !(ctx->sync = sync_create (ctx))
        || service_start (ctx) < 0) {
        flux_log_error (h, "start");
        goto error;
    }
    return ctx;
error:
    ctx_destroy (ctx);
    return NULL;
}

int __attribute__ ((visibility ("default")))
mod_main (flux_t *h, int argc, char **argv)
{
    struct dws_ctx *ctx;
    uint32_t rank;
    int rc = -1;

    if (flux_get_rank (h, &rank) < 0)
        return -1;
    if (rank != 0) {
        flux_log (h, LOG_ERR, "this module runs on rank 0 only");
        errno = EINVAL;
        return -1;
    }
    if (argc > 0) {
        flux_log (h, LOG_ERR, "unknown argument '%s'", argv[0]);
        errno = EINVAL;
        return -1;
    }
    if (!(ctx = ctx_create (h)))
        return -1;
    sync_start (ctx->sync);
    health_start (ctx->health);
    if (flux_reactor_run (flux_get_reactor (h), 0) < 0)
        flux_log_error (h, "reactor");
    else
        rc = 0;
    ctx_destroy (ctx);
    return rc;
}
