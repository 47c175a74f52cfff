/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See overdue.h.
 */

#include "agent/agent.h"
#include "agent/overdue.h"
#include "base/timer.h"
#include "facts/jobs.h"

/* Time between checks of all jobs (s).
 */
#define INTERVAL 60.

/* The job's workflow at the last check.
 */
struct last {
    uint64_t version;
    int looks;                  // checks for which it has not changed
};

/* Is the workflow expected to change?
 */
static bool is_awaited (const struct dws_workflow *wf)
{
    return wf && (wf->deleting || wf->state != wf->desired || !wf->ready);
}

/* Double the interval each time, since data movements may take hours.
 */
static bool is_turn (int looks)
{
    return (looks & (looks - 1)) == 0;
}

static void see_job (struct job *job, void *arg)
{
    struct last *last = job_slot_make (job, SLOT_OVERDUE, sizeof (*last),
                                       slot_free);

    if (!last)
        return;
    if (!is_awaited (job->wf) || job->version != last->version)
        *last = (struct last){ .version = job->version };
    else if (is_turn (++last->looks))
        jobs_doubt_workflow (job);
}

/* Skip the check while Kubernetes is unreachable: all the reads would be
 * answered in one burst later.
 */
static void overdue_timer_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                              void *arg)
{
    struct dws_ctx *ctx = arg;

    if (agent_link (ctx->agent) == DWS_LINK_UP)
        jobs_each (ctx->jobs, see_job, NULL);
}

flux_watcher_t *overdue_create (struct dws_ctx *ctx)
{
    return timer_every (ctx->h, INTERVAL, overdue_timer_cb, ctx);
}
