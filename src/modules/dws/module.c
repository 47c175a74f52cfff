/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The broker module dws.so, between the jobtap plugin and the agent. The module runs on
 * the leader only.
 *
 * After a reload the name of the instance (dws.instance), jumps of the clock
 * (dws.clock), leases, losses and notices come from the KVS, facts about jobs from the
 * plugin, facts about workflows from the agent's snapshot. No job is reconciled before
 * both are complete.
 *
 * Order of creation: configuration and instance first, as they fail for reasons that an
 * admin can mend; then layer by layer as README.md has them; handlers last. The events
 * here connect parts to those in later layers.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <flux/core.h>

#include "libdws/tell/notice.h"
#include "libutil/errno_safe.h"
#include "libutil/names.h"
#include "libutil/safelog.h"
#include "act/abort.h"
#include "act/actions.h"
#include "act/writeback.h"
#include "act/expire.h"
#include "act/reservations.h"
#include "act/groups.h"
#include "act/kvs.h"
#include "act/late.h"
#include "act/limits.h"
#include "act/contention.h"
#include "act/touch.h"
#include "act/errorlog.h"
#include "act/users.h"
#include "agent/agent.h"
#include "agent/overdue.h"
#include "agent/transient.h"
#include "agent/usage.h"
#include "base/calls.h"
#include "base/commits.h"
#include "base/ctx.h"
#include "base/requests.h"
#include "base/timeline.h"
#include "base/worker.h"
#include "facts/config.h"
#include "facts/jobs.h"
#include "facts/leases.h"
#include "facts/persistent.h"
#include "facts/space.h"
#include "facts/storages.h"
#include "facts/sweeps.h"
#include "facts/sync.h"
#include "facts/totals.h"
#include "facts/waitlist.h"
#include "health/health.h"
#include "health/suspects.h"
#include "health/systemstatus.h"
#include "sched/withheld.h"
#include "sched/pool.h"
#include "sched/scheduler.h"
#include "service.h"
#include "tell/annotate.h"
#include "tell/losses.h"
#include "tell/notices.h"
#include "tell/profiles.h"
#include "tell/queued.h"
#include "tell/token.h"

/* Event handlers
 */

static void on_job_changed (struct job *job)
{
    struct dws_ctx *ctx = job->ctx;

    if (ctx->ending)
        return;
    annotate_see_job (ctx->annotate, job);
    queued_see_job (ctx->queued, job);
    waitlist_see_job (ctx->waitlist, job);
    totals_see_job (ctx->totals, job);
    transients_see_job (ctx->transients, job);
    suspects_see_job (ctx->suspects, job);
    health_see_job (ctx->health, job);
    aborts_see_job (ctx->aborts, job);
    expire_look (ctx->expire);
}

static void on_workflow_gone (struct job *job)
{
    health_see_job (job->ctx->health, job);
    losses_vanished (job);
    withheld_end (job);
    actions_workflow_gone (job);
}

/* ctx_destroy() has destroyed all parts below 'jobs' when jobs_destroy() forgets the
 * jobs.
 */
static void on_job_forgotten (struct job *job)
{
    struct dws_ctx *ctx = job->ctx;

    if (!ctx->ending) {
        aborts_forget_job (ctx->aborts, job);
        expire_look (ctx->expire);
    }
}

static void on_jobs_listed (struct dws_ctx *ctx)
{
    if (agent_ready (ctx->agent))
        reservations_recall (ctx);
    tokens_retry (ctx->tokens);
    health_plugin_arrived (ctx->health);
    expire_look (ctx->expire);
}

static void on_agent_ready (struct dws_ctx *ctx)
{
    reservations_recall (ctx);
    tokens_retry (ctx->tokens);
    health_agent_attached (ctx->health);
    expire_look (ctx->expire);
}

static void on_agent_lost (struct dws_ctx *ctx)
{
    pace_reset (ctx->touches);
    aborts_agent_lost (ctx->aborts);
    annotate_agent_lost (ctx->annotate);
    tokens_agent_lost (ctx->tokens);
    profiles_agent_lost (ctx->profiles);
    sweeps_agent_lost (ctx->sweeps);
    expire_agent_lost (ctx->expire);
}

/* The creation of a part may be the first to detect a clock jump, so 'expire'
 * may not exist yet.
 */
static void on_dates_changed (struct dws_ctx *ctx)
{
    if (ctx->expire)
        expire_look (ctx->expire);
}

static void on_link_changed (struct dws_ctx *ctx)
{
    annotate_see_all (ctx->annotate);
    expire_look (ctx->expire);
}

static void on_storages_changed (struct dws_ctx *ctx)
{
    suspects_see_storages (ctx->suspects);
    waitlist_wake_room (ctx->waitlist);
    health_changed (ctx->health);
}

static void on_space_known (struct dws_ctx *ctx)
{
    withheld_learned (ctx->withheld);
    totals_space_known (ctx->totals);
    health_changed (ctx->health);
}

static void on_space_changed (struct dws_ctx *ctx)
{
    json_t *freed = space_freed (ctx->space);

    if (freed)
        waitlist_wake (ctx->waitlist, freed);
    json_decref (freed);
    waitlist_wake_room (ctx->waitlist);
    totals_see_space (ctx->totals);
    if (withheld_changed (ctx->withheld))
        health_changed (ctx->health);
    else
        health_see_space (ctx->health);
}

static void on_scheduler_arrived (struct dws_ctx *ctx)
{
    withheld_arrived (ctx->withheld);
    withheld_acknowledged (ctx->withheld);
    health_changed (ctx->health);
}

static void on_scheduler_acknowledged (struct dws_ctx *ctx)
{
    withheld_acknowledged (ctx->withheld);
    aborts_see_scheduler (ctx->aborts);
}

static void on_job_leaves (struct job *job)
{
    health_changed (job->ctx->health);
}

static void on_file_system_destroyed (struct dws_ctx *ctx, const char *name,
                                      int64_t userid)
{
    notices_file_system (ctx, DWS_NOTICE_DESTROYED, name, userid, 0.);
}

static const struct dws_events events = {
    .decided = actions_run,
    .job_changed = on_job_changed,
    .job_asked = writeback_flush,
    .workflow_gone = on_workflow_gone,
    .job_forgotten = on_job_forgotten,
    .jobs_listed = on_jobs_listed,
    .agent_ready = on_agent_ready,
    .agent_lost = on_agent_lost,
    .clock_set = on_dates_changed,
    .link_changed = on_link_changed,
    .storages_changed = on_storages_changed,
    .space_known = on_space_known,
    .jobs_recalled = usage_known,
    .space_changed = on_space_changed,
    .leases_changed = on_dates_changed,
    .file_system_destroyed = on_file_system_destroyed,
    .scheduler_arrived = on_scheduler_arrived,
    .scheduler_acknowledged = on_scheduler_acknowledged,
    .job_leaves = on_job_leaves,
};

/* Reconcile jobs that wait for the lookup of their user: before they get a workflow or
 * enter the queue.
 */
static void user_found_cb (struct job *job, void *arg)
{
    const uint32_t *userid = arg;

    if (job->facts->userid == *userid
        && (!job->wf || job->facts->phase == DWS_PHASE_DEPEND))
        jobs_changed (job);
}

static void on_user_found (uint32_t userid, void *arg)
{
    struct dws_ctx *ctx = arg;

    jobs_each (ctx->jobs, user_found_cb, &userid);
    users_found (ctx->users, userid);
}

/* The parts, in the order of their creation; ctx_destroy() goes the other way. Creation
 * and destruction of a part may use those above it: 'timeline' writes clock jumps,
 * 'totals' drops its counts of 'jobs', and a job writes its records by 'writeback' and
 * 'commits'.
 */
#define PARTS(PART) \
    PART (requests, idmap_create (free), idmap_destroy) \
    PART (commits, commits_create (ctx->h), commits_destroy) \
    PART (calls, calls_create (), calls_destroy) \
    PART (timeline, timeline_create (ctx), timeline_destroy) \
    PART (worker, worker_create (flux_get_reactor (ctx->h)), worker_destroy) \
    PART (space, space_create (), space_destroy) \
    PART (storages, storages_create (), storages_destroy) \
    PART (writeback, writeback_create (ctx), writeback_destroy) \
    PART (jobs, jobs_create (ctx), jobs_destroy) \
    PART (totals, totals_create (ctx), totals_destroy) \
    PART (waitlist, waitlist_create (), waitlist_destroy) \
    PART (persistent, persistent_create (ctx->worker), persistent_destroy) \
    PART (sweeps, sweeps_create (ctx), sweeps_destroy) \
    PART (leases, leases_create (ctx), leases_destroy) \
    PART (sync, sync_create (ctx), sync_destroy) \
    PART (agent, agent_create (ctx), agent_destroy) \
    PART (transients, transients_create (ctx), transients_destroy) \
    PART (overdue, overdue_create (ctx), flux_watcher_destroy) \
    PART (scheduler, scheduler_create (ctx), scheduler_destroy) \
    PART (withheld, withheld_create (ctx), withheld_destroy) \
    PART (pool, pool_create (ctx), pool_destroy) \
    PART (systemstatus, systemstatus_create (ctx), systemstatus_destroy) \
    PART (suspects, suspects_create (ctx), suspects_destroy) \
    PART (health, health_create (ctx), health_destroy) \
    PART (annotate, annotate_create (ctx), annotate_destroy) \
    PART (queued, queued_create (ctx), queued_destroy) \
    PART (losses, losses_create (ctx), losses_destroy) \
    PART (notices, notices_create (ctx), notices_destroy) \
    PART (tokens, tokens_create (ctx), tokens_destroy) \
    PART (profiles, profiles_create (ctx), profiles_destroy) \
    PART (groups, groups_create (ctx->worker, on_user_found, ctx), \
          groups_destroy) \
    PART (users, users_create (ctx), users_destroy) \
    PART (errorlog, errorlog_create (ctx), errorlog_destroy) \
    PART (contention, contention_create (ctx), flux_watcher_destroy) \
    PART (touches, touches_create (), pace_destroy) \
    PART (expire, expire_create (ctx), expire_destroy) \
    PART (aborts, aborts_create (ctx), aborts_destroy)

#define PART_FUNCTIONS(part, create, destroy) \
    static bool make_##part (struct dws_ctx *ctx) \
    { \
        return (ctx->part = create) != NULL; \
    } \
    static void end_##part (struct dws_ctx *ctx) \
    { \
        destroy (ctx->part); \
        ctx->part = NULL; \
    }
#define PART_ROW(part, create, destroy) { make_##part, end_##part },

PARTS (PART_FUNCTIONS)

static const struct {
    bool (*make)(struct dws_ctx *ctx);
    void (*end)(struct dws_ctx *ctx);
} parts[] = {
    PARTS (PART_ROW)
};

#define PARTS_COUNT (sizeof (parts) / sizeof (parts[0]))

static int make_parts (struct dws_ctx *ctx)
{
    for (size_t i = 0; i < PARTS_COUNT; i++) {
        if (!parts[i].make (ctx))
            return -1;
    }
    return 0;
}

static void ctx_destroy (struct dws_ctx *ctx)
{
    if (ctx) {
        ERRNO_SAFE_BLOCK;
        ctx->ending = true;
        flux_msg_handler_delvec (ctx->handlers);
        for (size_t i = PARTS_COUNT; i-- > 0;)
            parts[i].end (ctx);
        dws_config_destroy (ctx->config);
        free (ctx->instance);
        free (ctx);
    }
}

/* An unknown key must not keep an instance from starting: log it here; a reload
 * rejects it.
 */
static struct dws_config *first_config (flux_t *h)
{
    struct dws_config *config = NULL;
    json_t *notes;
    json_t *note;
    size_t i;
    dws_error_t error;

    if (!(notes = json_array ()))
        return NULL;
    if (!(config = config_create (flux_get_conf (h), notes, &error)))
        safe_log (h, LOG_ERR, "%s", error.text);
    json_array_foreach (notes, i, note)
        safe_log (h, LOG_WARNING, "%s", json_string_value (note));
    ERRNO_SAFE (json_decref (notes));
    return config;
}

static struct dws_ctx *ctx_create (flux_t *h)
{
    struct dws_ctx *ctx;

    if (!(ctx = calloc (1, sizeof (*ctx))))
        return NULL;
    ctx->h = h;
    ctx->events = &events;
    if (!(ctx->config = first_config (h)))
        goto error;
    if (!(ctx->instance = kvs_instance (h))) {
        safe_log_error (h, "KVS " DWS_KEY_INSTANCE);
        goto error;
    }
    if (make_parts (ctx) < 0 || service_start (ctx) < 0) {
        safe_log_error (h, "start");
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
        safe_log (h, LOG_ERR, "this module runs on rank 0 only");
        errno = EINVAL;
        return -1;
    }
    if (argc > 0) {
        safe_log (h, LOG_ERR, "unknown argument '%s'", argv[0]);
        errno = EINVAL;
        return -1;
    }
    if (!(ctx = ctx_create (h)))
        return -1;
    limits_check_names (ctx);
    sync_start (ctx->sync);
    health_start (ctx->health);
    notices_start (ctx->notices);
    if (flux_reactor_run (flux_get_reactor (h), 0) < 0)
        safe_log_error (h, "reactor");
    else
        rc = 0;
    ctx_destroy (ctx);
    return rc;
}
