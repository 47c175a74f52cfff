/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See transient.h.
 */

#include <stdlib.h>

#include "libutil/errno_safe.h"
#include "libutil/names.h"
#include "agent/agent.h"
#include "agent/commands.h"
#include "agent/transient.h"
#include "base/timeline.h"
#include "base/timer.h"

#define DELAY 1.

struct transients {
    struct dws_ctx *ctx;
    flux_watcher_t *timer;      // looks at all jobs
    bool running;
};

static bool is_open (const struct dws_workflow *wf)
{
    return wf && !wf->deleting && wf->desired < DWS_STATE_TEARDOWN;
}

static bool is_transient (const struct dws_workflow *wf)
{
    return wf->status == DWS_STATUS_TRANSIENT && wf->t_transient > 0.;
}

static void stamped_cb (struct dws_ctx *ctx, struct job *job,
                        const struct command *cmd, json_t *report)
{
    if (!job)
        return;
    job_slot_clear (job, SLOT_TRANSIENT);
    /* The workflow may have advanced meanwhile. */
    if (json_is_true (json_object_get (report, "ok")))
        jobs_changed (job);
}

/* Takes over 'stamp'. A failure only loses the date. The slot is marked until the
 * answer.
 */
static void write_stamp (struct job *job, json_t *stamp)
{
    json_t *patch = json_pack ("{s:{s:{s:o}}}",
                               "metadata",
                                 "annotations",
                                   DWS_TRANSIENT_ANNOTATION, stamp);

    if (agent_query (job->ctx->agent, job, stamped_cb,
                     command_patch (job->wf, patch)) == 0)
        job_slot_mark (job, SLOT_TRANSIENT);
}

static json_t *make_stamp (const struct dws_workflow *wf, double since)
{
    char stamp[DWS_STAMP_SIZE];

    return json_string (dws_workflow_stamp (wf, since, stamp));
}

/* Returns true if the stamp is still to be written.
 */
static bool update_stamp (struct job *job)
{
    const struct dws_workflow *wf = job->wf;
    struct timeline *timeline = job->ctx->timeline;
    double since;

    if (!is_open (wf) || job_slot (job, SLOT_TRANSIENT)
        || !agent_ready (job->ctx->agent))
        return false;
    if (!is_transient (wf)) {
        if (wf->stamped > 0.)
            write_stamp (job, json_null ());
        return false;
    }
    since = timeline_wall (timeline, wf->t_transient);
    if (dws_workflow_is_stamped (wf, since))
        return false;
    if (timeline_now (timeline) - wf->t_transient < DELAY)
        return true;
    write_stamp (job, make_stamp (wf, since));
    return false;
}

void transients_see_job (struct transients *transients, struct job *job)
{
    if (update_stamp (job) && !transients->running) {
        timer_start (transients->timer, DELAY);
        transients->running = true;
    }
}

static void stamp_due_cb (struct job *job, void *arg)
{
    transients_see_job (arg, job);
}

static void transients_timer_cb (flux_reactor_t *r, flux_watcher_t *w,
                                 int revents, void *arg)
{
    struct transients *transients = arg;

    transients->running = false;
    jobs_each (transients->ctx->jobs, stamp_due_cb, transients);
}

struct transients *transients_create (struct dws_ctx *ctx)
{
    struct transients *transients;

    if (!(transients = calloc (1, sizeof (*transients))))
        return NULL;
    transients->ctx = ctx;
    if (!(transients->timer = timer_make (ctx->h, transients_timer_cb,
                                          transients))) {
        transients_destroy (transients);
        return NULL;
    }
    return transients;
}

void transients_destroy (struct transients *transients)
{
    if (transients) {
        ERRNO_SAFE_BLOCK;
        flux_watcher_destroy (transients->timer);
        free (transients);
    }
}
