/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See health.h.
 *
 * The journal of the resource module only triggers a request for the state of
 * all nodes. At most one such request is under way, so a burst of events costs
 * few.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <flux/hostlist.h>

#include "libdws/health/drained.h"
#include "libdws/health/health.h"
#include "libdws/util/lists.h"
#include "libutil/drain.h"
#include "libutil/errno_safe.h"
#include "libutil/safelog.h"
#include "agent/agent.h"
#include "base/calls.h"
#include "base/retry.h"
#include "base/timer.h"
#include "facts/config.h"
#include "facts/jobs.h"
#include "facts/space.h"
#include "facts/storages.h"
#include "facts/sync.h"
#include "health/health.h"
#include "health/systemstatus.h"
#include "health/waived.h"
#include "sched/withheld.h"
#include "sched/scheduler.h"

#define DELAY_MIN 0.1
#define DELAY_MAX 5.

#define UP_UNSENT -2
#define UP_ANY -1               // the scheduler keeps jobs that need more

struct health {
    struct dws_ctx *ctx;
    flux_future_t *journal;
    struct retry *retry;        // of the journal, or of drains
    bool live;                  // the journal's past has been read
    bool asking;                // for the state of nodes
    bool stale;                 // it has changed since
    bool refused;               // there was an error instead
    bool drains_stale;          // we have asked for changes of drains
    int draining;               // such requests under way
    struct dws_nodes *nodes;    // NULL: not yet known
    json_t *maybe;              // dws_drained_maybe()
    json_t *clean;              // a set of the jobs in it that have no workflow
    json_t *stuck;              // a set of nodes that could not be unmounted
    json_t *ignored;            // these and waived_nodes(), see
                                //  dws_health_systemstatus()
    bool waiving;               // there are some of the latter
    bool keeping;               // there are jobs with claim.kept
    struct dws_health now;
    int64_t sent_up;            // nodes, to the plugin; UP_UNSENT: nothing
    int64_t sent_all;
    flux_watcher_t *kick;       // decides at the next turn of the reactor
    bool kicked;
};

static void ask_nodes (struct health *health);

/* Drains
 */

static void drained_cb (const struct call *call, flux_future_t *f)
{
    struct health *health = call->ctx->health;

    health->draining--;
    if (flux_future_get (f, NULL) == 0) {
        ask_nodes (health);
        return;
    }
    safe_log (call->ctx->h, LOG_ERR, "resource.%s: %s",
              call->kind ? "drain" : "undrain", future_strerror (f, errno));
    /* Retry with a delay. */
    retry_after (health->retry, DELAY_MAX);
}

static void set_drained (struct health *health, const char *hosts, bool drain,
                         const char *why)
{
    flux_t *h = health->ctx->h;
    flux_future_t *f;

    if (!*hosts)
        return;
    safe_log (h, LOG_INFO, "%s %s: %s", drain ? "drain" : "undrain", hosts, why);
    if (drain)
        f = drain_nodes (h, hosts, "update", DWS_DRAIN_LINK);
    else
        f = flux_rpc_pack (h, "resource.undrain", 0, 0, "{s:s s:s s:s}",
                           "targets", hosts,
                           "mode", "update",
                           "reason", "rabbit: link");
    if (calls_add (health->ctx, f, 0, drain, drained_cb) < 0) {
        safe_log_error (h, "resource.drain");
        return;
    }
    health->draining++;
    health->drains_stale = true;
}

/* A job without a workflow has no mounts. Note that here, since the record of a gone
 * job is about to be destroyed.
 */
static void note_clean (struct health *health, const struct job *job)
{
    char id[24];

    if (json_object_size (health->maybe) == 0 || job->wf
        || !job->facts->absent)
        return;
    snprintf (id, sizeof (id), "%" PRIu64, job->facts->id);
    if (json_object_get (health->maybe, id))
        json_object_set_new (health->clean, id, json_true ());
}

/* Undrain nodes that the plugin drained when the epilog of their job timed out, once
 * that job has no workflow. The table of dws_reconcile() handles jobs with a workflow.
 * For an unknown job read the workflow by its name first: it may exist, with mounts,
 * though it was not listed.
 */
static void give_maybe (struct health *health)
{
    struct dws_ctx *ctx = health->ctx;
    const char *id;
    json_t *ranks;

    if (health->drains_stale || json_object_size (health->maybe) == 0
        || !agent_ready (ctx->agent) || !sync_done (ctx->sync))
        return;
    json_object_foreach (health->maybe, id, ranks) {
        uint64_t jobid = strtoull (id, NULL, 10);

        if (!jobs_find (ctx->jobs, jobid)
            && !json_object_get (health->clean, id))
            jobs_look_for (ctx->jobs, jobid);
        if (json_object_get (health->clean, id))
            set_drained (health, json_string_value (ranks), false,
                         "its job has no workflow any more");
    }
}

/* Nodes may have been drained after action undrain had undrained the clean
 * ones: let the action run again.
 */
static void see_maybe (struct health *health)
{
    const char *id;
    json_t *ranks;

    json_object_foreach (health->maybe, id, ranks) {
        struct job *job = jobs_find (health->ctx->jobs,
                                     strtoull (id, NULL, 10));

        if (job && job->wf && job->wf->undrained) {
            job->wf->undrained = false;
            jobs_changed (job);
        }
        else if (job)
            note_clean (health, job);
    }
}

/* Deciding
 */

static void tell_systemstatus (struct health *health)
{
    json_t *ignored = waived_nodes (health->ctx);

    if (!ignored)
        return;
    health->waiving = json_object_size (ignored) > 0;
    if (json_object_update (ignored, health->stuck) < 0) {
        json_decref (ignored);
        return;
    }
    systemstatus_update (health->ctx->systemstatus, health->nodes, ignored);
    json_decref (health->ignored);
    health->ignored = ignored;
}

struct excess {
    struct health *health;
    struct dws_bytes outside;
};

/* Can jobs hold storage beyond their reservation?
 */
static bool lies_anywhere (const struct dws_ctx *ctx)
{
    return ctx->early
        || ctx->config->lustre_placement == DWS_PLACEMENT_ANYWHERE;
}

/* Add the bytes that a job holds beyond its reservation: all its bytes, if the
 * reservation is released or the job has no nodes yet.
 */
static void add_beyond (struct job *job, void *arg)
{
    struct excess *sum = arg;
    const struct dws_bytes *reserved = &job->reserved;

    if ((job->claim.kept = withheld_kept (job))) {
        sum->health->keeping = true;
        reserved = NULL;
    }
    else if (!lies_anywhere (sum->health->ctx)
             || (!job->R_read && job->facts->phase >= DWS_PHASE_PROLOG))
        return;
    (void)dws_bytes_add_excess (&sum->outside, &job->claim.bytes, reserved);
}

/* The bytes taken on rabbits that are in no reservation. If memory runs out the sum may
 * be too low: a job then waits for room in its prolog.
 */
static struct dws_bytes beyond_reservations (struct health *health)
{
    struct dws_ctx *ctx = health->ctx;
    struct excess sum = { .health = health };

    dws_bytes_add_map (&sum.outside, space_outside (ctx->space), 1);
    health->keeping = false;
    jobs_each (ctx->jobs, add_beyond, &sum);
    return sum.outside;
}

/* Report to the plugin how many nodes are up, because Fluxion rejects jobs that need
 * more, and how many exist, because a job that needs more than these need not wait. Do
 * so without a scheduler, too: Fluxion may be loaded next.
 */
static void tell_up (struct health *health)
{
    struct dws_ctx *ctx = health->ctx;
    bool keeps = scheduler_name (ctx->scheduler)
                 && !scheduler_is_fluxion (ctx->scheduler);
    int64_t up = keeps ? UP_ANY : (int64_t)dws_nodes_up (health->nodes);
    int64_t all = keeps ? UP_ANY : (int64_t)dws_nodes_all (health->nodes);
    flux_future_t *f;

    if ((up == health->sent_up && all == health->sent_all)
        || !sync_alive (ctx->sync))
        return;
    f = calls_rpc (ctx->h, "job-manager.dws.nodes", "{s:o* s:o*}",
                   "up", up == UP_ANY ? NULL : json_integer (up),
                   "all", all == UP_ANY ? NULL : json_integer (all));
    if (calls_log (ctx, f, LOG_DEBUG, "job-manager.dws.nodes") == 0) {
        health->sent_up = up;
        health->sent_all = all;
    }
}

void health_plugin_arrived (struct health *health)
{
    health->sent_up = UP_UNSENT;
    health_changed (health);
}

static void decide_health (struct health *health)
{
    struct dws_ctx *ctx = health->ctx;
    struct dws_bytes outside;
    struct dws_health_policy policy = {
        .outside = &outside,
        .drain = ctx->config->drain_compute_nodes,
        .soft_drain = ctx->config->soft_drain,
        .queues = ctx->config->drain_properties,
    };
    dws_error_t error;
    json_t *storages;
    int rc;

    if (!health->nodes)
        return;
    tell_systemstatus (health);
    tell_up (health);
    give_maybe (health);
    /* Wait until the effect of our own drains is known. */
    if (health->drains_stale || !space_known (ctx->space)
        || !(storages = storages_array (ctx->storages)))
        return;
    outside = beyond_reservations (health);
    rc = dws_health_decide (&health->now, storages, ctx->config->topology,
                            health->nodes, &policy, &error);
    dws_bytes_clear (&outside);
    json_decref (storages);
    if (rc < 0) {
        safe_log (ctx->h, LOG_ERR, "health of rabbits: %s", error.text);
        return;
    }
    scheduler_tell (ctx->scheduler, &health->now, withheld_version (ctx->withheld));
    set_drained (health, health->now.drain, true, "PCIe link lost");
    set_drained (health, health->now.undrain, false,
                 "PCIe link is back, or does not matter any more");
}

static void health_kick_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                            void *arg)
{
    struct health *health = arg;

    health->kicked = false;
    decide_health (health);
}

void health_see_job (struct health *health, const struct job *job)
{
    note_clean (health, job);
    if (health->waiving || json_object_size (health->maybe) > 0
        || (job->wf && job->wf->waived)
        || withheld_kept (job) != job->claim.kept)
        health_changed (health);
}

void health_see_space (struct health *health)
{
    if (health->keeping || lies_anywhere (health->ctx))
        health_changed (health);
}

void health_changed (struct health *health)
{
    health->kicked = true;
    timer_start (health->kick, 0.);
}

/* Learning
 */

static void learn_nodes (struct health *health, json_t *o)
{
    struct dws_nodes *nodes;
    json_t *maybe = NULL;
    dws_error_t error;

    if (!(nodes = dws_nodes_create (o, &error))
        || !(maybe = dws_drained_maybe (o, &error))) {
        safe_log (health->ctx->h, LOG_ERR, "%s", error.text);
        dws_nodes_destroy (nodes);
        return;
    }
    json_decref (health->maybe);
    health->maybe = maybe;
    json_object_clear (health->clean);
    see_maybe (health);
    systemstatus_learn (health->ctx->systemstatus, nodes);
    dws_nodes_destroy (health->nodes);
    health->nodes = nodes;
    dws_health_unstick (health->stuck, nodes);
    health_changed (health);
}

static void resource_status_cb (const struct call *call, flux_future_t *f)
{
    struct health *health = call->ctx->health;
    json_t *o;

    health->asking = false;
    if (health->stale)
        ask_nodes (health);
    else if (flux_rpc_get_unpack (f, "o", &o) < 0) {
        /* While Flux starts the resource module may not know its nodes yet. The journal
         * shows when it does, which repeats this request.
         */
        safe_log (call->ctx->h, health->nodes || health->refused ? LOG_ERR : LOG_DEBUG,
                  "resource.status: %s", future_strerror (f, errno));
        health->refused = true;
    }
    else {
        health->drains_stale = health->draining > 0;
        learn_nodes (health, o);
    }
}

static void ask_nodes (struct health *health)
{
    flux_future_t *f;

    health->stale = health->asking;
    if (health->asking)
        return;
    f = flux_rpc (health->ctx->h, "resource.status", NULL, 0, 0);
    if (calls_add (health->ctx, f, 0, 0, resource_status_cb) < 0)
        safe_log_error (health->ctx->h, "resource.status");
    else
        health->asking = true;
}

static void follow_later (struct health *health)
{
    flux_future_destroy (health->journal);
    health->journal = NULL;
    retry_later (health->retry);
}

/* An empty array of events ends the past.
 */
static void journal_cb (flux_future_t *f, void *arg)
{
    struct health *health = arg;
    json_t *events;

    if (flux_rpc_get_unpack (f, "{s:o}", "events", &events) < 0) {
        if (retry_is_first (health->retry))
            safe_log (health->ctx->h, LOG_INFO, "resource.journal: %s",
                      future_strerror (f, errno));
        follow_later (health);
        return;
    }
    retry_reset (health->retry);
    if (json_array_size (events) == 0)
        health->live = true;
    flux_future_reset (f);
    if (health->live)
        ask_nodes (health);
}

static void follow_journal (struct health *health)
{
    health->live = false;
    if (!(health->journal = flux_rpc (health->ctx->h, "resource.journal",
                                      NULL, 0, FLUX_RPC_STREAMING))
        || flux_future_then (health->journal, -1., journal_cb, health) < 0) {
        safe_log_error (health->ctx->h, "resource.journal");
        follow_later (health);
    }
}

static void health_retry_cb (void *arg)
{
    struct health *health = arg;

    if (health->journal)
        ask_nodes (health);
    else
        follow_journal (health);
}

void health_start (struct health *health)
{
    follow_journal (health);
    scheduler_start (health->ctx->scheduler);
}

void health_agent_attached (struct health *health)
{
    systemstatus_start (health->ctx->systemstatus);
    health_changed (health);
}

/* Remember these hosts here, too: the drain reason does not show a host that
 * was drained before, which keeps its older reason.
 */
void health_stuck (struct health *health, const char *hosts)
{
    struct hostlist *hl = dws_hostlist_decode (hosts);
    const char *host;

    for (host = hl ? hostlist_first (hl) : NULL; host;
         host = hostlist_next (hl))
        (void)json_object_set_new (health->stuck, host, json_true ());
    hostlist_destroy (hl);
    ask_nodes (health);
}

const char *health_bad (const struct health *health)
{
    return health->now.bad ? health->now.bad : "";
}

json_t *health_status (const struct health *health)
{
    const struct dws_health *now = &health->now;
    struct dws_ctx *ctx = health->ctx;
    json_t *down = json_array ();
    bool settled = health->nodes && now->rabbits && health->live
                   && !health->asking && health->draining == 0
                   && !health->kicked
                   && scheduler_settled (ctx->scheduler)
                   && systemstatus_settled (ctx->systemstatus);
    const char *name;
    json_t *state;

    json_object_foreach (now->rabbits, name, state) {
        if (!json_is_true (json_object_get (state, "up")))
            json_array_append_new (down, json_string (name));
    }
    return json_pack ("{s:s? s:b s:o s:s}",
                      "scheduler", scheduler_name (ctx->scheduler),
                      "settled", settled,
                      "down", down,
                      DWS_BAD_PROPERTY, health_bad (health));
}

struct health *health_create (struct dws_ctx *ctx)
{
    struct health *health;

    if (!(health = calloc (1, sizeof (*health))))
        return NULL;
    health->ctx = ctx;
    health->sent_up = UP_UNSENT;
    if (!(health->stuck = json_object ())
        || !(health->clean = json_object ())
        || !(health->retry = retry_create (ctx->h, DELAY_MIN, DELAY_MAX,
                                           health_retry_cb, health))
        || !(health->kick = timer_make (ctx->h, health_kick_cb, health))) {
        health_destroy (health);
        errno = ENOMEM;
        return NULL;
    }
    return health;
}

void health_destroy (struct health *health)
{
    if (health) {
        ERRNO_SAFE_BLOCK;
        flux_future_destroy (health->journal);
        retry_destroy (health->retry);
        flux_watcher_destroy (health->kick);
        dws_health_clear (&health->now);
        dws_nodes_destroy (health->nodes);
        json_decref (health->maybe);
        json_decref (health->clean);
        json_decref (health->stuck);
        json_decref (health->ignored);
        free (health);
    }
}
