/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See sync.h.
 *
 * The job manager sends the plugin's answer in order with its other messages to
 * this module. A job that is known here and missing from the answer is
 * therefore no longer active.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>

#include "libutil/errno_safe.h"
#include "libutil/safelog.h"
#include "base/calls.h"
#include "base/retry.h"
#include "base/timeline.h"
#include "facts/jobs.h"
#include "facts/sync.h"

#define DELAY_MIN 0.1
#define DELAY_MAX 5.

struct sync {
    struct dws_ctx *ctx;
    bool done;
    bool asked;             // and not yet answered
    bool again;             // ask once more after the answer
    bool logged;            // the absence of the plugin has been logged
    bool alive;             // the plugin has answered, and not left since
    char *release;          // of the plugin, or NULL
    struct retry *retry;
};

static void mark_unlisted (struct job *job, void *arg)
{
    job->listed = false;
}

/* An entry that cannot be read does not say that its job is gone.
 */
static void mark_listed (struct jobs *jobs, json_t *entry)
{
    json_int_t id = json_integer_value (json_object_get (entry, "id"));
    struct job *job = jobs_find (jobs, id);

    if (job)
        job->listed = true;
}

static void drop_unlisted (struct job *job, void *arg)
{
    if (!job->listed && dws_job_advance (job->facts, DWS_PHASE_GONE))
        job->facts->t_gone = timeline_now (job->ctx->timeline);
}

static void learn_jobs (struct sync *sync, json_t *array)
{
    struct jobs *jobs = sync->ctx->jobs;
    json_t *entry;
    size_t index;

    jobs_each (jobs, mark_unlisted, NULL);
    json_array_foreach (array, index, entry) {
        dws_error_t error;
        struct dws_job *facts;
        struct job *job;

        if (!(facts = dws_job_decode (entry, &error))) {
            safe_log (sync->ctx->h, LOG_ERR, "sync: %s", error.text);
            mark_listed (jobs, entry);
        }
        else if (!(job = jobs_learn (jobs, facts)))
            safe_log_error (sync->ctx->h, "sync");
        else
            job->listed = true;
    }
    jobs_each (jobs, drop_unlisted, NULL);
}

static void sync_answer_cb (const struct call *call, flux_future_t *f)
{
    struct dws_ctx *ctx = call->ctx;
    struct sync *sync = ctx->sync;
    const char *release = NULL;
    json_t *array;

    sync->asked = false;
    sync->alive = false;
    if (flux_rpc_get_unpack (f, "{s:o s?s}", "jobs", &array,
                             "release", &release) < 0) {
        if (!sync->logged)
            safe_log (ctx->h, LOG_INFO, "waiting for dws-jobtap.so: %s",
                      future_strerror (f, errno));
        sync->logged = true;
        retry_later (sync->retry);
        return;
    }
    free (sync->release);
    sync->release = release ? strdup (release) : NULL;
    learn_jobs (sync, array);
    if (!sync->done)
        safe_log (ctx->h, LOG_DEBUG, "%zu jobs known", jobs_count (ctx->jobs));
    sync->done = true;
    sync->alive = true;
    sync->logged = false;
    retry_reset (sync->retry);
    jobs_all_known (ctx->jobs, JOBS_OF_FLUX);
    ctx->events->jobs_listed (ctx);
    if (sync->again) {
        sync->again = false;
        sync_start (sync);
    }
}

void sync_start (struct sync *sync)
{
    flux_future_t *f;

    if (sync->asked) {
        sync->again = true;
        return;
    }
    retry_stop (sync->retry);
    f = flux_rpc (sync->ctx->h, "job-manager.dws.sync", "{}",
                  FLUX_NODEID_ANY, 0);
    if (calls_add (sync->ctx, f, 0, 0, sync_answer_cb) < 0) {
        safe_log_error (sync->ctx->h, "job-manager.dws.sync");
        retry_later (sync->retry);
        return;
    }
    sync->asked = true;
}

void sync_plugin (struct sync *sync, bool loaded)
{
    sync->alive &= loaded;
    sync_start (sync);
}

const char *sync_release (const struct sync *sync)
{
    return sync->alive ? sync->release : NULL;
}

bool sync_alive (const struct sync *sync)
{
    return sync->alive;
}

static void sync_retry_cb (void *arg)
{
    sync_start (arg);
}

bool sync_done (const struct sync *sync)
{
    return sync->done;
}

struct sync *sync_create (struct dws_ctx *ctx)
{
    struct sync *sync;

    if (!(sync = calloc (1, sizeof (*sync))))
        return NULL;
    sync->ctx = ctx;
    if (!(sync->retry = retry_create (ctx->h, DELAY_MIN, DELAY_MAX,
                                      sync_retry_cb, sync))) {
        sync_destroy (sync);
        return NULL;
    }
    return sync;
}

void sync_destroy (struct sync *sync)
{
    if (sync) {
        ERRNO_SAFE_BLOCK;
        retry_destroy (sync->retry);
        free (sync->release);
        free (sync);
    }
}
