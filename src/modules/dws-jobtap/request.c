/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Requests to the dws service; see request.h.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include "libutil/errno_safe.h"
#include "libutil/safelog.h"

#include "abandon.h"
#include "request.h"

static bool service_missing (int errnum)
{
    return errnum == ENOSYS || errnum == EHOSTUNREACH;
}

/* Take ownership of 'f', in place of the job's last request. 'exception' is
 * raised if it fails.
 */
static int await_request (struct jobtap_job *job,
                          flux_future_t *f,
                          flux_continuation_f cb,
                          const char *exception)
{
    if (jobtap_job_await (job, &job->f_request, f, -1., cb) < 0)
        return -1;
    job->exception = exception;
    return 0;
}

/* 'text' may belong to the future, which can go away with the job.
 */
static void request_failed (struct jobtap_job *job,
                            const char *what,
                            const char *text)
{
    struct jobtap *ctx = job->ctx;
    flux_jobid_t id = job->id;
    const char *exception = job->exception;
    char buf[512];

    snprintf (buf, sizeof (buf), "%s", text);
    if (!exception) {
        safe_log (ctx->h, LOG_ERR, "dws: %s: %s: %s", job->idf58, what, buf);
        return;
    }
    jobtap_job_raise (job, exception, buf);
    /* If even post_run is refused, nobody is left to release the epilog. */
    if (!strcmp (exception, DWS_EPILOG)
        && (job = jobtap_job_lookup (ctx, id)))
        jobtap_let_go (job);
}

static void request_answer_cb (flux_future_t *f, void *arg)
{
    struct jobtap_job *job = arg;

    if (flux_future_get (f, NULL) == 0) {
        if (job->taken == JOBTAP_TAKEN_MAYBE)
            job->taken = JOBTAP_TAKEN_YES;
        return;
    }
    if (job->taken == JOBTAP_TAKEN_MAYBE)
        job->taken = JOBTAP_TAKEN_NO;
    if (service_missing (errno)) {
        safe_log (job->ctx->h,
                  LOG_WARNING,
                  "dws: %s waits for the dws service",
                  job->idf58);
        return;
    }
    request_failed (job, "dws request", flux_future_error_string (f));
}

static void setup_R_cb (flux_future_t *f, void *arg)
{
    struct jobtap_job *job = arg;
    json_t *R;

    if (flux_kvs_lookup_get_unpack (f, "o", &R) < 0) {
        request_failed (job, "reading R", flux_future_error_string (f));
        return;
    }
    /* await_request() destroys f, and R with it, but the message has R by then. */
    if (await_request (job,
                       flux_rpc_pack (job->ctx->h,
                                      "dws.setup",
                                      FLUX_NODEID_ANY,
                                      0,
                                      "{s:I s:O}",
                                      "jobid", (json_int_t)job->id,
                                      "R", R),
                       request_answer_cb,
                       DWS_PROLOG) < 0)
        request_failed (job, "dws.setup", strerror (errno));
}

int jobtap_request_create (struct jobtap_job *job)
{
    json_t *place = jobtap_job_place (job);
    flux_future_t *f = NULL;
    json_t *o = NULL;

    if (place
        && (o = json_pack ("{s:I s:I s:O s:O s:i s:s*}",
                           "jobid", (json_int_t)job->id,
                           "userid", (json_int_t)job->userid,
                           "dw_directives", job->dw,
                           "resources", job->resources,
                           "failure_tolerance", job->failure_tolerance,
                           "group", job->group))
        && json_object_update (o, place) == 0
        && json_object_update (o, job->where) == 0)
        f = flux_rpc_pack (job->ctx->h, "dws.create", FLUX_NODEID_ANY, 0,
                           "O", o);
    else
        errno = ENOMEM;
    ERRNO_SAFE (json_decref (o));
    ERRNO_SAFE (json_decref (place));
    if (await_request (job, f, request_answer_cb,
                       jobtap_facts_depend_held (&job->facts)
                       ? DWS_DEPENDENCY : NULL) < 0)
        return -1;
    if (job->taken == JOBTAP_TAKEN_NO)
        job->taken = JOBTAP_TAKEN_MAYBE;
    return 0;
}

int jobtap_request_setup (struct jobtap_job *job)
{
    char key[64];

    if (flux_job_kvs_key (key, sizeof (key), job->id, "R") < 0)
        return -1;
    return await_request (job,
                          flux_kvs_lookup (job->ctx->h, NULL, 0, key),
                          setup_R_cb,
                          DWS_PROLOG);
}

int jobtap_request_post_run (struct jobtap_job *job)
{
    return await_request (job,
                          flux_rpc_pack (job->ctx->h,
                                         "dws.post_run",
                                         FLUX_NODEID_ANY,
                                         0,
                                         "{s:I s:b}",
                                         "jobid", (json_int_t)job->id,
                                         "run_started", job->facts.run_started),
                          request_answer_cb,
                          DWS_EPILOG);
}

void jobtap_request_teardown (struct jobtap_job *job)
{
    if (await_request (job,
                       flux_rpc_pack (job->ctx->h,
                                      "dws.teardown",
                                      FLUX_NODEID_ANY,
                                      0,
                                      "{s:I}",
                                      "jobid", (json_int_t)job->id),
                       request_answer_cb,
                       NULL) < 0)
        safe_log_error (job->ctx->h, "dws: %s: dws.teardown", job->idf58);
}
