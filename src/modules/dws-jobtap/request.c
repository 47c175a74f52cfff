/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Requests to the dws service; see request.h.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include "request.h"

static bool service_missing (int errnum)
{
    return errnum == ENOSYS || errnum == EHOSTUNREACH;
}

/* Take ownership of 'f', in place of the job's last request.
 */
static int watch (struct dws_job *job,
                  flux_future_t *f,
                  flux_continuation_f cb,
                  const char *exception)
{
    if (!f)
        return -1;
    if (flux_future_then (f, -1., cb, job) < 0) {
        int saved_errno = errno;
        flux_future_destroy (f);
        errno = saved_errno;
        return -1;
    }
    flux_future_destroy (job->f_request);
    job->f_request = f;
    job->exception = exception;
    return 0;
}

/* 'text' may belong to the future, which can go away with the job.
 */
static void fail (struct dws_job *job, const char *what, const char *text)
{
    struct dws_ctx *ctx = job->ctx;
    flux_jobid_t id = job->id;
    const char *exception = job->exception;
    char buf[512];

    snprintf (buf, sizeof (buf), "%s", text);
    if (!exception) {
        flux_log (ctx->h, LOG_ERR, "dws: %s: %s: %s", job->idf58, what, buf);
        return;
    }
    dws_job_raise (job, exception, buf);
    /* If even post_run is refused, nobody is left to release the epilog. */
    if (!strcmp (exception, DWS_EPILOG)
        && (job = dws_job_lookup (ctx, id))
        && dws_job_release_epilog (job, 1) < 0)
        flux_log_error (ctx->h, "dws: job %ju: epilog", (uintmax_t)id);
}

static void answer_cb (flux_future_t *f, void *arg)
{
    struct dws_job *job = arg;

    if (flux_future_get (f, NULL) == 0)
        return;
    if (service_missing (errno)) {
        flux_log (job->ctx->h,
                  LOG_WARNING,
                  "dws: %s waits for the dws service",
                  job->idf58);
        return;
    }
    fail (job, "dws request", flux_future_error_string (f));
}

static void setup_cb (flux_future_t *f, void *arg)
{
    struct dws_job *job = arg;
    json_t *R;

    if (flux_kvs_lookup_get_unpack (f, "o", &R) < 0) {
        fail (job, "reading R", flux_future_error_string (f));
        return;
    }
    /* This destroys f, and R with it, but not before R is in the message. */
    if (watch (job,
               flux_rpc_pack (job->ctx->h,
                              "dws.setup",
                              FLUX_NODEID_ANY,
                              0,
                              "{s:I s:O}",
                              "jobid", (json_int_t)job->id,
                              "R", R),
               answer_cb,
               DWS_PROLOG) < 0)
        fail (job, "dws.setup", strerror (errno));
}

int dws_request_create (struct dws_job *job)
{
    return watch (job,
                  flux_rpc_pack (job->ctx->h,
                                 "dws.create",
                                 FLUX_NODEID_ANY,
                                 0,
                                 "{s:I s:i s:O s:O s:i s:s*}",
                                 "jobid", (json_int_t)job->id,
                                 "userid", job->userid,
                                 "dw_directives", job->dw,
                                 "resources", job->resources,
                                 "failure_tolerance",
                                 job->failure_tolerance,
                                 "group", job->group),
                  answer_cb,
                  DWS_DEPENDENCY);
}

int dws_request_setup (struct dws_job *job)
{
    char key[64];

    if (flux_job_kvs_key (key, sizeof (key), job->id, "R") < 0)
        return -1;
    return watch (job,
                  flux_kvs_lookup (job->ctx->h, NULL, 0, key),
                  setup_cb,
                  DWS_PROLOG);
}

int dws_request_post_run (struct dws_job *job)
{
    return watch (job,
                  flux_rpc_pack (job->ctx->h,
                                 "dws.post_run",
                                 FLUX_NODEID_ANY,
                                 0,
                                 "{s:I s:b}",
                                 "jobid", (json_int_t)job->id,
                                 "run_started", job->facts.run_started),
                  answer_cb,
                  DWS_EPILOG);
}

static void request_simple (struct dws_job *job, const char *topic)
{
    if (watch (job,
               flux_rpc_pack (job->ctx->h,
                              topic,
                              FLUX_NODEID_ANY,
                              0,
                              "{s:I}",
                              "jobid", (json_int_t)job->id),
               answer_cb,
               NULL) < 0)
        flux_log_error (job->ctx->h, "dws: %s: %s", job->idf58, topic);
}

void dws_request_teardown (struct dws_job *job)
{
    request_simple (job, "dws.teardown");
}

void dws_request_abort (struct dws_job *job)
{
    request_simple (job, "dws.abort");
}

// vi: ts=4 sw=4 expandtab
