/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The execution service's interface (RFC 32): one start request per job,
 * without matchtag, answered by a stream of typed responses that ends with
 * a release whose 'final' is true.
 */
#include "libutil/errno_safe.h"
#include "manager.h"

struct start {
    struct manager *jm;
    flux_msg_handler_t **handlers;
    char *topic;                // NULL without execution service
    const flux_msg_t *hello;
};

static void forget_service (struct start *start)
{
    free (start->topic);
    flux_msg_decref (start->hello);
    start->topic = NULL;
    start->hello = NULL;
}

static void teardown (struct manager *jm, const char *why)
{
    size_t count;
    void **jobs;

    if (!jm->start->topic)
        return;
    flux_log (jm->h, LOG_DEBUG, "start: stop due to %s", why);
    forget_service (jm->start);
    jobs = idmap_values (jm->active, &count);
    for (size_t i = 0; i < count; i++) {
        struct job *job = jobs[i];

        if (!job->start_pending)
            continue;
        if (job->flags & FLUX_JOB_DEBUG)
            (void)event_post (jm, job, 0, "debug.start-lost",
                              "{s:s}", "note", why);
        job->start_pending = false;
    }
    free (jobs);
}

static void hello_cb (flux_t *h, flux_msg_handler_t *mh,
                      const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;
    struct start *start = jm->start;
    const char *service;
    size_t count;
    void **jobs = idmap_values (jm->active, &count);

    if (flux_request_unpack (msg, NULL, "{s:s}", "service", &service) < 0)
        goto error;
    for (size_t i = 0; i < count; i++) {
        if (((struct job *)jobs[i])->start_pending) {
            errno = EINVAL; // the service in place is not idle
            goto error;
        }
    }
    forget_service (start);
    if (asprintf (&start->topic, "%s.start", service) < 0) {
        start->topic = NULL;
        goto error;
    }
    start->hello = flux_msg_incref (msg);
    respond_ok (h, msg);
    for (size_t i = 0; i < count; i++) {
        struct job *job = jobs[i];

        if (job->state == FLUX_JOB_STATE_RUN && event_action (jm, job) < 0)
            flux_log_error (h, "%s: error starting", idf58 (job->id));
    }
    free (jobs);
    return;
error:
    free (jobs);
    respond_error (h, msg, NULL);
}

void start_disconnect (struct manager *jm, const flux_msg_t *msg)
{
    if (jm->start->hello && flux_disconnect_match (msg, jm->start->hello))
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

static void response_cb (flux_t *h, flux_msg_handler_t *mh,
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
    if (!jm->start->topic || !streq (jm->start->topic, topic))
        return;
    if (flux_msg_unpack (msg, "{s:I s:s s:o}",
                         "id", &id,
                         "type", &type,
                         "data", &data) < 0) {
        flux_log_error (h, "malformed start response");
        return;
    }
    if (!(job = idmap_get (jm->active, id)))
        flux_log (h, LOG_ERR, "start response: %s is not active", idf58 (id));
    else if (on_response (jm, job, type, data) < 0)
        flux_log_error (h, "%s: error handling %s from exec",
                        idf58 (id), type);
}

/* Idempotent. */
int start_request (struct manager *jm, struct job *job)
{
    flux_msg_t *msg;

    if (job->start_pending || !jm->start->topic)
        return 0;
    if (!(msg = flux_request_encode (jm->start->topic, NULL))
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
    struct job *job = idmap_get (jm->active, *id);

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
    const char *topic = jm->start->topic;
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

static const struct flux_msg_handler_spec htab[] = {
    { FLUX_MSGTYPE_REQUEST, "job-manager.exec-hello", hello_cb, 0 },
    { FLUX_MSGTYPE_RESPONSE, "*.start", response_cb, 0 },
    FLUX_MSGHANDLER_TABLE_END,
};

void start_destroy (struct start *start)
{
    if (start) {
        ERRNO_SAFE_BLOCK;

        flux_msg_handler_delvec (start->handlers);
        forget_service (start);
        free (start);
    }
}

struct start *start_create (struct manager *jm)
{
    struct start *start;

    if (!(start = calloc (1, sizeof (*start))))
        return NULL;
    start->jm = jm;
    if (flux_msg_handler_addvec (jm->h, htab, jm, &start->handlers) < 0) {
        free (start);
        return NULL;
    }
    return start;
}
