/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Posts job events: journal, state, KVS, and then what follows from them
 * (act.c): plugins are told, and what the (new) state asks for is done.
 *
 * Order: events of one job are handled first in, first out.  An event posted
 * while another one of the same job is being handled is queued and handled
 * right after it, so callbacks never see a job change under them.
 *
 * Commits: eventlog lines collect in a batch.  The batch is committed as
 * soon as the reactor runs and no earlier commit is under way, so a lone job
 * waits for nothing and a burst shares its commits.
 */
#include "common/va.h"
#include "libutil/errno_safe.h"
#include "manager.h"

struct batch {
    struct manager *jm;
    flux_kvs_txn_t *txn;
    flux_future_t *f;
    struct flux_msglist *responses;
    struct job **held;
    size_t nheld;
};

struct event {
    struct manager *jm;
    const struct event_ops *ops;
    struct batch *open;     // collects events
    struct batch *inflight; // is being committed
    flux_watcher_t *timer;
    double timeout;
};

static int drain_queue (struct manager *jm, struct job *job);

static void fatal (struct manager *jm, const char *what)
{
    flux_log_error (jm->h, "%s", what);
    flux_reactor_stop_error (flux_get_reactor (jm->h));
}

static struct batch *batch_open (struct event *ev)
{
    if (!ev->open) {
        if (!(ev->open = calloc (1, sizeof (*ev->open))))
            return NULL;
        ev->open->jm = ev->jm;
        if (!ev->inflight) {
            flux_timer_watcher_reset (ev->timer, ev->timeout, 0.);
            flux_watcher_start (ev->timer);
        }
    }
    return ev->open;
}

static int fail_response (flux_msg_t *msg, int errnum)
{
    if (flux_msg_set_payload (msg, NULL, 0) < 0
        || flux_msg_set_errnum (msg, errnum) < 0)
        return -1;
    return 0;
}

/* Release what waited for the batch, then free it.  If the commit has failed
 * nobody is told that all is well.
 */
static void batch_finish (struct batch *batch, int errnum)
{
    struct manager *jm = batch->jm;

    for (size_t i = 0; i < batch->nheld; i++) {
        batch->held[i]->hold = false;
        (void)drain_queue (jm, batch->held[i]);
        job_decref (batch->held[i]);
    }
    if (batch->responses) {
        const flux_msg_t *msg;

        while ((msg = flux_msglist_pop (batch->responses))) {
            if ((errnum && fail_response ((flux_msg_t *)msg, errnum) < 0)
                || flux_send (jm->h, msg, 0) < 0)
                flux_log_error (jm->h, "error sending deferred response");
            flux_msg_decref (msg);
        }
        flux_msglist_destroy (batch->responses);
    }
    flux_future_destroy (batch->f);
    flux_kvs_txn_destroy (batch->txn);
    free (batch->held);
    free (batch);
}

static void commit_continuation (flux_future_t *f, void *arg)
{
    struct event *ev = arg;
    struct batch *batch = ev->inflight;
    int errnum = 0;

    if (flux_future_get (f, NULL) < 0) {
        errnum = errno;
        fatal (ev->jm, "eventlog commit failed");
    }
    ev->inflight = NULL;
    if (ev->open) {
        flux_timer_watcher_reset (ev->timer, ev->timeout, 0.);
        flux_watcher_start (ev->timer);
    }
    batch_finish (batch, errnum);
}

static void timer_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                      void *arg)
{
    struct event *ev = arg;
    struct batch *batch = ev->open;

    if (!batch || ev->inflight)
        return;
    ev->open = NULL;
    if (!batch->txn) {
        batch_finish (batch, 0);
        return;
    }
    ev->inflight = batch;
    if (!(batch->f = flux_kvs_commit (ev->jm->h, NULL, 0, batch->txn))
        || flux_future_then (batch->f, -1., commit_continuation, ev) < 0)
        fatal (ev->jm, "error sending eventlog commit");
}

static int batch_append (struct manager *jm, struct job *job, json_t *entry)
{
    struct batch *batch;
    char key[64];
    char *line;
    int rc;

    if (!(batch = batch_open (jm->event))
        || (!batch->txn && !(batch->txn = flux_kvs_txn_create ()))
        || flux_job_kvs_key (key, sizeof (key), job->id, "eventlog") < 0
        || !(line = entry_encode (entry)))
        return -1;
    rc = flux_kvs_txn_put (batch->txn, FLUX_KVS_APPEND, key, line);
    free (line);
    return rc;
}

static int hold_job (struct manager *jm, struct job *job)
{
    struct batch *batch;
    struct job **held;

    if (!(batch = batch_open (jm->event))
        || !(held = realloc (batch->held,
                             (batch->nheld + 1) * sizeof (*held))))
        return -1;
    batch->held = held;
    batch->held[batch->nheld++] = job_incref (job);
    job->hold = true;
    return 0;
}

int event_respond (struct manager *jm, flux_msg_t *response)
{
    struct batch *batch;

    if (!(batch = batch_open (jm->event))
        || (!batch->responses
            && !(batch->responses = flux_msglist_create ())))
        return -1;
    return flux_msglist_append (batch->responses, response);
}

int event_action (struct manager *jm, struct job *job)
{
    return jm->event->ops->act (jm, job);
}

static bool fatal_in_new (struct job *job, const char *name, json_t *context)
{
    int severity = -1;

    return job->state == FLUX_JOB_STATE_NEW
        && streq (name, "exception")
        && json_unpack (context, "{s:i}", "severity", &severity) == 0
        && severity == 0;
}

static int process (struct manager *jm, struct job *job, int flags,
                    json_t *entry)
{
    flux_job_state_t old_state = job->state;
    bool was_running = (old_state & FLUX_JOB_STATE_RUNNING) != 0;
    bool is_running;
    const char *name;
    json_t *context;

    if (entry_parse (entry, NULL, &name, &context) < 0)
        return -1;
    if (fatal_in_new (job, name, context)) {
        flux_log (jm->h, LOG_ERR, "%s: fatal exception in NEW state",
                  idf58 (job->id));
        errno = EINVAL;
        return -1;
    }
    if (job_apply_event (job, entry) < 0) // then it did not happen
        return -1;
    if (!(flags & EVENT_NO_COMMIT)
        && (json_array_append (job->eventlog, entry) < 0
            || (!(flags & EVENT_COMMITTED)
                && batch_append (jm, job, entry) < 0)))
        return -1;
    journal_event (jm, job, name, entry);
    is_running = (job->state & FLUX_JOB_STATE_RUNNING) != 0;
    jm->running_jobs += is_running - was_running;
    jm->event->ops->applied (jm, job, entry, old_state);
    return event_action (jm, job);
}

static struct queued_event *dequeue (struct job *job)
{
    struct queued_event *qe = job->evq;

    job->evq = qe->next;
    return qe;
}

/* Handle queued events until there is none.  The entry being handled stays
 * at the head: that is how event_post_entry() sees it must only queue.
 * The result is that of the first one.
 */
static int drain_queue (struct manager *jm, struct job *job)
{
    int errnum = 0;

    job_incref (job); // handling "clean" may drop the last reference
    for (bool first = true; job->evq; first = false) {
        struct queued_event *qe = job->evq;
        const char *name = "?";

        if (!job->readonly && process (jm, job, qe->flags, qe->entry) < 0) {
            if (first)
                errnum = errno;
            (void)entry_parse (qe->entry, NULL, &name, NULL);
            flux_log_error (jm->h, "%s: error handling event %s",
                            idf58 (job->id), name);
        }
        qe = dequeue (job);
        json_decref (qe->entry);
        free (qe);
    }
    job_decref (job);
    if (errnum) {
        errno = errnum;
        return -1;
    }
    return 0;
}

int event_post_entry (struct manager *jm, struct job *job, int flags,
                      json_t *entry)
{
    struct queued_event *qe;
    struct queued_event **tail = &job->evq;
    bool busy = job->evq != NULL || job->hold;

    if (job->readonly) {
        errno = EROFS;
        return -1;
    }
    if (!(qe = calloc (1, sizeof (*qe))))
        return -1;
    qe->flags = flags;
    qe->entry = json_incref (entry);
    while (*tail)
        tail = &(*tail)->next;
    *tail = qe;
    return busy ? 0 : drain_queue (jm, job);
}

int event_post_held (struct manager *jm, struct job *job, const char *name)
{
    json_t *entry;
    int rc = -1;

    if (!(entry = json_pack ("{s:f s:s}",
                             "timestamp", now_realtime (),
                             "name", name)))
        return -1;
    if (batch_append (jm, job, entry) == 0 && hold_job (jm, job) == 0)
        rc = event_post_entry (jm, job, EVENT_COMMITTED, entry);
    json_decref (entry);
    return rc;
}

int event_vpost (struct manager *jm, struct job *job, int flags,
                 const char *name, const char *fmt, va_list ap)
{
    json_t *entry;
    int rc;

    if (!(entry = entry_vpack (0., name, fmt, ap)))
        return -1;
    rc = event_post_entry (jm, job, flags, entry);
    json_decref (entry);
    return rc;
}

int event_post (struct manager *jm, struct job *job, int flags,
                const char *name, const char *fmt, ...)
{
    return VA (fmt, event_vpost (jm, job, flags, name, fmt, ap));
}

struct event *event_create (struct manager *jm, const struct event_ops *ops)
{
    struct event *ev;

    if (!(ev = calloc (1, sizeof (*ev))))
        return NULL;
    ev->jm = jm;
    ev->ops = ops;
    if (!(ev->timer = flux_timer_watcher_create (flux_get_reactor (jm->h),
                                                 0., 0., timer_cb, ev))) {
        free (ev);
        return NULL;
    }
    return ev;
}

/* Finish a batch without the reactor. */
static void flush (struct event *ev, struct batch *batch)
{
    int errnum = 0;

    if (batch->txn && !batch->f)
        batch->f = flux_kvs_commit (ev->jm->h, NULL, 0, batch->txn);
    if (batch->txn && flux_future_get (batch->f, NULL) < 0) {
        errnum = errno;
        flux_log_error (ev->jm->h, "final eventlog commit failed");
    }
    batch_finish (batch, errnum);
}

void event_destroy (struct event *ev)
{
    if (ev) {
        ERRNO_SAFE_BLOCK;

        // finishing a batch releases held jobs, whose events open another
        while (ev->inflight || ev->open) {
            struct batch *batch = ev->inflight ? ev->inflight : ev->open;

            if (batch == ev->inflight)
                ev->inflight = NULL;
            else
                ev->open = NULL;
            flush (ev, batch);
        }
        flux_watcher_destroy (ev->timer);
        free (ev);
    }
}
