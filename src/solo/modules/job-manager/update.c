/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * job-manager.update: change the jobspec of a job.  Plugins allow or deny
 * each key, the changed whole is validated unless they say it need not be,
 * and the scheduler may be asked: whether it is feasible, or whether a
 * running job may last longer.
 */
#include "manager.h"

struct pending { // waits for the scheduler
    struct pending *next;
    struct update *up;
    flux_future_t *f;
    const flux_msg_t *msg;
    struct job *job;
    json_t *updates;
    bool validated;
    bool optional;  // a scheduler without the service is no objection
};

struct update {
    struct manager *jm;
    flux_msg_handler_t **handlers;
    struct pending *list;
};

static void pending_free (struct pending *req)
{
    if (req) {
        int saved_errno = errno;

        flux_future_destroy (req->f);
        flux_msg_decref (req->msg);
        job_decref (req->job);
        json_decref (req->updates);
        free (req);
        errno = saved_errno;
    }
}

static int new_expiration (struct job *job, json_t *updates,
                           double *expiration, flux_error_t *error)
{
    double duration;
    double starttime = -1.;

    if (json_unpack (updates, "{s:F}",
                     "attributes.system.duration", &duration) < 0)
        return set_error (error, "duration must be a number");
    *expiration = 0.;
    if (duration == 0.)
        return 0;
    if (!job->R
        || json_unpack (job->R, "{s:{s?F}}",
                        "execution", "starttime", &starttime) < 0
        || starttime <= 0.)
        return set_error (error, "unable to get job starttime");
    *expiration = starttime + duration;
    if (*expiration <= now_realtime ())
        return set_error (error, "requested duration places job expiration "
                          "in the past");
    return 0;
}

/* When the owner overrides the rules for somebody's job, it must not change
 * any more: the next update would fail, or pass, for the wrong reasons.
 */
static int post_updates (struct manager *jm, struct job *job,
                         struct flux_msg_cred cred, json_t *updates,
                         bool validated, flux_error_t *error)
{
    bool limited = (job->state & FLUX_JOB_STATE_RUNNING)
        && json_object_get (updates, "attributes.system.duration");
    double expiration;

    if (limited && new_expiration (job, updates, &expiration, error) < 0)
        return -1;
    if (!validated
        && (cred.rolemask & FLUX_ROLE_OWNER)
        && cred.userid != job->userid
        && event_post (jm, job, 0, "set-flags", "{s:[s]}",
                       "flags", "immutable") < 0)
        return set_error (error, "failed to set job immutable flag");
    if (event_post (jm, job, 0, "jobspec-update", "O", updates) < 0)
        return set_error (error, "failed to post jobspec-update event");
    if (limited
        && event_post (jm, job, 0, "resource-update", "{s:f}",
                       "expiration", expiration) < 0)
        return set_error (error, "failed to post resource-update event");
    return 0;
}

static void finish (struct manager *jm, const flux_msg_t *msg,
                    struct job *job, json_t *updates, bool validated)
{
    struct flux_msg_cred cred;
    flux_error_t error;

    error.text[0] = '\0';
    errno = EINVAL;
    if (flux_msg_get_cred (msg, &cred) < 0
        || post_updates (jm, job, cred, updates, validated, &error) < 0)
        respond_error (jm->h, msg, error.text);
    else
        respond_ok (jm->h, msg);
}

static void scheduler_cb (flux_future_t *f, void *arg)
{
    struct pending *req = arg;
    struct manager *jm = req->up->jm;
    struct pending **pp;

    if (flux_future_get (f, NULL) < 0
        && !(errno == ENOSYS && req->optional))
        respond_error (jm->h, req->msg,
                       req->optional ? "scheduler refused expiration update"
                                     : flux_future_error_string (f));
    else
        finish (jm, req->msg, req->job, req->updates, req->validated);
    for (pp = &req->up->list; *pp != req; pp = &(*pp)->next)
        ;
    *pp = req->next;
    pending_free (req);
}

/* Takes over 'f', which asks the scheduler. */
static int wait_for_scheduler (struct manager *jm, const flux_msg_t *msg,
                               struct job *job, json_t *updates,
                               bool validated, bool optional,
                               flux_future_t *f)
{
    struct pending *req;

    if (!f || !(req = calloc (1, sizeof (*req)))) {
        flux_future_destroy (f);
        return -1;
    }
    req->f = f;
    req->up = jm->update;
    req->msg = flux_msg_incref (msg);
    req->job = job_incref (job);
    req->updates = json_incref (updates);
    req->validated = validated;
    req->optional = optional;
    if (flux_future_then (f, -1., scheduler_cb, req) < 0) {
        pending_free (req);
        return -1;
    }
    req->next = jm->update->list;
    jm->update->list = req;
    return 0;
}

static int update_job (struct manager *jm, const flux_msg_t *msg,
                       struct flux_msg_cred cred, struct job *job,
                       json_t *updates, flux_error_t *error)
{
    struct job_update up = { 0 };
    json_t *jobspec = NULL;
    flux_future_t *f;
    const char *key;
    json_t *val;
    double expiration;
    int rc = -1;

    json_object_foreach (updates, key, val) {
        if (jobtap_job_update (jm, job, cred, key, val, &up, error) < 0)
            goto done;
    }
    if (up.extra)
        json_object_update (updates, up.extra);
    if (!(jobspec = json_deep_copy (job->jobspec))
        || jobspec_apply (jobspec, updates) < 0) {
        set_error (error, "update cannot be applied to jobspec");
        goto done;
    }
    if (up.validate
        && jobtap_call_early (jm, job, "job.validate", jobspec, error) < 0)
        goto done;
    if (up.feasibility) {
        f = flux_rpc_pack (jm->h, "feasibility.check", 0, 0,
                           "{s:O}", "jobspec", jobspec);
        rc = wait_for_scheduler (jm, msg, job, updates, up.validate, false,
                                 f);
    }
    else if ((job->state & FLUX_JOB_STATE_RUNNING)
             && json_object_get (updates, "attributes.system.duration")) {
        errno = EINVAL;
        if (new_expiration (job, updates, &expiration, error) < 0)
            goto done;
        f = flux_rpc_pack (jm->h, "sched.expiration", 0, 0, "{s:I s:f}",
                           "id", job->id,
                           "expiration", expiration);
        rc = wait_for_scheduler (jm, msg, job, updates, up.validate, true,
                                 f);
    }
    else {
        finish (jm, msg, job, updates, up.validate);
        rc = 0;
    }
done:
    json_decref (jobspec);
    json_decref (up.extra);
    return rc;
}

static void update_cb (flux_t *h, flux_msg_handler_t *mh,
                       const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;
    struct flux_msg_cred cred;
    const char *errstr = NULL;
    flux_error_t error;
    flux_jobid_t id;
    struct job *job;
    json_t *updates;

    error.text[0] = '\0';
    if (flux_request_unpack (msg, NULL, "{s:I s:o}",
                             "id", &id,
                             "updates", &updates) < 0
        || flux_msg_get_cred (msg, &cred) < 0)
        goto error;
    if (!updates_valid (updates)) {
        errstr = "one or more jobspec updates are invalid";
        errno = EINVAL;
        goto error;
    }
    if (!(job = job_find_active (jm, id, &errstr))) {
        if (idmap_get (jm->inactive, id))
            errno = EINVAL;
        goto error;
    }
    if (flux_msg_cred_authorize (cred, job->userid) < 0) {
        errstr = "guests may only update their own jobs";
        goto error;
    }
    if (job->immutable && !(cred.rolemask & FLUX_ROLE_OWNER)) {
        errstr = "job is immutable due to previous instance owner update";
        errno = EPERM;
        goto error;
    }
    if (update_job (jm, msg, cred, job, updates, &error) < 0) {
        errstr = error.text[0] ? error.text : NULL;
        goto error;
    }
    return;
error:
    respond_error (h, msg, errstr);
}

static const struct flux_msg_handler_spec htab[] = {
    { FLUX_MSGTYPE_REQUEST, "job-manager.update", update_cb,
      FLUX_ROLE_USER },
    FLUX_MSGHANDLER_TABLE_END,
};

void update_destroy (struct update *up)
{
    if (up) {
        int saved_errno = errno;

        flux_msg_handler_delvec (up->handlers);
        while (up->list) {
            struct pending *req = up->list;

            up->list = req->next;
            (void)flux_respond_error (up->jm->h, req->msg, EAGAIN,
                                      "job manager is shutting down");
            pending_free (req);
        }
        free (up);
        errno = saved_errno;
    }
}

struct update *update_create (struct manager *jm)
{
    struct update *up;

    if (!(up = calloc (1, sizeof (*up))))
        return NULL;
    up->jm = jm;
    if (flux_msg_handler_addvec (jm->h, htab, jm, &up->handlers) < 0) {
        free (up);
        return NULL;
    }
    return up;
}
