/* SPDX-License-Identifier: LGPL-3.0-only */
/* job-exec.c - the exec service: runs the jobs that job-manager sends.
 *
 * job-manager sends one job-exec.start request per job (RFC 32) and gets
 * responses of type start, exception, finish and release.  Around the run
 * itself, a job passes through these steps, each begun when the future of
 * the one before is ready:
 *
 *   create the guest namespace, link it into the job's directory, run,
 *   append the last events, move the namespace into the job's directory,
 *   release the resources.
 *
 * A restarted job-manager or instance sends start again with "reattach".
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "libutil/errno_safe.h"
#include "job-exec.h"

static void finalize (struct job *job, const char *events);

static void job_destroy (struct job *job)
{
    if (job) {
        ERRNO_SAFE_BLOCK;
        if (job->ops)
            job->ops->destroy (job);
        flux_future_destroy (job->step);
        flux_watcher_destroy (job->timer_expire);
        flux_watcher_destroy (job->timer_kill_tasks);
        flux_watcher_destroy (job->timer_kill_shells);
        idset_destroy (job->ranks);
        json_decref (job->jobspec);
        flux_msg_decref (job->req);
        free (job);
    }
}

struct job *exec_find_job (struct exec *exec, flux_jobid_t id)
{
    return idmap_get (exec->jobs, id);
}

/* Responses to job-manager
 */

static void respond (struct job *job, const char *type, json_t *data)
{
    if (!data
        || flux_respond_pack (job->h,
                              job->req,
                              "{s:I s:s s:O}",
                              "id", job->id,
                              "type", type,
                              "data", data) < 0)
        flux_log_error (job->h, "%s: %s response", idf58 (job->id), type);
    json_decref (data);
}

void job_exception (struct job *job, const char *type, const char *note)
{
    respond (job,
             "exception",
             json_pack ("{s:i s:s s:s}",
                        "severity", 0,
                        "type", type,
                        "note", note));
}

/* The guest eventlog
 */

static char *event_line (const char *name, const char *fmt, va_list ap)
{
    json_t *entry = entry_vpack (0., name, fmt, ap);
    char *line = entry ? entry_encode (entry) : NULL;

    json_decref (entry);
    return line;
}

static char *event_line_pack (const char *name, const char *fmt, ...)
{
    va_list ap;
    char *line;

    va_start (ap, fmt);
    line = event_line (name, fmt, ap);
    va_end (ap);
    return line;
}

static flux_future_t *append (struct job *job, const char *lines)
{
    flux_kvs_txn_t *txn;
    flux_future_t *f = NULL;

    if (!lines || !(txn = flux_kvs_txn_create ()))
        return NULL;
    if (flux_kvs_txn_put (txn, FLUX_KVS_APPEND, "exec.eventlog", lines) == 0)
        f = flux_kvs_commit (job->h, job->ns, 0, txn);
    flux_kvs_txn_destroy (txn);
    return f;
}

/* The KVS keeps the order of commits, so nobody waits for this one: whatever
 * follows it is seen after it.
 */
void job_event (struct job *job, const char *name, const char *fmt, ...)
{
    va_list ap;
    char *line;
    flux_future_t *f;

    va_start (ap, fmt);
    line = event_line (name, fmt, ap);
    va_end (ap);
    if (!(f = append (job, line)))
        flux_log_error (job->h, "%s: event %s", idf58 (job->id), name);
    flux_future_destroy (f);
    free (line);
}

/* The end by an error
 */

void job_fatal (struct job *job, int errnum, const char *fmt, ...)
{
    char text[256];
    char note[384];
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (text, sizeof (text), fmt, ap);
    va_end (ap);
    if (errnum)
        snprintf (note, sizeof (note), "%s: %s", text, strerror (errnum));
    else
        snprintf (note, sizeof (note), "%s", text);
    if (!job->exception) {
        job->exception = 1;
        job_exception (job, "exec", note);
    }
    if (job->started)
        job_cancel (job);
    else
        finalize (job, NULL);
}

/* The course of a job, last step first
 */

static void release (struct job *job)
{
    respond (job,
             "release",
             json_pack ("{s:s s:b}", "ranks", "all", "final", 1));
    (void)idmap_take (job->exec->jobs, job->id);
    job_destroy (job);
}

/* Go to the next step when f is ready.  An error when it could not even be
 * sent goes the same way as one that comes as a response.
 */
static void next_step (struct job *job, flux_future_t *f,
                       flux_continuation_f cb)
{
    if (!f || flux_future_then (f, -1., cb, job) < 0) {
        flux_log_error (job->h, "%s: KVS request", idf58 (job->id));
        flux_future_destroy (f);
        if (!job->exception) {
            job->exception = 1;
            job_exception (job, "exec", "KVS request failed");
        }
        release (job);
        return;
    }
    flux_future_destroy (job->step);
    job->step = f;
}

static void log_step (struct job *job, flux_future_t *f, const char *what)
{
    if (flux_future_get (f, NULL) < 0)
        flux_log_error (job->h, "%s: %s", idf58 (job->id), what);
}

static void moved_cb (flux_future_t *f, void *arg)
{
    log_step (arg, f, "move guest namespace");
    release (arg);
}

/* flux_kvs_copy() and flux_kvs_namespace_remove() would lose what the guest
 * commits in between.
 */
static void ended_cb (flux_future_t *f, void *arg)
{
    struct job *job = arg;
    char key[64];

    log_step (job, f, "append to exec.eventlog");
    f = NULL;
    if (flux_job_kvs_key (key, sizeof (key), job->id, "guest") > 0)
        f = flux_rpc_pack (job->h,
                           "kvs.namespace-move",
                           FLUX_NODEID_ANY,
                           0,
                           "{s:s s:s}",
                           "namespace", job->ns,
                           "key", key);
    next_step (job, f, moved_cb);
}

static void finalize (struct job *job, const char *events)
{
    char *done;
    char *lines = NULL;

    if (job->finalizing)
        return;
    job->finalizing = 1;
    flux_watcher_stop (job->timer_expire);
    flux_watcher_stop (job->timer_kill_tasks);
    flux_watcher_stop (job->timer_kill_shells);
    if (!job->has_namespace) {
        release (job);
        return;
    }
    if ((done = event_line_pack ("done", NULL))
        && asprintf (&lines, "%s%s", events ? events : "", done) < 0)
        lines = NULL;
    next_step (job, append (job, lines), ended_cb);
    free (lines);
    free (done);
}

void job_complete (struct job *job, int status)
{
    char *line;

    if (job->complete)
        return;
    job->complete = 1;
    job->status = status;
    if (job->exception) {
        if (job->exception_status >= 0)
            job->status = job->exception_status;
        else if (job->status == 0)
            job->status = 1 << 8;
    }
    respond (job, "finish", json_pack ("{s:i}", "status", job->status));
    line = event_line_pack ("complete", "{s:i}", "status", job->status);
    finalize (job, line);
    free (line);
}

void job_started (struct job *job)
{
    job->running = 1;
    job_set_expiration (job);
    if (job->reattach)
        respond (job, "reattached", json_object ());
    else
        respond (job, "start", json_object ());
}

static void linked_cb (flux_future_t *f, void *arg)
{
    struct job *job = arg;
    int rc;

    if (flux_future_get (f, NULL) < 0) {
        job_fatal (job, errno, "failed to link guest namespace");
        return;
    }
    if (job->exception) { // came meanwhile
        finalize (job, NULL);
        return;
    }
    if ((rc = test_ops.init (job)) == 0)
        rc = shell_ops.init (job);
    if (rc < 0) {
        job_fatal (job, errno, "failed to initialize implementation");
        return;
    }
    if (!job->reattach)
        job_event (job, "starting", NULL);
    job->started = 1;
    if (job->ops->start (job) < 0) {
        job_fatal (job, errno, "%s: start failed", job->ops->name);
        job_complete (job, 1 << 8);
    }
}

static void created_cb (flux_future_t *f, void *arg)
{
    struct job *job = arg;
    flux_kvs_txn_t *txn = NULL;
    char key[64];

    /* It is there when the job is taken up again, also after a crash just
     * before the start event was written.
     */
    if (flux_future_get (f, NULL) < 0 && errno != EEXIST) {
        job_fatal (job, errno, "failed to create guest ns");
        return;
    }
    job->has_namespace = 1;
    job_event (job, job->reattach ? "reattach" : "init", NULL);
    f = NULL;
    if (flux_job_kvs_key (key, sizeof (key), job->id, "guest") > 0
        && (txn = flux_kvs_txn_create ())
        && flux_kvs_txn_symlink (txn, 0, key, job->ns, ".") == 0)
        f = flux_kvs_commit (job->h, NULL, 0, txn);
    next_step (job, f, linked_cb);
    flux_kvs_txn_destroy (txn);
}

/* Requests and events
 */

/* The ranks and times of R.
 */
static int decode_R (struct job *job, json_t *R)
{
    json_t *lite;
    json_t *entry;
    size_t index;

    if (!(job->ranks = idset_create (0, IDSET_FLAG_AUTOGROW)))
        return -1;
    if (json_unpack (R,
                     "{s:{s:o s?F s?F}}",
                     "execution",
                       "R_lite", &lite,
                       "starttime", &job->starttime,
                       "expiration", &job->expiration) < 0)
        goto proto;
    json_array_foreach (lite, index, entry) {
        const char *s;
        struct idset *ids;
        if (json_unpack (entry, "{s:s}", "rank", &s) < 0
            || !(ids = idset_decode (s)))
            goto proto;
        if (idset_add (job->ranks, ids) < 0) {
            idset_destroy (ids);
            return -1;
        }
        idset_destroy (ids);
    }
    if (idset_count (job->ranks) > 0)
        return 0;
proto:
    errno = EPROTO;
    return -1;
}

static struct job *job_create (struct exec *exec, const flux_msg_t *msg)
{
    struct job *job;
    json_t *R;
    int reattach;

    if (!(job = calloc (1, sizeof (*job))))
        return NULL;
    job->exec = exec;
    job->h = exec->h;
    job->req = flux_msg_incref (msg);
    job->exception_status = -1;
    job->kill_timeout = exec->kill_timeout;
    job->t0 = now_realtime ();
    if (flux_request_unpack (msg,
                             NULL,
                             "{s:I s:i s:O s:b s:o}",
                             "id", &job->id,
                             "userid", &job->userid,
                             "jobspec", &job->jobspec,
                             "reattach", &reattach,
                             "R", &R) < 0
        || flux_job_kvs_namespace (job->ns, sizeof (job->ns), job->id) < 0
        || decode_R (job, R) < 0
        || idmap_add (exec->jobs, job->id, job) < 0) {
        job_destroy (job);
        return NULL;
    }
    job->reattach = reattach;
    return job;
}

static void start_cb (flux_t *h, flux_msg_handler_t *mh,
                      const flux_msg_t *msg, void *arg)
{
    struct exec *exec = arg;
    struct job *job;

    if (!(job = job_create (exec, msg))) {
        respond_error (h, msg, NULL);
        return;
    }
    next_step (job,
               flux_kvs_namespace_create (h, job->ns, job->userid, 0),
               created_cb);
}

static void exception_cb (flux_t *h, flux_msg_handler_t *mh,
                          const flux_msg_t *msg, void *arg)
{
    struct exec *exec = arg;
    flux_jobid_t id;
    int severity;
    int wait_status = -1;
    struct job *job;

    if (flux_event_unpack (msg,
                           NULL,
                           "{s:I s:i s?i}",
                           "id", &id,
                           "severity", &severity,
                           "wait_status", &wait_status) < 0) {
        flux_log_error (h, "job-exception event");
        return;
    }
    if (severity != 0
        || !(job = idmap_get (exec->jobs, id))
        || job->finalizing)
        return;
    if (!job->exception && wait_status >= 0) {
        int code = WIFSIGNALED (wait_status) ? 128 + WTERMSIG (wait_status)
                                             : WEXITSTATUS (wait_status);
        job->exception_status = code << 8;
    }
    job->exception = 1;
    if (job->started)
        job_cancel (job);
}

static void expiration_cb (flux_t *h, flux_msg_handler_t *mh,
                           const flux_msg_t *msg, void *arg)
{
    struct exec *exec = arg;
    flux_jobid_t id;
    double expiration;
    struct job *job;

    if (flux_request_unpack (msg, NULL, "{s:I s:F}",
                             "id", &id,
                             "expiration", &expiration) < 0)
        goto error;
    if (!(job = idmap_get (exec->jobs, id))) {
        errno = ENOENT;
        goto error;
    }
    job->expiration = expiration;
    if (job->running && !job->finalizing)
        job_set_expiration (job);
    respond_ok (h, msg);
    return;
error:
    respond_error (h, msg, NULL);
}

static void config_reload_cb (flux_t *h, flux_msg_handler_t *mh,
                              const flux_msg_t *msg, void *arg)
{
    flux_conf_t *conf;
    flux_error_t error = { .text = "" };

    if (flux_module_config_request_decode (msg, &conf) < 0)
        goto error;
    if (exec_configure (arg, conf, &error) < 0 || flux_set_conf_new (h, conf) < 0) {
        flux_conf_decref (conf);
        goto error;
    }
    respond_ok (h, msg);
    return;
error:
    respond_error (h, msg, error.text);
}

static int hello (flux_t *h)
{
    flux_future_t *f;
    int rc = -1;

    if ((f = flux_rpc_pack (h,
                            "job-manager.exec-hello",
                            FLUX_NODEID_ANY,
                            0,
                            "{s:s}",
                            "service", "job-exec")))
        rc = flux_future_get (f, NULL);
    if (rc < 0)
        flux_log_error (h, "job-manager.exec-hello");
    flux_future_destroy (f);
    return rc;
}

static void exec_fini (struct exec *exec)
{
    size_t count = 0;
    void **jobs = exec->jobs ? idmap_values (exec->jobs, &count) : NULL;

    for (size_t i = 0; i < count; i++)
        job_destroy (jobs[i]);
    free (jobs);
    idmap_destroy (exec->jobs);
    flux_msg_handler_delvec (exec->handlers);
}

static const struct flux_msg_handler_spec htab[] = {
    { FLUX_MSGTYPE_REQUEST, "job-exec.start", start_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "job-exec.config-reload", config_reload_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "job-exec.expiration", expiration_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "job-exec.shell-barrier", shell_barrier_cb,
      FLUX_ROLE_USER },
    { FLUX_MSGTYPE_EVENT, "job-exception", exception_cb, 0 },
    FLUX_MSGHANDLER_TABLE_END,
};

int mod_main (flux_t *h, int argc, char **argv)
{
    struct exec exec = { .h = h };
    flux_error_t error;
    int rc = -1;

    if (exec_configure (&exec, flux_get_conf (h), &error) < 0) {
        flux_log (h, LOG_ERR, "%s", error.text);
        goto done;
    }
    if (!(exec.jobs = idmap_create ())
        || flux_msg_handler_addvec (h, htab, &exec, &exec.handlers) < 0
        || flux_event_subscribe (h, "job-exception") < 0) {
        flux_log_error (h, "initialization");
        goto done;
    }
    if (hello (h) < 0)
        goto done;
    rc = flux_reactor_run (flux_get_reactor (h), 0);
done:
    exec_fini (&exec);
    return rc;
}

// vi: ts=4 sw=4 expandtab
