/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Requests that wait: for a waitable job to end (job-manager.wait), for all jobs
 * to end (drain), for no job to be running or about to (idle).
 */
#include "libutil/errno_safe.h"
#include "manager.h"

struct waiters {
    struct manager *jm;
    struct idmap *zombies;          // ended, not waited for yet
    int waiting;                    // requests for a given active job
    int waitables;                  // active waitable jobs
    struct flux_msglist *any;       // requests for any job
    struct flux_msglist *drain;
    struct flux_msglist *idle;
};

/* 1 success, 0 failure, -1 error; 'text' says why it failed. */
static int job_succeeded (struct job *job, flux_error_t *text)
{
    const char *name;
    const char *type;
    const char *note;
    json_t *context;
    int status;

    text->text[0] = '\0';
    if (!job->end_event
        || entry_parse (job->end_event, NULL, &name, &context) < 0)
        return -1;
    if (json_unpack (context, "{s:i}", "status", &status) == 0)
        return flux_job_waitstatus_to_exitcode (status, text) == 0;
    if (json_unpack (context, "{s:s s:s}", "type", &type, "note", &note) < 0)
        return -1;
    set_error (text, "Fatal exception type=%s %s", type, note);
    return 0;
}

static void wait_respond (struct manager *jm, const flux_msg_t *msg,
                          struct job *job)
{
    flux_error_t text;
    int success = job_succeeded (job, &text);

    if (success < 0) {
        errno = EPROTO;
        respond_error (jm->h, msg, "error decoding job result");
    }
    else
        respond_pack (jm->h, msg, "{s:I s:b s:s}",
                      "id", job->id,
                      "success", success,
                      "errstr", text.text);
}

void wait_job_active (struct manager *jm, struct job *job)
{
    jm->waiters->waitables++;
}

void wait_job_inactive (struct manager *jm, struct job *job)
{
    struct waiters *w = jm->waiters;
    const flux_msg_t *msg;

    w->waitables--;
    if (job->waiter) {
        wait_respond (jm, job->waiter, job);
        flux_msg_decref (job->waiter);
        job->waiter = NULL;
        w->waiting--;
    }
    else if ((msg = flux_msglist_pop (w->any))) {
        wait_respond (jm, msg, job);
        flux_msg_decref (msg);
    }
    else if (idmap_insert (w->zombies, job->id, job) == 0)
        job_incref (job);
}

static void reap (struct manager *jm, const flux_msg_t *msg, struct job *job)
{
    wait_respond (jm, msg, job);
    idmap_delete (jm->waiters->zombies, job->id);
}

void wait_request (flux_t *h, flux_msg_handler_t *mh,
                   const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;
    struct waiters *w = jm->waiters;
    const char *errstr = NULL;
    flux_jobid_t id;
    struct job *job;

    if (flux_request_unpack (msg, NULL, "{s:I}", "id", &id) < 0)
        goto error;
    if (id == FLUX_JOBID_ANY) {
        if ((job = idmap_next (w->zombies, 0)))
            reap (jm, msg, job);
        else if (flux_msglist_append (w->any, msg) < 0)
            goto error;
    }
    else if ((job = idmap_find (w->zombies, id)))
        reap (jm, msg, job);
    else {
        errno = ECHILD; // as wait(2)
        if (!(job = idmap_find (jm->active, id)))
            errstr = "invalid job id, or job may be inactive and not waitable";
        else if (job->waiter)
            errstr = "somebody waits for that job already";
        else if (!(job->flags & FLUX_JOB_WAITABLE))
            errstr = "job was not submitted with FLUX_JOB_WAITABLE";
        if (errstr) {
            errno = ECHILD;
            goto error;
        }
        job->waiter = flux_msg_incref (msg);
        w->waiting++;
    }
    // with more waiters than jobs, the last of the any-job waiters has lost
    if (flux_msglist_count (w->any) + w->waiting > w->waitables) {
        const flux_msg_t *last = flux_msglist_last (w->any);

        if (last) {
            if (flux_respond_error (h, last, ECHILD,
                                    "there are no more waitable jobs") < 0)
                flux_log_error (h, "cannot answer job-manager.wait");
            flux_msglist_delete (w->any);
        }
    }
    return;
error:
    respond_error (h, msg, errstr);
}

static void answer_all (struct manager *jm, struct flux_msglist *l,
                        const char *key, int val)
{
    const flux_msg_t *msg;

    while ((msg = flux_msglist_pop (l))) {
        flux_msg_t *rsp = flux_response_derive (msg, 0);

        if (!rsp
            || (key && flux_msg_pack (rsp, "{s:i}", key, val) < 0)
            || event_respond (jm, rsp) < 0)
            flux_log_error (jm->h, "error answering drain or idle request");
        flux_msg_decref (rsp);
        flux_msg_decref (msg);
    }
}

/* Answers go out with the commit batch: what they promise is in the KVS. */
void wait_check_idle (struct manager *jm)
{
    struct waiters *w = jm->waiters;
    int active = idmap_count (jm->active);

    if (!w)
        return;
    if (active == 0)
        answer_all (jm, w->drain, NULL, 0);
    if (jm->running_jobs == 0 && jm->sent->count == 0)
        answer_all (jm, w->idle, "pending", active);
}

void drain_request (flux_t *h, flux_msg_handler_t *mh,
                    const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;
    const char *topic;
    struct flux_msglist *l;

    if (flux_request_decode (msg, &topic, NULL) < 0)
        goto error;
    l = streq (topic, "job-manager.drain") ? jm->waiters->drain
                                           : jm->waiters->idle;
    if (flux_msglist_append (l, msg) < 0)
        goto error;
    wait_check_idle (jm);
    return;
error:
    respond_error (h, msg, NULL);
}

void wait_disconnect (struct manager *jm, const flux_msg_t *msg)
{
    struct waiters *w = jm->waiters;
    struct job *job;

    (void)flux_msglist_disconnect (w->any, msg);
    (void)flux_msglist_disconnect (w->drain, msg);
    (void)flux_msglist_disconnect (w->idle, msg);
    if (w->waiting == 0)
        return;
    each_job (job, jm->active) {
        if (job->waiter && flux_disconnect_match (msg, job->waiter)) {
            flux_msg_decref (job->waiter);
            job->waiter = NULL;
            w->waiting--;
        }
    }
}

static void refuse (struct manager *jm, const flux_msg_t *msg)
{
    (void)flux_respond_error (jm->h, msg, ENOSYS, "job-manager is unloading");
    flux_msg_decref (msg);
}

static void refuse_all (struct manager *jm, struct flux_msglist *l)
{
    const flux_msg_t *msg;

    while (l && (msg = flux_msglist_pop (l)))
        refuse (jm, msg);
    flux_msglist_destroy (l);
}

void waiters_destroy (struct waiters *w)
{
    if (w) {
        ERRNO_SAFE_BLOCK;
        struct job *job;

        each_job (job, w->jm->active) {
            if (job->waiter)
                refuse (w->jm, job->waiter);
            job->waiter = NULL;
        }
        refuse_all (w->jm, w->any);
        refuse_all (w->jm, w->drain);
        refuse_all (w->jm, w->idle);
        idmap_destroy (w->zombies);
        free (w);
    }
}

struct waiters *waiters_create (struct manager *jm)
{
    struct waiters *w;

    if (!(w = calloc (1, sizeof (*w))))
        return NULL;
    w->jm = jm;
    if (!(w->zombies = idmap_create (job_decref))
        || !(w->any = flux_msglist_create ())
        || !(w->drain = flux_msglist_create ())
        || !(w->idle = flux_msglist_create ())) {
        waiters_destroy (w);
        return NULL;
    }
    return w;
}
