/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See scheduler.h.
 *
 * A streaming request to sched-rabbit shows when that is unloaded and its state lost:
 * the stream ends. Fluxion copies its whole graph for each such request, and may crash
 * at that (doc/dev/upstream/fluxion-notify.rst), so it is polled instead. While no
 * scheduler is loaded, the search for one is repeated with growing delay.
 *
 * sched-rabbit takes everything in one request, Fluxion does not: fluxion.c. The KVS
 * has the same state, under every scheduler, because sched-rabbit allocates as soon as
 * it is loaded, and reads the KVS first.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/health/fluxion.h"
#include "libutil/errno_safe.h"
#include "libutil/names.h"
#include "libutil/safelog.h"
#include "base/calls.h"
#include "base/commits.h"
#include "base/retry.h"
#include "base/timer.h"
#include "facts/config.h"
#include "sched/scheduler_private.h"

#define DELAY_MIN 0.05
#define DELAY_MAX 30.
#define LOOK 1.                 // seconds, from one look to the next

/* sched-rabbit
 */

static void health_cb (const struct call *call, flux_future_t *f)
{
    struct scheduler *sched = call->ctx->scheduler;

    if (!sched_take_response (call, f, sched, "health"))
        return;
    sched_heard (sched);
    sched_push_news (sched);
}

static void push_rabbit (struct scheduler *sched)
{
    if (!sched->dirty || sched->under_way > 0)
        return;
    sched->dirty = false;
    sched_begin_telling (sched);
    sched_ask (sched,
               flux_rpc_pack (sched->ctx->h, "sched-rabbit.health",
                              FLUX_NODEID_ANY, 0, "{s:O s:{s:s}}",
                              "rabbits", sched->rabbits,
                              "properties",
                                DWS_BAD_PROPERTY, sched->bad),
               health_cb);
}

/* For sched-rabbits to come
 */

/* As sched-rabbit.health has it. Storage held by no job is in DWS_KEY_HELD instead,
 * since it changes often.
 */
static json_t *encode_health (const struct scheduler *sched)
{
    json_t *rabbits = json_object ();
    const char *name;
    json_t *state;

    json_object_foreach (sched->rabbits, name, state) {
        if (json_object_set_new (rabbits, name,
                                 json_pack ("{s:O s:O}",
                                            "up",
                                            json_object_get (state, "up"),
                                            "capacity",
                                            json_object_get (state,
                                                             "capacity"))) < 0) {
            json_decref (rabbits);
            errno = ENOMEM;
            return NULL;
        }
    }
    return json_pack ("{s:o s:{s:s}}",
                      "rabbits", rabbits,
                      "properties",
                        DWS_BAD_PROPERTY, sched->bad);
}

static void write_health (struct scheduler *sched)
{
    struct dws_ctx *ctx = sched->ctx;
    json_t *health = encode_health (sched);

    if (health && sched->written && json_equal (health, sched->written)) {
        json_decref (health);
        return;
    }
    if (commits_save (ctx, DWS_KEY_HEALTH, health) < 0) {
        json_decref (health);
        return;
    }
    json_decref (sched->written);
    sched->written = health;
}

/* Coming and going
 */

static const struct backend backends[SCHEDULERS] = {
    { "sched-rabbit", "sched-rabbit.notify", true, push_rabbit },
    { "fluxion", "sched-fluxion-resource.stats-get", false, sched_push_fluxion },
};

static void link_up (struct link *link)
{
    struct scheduler *sched = link->sched;

    if (sched->current == link)
        return;
    safe_log (sched->ctx->h, LOG_DEBUG, "the scheduler is %s",
              link->backend->name);
    sched->current = link;
    link->sought = true;
    sched->dirty = true;
    sched->failed = false;
    /* Fluxion may need more than was computed for another scheduler: wait for
     * new state. */
    if (scheduler_is_fluxion (sched)) {
        json_decref (sched->rabbits);
        sched->rabbits = NULL;
    }
    for (size_t i = 0; i < SCHEDULERS; i++) {
        retry_reset (sched->links[i].retry);
        if (&sched->links[i] != link)
            retry_stop (sched->links[i].retry);
    }
    sched_push_news (sched);
    sched->ctx->events->scheduler_arrived (sched->ctx);
}

static void note_missing (struct link *link)
{
    struct scheduler *sched = link->sched;

    if (link->sought)
        return;
    link->sought = true;
    if (!sched->current && scheduler_sought (sched))
        sched->ctx->events->scheduler_acknowledged (sched->ctx);
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
    sched->acknowledged = 0;
    json_decref (sched->telling);
    sched->telling = NULL;
    json_decref (sched->heard);
    sched->heard = NULL;
    sched_forget_graph (sched);
    sched->ctx->events->scheduler_acknowledged (sched->ctx);
    for (size_t i = 0; i < SCHEDULERS; i++) {
        if (!sched->links[i].stream) {
            retry_reset (sched->links[i].retry);
            retry_later (sched->links[i].retry);
        }
    }
}

/* Does sched-rabbit keep jobs with storage off nodes with the property by itself? Older
 * releases answer with nothing.
 */
static bool keeps_off (flux_future_t *f)
{
    const char *avoids = "";

    (void)flux_rpc_get_unpack (f, "{s:s}", "avoids", &avoids);
    return !strcmp (avoids, DWS_BAD_PROPERTY);
}

/* Was Fluxion loaded again since the last check?
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
    if (link->backend->streaming) {
        link->keeps_off = keeps_off (f);
        flux_future_reset (f);
    }
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
        safe_log_error (h, "%s", link->backend->topic);
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
        sched_push_news (link->sched);
    }
    else if (!link->stream)
        link_attach (link);
}

static void look_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                     void *arg)
{
    link_attach (arg);
}

void scheduler_start (struct scheduler *sched)
{
    for (size_t i = 0; i < SCHEDULERS; i++) {
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
        sched_push_news (sched);
        return;
    }
    if (!(bad = strdup (health->bad))
        || !(unlinked = strdup (health->unlinked))) {
        safe_log_error (sched->ctx->h, "scheduler");
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
    write_health (sched);
    sched_push_news (sched);
}

bool scheduler_knows (const struct scheduler *sched, unsigned int version)
{
    return sched->acknowledged >= version;
}

bool scheduler_bars (const struct scheduler *sched, const char *rabbit)
{
    json_t *state = json_object_get (sched->heard, rabbit);

    if (!sched->current)
        return scheduler_sought (sched);
    return sched->heard && !json_is_true (json_object_get (state, "up"));
}

const char *scheduler_name (const struct scheduler *sched)
{
    return sched->current ? sched->current->backend->name : NULL;
}

bool scheduler_sought (const struct scheduler *sched)
{
    for (size_t i = 0; i < SCHEDULERS; i++) {
        if (!sched->current && !sched->links[i].sought)
            return false;
    }
    return true;
}

bool scheduler_is_fluxion (const struct scheduler *sched)
{
    return sched->current && sched->current->backend->push == sched_push_fluxion;
}

bool scheduler_lacks_rabbits (const struct scheduler *sched)
{
    return scheduler_is_fluxion (sched) && sched->fx
           && dws_fluxion_count (sched->fx) == 0;
}

/* If nodes without a link are drained, they do not get the property. While no scheduler
 * is loaded, the next one may be Fluxion.
 */
bool scheduler_wants_constraint (const struct scheduler *sched)
{
    const struct dws_config *config = sched->ctx->config;

    if (!sched->current)
        return true;
    if (!scheduler_is_fluxion (sched))
        return !sched->current->keeps_off;
    if (sched->unlinked && *sched->unlinked)
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
    struct scheduler *sched;

    if (!(sched = calloc (1, sizeof (*sched))))
        return NULL;
    sched->ctx = ctx;
    for (size_t i = 0; i < SCHEDULERS; i++) {
        struct link *link = &sched->links[i];

        link->sched = sched;
        link->backend = &backends[i];
        if (!(link->retry = retry_create (ctx->h, DELAY_MIN, DELAY_MAX,
                                          link_retry_cb, link))
            || !(link->look = timer_make (ctx->h, look_cb, link))) {
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
        for (size_t i = 0; i < SCHEDULERS; i++) {
            flux_future_destroy (sched->links[i].stream);
            flux_watcher_destroy (sched->links[i].look);
            retry_destroy (sched->links[i].retry);
        }
        sched_forget_graph (sched);
        json_decref (sched->rabbits);
        json_decref (sched->written);
        json_decref (sched->telling);
        json_decref (sched->heard);
        free (sched->bad);
        free (sched->unlinked);
        free (sched);
    }
}
