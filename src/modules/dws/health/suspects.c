/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See suspects.h.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errno_safe.h"
#include "libutil/safelog.h"
#include "base/timeline.h"
#include "base/timer.h"
#include "facts/storages.h"
#include "health/suspects.h"

/* Time without news after which a job may try the rabbit (s).
 */
#define PROBATION 3600.

/* 'rabbits' has of each {"reason", "since", "status": that of the Storage
 * object, null once it was not Ready}.
 */
struct suspects {
    struct dws_ctx *ctx;
    json_t *rabbits;
    flux_watcher_t *timer;      // the end of the next probation
};

static json_t *status_of (struct suspects *suspects, const char *rabbit)
{
    json_t *objects = storages_by_name (suspects->ctx->storages);

    return json_object_get (json_object_get (objects, rabbit), "status");
}

static double since_of (json_t *suspect)
{
    return json_number_value (json_object_get (suspect, "since"));
}

/* Wake when the first probation ends.
 */
static void arm_timer (struct suspects *suspects)
{
    double now = monotonic_now ();
    double first = -1.;
    const char *rabbit;
    json_t *suspect;

    json_object_foreach (suspects->rabbits, rabbit, suspect) {
        double left = since_of (suspect) + PROBATION - now;

        if (first < 0. || left < first)
            first = left > 0. ? left : 0.;
    }
    if (first >= 0.)
        timer_start (suspects->timer, first);
}

static void clear_suspect (struct suspects *suspects, const char *rabbit,
                           const char *why)
{
    safe_log (suspects->ctx->h, LOG_INFO, "rabbit %s is suspect no more: %s",
              rabbit, why);
    json_object_del (suspects->rabbits, rabbit);
}

static void add_suspect (struct suspects *suspects, const struct job *job)
{
    const char *rabbit = job->wf->silent;
    bool news = !json_object_get (suspects->rabbits, rabbit);
    json_t *status = status_of (suspects, rabbit);
    char reason[256];
    json_t *suspect;

    snprintf (reason, sizeof (reason), "its controller does not answer %s",
              job->wf->name);
    if (!(suspect = json_pack ("{s:s s:f s:O?}",
                               "reason", reason,
                               "since", monotonic_now (),
                               "status", status))
        || json_object_set_new (suspects->rabbits, rabbit, suspect) < 0) {
        safe_log (suspects->ctx->h, LOG_ERR, "suspects: out of memory");
        return;
    }
    if (news)
        safe_log (suspects->ctx->h, LOG_ERR, "rabbit %s is suspect: %s",
                  rabbit, reason);
    arm_timer (suspects);
}

/* Clear rabbits on which a workflow that is ready in Setup has storage. A forced state
 * does not prove that the storage exists.
 */
static void clear_used (struct suspects *suspects, const struct job *job)
{
    const struct dws_workflow *wf = job->wf;
    const char *rabbit;
    json_t *suspect;
    void *next;

    if (wf->state != DWS_STATE_SETUP || !wf->ready || wf->force_ready)
        return;
    json_object_foreach_safe (suspects->rabbits, next, rabbit, suspect) {
        if (dws_bytes_get (&job->claim.bytes, rabbit) > 0)
            clear_suspect (suspects, rabbit, "storage was made there");
    }
}

void suspects_see_job (struct suspects *suspects, const struct job *job)
{
    if (!job->wf)
        return;
    if (job->wf->silent)
        add_suspect (suspects, job);
    else if (json_object_size (suspects->rabbits) > 0)
        clear_used (suspects, job);
}

static bool is_ready (json_t *status)
{
    const char *s = json_string_value (json_object_get (status, "status"));

    return s && !strcmp (s, "Ready");
}

/* A rabbit that is not Ready does not count as suspect, and the suspicion ends
 * when it is Ready again.
 */
void suspects_see_storages (struct suspects *suspects)
{
    const char *rabbit;
    json_t *suspect;
    void *next;

    json_object_foreach_safe (suspects->rabbits, next, rabbit, suspect) {
        json_t *before = json_object_get (suspect, "status");
        json_t *status = status_of (suspects, rabbit);

        if (!is_ready (status))
            (void)json_object_set_new (suspect, "status", json_null ());
        else if (!json_equal (before, status))
            clear_suspect (suspects, rabbit, "it has a new status");
    }
}

const char *suspects_reason (const struct suspects *suspects,
                             const char *rabbit)
{
    json_t *suspect = json_object_get (suspects->rabbits, rabbit);

    return json_string_value (json_object_get (suspect, "reason"));
}

json_t *suspects_names (const struct suspects *suspects)
{
    return suspects->rabbits;
}

static void suspects_timer_cb (flux_reactor_t *r, flux_watcher_t *w,
                               int revents, void *arg)
{
    struct suspects *suspects = arg;
    const char *rabbit;
    json_t *suspect;
    void *next;

    json_object_foreach_safe (suspects->rabbits, next, rabbit, suspect) {
        if (since_of (suspect) + PROBATION <= monotonic_now ())
            clear_suspect (suspects, rabbit, "a job may try it");
    }
    arm_timer (suspects);
    suspects->ctx->events->storages_changed (suspects->ctx);
}

struct suspects *suspects_create (struct dws_ctx *ctx)
{
    struct suspects *suspects;

    if (!(suspects = calloc (1, sizeof (*suspects))))
        return NULL;
    suspects->ctx = ctx;
    if (!(suspects->rabbits = json_object ())
        || !(suspects->timer = timer_make (ctx->h, suspects_timer_cb,
                                           suspects))) {
        suspects_destroy (suspects);
        errno = ENOMEM;
        return NULL;
    }
    return suspects;
}

void suspects_destroy (struct suspects *suspects)
{
    if (suspects) {
        ERRNO_SAFE_BLOCK;
        flux_watcher_destroy (suspects->timer);
        json_decref (suspects->rabbits);
        free (suspects);
    }
}
