/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See scheduler.h.
 *
 * A streaming request for notices is open to sched-rabbit as long as it is
 * loaded: when the stream ends, it has forgotten all it was told. Fluxion
 * copies its whole graph for each such request, and may crash at that
 * (doc/dev/upstream/fluxion-notify.rst): it is looked at from time to time
 * instead. While none is loaded it is looked for again, with growing delay.
 *
 * sched-rabbit takes everything in one request. Fluxion takes all properties in
 * two requests, and tells in one which properties it has, and as long as few nodes are
 * down which ssds are, so that what an earlier life of this module has set there is
 * found. Fluxion takes the state of ssds one by one: only those that differ are sent, so
 * many at a time.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/health/fluxion.h"
#include "libutil/errno_safe.h"
#include "base/calls.h"
#include "base/retry.h"
#include "base/timer.h"
#include "facts/config.h"
#include "facts/jobs.h"
#include "sched/scheduler.h"

#define DELAY_MIN 0.05
#define DELAY_MAX 30.
#define WINDOW 128              // requests under way at the same time
#define AWAY_FEW 64             // nodes, see DWS_FLUXION_CRITERIA_DOWN
#define LOOK 1.                 // seconds, from one look to the next

struct backend {
    const char *name;
    const char *topic;          // that tells of its coming and going
    bool streaming;
    void (*push)(struct scheduler *sched);
};

struct link {
    struct scheduler *sched;
    const struct backend *backend;
    flux_future_t *stream;      // or a single request
    flux_watcher_t *look;       // then, the next one
    double load_time;           // how long Fluxion took to read its graph (s),
                                //  in nanoseconds: no other took as long
    struct retry *retry;
    bool sought;                // it was there, or was not
};

static void push_rabbit (struct scheduler *sched);
static void push_fluxion (struct scheduler *sched);

static const struct backend backends[] = {
    { "sched-rabbit", "sched-rabbit.notify", true, push_rabbit },
    { "fluxion", "sched-fluxion-resource.stats-get", false, push_fluxion },
};

#define COUNT (sizeof (backends) / sizeof (backends[0]))

struct scheduler {
    struct dws_ctx *ctx;
    struct link links[COUNT];
    struct link *current;       // the one that is there, or NULL
    int generation;             // schedulers that came and went
    json_t *rabbits;            // as in struct dws_health, NULL: not yet known
    char *bad;
    char *unlinked;
    size_t away;                // nodes that are drained or offline
    bool asked_down;            // the graph was asked for with what is down
    unsigned int version;       // that 'rabbits' came with
    unsigned int planned;       // that of what is being told
    unsigned int told;          // of what it has been told, 0: of nothing
    bool dirty;                 // it has to be told
    bool failed;                // it would not listen
    int under_way;              // requests without response
    struct dws_fluxion *fx;     // its graph, NULL: not yet known
    json_t *queue;              // ssds to change
    size_t next;                // the next one of them
};

static void forget_graph (struct scheduler *sched)
{
    dws_fluxion_destroy (sched->fx);
    sched->fx = NULL;
    json_decref (sched->queue);
    sched->queue = NULL;
    sched->next = 0;
}

static void push_news (struct scheduler *sched)
{
    if (sched->current && sched->rabbits && !sched->failed)
        sched->current->backend->push (sched);
}

/* Tell the scheduler once more, but not at once.
 */
static void push_later (struct scheduler *sched)
{
    sched->failed = true;
    sched->dirty = true;
    forget_graph (sched);
    if (sched->under_way == 0)
        retry_later (sched->current->retry);
}

/* Take in a response. Returns false if there is nothing to go on with.
 */
static bool take_response (const struct call *call, flux_future_t *f,
                           struct scheduler *sched, const char *what)
{
    if (call->kind != sched->generation)
        return false;
    sched->under_way--;
    if (flux_future_get (f, NULL) < 0) {
        if (!sched->failed)
            flux_log (call->ctx->h, LOG_ERR, "%s: %s: %s",
                      sched->current->backend->name, what,
                      future_strerror (f, errno));
        push_later (sched);
        return false;
    }
    if (sched->failed) {
        if (sched->under_way == 0)
            retry_later (sched->current->retry);
        return false;
    }
    return true;
}

static bool ask_scheduler (struct scheduler *sched, flux_future_t *f, call_f cb)
{
    if (calls_add (sched->ctx, f, 0, sched->generation, cb) < 0) {
        flux_log_error (sched->ctx->h, "%s", sched->current->backend->name);
        push_later (sched);
        return false;
    }
    sched->under_way++;
    return true;
}

/* sched-rabbit
 */

static void health_cb (const struct call *call, flux_future_t *f)
{
    struct scheduler *sched = call->ctx->scheduler;

    if (take_response (call, f, sched, "health"))
        push_news (sched);
}

static void push_rabbit (struct scheduler *sched)
{
    if (!sched->dirty || sched->under_way > 0)
        return;
    sched->dirty = false;
    ask_scheduler (sched,
                   flux_rpc_pack (sched->ctx->h, "sched-rabbit.health",
                                  FLUX_NODEID_ANY, 0, "{s:O s:{s:s}}",
                                  "rabbits", sched->rabbits,
                                  "properties",
                                    DWS_BAD_PROPERTY, sched->bad),
                   health_cb);
}

/* Fluxion
 */

static void find_cb (const struct call *call, flux_future_t *f)
{
    struct scheduler *sched = call->ctx->scheduler;
    dws_error_t error;
    json_t *R = NULL;

    if (!take_response (call, f, sched, "find"))
        return;
    (void)flux_rpc_get_unpack (f, "{s?o}", "R", &R);
    if (!(sched->fx = dws_fluxion_create (R, sched->asked_down, &error))) {
        flux_log (call->ctx->h, LOG_ERR, "fluxion: %s", error.text);
        push_later (sched);
        return;
    }
    if (dws_fluxion_count (sched->fx) == 0)
        flux_log (call->ctx->h, LOG_WARNING,
                  "fluxion: its resource graph has no rabbits, see "
                  "flux-dws2jgf(1)");
    push_news (sched);
}

static void find_graph (struct scheduler *sched)
{
    sched->asked_down = sched->away <= AWAY_FEW;
    ask_scheduler (sched,
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

    if (take_response (call, f, sched, DWS_BAD_PROPERTY))
        push_news (sched);
}

static void ssd_cb (const struct call *call, flux_future_t *f)
{
    struct scheduler *sched = call->ctx->scheduler;

    if (take_response (call, f, sched, "ssd"))
        push_news (sched);
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
        if (!ask_scheduler (sched, f, property_cb))
            return false;
    }
    if (json_array_size (clear) == 0)
        return true;
    f = flux_rpc_pack (h, "sched-fluxion-resource.remove_property",
                       FLUX_NODEID_ANY, 0, "{s:O s:s}",
                       "resource_path", clear,
                       "key", DWS_BAD_PROPERTY);
    return ask_scheduler (sched, f, property_cb);
}

/* What jobs have now: others may have got what one that is gone has had.
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

/* What has to change of ssds: those that jobs have are best left alone.
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

/* Nodes of a rabbit that is down do not get the property, as the rabbit's ssds
 * are down: a job that needs them is then kept, where for a property that
 * leaves too few nodes it would be refused. Properties go first, as ssds that
 * come up make Fluxion look at its jobs.
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
        flux_log (sched->ctx->h, LOG_ERR, "fluxion: %s", error.text);
        push_later (sched);
    }
    else {
        sched->dirty = false;
        sched->planned = sched->version;
        sched->next = 0;
        if (json_array_size (sched->queue) > 0)
            flux_log (sched->ctx->h, LOG_DEBUG, "fluxion: %zu ssds change",
                      json_array_size (sched->queue));
        send_properties (sched, set, clear);
    }
    json_decref (set);
    json_decref (clear);
}

static void note_told (struct scheduler *sched)
{
    if (sched->told == sched->planned)
        return;
    sched->told = sched->planned;
    sched->ctx->events->scheduler_told (sched->ctx);
}

static bool send_status (struct scheduler *sched, const char *path,
                         const char *status)
{
    flux_future_t *f;

    f = flux_rpc_pack (sched->ctx->h, "sched-fluxion-resource.set_status",
                       FLUX_NODEID_ANY, 0, "{s:s s:s}",
                       "resource_path", path,
                       "status", status);
    return ask_scheduler (sched, f, ssd_cb);
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
        note_told (sched);
}

static void push_fluxion (struct scheduler *sched)
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

/* Coming and going
 */

static void link_up (struct link *link)
{
    struct scheduler *sched = link->sched;

    if (sched->current == link)
        return;
    flux_log (sched->ctx->h, LOG_DEBUG, "the scheduler is %s",
              link->backend->name);
    sched->current = link;
    link->sought = true;
    sched->dirty = true;
    sched->failed = false;
    /* Of what is known now it may not have had to hear. */
    if (scheduler_is_fluxion (sched)) {
        json_decref (sched->rabbits);
        sched->rabbits = NULL;
    }
    for (size_t i = 0; i < COUNT; i++) {
        retry_reset (sched->links[i].retry);
        if (&sched->links[i] != link)
            retry_stop (sched->links[i].retry);
    }
    push_news (sched);
    sched->ctx->events->scheduler_arrived (sched->ctx);
}

static void note_missing (struct link *link)
{
    struct scheduler *sched = link->sched;

    if (link->sought)
        return;
    link->sought = true;
    if (!sched->current && scheduler_sought (sched))
        sched->ctx->events->scheduler_told (sched->ctx);
}

static void link_down (struct link *link)
{
    struct scheduler *sched = link->sched;

    flux_future_destroy (link->stream);
    link->stream = NULL;
    if (sched->current != link) {
        if (!sched->current)
            retry_later (link->retry);
        note_missing (link);
        return;
    }
    sched->current = NULL;
    sched->generation++;
    sched->under_way = 0;
    sched->planned = 0;
    sched->told = 0;
    forget_graph (sched);
    sched->ctx->events->scheduler_told (sched->ctx);
    for (size_t i = 0; i < COUNT; i++) {
        if (!sched->links[i].stream) {
            retry_reset (sched->links[i].retry);
            retry_later (sched->links[i].retry);
        }
    }
}

/* Returns true if this is not the one that was there at the last look.
 */
static bool is_other (struct link *link, flux_future_t *f)
{
    double before = link->load_time;

    (void)flux_rpc_get_unpack (f, "{s:F}", "load-time", &link->load_time);
    return link->load_time != before;
}

static void answer_cb (flux_future_t *f, void *arg)
{
    struct link *link = arg;

    if (flux_future_get (f, NULL) < 0) {
        link_down (link);
        return;
    }
    if (link->backend->streaming)
        flux_future_reset (f);
    else {
        if (is_other (link, f) && link == link->sched->current)
            link_down (link);
        flux_future_destroy (link->stream);
        link->stream = NULL;
        timer_start (link->look, LOOK);
    }
    link_up (link);
}

static void link_attach (struct link *link)
{
    flux_t *h = link->sched->ctx->h;
    int flags = link->backend->streaming ? FLUX_RPC_STREAMING : 0;

    flux_watcher_stop (link->look);
    if (!(link->stream = flux_rpc (h, link->backend->topic, NULL,
                                   FLUX_NODEID_ANY, flags))
        || flux_future_then (link->stream, -1., answer_cb, link) < 0) {
        flux_log_error (h, "%s", link->backend->topic);
        flux_future_destroy (link->stream);
        link->stream = NULL;
        retry_later (link->retry);
    }
}

static void link_retry_cb (void *arg)
{
    struct link *link = arg;

    if (link == link->sched->current) {
        link->sched->failed = false;
        push_news (link->sched);
    }
    else if (!link->stream)
        link_attach (link);
}

static void look_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                     void *arg)
{
    struct link *link = arg;

    if (!link->stream)
        link_attach (link);
}

void scheduler_start (struct scheduler *sched)
{
    for (size_t i = 0; i < COUNT; i++) {
        if (!sched->links[i].stream && sched->current != &sched->links[i])
            link_attach (&sched->links[i]);
    }
}

void scheduler_tell (struct scheduler *sched, const struct dws_health *health,
                     unsigned int version)
{
    char *bad;
    char *unlinked = NULL;

    sched->version = version;
    sched->away = health->away;
    if (sched->rabbits && json_equal (sched->rabbits, health->rabbits)
        && !strcmp (sched->bad, health->bad)
        && !strcmp (sched->unlinked, health->unlinked)) {
        if (!sched->dirty)
            sched->planned = version;
        push_news (sched);
        return;
    }
    if (!(bad = strdup (health->bad))
        || !(unlinked = strdup (health->unlinked))) {
        flux_log_error (sched->ctx->h, "scheduler");
        free (bad);
        return;
    }
    free (sched->bad);
    free (sched->unlinked);
    sched->bad = bad;
    sched->unlinked = unlinked;
    json_decref (sched->rabbits);
    sched->rabbits = json_incref (health->rabbits);
    sched->dirty = true;
    push_news (sched);
}

bool scheduler_knows (const struct scheduler *sched, unsigned int version)
{
    return sched->told >= version;
}

const char *scheduler_name (const struct scheduler *sched)
{
    return sched->current ? sched->current->backend->name : NULL;
}

bool scheduler_sought (const struct scheduler *sched)
{
    for (size_t i = 0; i < COUNT; i++) {
        if (!sched->current && !sched->links[i].sought)
            return false;
    }
    return true;
}

bool scheduler_is_fluxion (const struct scheduler *sched)
{
    return sched->current && sched->current->backend->push == push_fluxion;
}

/* Nodes that are drained do without the property.
 */
bool scheduler_wants_constraint (const struct scheduler *sched)
{
    const struct dws_config *config = sched->ctx->config;

    if (!scheduler_is_fluxion (sched)
        || (sched->unlinked && *sched->unlinked))
        return true;
    return config->soft_drain
           && (!config->drain_compute_nodes || config->drain_properties);
}

bool scheduler_settled (const struct scheduler *sched)
{
    return !sched->current
           || (sched->rabbits && !sched->dirty && !sched->failed
               && !sched->queue && sched->under_way == 0);
}

struct scheduler *scheduler_create (struct dws_ctx *ctx)
{
    flux_reactor_t *r = flux_get_reactor (ctx->h);
    struct scheduler *sched;

    if (!(sched = calloc (1, sizeof (*sched))))
        return NULL;
    sched->ctx = ctx;
    for (size_t i = 0; i < COUNT; i++) {
        struct link *link = &sched->links[i];

        link->sched = sched;
        link->backend = &backends[i];
        if (!(link->retry = retry_create (r, DELAY_MIN, DELAY_MAX,
                                          link_retry_cb, link))
            || !(link->look = flux_timer_watcher_create (r, LOOK, 0., look_cb,
                                                         link))) {
            scheduler_destroy (sched);
            return NULL;
        }
    }
    return sched;
}

void scheduler_destroy (struct scheduler *sched)
{
    if (sched) {
        ERRNO_SAFE_BLOCK;
        for (size_t i = 0; i < COUNT; i++) {
            flux_future_destroy (sched->links[i].stream);
            flux_watcher_destroy (sched->links[i].look);
            retry_destroy (sched->links[i].retry);
        }
        forget_graph (sched);
        json_decref (sched->rabbits);
        free (sched->bad);
        free (sched->unlinked);
        free (sched);
    }
}
