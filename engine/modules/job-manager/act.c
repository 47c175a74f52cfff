/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Actions on a job's events: notify the plugins, and do what the state of the
 * job demands.  event.c calls this; other files do by event_action (), when
 * something else than an event lets a job go on.
 */
#include "manager.h"

static void applied (struct manager *jm, struct job *job, json_t *entry,
                     flux_job_state_t old_state)
{
    const char *name;
    json_t *context;
    char topic[64];

    if (entry_parse (entry, NULL, &name, &context) < 0)
        return;

    if (jobtap_notify (jm, job, name, entry) < 0)
        flux_log (jm->h, LOG_ERR, "jobtap: job.event.%s failed for %s",
                  name, idf58 (job->id));
    if (streq (name, "resource-update")
        && start_send_expiration (jm, job, context) < 0)
        flux_log_error (jm->h, "%s: expiration", idf58 (job->id));
    // before job.state.priority, which may follow from the update
    if (streq (name, "jobspec-update"))
        (void)jobtap_call (jm, job, "job.update", "{s:O}", "updates", context);
    if (job->state != old_state) {
        snprintf (topic, sizeof (topic), "job.state.%s",
                  flux_job_statetostr (job->state, "l"));
        (void)jobtap_call (jm, job, topic, "{s:O s:i}",
                           "entry", entry,
                           "prev_state", old_state);
    }
}

static int act_depend (struct manager *jm, struct job *job)
{
    if (job->depend_posted
        || job_open_deps (job) > 0
        || job_event_queued (job, "dependency-add"))
        return 0;
    job->depend_posted = true;
    return event_post (jm, job, 0, "depend", NULL);
}

static int act_cleanup (struct manager *jm, struct job *job)
{
    bool busy;

    alloc_cancel (jm, job, true);
    alloc_dequeue (jm, job);
    busy = job->perilog_active
        || job->start_pending
        || job_event_queued (job, "epilog-start");
    if (job->has_resources && !busy && !job->free_posted) {
        if (!job->alloc_bypass && alloc_free (jm, job) < 0)
            return -1;
        job->free_posted = true;
        return event_post (jm, job, 0, "free", NULL);
    }
    if (!job->has_resources && !busy && !job_event_queued (job, "clean"))
        return event_post (jm, job, 0, "clean", NULL);
    return 0;
}

static int act_inactive (struct manager *jm, struct job *job)
{
    job->readonly = true;
    if (!idmap_find (jm->active, job->id)) // may come here more than once
        return 0;
    if (job->flags & FLUX_JOB_WAITABLE)
        wait_job_inactive (jm, job);
    if (idmap_insert (jm->inactive, job->id, job) == 0) {
        job_incref (job);
        (void)jobtap_call (jm, job, "job.inactive-add", NULL);
    }
    (void)jobtap_call (jm, job, "job.destroy", NULL);
    job_aux_clear (job, NULL);
    job->nsubscribers = 0;
    idmap_delete (jm->active, job->id);
    wait_check_idle (jm);
    return 0;
}

/* May be called any number of times in a state. */
static int act (struct manager *jm, struct job *job)
{
    switch (job->state) {
    case FLUX_JOB_STATE_NEW:
        return 0;
    case FLUX_JOB_STATE_DEPEND:
        return act_depend (jm, job);
    case FLUX_JOB_STATE_PRIORITY: // perhaps back from SCHED
        alloc_cancel (jm, job, false);
        alloc_dequeue (jm, job);
        return 0;
    case FLUX_JOB_STATE_SCHED:
        if (alloc_enqueue (jm, job) < 0)
            return -1;
        alloc_recalc (jm);
        return 0;
    case FLUX_JOB_STATE_RUN:
        if (job->perilog_active || job_event_queued (job, "prolog-start"))
            return 0;
        return start_request (jm, job);
    case FLUX_JOB_STATE_CLEANUP:
        return act_cleanup (jm, job);
    case FLUX_JOB_STATE_INACTIVE:
        return act_inactive (jm, job);
    }
    return 0;
}

const struct event_ops act_ops = {
    .applied = applied,
    .act = act,
};
