/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See withheld.h. Held claims are in the KVS under every scheduler: sched-rabbit reads
 * them first when it starts, since it may allocate before this module has noticed it.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/names.h"
#include "libutil/safelog.h"
#include "base/calls.h"
#include "base/commits.h"
#include "sched/withheld.h"
#include "sched/scheduler.h"

struct withheld {
    struct dws_ctx *ctx;
    bool due;                   // withheld storage must be reported again, also to
                                //  a scheduler that is loaded later
    unsigned int version;       // of the latest job that leaves
};

static bool listens (struct dws_ctx *ctx)
{
    const char *name = scheduler_name (ctx->scheduler);

    return name && !strcmp (name, "sched-rabbit");
}

/* Does the job's storage outlast its epilog? That of an abandoned job stays until
 * Teardown is done.
 */
static bool stays (const struct job *job)
{
    return job->wf && job->claim.bytes.count > 0
        && (job->facts->abandoned ? !job_torn_down (job)
                                  : job->wf->desired < DWS_STATE_TEARDOWN);
}

bool withheld_needed (const struct job *job)
{
    return stays (job) && !job->claim.withheld && listens (job->ctx);
}

static void commit_holds (struct dws_ctx *ctx)
{
    (void)commits_save (ctx, DWS_KEY_HELD, space_withheld (ctx->space));
}

/* Write the withheld storage to the KVS, for a scheduler that is loaded later.
 */
static int write_hold (struct job *job)
{
    if (space_withhold (job->ctx->space, job->facts->id, &job->claim) < 0)
        return -1;
    commit_holds (job->ctx);
    return 0;
}

/* Only write to the KVS, as the loaded scheduler does not take holds.
 */
static void write_hold_alone (struct job *job)
{
    if (write_hold (job) < 0)
        safe_log_error (job->ctx->h, DWS_KEY_HELD);
}

/* Fluxion
 */

bool withheld_ready (struct job *job)
{
    struct dws_ctx *ctx = job->ctx;

    if (!stays (job))
        return true;
    if (!scheduler_sought (ctx->scheduler))
        return false;
    if (!scheduler_is_fluxion (ctx->scheduler))
        return true;
    if (!job->claim.leaving) {
        job->claim.leaving = ++ctx->withheld->version;
        write_hold_alone (job);
        ctx->events->job_leaves (job);
    }
    return scheduler_knows (ctx->scheduler, job->claim.leaving);
}

static void look_again (struct job *job, void *arg)
{
    if (job->facts->phase == DWS_PHASE_EPILOG
        && scheduler_knows (job->ctx->scheduler, job->claim.leaving))
        jobs_changed (job);
}

void withheld_acknowledged (struct withheld *withheld)
{
    jobs_each (withheld->ctx->jobs, look_again, NULL);
}

bool withheld_kept (const struct job *job)
{
    return scheduler_is_fluxion (job->ctx->scheduler)
        && job->claim.bytes.count > 0
        && (job->claim.leaving || job->facts->phase == DWS_PHASE_GONE);
}

unsigned int withheld_version (const struct withheld *withheld)
{
    return withheld->version;
}

/* sched-rabbit
 */

static flux_future_t *request_hold (struct dws_ctx *ctx, json_t *jobs,
                                    bool complete)
{
    return flux_rpc_pack (ctx->h, "sched-rabbit.hold", FLUX_NODEID_ANY, 0,
                          "{s:O s:b}",
                          "jobs", jobs,
                          "complete", complete);
}

/* Report one job to sched-rabbit, which holds 'bytes'; NULL ends the hold.
 */
static flux_future_t *tell_of_one (const struct job *job,
                                   const struct dws_bytes *bytes)
{
    json_t *jobs = json_object ();
    flux_future_t *f = NULL;
    char key[32];

    snprintf (key, sizeof (key), "%" PRIu64, job->facts->id);
    if (json_object_set_new (jobs, key, dws_bytes_encode (bytes)) == 0)
        f = request_hold (job->ctx, jobs, false);
    else
        errno = ENOMEM;
    json_decref (jobs);
    return f;
}

flux_future_t *withheld_tell (struct job *job)
{
    flux_future_t *f;

    if (write_hold (job) < 0)
        return NULL;
    if (!(f = tell_of_one (job, &job->claim.bytes)))
        space_withhold_failed (&job->claim);
    return f;
}

/* ENOSYS is no error: a scheduler that was unloaded holds no claims.
 */
static void hold_cb (const struct call *call, flux_future_t *f)
{
    if (flux_future_get (f, NULL) < 0 && errno != ENOSYS)
        safe_log (call->ctx->h, LOG_ERR, "sched-rabbit: hold: %s",
                  future_strerror (f, errno));
}

/* Does the claim exceed the reservation on any rabbit? Without a reservation any claim
 * does.
 */
static bool exceeds (const struct job *job)
{
    return dws_bytes_add_excess (NULL, &job->claim.bytes, &job->reserved);
}

void withheld_claimed (struct job *job)
{
    if (!exceeds (job))
        return;
    if (!listens (job->ctx))
        write_hold_alone (job);
    else if (calls_add (job->ctx, withheld_tell (job), 0, 0, hold_cb) < 0)
        safe_log_error (job->ctx->h, "sched-rabbit: hold");
}

void withheld_left (struct job *job)
{
    if (!stays (job) || job->claim.withheld)
        return;
    if (!listens (job->ctx))
        write_hold_alone (job);
    else if (calls_add (job->ctx, withheld_tell (job), 0, 0, hold_cb) < 0)
        safe_log_error (job->ctx->h, "sched-rabbit: hold");
}

void withheld_abandoned (struct job *job)
{
    struct dws_ctx *ctx = job->ctx;

    if (!stays (job))
        return;
    withheld_left (job);
    if (scheduler_is_fluxion (ctx->scheduler) && !job->claim.leaving) {
        job->claim.leaving = ++ctx->withheld->version;
        ctx->events->job_leaves (job);
    }
}

void withheld_end (struct job *job)
{
    job->claim.leaving = 0;
    if (!space_withhold_end (job->ctx->space, job->facts->id, &job->claim))
        return;
    commit_holds (job->ctx);
    if (!listens (job->ctx))
        return;
    if (calls_add (job->ctx, tell_of_one (job, NULL), 0, 0, hold_cb) < 0)
        safe_log_error (job->ctx->h, "sched-rabbit: hold");
}

bool withheld_changed (struct withheld *withheld)
{
    struct dws_ctx *ctx = withheld->ctx;
    json_t *jobs;

    if (!space_known (ctx->space) || !space_withhold_outside (ctx->space))
        return false;
    commit_holds (ctx);
    if (!listens (ctx))
        return true;
    jobs = json_object ();
    (void)json_object_set_new (jobs, SPACE_NOBODY,
                               dws_bytes_encode (space_outside (ctx->space)));
    if (calls_add (ctx, request_hold (ctx, jobs, false), 0, 0, hold_cb) < 0)
        safe_log_error (ctx->h, "sched-rabbit: hold");
    json_decref (jobs);
    return true;
}

/* Hold the claims of gone and abandoned jobs, too, whose storage may still
 * exist.
 */
static void hold_again (struct job *job, void *arg)
{
    if ((job->claim.withheld || exceeds (job) || job->facts->abandoned
         || job->facts->phase == DWS_PHASE_GONE)
        && job->claim.bytes.count > 0)
        (void)space_withhold (job->ctx->space, job->facts->id, &job->claim);
}

void withheld_learned (struct withheld *withheld)
{
    struct dws_ctx *ctx = withheld->ctx;
    struct space *space = ctx->space;

    if (!withheld->due || !space_known (space))
        return;
    space_withheld_clear (space);
    (void)space_withhold_outside (space);
    jobs_each (ctx->jobs, hold_again, NULL);
    withheld->due = false;
    commit_holds (ctx);
    if (listens (ctx)
        && calls_add (ctx, request_hold (ctx, space_withheld (space), true), 0, 0,
                      hold_cb) < 0)
        safe_log_error (ctx->h, "sched-rabbit: hold");
}

void withheld_arrived (struct withheld *withheld)
{
    withheld->due = true;
    withheld_learned (withheld);
}

struct withheld *withheld_create (struct dws_ctx *ctx)
{
    struct withheld *withheld;

    if ((withheld = calloc (1, sizeof (*withheld)))) {
        withheld->ctx = ctx;
        withheld->due = true;
    }
    return withheld;
}

void withheld_destroy (struct withheld *withheld)
{
    free (withheld);
}
