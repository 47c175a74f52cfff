/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Changes of job priority, for one job or for all, and telling the
 * scheduler (sched.prioritize).
 */
#include "manager.h"

static void tell_scheduler (struct manager *jm, json_t *jobs)
{
    flux_future_t *f;

    if (json_array_size (jobs) == 0)
        return;
    if (!(f = flux_rpc_pack (jm->h, "sched.prioritize", FLUX_NODEID_ANY,
                             FLUX_RPC_NORESPONSE,
                             "{s:O}", "jobs", jobs)))
        flux_log_error (jm->h, "cannot tell the scheduler of priorities");
    flux_future_destroy (f);
}

/* Returns 1 if the scheduler must be told, 0 if not, -1 on error. */
static int set_priority (struct manager *jm, struct job *job,
                         int64_t priority)
{
    switch (job->urgency) { // two of them are stronger than any plugin
    case FLUX_JOB_URGENCY_EXPEDITE:
        priority = FLUX_JOB_PRIORITY_MAX;
        break;
    case FLUX_JOB_URGENCY_HOLD:
        priority = FLUX_JOB_PRIORITY_MIN;
        break;
    }
    // in PRIORITY state the event is what moves the job on
    if (priority == job->priority && job->state == FLUX_JOB_STATE_SCHED)
        return 0;
    if (event_post (jm, job, 0, "priority", "{s:I}",
                    "priority", priority) < 0)
        return -1;
    job->priority = priority; // the event may have been deferred
    if (job->alloc_pending) {
        if (priority == FLUX_JOB_PRIORITY_MIN)
            alloc_cancel (jm, job, false);
        else
            return 1;
    }
    else if (job->alloc_queued && priority == FLUX_JOB_PRIORITY_MIN)
        alloc_dequeue (jm, job);
    return 0;
}

int reprioritize_job (struct manager *jm, struct job *job, int64_t priority)
{
    int rc;

    if (!(job->state & (FLUX_JOB_STATE_PRIORITY | FLUX_JOB_STATE_SCHED)))
        return 0;
    if ((rc = set_priority (jm, job, priority)) < 0)
        return -1;
    alloc_reorder (jm, job);
    if (rc == 1) {
        json_t *jobs = json_pack ("[[II]]", job->id, job->priority);

        tell_scheduler (jm, jobs);
        json_decref (jobs);
    }
    alloc_recalc (jm);
    return 0;
}

int reprioritize_all (struct manager *jm, get_priority_f get_priority)
{
    json_t *changed = json_array ();
    struct job *job;

    each_job (job, jm->active) {
        int64_t priority;

        if (!(job->state
              & (FLUX_JOB_STATE_PRIORITY | FLUX_JOB_STATE_SCHED))
            || get_priority (jm, job, &priority) < 0
            || priority < 0
            || priority == job->priority)
            continue;
        if (set_priority (jm, job, priority) == 1)
            json_array_append_new (changed,
                                   json_pack ("[II]",
                                              job->id,
                                              job->priority));
    }
    alloc_resort (jm);
    tell_scheduler (jm, changed);
    json_decref (changed);
    return 0;
}
