/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * job-manager.update: change the jobspec of a job that does not run yet.
 * Plugins allow or deny each key, the changed whole is validated unless they
 * say it need not be.
 */
#include "manager.h"

/* When the owner overrides the rules for somebody's job, it must not change
 * any more: the next update would fail, or pass, for the wrong reasons.
 */
static int post_updates (struct manager *jm, struct job *job,
                         struct flux_msg_cred cred, json_t *updates,
                         bool validated, flux_error_t *error)
{
    if (!validated
        && (cred.rolemask & FLUX_ROLE_OWNER)
        && cred.userid != job->userid
        && event_post (jm, job, 0, "set-flags", "{s:[s]}",
                       "flags", "immutable") < 0)
        return set_error (error, "cannot set the flag immutable");
    if (event_post (jm, job, 0, "jobspec-update", "O", updates) < 0)
        return set_error (error, "failed to post jobspec-update event");
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

static int update_job (struct manager *jm, const flux_msg_t *msg,
                       struct flux_msg_cred cred, struct job *job,
                       json_t *updates, flux_error_t *error)
{
    struct job_update up = { 0 };
    json_t *jobspec = NULL;
    const char *key;
    json_t *val;
    int rc = -1;

    if (job->state & FLUX_JOB_STATE_RUNNING) {
        errno = EINVAL;
        return set_error (error, "update of running job not supported");
    }
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
    finish (jm, msg, job, updates, up.validate);
    rc = 0;
done:
    json_decref (jobspec);
    json_decref (up.extra);
    return rc;
}

/* Whether the sender may change that job. -1 with errno and a text if not.
 */
static int check_sender (struct job *job, struct flux_msg_cred sender,
                         flux_error_t *error)
{
    if (flux_msg_cred_authorize (sender, job->userid) < 0)
        return set_error (error, "guests may only update their own jobs");
    if ((sender.rolemask & FLUX_ROLE_OWNER) || !job->immutable)
        return 0;
    errno = EPERM;
    return set_error (error,
                      "the owner of the instance has changed this job: "
                      "nobody else may now");
}

void update_request (flux_t *h, flux_msg_handler_t *mh,
                     const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;
    flux_error_t error = { .text = "" };
    struct flux_msg_cred sender;
    const char *why = error.text;
    struct job *job;
    flux_jobid_t id;
    json_t *updates;

    if (flux_msg_get_cred (msg, &sender) < 0
        || flux_request_unpack (msg, NULL, "{s:o s:I}",
                                "updates", &updates,
                                "id", &id) < 0)
        goto error;
    if (!updates_valid (updates)) {
        errno = EINVAL;
        set_error (&error, "one or more jobspec updates are invalid");
        goto error;
    }
    if (!(job = job_find_active (jm, id, &why))) {
        errno = idmap_find (jm->inactive, id) ? EINVAL : ENOENT;
        goto error;
    }
    if (check_sender (job, sender, &error) == 0
        && update_job (jm, msg, sender, job, updates, &error) == 0)
        return;
error:
    respond_error (h, msg, why);
}
