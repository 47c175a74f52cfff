/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Brings Fluxion's resource graph in step with the state of rabbits. One request reads
 * the properties in the graph and, while few nodes are down, which ssds are, so that
 * settings of an earlier start of this module are found. Two requests set all
 * properties. The state of ssds needs a request for each: only differences are sent,
 * WINDOW at a time.
 */

#include "libdws/health/fluxion.h"
#include "libutil/safelog.h"
#include "facts/config.h"
#include "facts/jobs.h"
#include "sched/scheduler_private.h"

#define WINDOW 128              // requests under way at the same time
#define AWAY_FEW 64             // nodes, see DWS_FLUXION_CRITERIA_DOWN

static void find_cb (const struct call *call, flux_future_t *f)
{
    struct scheduler *sched = call->ctx->scheduler;
    dws_error_t error;
    json_t *R = NULL;

    if (!sched_take_response (call, f, sched, "find"))
        return;
    (void)flux_rpc_get_unpack (f, "{s?o}", "R", &R);
    if (!(sched->fx = dws_fluxion_create (R, sched->asked_down, &error))) {
        safe_log (call->ctx->h, LOG_ERR, "fluxion: %s", error.text);
        sched_push_later (sched);
        return;
    }
    if (dws_fluxion_count (sched->fx) == 0)
        safe_log (call->ctx->h, LOG_WARNING,
                  "fluxion: its resource graph has no rabbits, see "
                  "flux-dws2jgf(1)");
    sched_push_news (sched);
}

static void find_graph (struct scheduler *sched)
{
    sched->asked_down = sched->away <= AWAY_FEW;
    sched_ask (sched,
               flux_rpc_pack (sched->ctx->h, "sched-fluxion-resource.find",
                              FLUX_NODEID_ANY, 0, "{s:s s:s}",
                              "criteria", sched->asked_down
                                          ? DWS_FLUXION_CRITERIA_DOWN
                                          : DWS_FLUXION_CRITERIA,
                              "format", "jgf"),
               find_cb);
}

static void property_cb (const struct call *call, flux_future_t *f)
{
    struct scheduler *sched = call->ctx->scheduler;

    if (sched_take_response (call, f, sched, DWS_BAD_PROPERTY))
        sched_push_news (sched);
}

static void ssd_cb (const struct call *call, flux_future_t *f)
{
    struct scheduler *sched = call->ctx->scheduler;

    if (sched_take_response (call, f, sched, "ssd"))
        sched_push_news (sched);
}

static bool send_properties (struct scheduler *sched, json_t *set,
                             json_t *clear)
{
    flux_t *h = sched->ctx->h;
    flux_future_t *f;

    if (json_array_size (set) > 0) {
        f = flux_rpc_pack (h, "sched-fluxion-resource.set_property",
                           FLUX_NODEID_ANY, 0, "{s:O s:s}",
                           "sp_resource_path", set,
                           "sp_keyval", DWS_BAD_PROPERTY "=bad");
        if (!sched_ask (sched, f, property_cb))
            return false;
    }
    if (json_array_size (clear) == 0)
        return true;
    f = flux_rpc_pack (h, "sched-fluxion-resource.remove_property",
                       FLUX_NODEID_ANY, 0, "{s:O s:s}",
                       "resource_path", clear,
                       "key", DWS_BAD_PROPERTY);
    return sched_ask (sched, f, property_cb);
}

/* Note the ssds of active jobs. Those of a gone job may be allocated to others.
 */
static void add_ssds (struct job *job, void *arg)
{
    if (job->ssds && job->facts->phase < DWS_PHASE_GONE)
        dws_fluxion_use (arg, job->ssds,
                         job->claim.leaving ? DWS_SSD_LEAVING : DWS_SSD_BUSY);
}

static void add_kept_ssds (struct job *job, void *arg)
{
    if (job->ssds && job->claim.kept && job->facts->phase == DWS_PHASE_GONE)
        dws_fluxion_use (arg, job->ssds, DWS_SSD_KEPT);
}

/* The ssds whose state differs. Ssds of jobs are best left alone.
 */
static json_t *plan_ssds (struct scheduler *sched, dws_error_t *error)
{
    json_t *uses = json_object ();
    json_t *queue;

    jobs_each (sched->ctx->jobs, add_kept_ssds, uses);
    jobs_each (sched->ctx->jobs, add_ssds, uses);
    queue = dws_fluxion_ssds (sched->fx, sched->rabbits, uses,
                              sched->ctx->config->topology, error);
    json_decref (uses);
    return queue;
}

/* Only nodes without a link get the property. Nodes of a rabbit that is down do
 * not need it, as its ssds are down: jobs then stay queued, while a property
 * that leaves too few nodes makes Fluxion reject them. Properties go first,
 * because ssds that come up make Fluxion schedule.
 */
static void plan_fluxion (struct scheduler *sched)
{
    struct dws_topology *topo = sched->ctx->config->topology;
    json_t *set = NULL;
    json_t *clear = NULL;
    dws_error_t error;

    if (dws_fluxion_properties (sched->fx, sched->unlinked, topo, &set,
                                &clear, &error) < 0
        || !(sched->queue = plan_ssds (sched, &error))) {
        safe_log (sched->ctx->h, LOG_ERR, "fluxion: %s", error.text);
        sched_push_later (sched);
    }
    else {
        sched->dirty = false;
        sched->planned = sched->version;
        sched_begin_telling (sched);
        sched->next = 0;
        if (json_array_size (sched->queue) > 0)
            safe_log (sched->ctx->h, LOG_DEBUG, "fluxion: %zu ssds change",
                      json_array_size (sched->queue));
        send_properties (sched, set, clear);
    }
    json_decref (set);
    json_decref (clear);
}

static void note_acknowledged (struct scheduler *sched)
{
    if (!sched->telling && sched->acknowledged == sched->planned)
        return;
    sched->acknowledged = sched->planned;
    if (sched->telling)
        sched_heard (sched);
    else
        sched->ctx->events->scheduler_acknowledged (sched->ctx);
}

static bool send_status (struct scheduler *sched, const char *path,
                         const char *status)
{
    flux_future_t *f;

    f = flux_rpc_pack (sched->ctx->h, "sched-fluxion-resource.set_status",
                       FLUX_NODEID_ANY, 0, "{s:s s:s}",
                       "resource_path", path,
                       "status", status);
    return sched_ask (sched, f, ssd_cb);
}

static void pump_fluxion (struct scheduler *sched)
{
    while (sched->under_way < WINDOW
           && sched->next < json_array_size (sched->queue)) {
        const char *path;
        const char *status;

        if (json_unpack (json_array_get (sched->queue, sched->next++),
                         "[ss]", &path, &status) == 0
            && !send_status (sched, path, status))
            return;
    }
    if (sched->queue && sched->next == json_array_size (sched->queue)) {
        json_decref (sched->queue);
        sched->queue = NULL;
    }
    if (!sched->queue && sched->under_way == 0)
        note_acknowledged (sched);
}

void sched_push_fluxion (struct scheduler *sched)
{
    if (!sched->fx) {
        if (sched->under_way == 0)
            find_graph (sched);
        return;
    }
    if (sched->dirty && !sched->queue && sched->under_way == 0)
        plan_fluxion (sched);
    if (!sched->failed)
        pump_fluxion (sched);
}
