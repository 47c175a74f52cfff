/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * job-manager.submit: jobs in a batch from job-ingest, which has put J and
 * jobspec into the KVS already.  The IDs of those that are turned down come
 * back with the reason.
 */
#include "manager.h"

static int post_submit (struct manager *jm, struct job *job)
{
    json_t *entry;
    int rc;

    // the time of submission is that of ingest
    if (!(entry = json_pack ("{s:f s:s s:{s:I s:i s:i s:i}}",
                             "timestamp", job->t_submit,
                             "name", "submit",
                             "context",
                               "userid", (json_int_t)job->userid,
                               "urgency", job->urgency,
                               "flags", job->flags,
                               "version", 1)))
        return -1;
    rc = event_post_entry (jm, job, 0, entry);
    json_decref (entry);
    return rc;
}

/* job.create comes after the submit event since a plugin may post events,
 * and submit has to be the first.
 */
static int accept_job (struct manager *jm, struct job *job,
                       flux_error_t *error)
{
    if (queue_submit_check (jm, job->jobspec, error) < 0)
        return -1;
    if (idmap_insert (jm->active, job->id, job) < 0)
        return set_error (error, "duplicate job ID");
    job_incref (job);
    if (post_submit (jm, job) < 0) {
        set_error (error, "error posting submit event");
        goto drop;
    }
    if (jobtap_call_early (jm, job, "job.create", NULL, error) < 0
        || jobtap_call_early (jm, job, "job.validate", NULL, error) < 0
        || jobtap_check_dependencies (jm, job, false, error) < 0)
        goto invalid;
    (void)jobtap_call (jm, job, "job.new", NULL);
    // Until then nobody else can find it in the KVS.  Submit and validate
    // are committed as one: a job whose ID is out survives a crash.
    if (event_post_held (jm, job, "validate") < 0) {
        set_error (error, "error posting validate event");
        goto invalid;
    }
    if (job->flags & FLUX_JOB_WAITABLE)
        wait_job_active (jm, job);
    if (jm->max_jobid < job->id)
        jm->max_jobid = job->id;
    return 0;
invalid:
    // for those who follow the journal
    (void)event_post (jm, job, EVENT_NO_COMMIT, "invalidate", NULL);
    (void)jobtap_call (jm, job, "job.destroy", NULL);
drop:
    job_aux_clear (job, NULL);
    idmap_delete (jm->active, job->id);
    return -1;
}

void submit_request (flux_t *h, flux_msg_handler_t *mh,
                     const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;
    json_t *jobs;
    json_t *errors = NULL;
    flux_msg_t *response = NULL;
    size_t index;
    json_t *o;

    if (flux_request_unpack (msg, NULL, "{s:o}", "jobs", &jobs) < 0)
        goto error;
    errors = json_array ();
    json_array_foreach (jobs, index, o) {
        flux_error_t error;
        struct job *job;

        if (!(job = job_from_submit (o)))
            goto error;
        if (accept_job (jm, job, &error) < 0)
            json_array_append_new (errors,
                                   json_pack ("[Is]", job->id, error.text));
        job_decref (job);
    }
    // the user learns the ID when its submit event is in the KVS
    if (!(response = flux_response_derive (msg, 0))
        || flux_msg_pack (response, "{s:O}", "errors", errors) < 0
        || event_respond (jm, response) < 0)
        goto error;
    flux_msg_decref (response);
    json_decref (errors);
    return;
error:
    respond_error (h, msg, NULL);
    flux_msg_decref (response);
    json_decref (errors);
}
