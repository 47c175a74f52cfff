/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Exceptions and annotations of jobs, and the messages that announce them.
 */
#include "manager.h"

int raise_exception (struct manager *jm, struct job *job, const char *type,
                     int severity, uint32_t userid, const char *note,
                     int wait_status)
{
    flux_jobid_t id = job->id;
    flux_future_t *f = NULL;
    json_t *ctx;
    json_t *pub = NULL;
    int rc = -1;

    ctx = json_pack ("{s:s s:i s:s}",
                     "type", type,
                     "severity", severity,
                     "note", note ? note : "");
    pub = json_pack ("{s:I s:s s:i}",
                     "id", id,
                     "type", type,
                     "severity", severity);
    if (!ctx || !pub) {
        errno = EINVAL;
        goto done;
    }
    if (userid != FLUX_USERID_UNKNOWN)
        json_object_set_new (ctx, "userid", json_integer (userid));
    if (wait_status >= 0) {
        json_object_set_new (ctx, "wait_status", json_integer (wait_status));
        json_object_set_new (pub, "wait_status", json_integer (wait_status));
    }
    if (event_post (jm, job, 0, "exception", "O", ctx) < 0)
        goto done;
    // the job may be gone now; the execution service listens for this
    if (!(f = flux_event_publish_pack (jm->h, "job-exception",
                                       FLUX_MSGFLAG_PRIVATE, "O", pub)))
        goto done;
    rc = 0;
done:
    flux_future_destroy (f);
    json_decref (ctx);
    json_decref (pub);
    return rc;
}

/* 'clear' in annotations is told by a null. */
static int publish_annotations (struct manager *jm, struct job *job)
{
    json_t *copy = job->annotations ? json_deep_copy (job->annotations)
                                    : json_null ();

    return event_post (jm, job, EVENT_NO_COMMIT, "annotations",
                       "{s:o}", "annotations", copy);
}

int annotate_and_publish (struct manager *jm, struct job *job,
                          json_t *patch)
{
    if (job_annotate (job, NULL, patch) < 0)
        return -1;
    return publish_annotations (jm, job);
}

/* Only when nothing remains is it worth an event. */
void annotations_drop (struct manager *jm, struct job *job, const char *key)
{
    json_t *notes = job->annotations;

    if (!notes)
        return;
    if (key)
        (void)json_object_del (notes, key);
    if (key && json_object_size (notes) > 0)
        return;
    job->annotations = NULL;
    json_decref (notes);
    if (publish_annotations (jm, job) < 0)
        flux_log_error (jm->h, "annotations of %s", idf58 (job->id));
}
