/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The execution service's interface (RFC 32): one start request per job,
 * without matchtag, answered by a stream of typed responses that ends with
 * a release whose 'final' is true.
 */
#include "libutil/errno_safe.h"
#include "manager.h"

void start_forget (struct manager *jm)
{
    free (jm->start_topic);
    flux_msg_decref (jm->exec_hello);
    jm->start_topic = NULL;
    jm->exec_hello = NULL;
}

static void teardown (struct manager *jm, const char *why)
{
    struct job *job;

    if (!jm->start_topic)
        return;
    flux_log (jm->h, LOG_DEBUG, "start: stop due to %s", why);
    start_forget (jm);
    each_job (job, jm->active) {
        if (!job->start_pending)
            continue;
        if (job->flags & FLUX_JOB_DEBUG)
            (void)event_post (jm, job, 0, "debug.start-lost",
                              "{s:s}", "note", why);
        job->start_pending = false;
    }
}

void exec_hello_request (flux_t *h, flux_msg_handler_t *mh,
                         const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;
    const char *service;
    struct job *job;

    if (flux_request_unpack (msg, NULL, "{s:s}", "service", &service) < 0)
        goto error;
    each_job (job, jm->active) {
        if (job->start_pending) {
            errno = EINVAL; // the service in place is not idle
            goto error;
        }
    }
    start_forget (jm);
    if (asprintf (&jm->start_topic, "%s.start", service) < 0) {
        jm->start_topic = NULL;
        goto error;
    }
    jm->exec_hello = flux_msg_incref (msg);
    respond_ok (h, msg);
    each_job (job, jm->active) {
        if (job->state == FLUX_JOB_STATE_RUN && event_action (jm, job) < 0)
            flux_log_error (h, "%s: error starting", idf58 (job->id));
    }
    return;
error:
    respond_error (h, msg, NULL);
}

void start_disconnect (struct manager *jm, const flux_msg_t *msg)
{
    if (jm->exec_hello && flux_disconnect_match (msg, jm->exec_hello))
        teardown (jm, "disconnect");
}

static int on_release (struct manager *jm, struct job *job, json_t *data)
{
    const char *ranks;
    int final;

    if (json_unpack (data, "{s:s s:b}", "ranks", &ranks, "final", &final) < 0)
        return -1;
    if (final)
        job->start_pending = false;
    return event_post (jm, job, 0, "release", "{s:s s:b}",
                       "ranks", ranks,
                       "final", final);
}

static int on_exception (struct manager *jm, struct job *job, json_t *data)
{
    const char *note = "";
    const char *type;
    int severity;

    if (json_unpack (data, "{s?s s:s s:i}",
                     "note", &note,
                     "type", &type,
                     "severity", &severity) < 0)
        return -1;
    return event_post (jm, job, 0, "exception", "{s:s s:i s:I s:s}",
                       "type", type,
                       "severity", severity,
                       "userid", (json_int_t)jm->owner,
                       "note", note);
}

static int on_response (struct manager *jm, struct job *job,
                        const char *type, json_t *data)
{
    int status;

    errno = EPROTO;
    if (streq (type, "start"))
        return job->started ? 0 : event_post (jm, job, 0, "start", NULL);
    if (streq (type, "finish")) {
        if (json_unpack (data, "{s:i}", "status", &status) < 0)
            return -1;
        return event_post (jm, job, 0, "finish", "{s:i}", "status", status);
    }
    if (streq (type, "release"))
        return on_release (jm, job, data);
    if (streq (type, "exception"))
        return on_exception (jm, job, data);
    if (streq (type, "reattached")) {
        if (job->flags & FLUX_JOB_DEBUG)
            return event_post (jm, job, 0, "debug.exec-reattach-finish", NULL);
        return 0;
    }
    return -1;
}

void start_response (flux_t *h, flux_msg_handler_t *mh,
                     const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;
    const char *topic;
    flux_jobid_t id;
    const char *type;
    json_t *data;
    struct job *job;

    if (flux_response_decode (msg, &topic, NULL) < 0) { // as in ENOSYS
        teardown (jm, strerror (errno));
        return;
    }
    if (!jm->start_topic || !streq (jm->start_topic, topic))
        return;
    if (flux_msg_unpack (msg, "{s:I s:s s:o}",
                         "id", &id,
                         "type", &type,
                         "data", &data) < 0) {
        flux_log_error (h, "malformed start response");
        return;
    }
    if (!(job = idmap_find (jm->active, id)))
        flux_log (h, LOG_ERR, "start response: %s is not active", idf58 (id));
    else if (on_response (jm, job, type, data) < 0)
        flux_log_error (h, "%s: error handling %s from exec",
                        idf58 (id), type);
}

/* Idempotent. */
int start_request (struct manager *jm, struct job *job)
{
    flux_msg_t *msg;

    if (job->start_pending || !jm->start_topic)
        return 0;
    if (!(msg = flux_request_encode (jm->start_topic, NULL))
        || flux_msg_pack (msg, "{s:I s:I s:O s:b s:O}",
                          "id", job->id,
                          "userid", (json_int_t)job->userid,
                          "jobspec", job->jobspec,
                          "reattach", job->started,
                          "R", job->R) < 0
        || flux_send (jm->h, msg, 0) < 0) {
        flux_msg_destroy (msg);
        return -1;
    }
    flux_msg_destroy (msg);
    job->start_pending = true;
    if (job->flags & FLUX_JOB_DEBUG)
        (void)event_post (jm, job, 0, "debug.start-request", NULL);
    return 0;
}

static void expiration_cb (flux_future_t *f, void *arg)
{
    struct manager *jm = arg;
    flux_jobid_t *id = flux_future_aux_get (f, "jobid");
    struct job *job = idmap_find (jm->active, *id);

    if (flux_future_get (f, NULL) < 0 && job)
        (void)event_post (jm, job, 0, "exception", "{s:s s:i s:I s:s}",
                          "type", "exec",
                          "severity", 1,
                          "userid", (json_int_t)FLUX_USERID_UNKNOWN,
                          "note", "the exec service does not know the new"
                                  " expiration");
    flux_future_destroy (f);
}

int start_send_expiration (struct manager *jm, struct job *job, json_t *context)
{
    const char *topic = jm->start_topic;
    char service[64];
    double expiration;
    flux_jobid_t *id;
    flux_future_t *f;

    if (!topic || json_unpack (context, "{s:F}", "expiration", &expiration) < 0) {
        errno = EPROTO;
        return -1;
    }
    snprintf (service, sizeof (service), "%.*s.expiration",
              (int)(strrchr (topic, '.') - topic), topic);
    if (!(f = flux_rpc_pack (jm->h, service, 0, 0, "{s:I s:f}",
                             "id", job->id,
                             "expiration", expiration)))
        return -1;
    if (!(id = malloc (sizeof (*id)))
        || flux_future_aux_set (f, "jobid", id, free) < 0) {
        free (id);
        goto error;
    }
    *id = job->id;
    if (flux_future_then (f, -1., expiration_cb, jm) == 0)
        return 0;
error:
    ERRNO_SAFE (flux_future_destroy (f));
    return -1;
}
