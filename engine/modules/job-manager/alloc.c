/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The scheduler's interface (RFC 27) and the queue of jobs that wait for it.
 *
 * Requests to the scheduler carry no matchtag: responses are matched by the
 * job ID in them, and several may come per request (annotations).
 */
#include "common/va.h"
#include "libutil/errno_safe.h"
#include "manager.h"

enum { // RFC 27 alloc response types
    ALLOC_SUCCESS = 0,
    ALLOC_ANNOTATE = 1,
    ALLOC_DENY = 2,
    ALLOC_CANCEL = 3,
};

struct alloc {
    struct manager *jm;
    struct jobq queue;      // requests to be sent
    struct jobq sent;       // requests sent
    bool greeted;           // it knows what was allocated when it said hello
    bool online;
    int limit;              // of requests sent; 0: none
    char *sched_uuid;
    flux_watcher_t *prep;
    flux_watcher_t *check;
    flux_watcher_t *idle;
};

static void requeue (struct manager *jm, struct job *job)
{
    if (!job->alloc_pending)
        return;
    jobq_remove (job);
    job->alloc_pending = false;
    if (queue_started (jm, job)
        && job->priority != FLUX_JOB_PRIORITY_MIN) {
        jobq_insert (&jm->alloc->queue, job);
        job->alloc_queued = true;
    }
    annotations_drop (jm, job, "sched");
}

static void teardown (struct manager *jm, const char *why, int errnum)
{
    struct alloc *alloc = jm->alloc;

    if (!alloc->online)
        return;
    flux_log (jm->h, LOG_DEBUG, "alloc: stop due to %s: %s",
              why, strerror (errnum));
    alloc->online = alloc->greeted = false;
    free (alloc->sched_uuid);
    alloc->sched_uuid = NULL;
    while (alloc->sent.count > 0)
        requeue (jm, TAILQ_FIRST (&alloc->sent.jobs));
    wait_check_idle (jm);
}

static int send_request (flux_t *h, const char *topic, const char *fmt, ...)
{
    flux_msg_t *msg;
    int rc = -1;

    if (!(msg = flux_request_encode (topic, NULL)))
        return -1;
    if (VA (fmt, flux_msg_vpack (msg, fmt, ap)) == 0)
        rc = flux_send (h, msg, 0);
    flux_msg_destroy (msg);
    return rc;
}

static int send_free (struct manager *jm, flux_jobid_t id, json_t *R)
{
    return send_request (jm->h, "sched.free", "{s:I s:O s:b}",
                         "id", id,
                         "R", R,
                         "final", 1);
}

/* Give back the job's resources as a whole, also between hello and ready. */
int alloc_free (struct manager *jm, struct job *job)
{
    if (!jm->alloc->greeted || !job->R)
        return 0; // the next scheduler learns by hello what is in use
    return send_free (jm, job->id, job->R);
}

static void on_success (struct manager *jm, struct job *job,
                        flux_jobid_t id, json_t *R, json_t *annotations)
{
    (void)json_object_del (R, "scheduling");
    if (!job) { // canceled meanwhile
        if (send_free (jm, id, R) < 0)
            flux_log_error (jm->h, "error sending sched.free");
        return;
    }
    jobq_remove (job);
    if (job->has_resources || job->R) {
        job->alloc_pending = false;
        flux_log (jm->h, LOG_ERR, "alloc: %s has resources already",
                  idf58 (id));
        return;
    }
    job->R = json_incref (R);
    if (annotations && annotate_and_publish (jm, job, annotations) < 0)
        flux_log_error (jm->h, "%s: cannot take annotations", idf58 (id));
    // not before: any event in SCHED would queue the job again
    job->alloc_pending = false;
    if (job->annotations)
        event_post (jm, job, 0, "alloc", "{s:O}",
                    "annotations", job->annotations);
    else
        event_post (jm, job, 0, "alloc", NULL);
}

static void on_cancel (struct manager *jm, struct job *job)
{
    if (job->state == FLUX_JOB_STATE_SCHED)
        requeue (jm, job);
    else {
        jobq_remove (job);
        job->alloc_pending = false;
        annotations_drop (jm, job, NULL);
    }
    if (event_action (jm, job) < 0)
        flux_log_error (jm->h, "%s: cannot go on after sched.cancel",
                        idf58 (job->id));
    wait_check_idle (jm);
}

void alloc_response (flux_t *h, flux_msg_handler_t *mh,
                     const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;
    json_t *R = NULL;
    json_t *annotations = NULL;
    const char *note = NULL;
    flux_jobid_t id;
    int type;
    int rc;
    struct job *job;

    rc = flux_response_decode (msg, NULL, NULL); // ENOSYS: no scheduler
    if (rc == 0)
        rc = flux_msg_unpack (msg, "{s:i s:I s?o s?o s?s}",
                              "type", &type,
                              "id", &id,
                              "R", &R,
                              "annotations", &annotations,
                              "note", &note);
    if (rc == 0 && type == ALLOC_SUCCESS && !R) {
        errno = EPROTO;
        rc = -1;
    }
    if (rc < 0) {
        teardown (jm, "alloc response error", errno);
        return;
    }
    if ((job = idmap_find (jm->active, id)))
        job = job->alloc_pending ? job_incref (job) : NULL;
    switch (type) {
    case ALLOC_SUCCESS:
        on_success (jm, job, id, R, annotations);
        break;
    case ALLOC_ANNOTATE:
        if (job && annotations
            && annotate_and_publish (jm, job, annotations) < 0)
            flux_log_error (h, "%s: cannot take annotations", idf58 (id));
        break;
    case ALLOC_DENY:
        if (job) {
            jobq_remove (job);
            annotations_drop (jm, job, NULL);
            job->alloc_pending = false;
            raise_exception (jm, job, "alloc", 0, jm->owner, note, -1);
        }
        break;
    case ALLOC_CANCEL:
        if (job)
            on_cancel (jm, job);
        break;
    default:
        flux_log (h, LOG_ERR, "alloc: unknown response type %d", type);
    }
    job_decref (job);
}

void sched_hello_request (flux_t *h, flux_msg_handler_t *mh,
                          const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;
    struct job *job;

    errno = EPROTO;
    if (!flux_msg_is_streaming (msg)
        || flux_request_decode (msg, NULL, NULL) < 0)
        goto error;
    each_job (job, jm->active) {
        if (!job->has_resources || job->alloc_bypass)
            continue;
        if (flux_respond_pack (h, msg, "{s:f s:I s:I s:I}",
                               "t_submit", job->t_submit,
                               "userid", (json_int_t)job->userid,
                               "priority", job->priority,
                               "id", job->id) < 0)
            goto error;
    }
    jm->alloc->greeted = true;
    if (flux_respond_error (h, msg, ENODATA, NULL) < 0)
        flux_log_error (h, "cannot end the answer to sched-hello");
    return;
error:
    respond_error (h, msg, NULL);
}

void sched_ready_request (flux_t *h, flux_msg_handler_t *mh,
                          const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;
    struct alloc *alloc = jm->alloc;
    const char *sender;
    int limit = 0;
    const char *mode;

    if (flux_request_unpack (msg, NULL, "{s?i s:s}",
                             "limit", &limit,
                             "mode", &mode) < 0)
        goto error;
    if ((streq (mode, "limited") ? limit <= 0 : !streq (mode, "unlimited"))
        || !(sender = flux_msg_route_first (msg))) {
        errno = EPROTO;
        goto error;
    }
    free (alloc->sched_uuid);
    if (!(alloc->sched_uuid = strdup (sender)))
        goto error;
    alloc->limit = streq (mode, "limited") ? limit : 0;
    alloc->online = true;
    respond_pack (h, msg, "{s:i}", "count", alloc->queue.count);
    return;
error:
    respond_error (h, msg, NULL);
}

static bool can_send (struct alloc *alloc)
{
    struct job *job = TAILQ_FIRST (&alloc->queue.jobs);

    return alloc->online
        && job
        && (alloc->limit == 0 || alloc->sent.count < alloc->limit)
        && job->priority != FLUX_JOB_PRIORITY_MIN; // then all are held
}

/* Requests are sent one per turn of the reactor, so that what comes in
 * between (cancel, change of priority) still makes a difference.
 */
static void prep_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                     void *arg)
{
    struct alloc *alloc = arg;

    if (can_send (alloc))
        flux_watcher_start (alloc->idle);
}

static void check_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                      void *arg)
{
    struct alloc *alloc = arg;
    struct manager *jm = alloc->jm;
    struct job *job = TAILQ_FIRST (&alloc->queue.jobs);

    flux_watcher_stop (alloc->idle);
    if (!can_send (alloc))
        return;
    if (send_request (jm->h, "sched.alloc", "{s:O s:f s:I s:I s:I}",
                      "jobspec", job->jobspec,
                      "t_submit", job->t_submit,
                      "userid", (json_int_t)job->userid,
                      "priority", (json_int_t)job->priority,
                      "id", job->id) < 0) {
        flux_log_error (jm->h, "cannot ask for an allocation");
        flux_reactor_stop_error (r);
        return;
    }
    jobq_insert (&alloc->sent, job);
    job->alloc_queued = false;
    job->alloc_pending = true;
    if (job->flags & FLUX_JOB_DEBUG)
        (void)event_post (jm, job, 0, "debug.alloc-request", NULL);
}

int alloc_enqueue (struct manager *jm, struct job *job)
{
    if (!job->alloc_bypass
        && !job->alloc_queued
        && !job->alloc_pending
        && job->priority != FLUX_JOB_PRIORITY_MIN
        && queue_started (jm, job)) {
        jobq_insert (&jm->alloc->queue, job);
        job->alloc_queued = true;
    }
    return 0;
}

void alloc_dequeue (struct manager *jm, struct job *job)
{
    if (job->alloc_queued) {
        jobq_remove (job);
        job->alloc_queued = false;
    }
}

/* The scheduler answers the alloc request, not this.  With 'finalize' the
 * job does not wait for that (and a late success is given back).
 */
void alloc_cancel (struct manager *jm, struct job *job, bool finalize)
{
    flux_future_t *f;

    if (!job->alloc_pending)
        return;
    if (!(f = flux_rpc_pack (jm->h, "sched.cancel", FLUX_NODEID_ANY,
                             FLUX_RPC_NORESPONSE,
                             "{s:I}", "id", job->id)))
        flux_log_error (jm->h, "cannot call back a request for an allocation");
    flux_future_destroy (f);
    if (finalize) {
        jobq_remove (job);
        job->alloc_pending = false;
        annotations_drop (jm, job, NULL);
    }
}

/* In limited mode, call back requests of jobs that others have overtaken. */
void alloc_recalc (struct manager *jm)
{
    struct alloc *alloc = jm->alloc;
    struct job *head = TAILQ_FIRST (&alloc->queue.jobs);
    struct job *tail = TAILQ_LAST (&alloc->sent.jobs, joblist);

    if (alloc->limit == 0)
        return;
    while (head && tail && job_cmp_priority (head, tail) < 0) {
        alloc_cancel (jm, tail, false);
        head = TAILQ_NEXT (head, link);
        tail = TAILQ_PREV (tail, joblist, link);
    }
}

void alloc_reorder (struct manager *jm, struct job *job)
{
    if (job->q)
        jobq_insert (job->q, job);
}

static int by_priority (const void *a, const void *b)
{
    return job_cmp_priority (*(struct job *const *)a,
                             *(struct job *const *)b);
}

/* Insertion is quick at the end only: insert in the new order. */
static void resort (struct jobq *q)
{
    size_t count = q->count;
    struct job **jobs = calloc (count + 1, sizeof (*jobs));

    for (size_t i = 0; jobs && i < count; i++) {
        jobs[i] = TAILQ_FIRST (&q->jobs);
        jobq_remove (jobs[i]);
    }
    if (jobs)
        qsort (jobs, count, sizeof (*jobs), by_priority);
    for (size_t i = 0; jobs && i < count; i++)
        jobq_insert (q, jobs[i]);
    free (jobs);
}

void alloc_resort (struct manager *jm)
{
    if (jm->alloc) { // plugins loaded at start come before
        resort (&jm->alloc->queue);
        resort (&jm->alloc->sent);
        alloc_recalc (jm);
    }
}

bool alloc_online (struct manager *jm)
{
    return jm->alloc->online;
}

void alloc_query_request (flux_t *h, flux_msg_handler_t *mh,
                          const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;

    respond_pack (h, msg, "{s:i s:i s:i}",
                  "queue_length", jm->alloc->queue.count,
                  "alloc_pending", jm->alloc->sent.count,
                  "running", jm->running_jobs);
}

void alloc_disconnect (struct manager *jm, const flux_msg_t *msg)
{
    const char *sender = flux_msg_route_first (msg);

    if (jm->alloc->sched_uuid
        && sender
        && streq (sender, jm->alloc->sched_uuid))
        teardown (jm, "disconnect", 0);
}

void alloc_destroy (struct alloc *alloc)
{
    if (alloc) {
        ERRNO_SAFE_BLOCK;

        flux_watcher_destroy (alloc->prep);
        flux_watcher_destroy (alloc->check);
        flux_watcher_destroy (alloc->idle);
        while (alloc->queue.count > 0)
            jobq_remove (TAILQ_FIRST (&alloc->queue.jobs));
        while (alloc->sent.count > 0)
            jobq_remove (TAILQ_FIRST (&alloc->sent.jobs));
        free (alloc->sched_uuid);
        free (alloc);
    }
}

struct alloc *alloc_create (struct manager *jm)
{
    flux_reactor_t *r = flux_get_reactor (jm->h);
    struct alloc *alloc;

    if (!(alloc = calloc (1, sizeof (*alloc))))
        return NULL;
    alloc->jm = jm;
    TAILQ_INIT (&alloc->queue.jobs);
    TAILQ_INIT (&alloc->sent.jobs);
    jm->sent = &alloc->sent;
    if (!(alloc->prep = flux_prepare_watcher_create (r, prep_cb, alloc))
        || !(alloc->check = flux_check_watcher_create (r, check_cb, alloc))
        || !(alloc->idle = flux_idle_watcher_create (r, NULL, NULL))) {
        alloc_destroy (alloc);
        return NULL;
    }
    flux_watcher_start (alloc->prep);
    flux_watcher_start (alloc->check);
    return alloc;
}
